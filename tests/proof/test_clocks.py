"""Leases against injected clocks: the wall clock jumps, the machine sleeps or starts anew, time stamps still increase.

A lease runs on the monotonic clock of one boot. What a lease on the wall clock would do is the seeded bug.
"""

from __future__ import annotations

import itertools
import json
import random

import pytest

from conftest import Clock, add, open_board
from taskwall.core.errors import Refused
from taskwall.core.model import Settings
from taskwall.core.rules import Draft
from taskwall.stores.files import ledger
from taskwall.stores.files.store import FileStore

TTL = 15
HOUR = 60
JUMPS = (-HOUR, -1, 0, 1, HOUR, 24 * HOUR)
"""By how many minutes somebody sets the wall clock."""


class Machine(Clock):
    """A clock whose parts part: the wall clock can be set, suspended time is none of the monotonic clock's."""

    def __init__(self):
        super().__init__()
        self.boot = "boot 1"

    def set_wall(self, minutes):
        self.now += int(minutes * 60_000_000_000)

    def suspend(self, minutes):
        self.set_wall(minutes)

    def reboot(self, minutes=5):
        self.set_wall(minutes)
        self.uptime, self.boot = 20.0, f"{self.boot}+"


class WallLeases(Machine):
    """The seeded bug: leases on the wall clock, on whatever boot."""

    def monotonic(self):
        return self.now / 1_000_000_000

    def reboot(self, minutes=5):
        self.set_wall(minutes)


class Play:
    """One holder with a lease, one who would like its task, on a board of files read anew at each step."""

    def __init__(self, folder, clock, monkeypatch):
        self.path, self.clock = folder / ".tasks", clock
        self.path.mkdir(parents=True)
        monkeypatch.setattr(ledger, "boot_id", lambda: clock.boot)
        add(self.board("maker"), "t")
        self.token = self.board("old").claim("t", ttl=TTL).row.task.token
        self.unbeaten = 0.0  # minutes of this boot since the lease was renewed
        self.died = False
        self.faults = []

    def board(self, name):
        store = FileStore(str(self.path), Settings(durability="fast", max_attempts=99), self.clock.monotonic)
        return open_board(store, name, clock=self.clock, root=self.path.parent)

    def run(self, minutes):
        self.clock.sleep(minutes=minutes)
        self.unbeaten += minutes

    def suspend(self, minutes):
        self.clock.suspend(minutes)

    def set_wall(self, minutes):
        self.clock.set_wall(minutes)

    def reboot(self, _=0):
        self.clock.reboot()
        self.died = True

    def beat(self, _=0):
        """The holder says that it lives; after a reboot there is no such holder."""
        if not self.died:
            self.board("old").heartbeat(self.token)
            self.unbeaten = 0.0

    @property
    def due(self):
        """Whether the lease has really run out."""
        return self.died or self.unbeaten >= TTL

    def look(self):
        """Whether the task can be had now, against whether it should be."""
        shown = self.board("new").get("t").row.state
        if shown != ("stale" if self.due else "in_progress"):
            self.faults.append(f"{'too late' if self.due else 'too early'}: {shown} after {self.unbeaten} minutes")

    def end(self):
        """The other takes what it can have; a holder that was superseded changes nothing any more."""
        before = (self.path / "t.json").read_bytes()
        try:
            self.board("new").claim("t", ttl=TTL)
        except Refused:
            if self.due:
                self.faults.append("what nobody keeps cannot be had")
            self.board("old").complete(self.token)
            return
        if not self.due:
            self.faults.append("an early steal")
        taken = (self.path / "t.json").read_bytes()
        assert taken != before
        for act, name in itertools.product(("complete", "release", "heartbeat"), ("t", self.token)):
            try:
                getattr(self.board("old"), act)(name)
                self.faults.append(f"a zombie could {act} {name}")
            except Refused as refusal:
                if refusal.code != "superseded":
                    self.faults.append(f"{act}: {refusal.code}")
        if (self.path / "t.json").read_bytes() != taken:
            self.faults.append("a zombie wrote")


ACTS = (
    [("run", m) for m in (1, 5, 14, 14.9, 15.1, 60)]
    + [("set_wall", m) for m in JUMPS]
    + [("suspend", 8 * HOUR), ("suspend", 1), ("reboot", 0)]
    + [("beat", 0)] * 4
)


NAMED = [
    [("set_wall", HOUR), ("beat", 0), ("run", 14)],
    [("set_wall", -HOUR), ("beat", 0), ("run", 16)],
    [("run", 14), ("set_wall", HOUR)],
    [("run", 16), ("set_wall", -HOUR)],
    [("suspend", 8 * HOUR), ("run", 14)],
    [("run", 7), ("suspend", 8 * HOUR), ("run", 7.9)],
    [("run", 7), ("suspend", 8 * HOUR), ("run", 8.1)],
    [("reboot", 0)],
    [("run", 1), ("reboot", 0), ("run", 1)],
    [("beat", 0), ("reboot", 0), ("set_wall", -HOUR)],
]


def plays(seed, count):
    """The named courses of events, then random ones."""
    chance = random.Random(seed)
    return NAMED + [chance.choices(ACTS, k=chance.randint(1, 8)) for _ in range(count - len(NAMED))]


def faults(folder, monkeypatch, courses, clock=Machine):
    found = []
    for number, course in enumerate(courses):
        play = Play(folder / str(number), clock(), monkeypatch)
        for act, minutes in course:
            getattr(play, act)(minutes)
            play.look()
        play.end()
        found += [(course, fault) for fault in play.faults]
    return found


def test_clocks_quickly(tmp_path, monkeypatch, figure):
    figure(
        "clocks: courses of events, quick", tried=25, bad=faults(tmp_path, monkeypatch, plays("quick", 25)), at_least=25
    )


@pytest.mark.slow
def test_no_early_steal_and_no_zombie_write_whatever_the_clocks_do(tmp_path, monkeypatch, figure):
    bad = faults(tmp_path, monkeypatch, plays("long", 600))
    figure("clocks: courses of events", tried=600, bad=bad, at_least=600)


@pytest.mark.parametrize(
    "course", [NAMED[2], NAMED[3], NAMED[4], NAMED[7]], ids=["forward", "back", "suspend", "reboot"]
)
def test_a_lease_on_the_wall_clock_is_found(tmp_path, monkeypatch, course):
    assert faults(tmp_path, monkeypatch, [course], WallLeases), "the detector sees nothing"


def test_a_lease_that_survives_its_boot_is_found(tmp_path, monkeypatch):
    class Forgetful(Machine):
        def reboot(self, minutes=5):
            super().reboot(minutes)
            self.boot = "boot 1"

    assert faults(tmp_path, monkeypatch, [NAMED[7]], Forgetful), "the detector sees nothing"


def test_an_old_epoch_that_is_let_in_is_found(tmp_path, monkeypatch):
    from taskwall.core import rules
    from taskwall.core.rules import change

    monkeypatch.setattr(rules, "require_current", lambda *_: None)
    monkeypatch.setattr(change, "is_mine", lambda *_: True)
    found = faults(tmp_path, monkeypatch, [[("run", 16)]])
    assert any("zombie" in fault for _, fault in found), "the detector sees nothing"


# Time stamps along a plan


class Stopped(Clock):
    """A clock too coarse to tell two looks apart."""

    def __call__(self):
        return self.now


def disorder(folder, clock, size):
    """Neighbours of a plan whose time stamps do not increase."""
    path = folder / ".tasks"
    path.mkdir(parents=True)
    board = open_board(FileStore(str(path), Settings(durability="fast")), clock=clock)
    board.create([Draft(f"step {n}", id=f"s{n}") for n in range(size)])
    times = [json.loads((path / f"s{n}.json").read_text())["createdAt"] for n in range(size)]
    return [(a, b) for a, b in zip(times, times[1:], strict=False) if not a < b]


def test_time_stamps_increase_along_a_plan(tmp_path, figure):
    bad = disorder(tmp_path / "moving", Clock(), 200) + disorder(tmp_path / "stopped", Stopped(), 200)
    figure("clocks: time stamps along a plan", tried=398, bad=bad, at_least=398)


def test_one_time_stamp_for_a_whole_plan_is_found(tmp_path, monkeypatch):
    from taskwall import board

    stamp = board.timestamp
    monkeypatch.setattr(board, "timestamp", lambda now: stamp(now - now % 1_000_000_000))
    assert disorder(tmp_path, Stopped(), 5), "the detector sees nothing"
