"""A board in PostgreSQL under many processes: I4, I7 and the leases of the server's clock, each beside a seeded bug."""

from __future__ import annotations

import re
import threading
import time

import pytest
from conftest import open_board
from crowd import board_of, claim_best, claim_hot, crowd, make_board, store_of
from postgres import COUNT, at_length, board_url, drift, open_postgres
from test_contended import TASKS, contend, faults
from test_linearizable import TASKS as FEW
from test_linearizable import violations

from taskwall.core.errors import Refused
from taskwall.core.refusals import Cycle
from taskwall.core.rules import Draft, Edit
from taskwall.core.state import find_cycle
from taskwall.stores.postgres.database import Session

pytestmark = pytest.mark.slow


def place(_=None):
    return board_url(f"crowd{next(COUNT)}")


# Claims


def test_contended_claims_in_postgres_are_granted_once_quickly(figure):
    contend(place, figure, {2: 60, 4: 60}, " in PostgreSQL")


@at_length
def test_contended_claims_in_postgres_are_granted_once_in_twenty_thousand_operations(figure):
    contend(place, figure, {1: 3_000, 2: 7_000, 8: 6_000, 32: 4_000}, " in PostgreSQL")


def test_without_its_locks_two_processes_hold_one_task(figure):
    board = make_board(place(), TASKS)
    done, _ = crowd(claim_best, board, 4, 240, bug="no-lock")
    assert [fault for fault in faults(done, board) if "'claim'" in fault], "the detector sees nothing"


def epochs_follow_the_clock(figure, shares):
    for processes, operations in shares.items():
        board = make_board(place(), FEW)
        done, _ = crowd(claim_hot, board, processes, operations)
        name = f"linearizability in PostgreSQL: epochs against the clock, {processes} processes"
        figure(name, tried=len(done), bad=violations(done), at_least=operations)
        assert drift(store_of(board)) == []


def test_epochs_in_postgres_follow_the_clock_quickly(figure):
    epochs_follow_the_clock(figure, {4: 160})


@at_length
def test_epochs_in_postgres_follow_the_clock_in_twenty_thousand_operations(figure):
    epochs_follow_the_clock(figure, {2: 8_000, 6: 7_000, 16: 5_000})


def test_without_its_locks_epochs_in_postgres_contradict_each_other(figure):
    done, _ = crowd(claim_hot, make_board(place(), FEW), 4, 240, bug="no-lock")
    assert violations(done), "the detector sees nothing"


# Cycles


def race(rounds, writers, until=lambda rings: False):
    """So many at once each let one task wait for the next, in a ring; rings that came to be, and what went wrong else."""
    where = place()
    names = [f"t{n}" for n in range(writers)]
    boards = [board_of(where, name) for name in names]
    boards[0].store.make()
    boards[0].create([Draft(name, id=name) for name in names])
    rings, wrong = [], []
    for number in range(rounds):
        outcomes, barrier = {}, threading.Barrier(writers)

        def block(at):
            barrier.wait()
            try:
                boards[at].update(names[at], Edit(add_blocked_by=(names[at - 1],)))
                outcomes[at] = "kept"
            except Refused as refusal:
                outcomes[at] = refusal.code

        threads = [threading.Thread(target=block, args=(at,)) for at in range(writers)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        view = boards[0].store.read()
        if find_cycle(view, names):
            rings.append(number)
        elif sorted(outcomes.values()) != sorted([Cycle.code] + ["kept"] * (writers - 1)):
            wrong.append(outcomes)
        if until(rings):
            break
        for name, before in zip(names, [names[-1], *names]):
            boards[0].update(name, Edit(remove_blocked_by=(before,)))
    return rings, wrong


@pytest.mark.parametrize(("writers", "rounds"), [(2, 40), (3, 20)])
def test_no_two_writers_close_a_ring_together(figure, writers, rounds):
    rings, wrong = race(rounds, writers)
    figure(f"rings closed by {writers} writers at once in PostgreSQL, quick", tried=rounds, bad=rings + wrong)


@at_length
@pytest.mark.parametrize(("writers", "rounds"), [(2, 2_000), (3, 1_000), (6, 300)])
def test_no_writers_close_a_ring_together_in_thousands_of_rounds(figure, writers, rounds):
    rings, wrong = race(rounds, writers)
    figure(f"rings closed by {writers} writers at once in PostgreSQL", tried=rounds, bad=rings + wrong)


def test_without_the_boards_lock_they_close_one(monkeypatch):
    script = Session.script
    bare = lambda self, text: script(self, re.sub(r"SELECT pg_advisory_xact_lock\w*\([^)]*\);", "", text))  # noqa: E731
    monkeypatch.setattr(Session, "script", bare)
    rings, _ = race(200, 2, until=bool)
    assert rings, "the detector sees nothing"


# Leases

HOURS = 3_600_000_000_000
SHORT = 0.004  # minutes: a quarter of a second


def wrong_by(hours):
    return lambda: time.time_ns() + hours * HOURS


def lapses(board, name, seconds):
    """Whether a lease runs out in time."""
    until = time.monotonic() + seconds
    while board.get(name).row.state != "stale" and time.monotonic() < until:
        time.sleep(0.02)
    return board.get(name).row.state == "stale"


def zombie_play(now=None, patience=20):
    """What goes wrong when holders and takers have clocks that are hours off; now: the seconds that their stores go by."""
    found = []
    for ahead in (-9, 0, 9):
        store = open_postgres()
        shared = {"database": store.database, "name": store.name}
        old_store, new_store = open_postgres(**shared), open_postgres(**shared)
        if now:
            old_store._now, new_store._now = now(-ahead), now(ahead)
        old = open_board(old_store, "old", clock=wrong_by(-ahead))
        new = open_board(new_store, "new", clock=wrong_by(ahead))
        old.create([Draft("long", id="long"), Draft("short", id="short")])
        old.claim("long", ttl=15)
        if new.get("long").row.state != "in_progress":
            found.append("an early steal")
        token = old.claim("short", ttl=SHORT).row.task.token
        if not lapses(new, "short", patience):
            found.append("a dead holder keeps its task")
            continue
        new.claim("short", ttl=15)
        before = store.read().get("short"), store.read().claim("short").replace(left=0)
        for verb in ("complete", "release", "heartbeat"):
            for name in (token, "short"):
                try:
                    getattr(old, verb)(name)
                    found.append(f"a zombie could {verb} {name}")
                except Refused as refusal:
                    found += [] if refusal.code == "superseded" else [f"{verb}: {refusal.code}"]
        old.beat([token], ttl=15)
        if (store.read().get("short"), store.read().claim("short").replace(left=0)) != before:
            found.append("a zombie wrote")
        new.complete("short")
    return found


def test_a_zombie_is_refused_and_only_the_servers_clock_counts(figure):
    figure("zombies and wrong clocks in PostgreSQL", tried=3 * 9, bad=zombie_play())


def test_leases_by_the_clocks_of_clients_are_found():
    found = zombie_play(lambda hours: lambda: str(time.time() + 3600.0 * hours), patience=0.5)
    assert {"an early steal", "a dead holder keeps its task"} <= {*found}, "the detector sees nothing"
