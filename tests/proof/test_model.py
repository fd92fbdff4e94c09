"""The board of files against one in memory, with processes that are killed at any operation and an editor in between.

What a killed process leaves is judged against a copy of the board on which the same request was carried out: a fresh
process sees all of it or nothing, also when the recovery is killed in its turn, and an edit made meanwhile stays.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections import Counter

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, multiple, rule, run_state_machine_as_test

from conftest import ids, open_board
from taskwall.core.errors import Refused
from taskwall.core.rules import Draft, Edit
from taskwall.stores.files import journal, store
from taskwall.stores.files.disk import Disk, write_all
from taskwall.stores.files.store import FileStore
from test_machine import ACTORS, RULES, Boards, standing


class Killed(BaseException):
    """The process is dead: nothing of it runs any more."""


class Deadly(Disk):
    """Kills its process before operation `at`, or half-way through it; from then on, nothing it is asked happens."""

    def __init__(self, at):
        self.at, self.done = at, 0

    def step(self):
        if self.done >= self.at:
            raise Killed
        self.done += 1

    def write_new(self, path, data, **more):
        if self.done == self.at:
            super().write_new(path, data[: len(data) // 2], **more)
        self.step()
        super().write_new(path, data, **more)

    def append(self, path, data):
        if self.done == self.at:
            super().append(path, data[: len(data) // 2])
        self.step()
        super().append(path, data)


for _name in ("make_folder", "rename", "link", "unlink", "sync_folder"):

    def _stepped(self, *args, _name=_name):
        self.step()
        getattr(Disk, _name)(self, *args)

    setattr(Deadly, _name, _stepped)


REQUESTS = {
    "plan": lambda board, name, other: board.create(
        [Draft("first", ref="a", blocked_by=(name,)), Draft("then", blocked_by=("a",), parent=other)]
    ),
    "create": lambda board, name, other: board.create([Draft("some work", blocked_by=(name,), parent=other)]),
    "claim": lambda board, name, _: board.claim(name, ttl=15),
    "steal": lambda board, name, _: board.claim(name, steal=True, reason="test"),
    "claim best": lambda board, *_: board.claim(),
    "complete": lambda board, name, _: board.complete(name, result="done"),
    "release": lambda board, name, _: board.release(name, failed=True, reason="no luck"),
    "heartbeat": lambda board, name, _: board.heartbeat(name, ttl=15),
    "block": lambda board, name, other: board.update(name, Edit(add_blocked_by=(other,))),
    "ask": lambda board, name, _: board.ask(name, "Which?"),
    "answer": lambda board, name, _: board.answer(name, "that"),
    "hold": lambda board, name, _: board.hold(name, "wait"),
    "resume": lambda board, name, _: board.resume(name),
    "cascade": lambda board, name, _: board.cancel(name, cascade=True),
    "drop edges": lambda board, name, _: board.cancel(name, drop_edges=True),
    "reopen": lambda board, name, _: board.reopen(name),
}


def seen_in(folder, clock):
    """What a fresh process sees: every task, and every claim as it counts."""
    view = FileStore(str(folder), RULES, clock.monotonic).read()
    return {t.id: t for t in view}, {t.id: standing(view.claim(t.id)) for t in view}


class Crashes(Boards):
    """Both boards in lockstep, with kills: what survived of a request is made on the board in memory too."""

    meddles = False
    count = Counter()

    @initialize(target=Boards.tasks)
    def start(self):
        Boards.start(self)
        drafts = [
            Draft("a"),
            Draft("b", ref="b", blocked_by=()),
            Draft("c", blocked_by=("b",)),
            Draft("d", owner="user"),
        ]
        return multiple(*ids(self.both(0, lambda board: board.create(drafts)).rows))

    def crash(self, who, request, name, other, at, again, meddle):
        now, numbers = self.clock(), self.numbers["files"].getstate()
        board = self.folder / ".tasks"

        def made_by(kind, on):
            """Carry the request out, at the same time and with the same new ids each time."""
            self.clock.now = now
            self.numbers[kind].setstate(numbers)
            new_id = lambda: f"task_{self.numbers[kind].getrandbits(40):010x}"
            actor = open_board(on, *ACTORS[who], clock=self.clock, new_id=new_id, root=self.folder)
            try:
                REQUESTS[request](actor, name, other)
            except Refused:
                return False
            return True

        before = seen_in(board, self.clock)
        copy = self.folder / "copy"
        shutil.copytree(board, copy)
        done = made_by("files", FileStore(str(copy), RULES, self.clock.monotonic))
        after = seen_in(copy, self.clock)
        shutil.rmtree(copy)
        killed = False
        try:
            made_by("files", FileStore(str(board), RULES, self.clock.monotonic, Deadly(at)))
        except Killed:
            killed = True
        left = seen_in(board, self.clock)
        self.count[request, killed] += 1
        if killed:
            assert left[0] in (before[0], after[0]), f"{request}: half of it at operation {at}"
            for task_id, claim in left[1].items():
                assert claim in (before[1].get(task_id), after[1].get(task_id)), f"{request}: a claim nobody made"
        else:
            assert left == (after if done else before), f"{request}: what was acknowledged is not kept"
        edited = self.meddles and meddle and killed and self.edit_one(name if at % 2 else other)
        self.recover(again, None if edited else left)
        if edited:
            path, text = edited
            assert path.read_text() == text, "an edit was overwritten"
        self.stores["files"] = FileStore(str(board), RULES, self.clock.monotonic)
        if not self.edited:
            if left[0] == after[0]:
                made_by("memory", self.stores["memory"])
            self.adopt()
        end = self.numbers["memory" if not self.edited else "files"].getstate()
        for generator in self.numbers.values():
            generator.setstate(end)
        return multiple(*sorted(left[0].keys() - before[0].keys()))

    def recover(self, again, left):
        """Whoever takes the lock next recovers, is killed at it, and somebody else does it again."""
        board = str(self.folder / ".tasks")
        for disk in (Deadly(again), Disk(), Disk()):
            try:
                with FileStore(board, RULES, self.clock.monotonic, disk).write():
                    pass
            except Killed:
                pass
            if left:
                assert seen_in(self.folder / ".tasks", self.clock) == left, "recovery changed what was seen before it"

    def edit_one(self, name):
        """A person writes into a task's file before anybody has recovered."""
        path = self.folder / ".tasks" / f"{name}.json"
        try:
            text = json.dumps(json.loads(path.read_text()) | {"subject": f"by hand {self.clock.now}"})
        except (OSError, ValueError):
            return None
        path.write_text(text)
        self.edited = True
        self.holders.clear()
        self.epochs.clear()
        return path, text

    def adopt(self):
        """A claim or a line of history that the kill cost is lost in memory too."""
        memory, files = self.stores["memory"], self.stores["files"].read()
        for task in files:
            memory._claims.pop(task.id, None)
            if claim := files.claim(task.id):
                memory._claims[task.id] = claim
                memory._deadlines[task.id] = self.clock.monotonic() + 60 * (claim.left or 0)
        memory._events = self.stores["files"].events()


KINDS = {
    "crash_making": ["plan", "create", "ask"],
    "crash_claiming": ["claim", "steal", "claim best"],
    "crash_holding": ["complete", "release", "heartbeat", "hold", "answer", "resume"],
    "crash_linking": ["block", "cascade", "drop edges", "reopen"],
    "crash_of_several_files": ["plan", "ask", "cascade", "drop edges"],
    "crash_of_any": [*REQUESTS],
}
"""Several rules, for each rule is as likely to be chosen as any other."""


def _crash_rule(requests):
    @rule(
        target=Boards.tasks,
        who=st.integers(0, 4),
        request=st.sampled_from(requests),
        name=Boards.tasks,
        other=Boards.tasks,
        at=st.integers(0, 8) | st.integers(0, 24),  # most transactions take few operations, some take many
        again=st.integers(0, 12),
        meddle=st.booleans(),
    )
    def act(self, **drawn):
        return self.crash(**drawn)

    return act


for _name, _requests in KINDS.items():
    setattr(Crashes, _name, _crash_rule(_requests))


class CrashesAndEdits(Crashes):
    may_edit = meddles = True


def play(which, examples, steps, **more):
    """Run a machine; how many requests were made under a kill, and how many of those were killed."""
    if os.access("/dev/shm", os.W_OK):  # the kernel outlives a kill, so that the kind of disk does not matter
        tempfile.tempdir = "/dev/shm"
    machine = type(which.__name__, (which,), {"count": Counter()})
    asked = settings(max_examples=examples, stateful_step_count=steps, deadline=None, **more)
    try:
        run_state_machine_as_test(machine, settings=asked)
    finally:
        tempfile.tempdir = None
    return sum(machine.count.values()), sum(n for (_, killed), n in machine.count.items() if killed)


def prove(figure, name, which, examples, steps, at_least, **more):
    tried, killed = play(which, examples, steps, **more)
    assert killed > tried // 9, "hardly anything was killed"
    figure(f"model: {name}, {examples} x {steps}: requests under a kill", tried=tried, bad=0, at_least=at_least)


@pytest.mark.slow
def test_the_model_with_kills_quickly(figure):
    prove(figure, "kills, quick", Crashes, 10, 20, 3, derandomize=True)


def test_the_model_with_kills_and_an_editor_quickly(figure):
    prove(figure, "kills and an editor, quick", CrashesAndEdits, 10, 20, 3, derandomize=True)


@pytest.mark.slow
def test_the_model_with_kills(figure):
    prove(figure, "kills", Crashes, 100, 50, 250)


@pytest.mark.slow
def test_the_model_with_kills_and_an_editor(figure):
    prove(figure, "kills and an editor", CrashesAndEdits, 300, 50, 1_500)


# The machine finds


def without_journal(monkeypatch):
    def commit(self, writes, applied=bool):
        write_all(self.disk, writes, self.local, durable=False)
        return []

    monkeypatch.setattr(journal.Journal, "commit", commit)


def recovery_that_knows_no_edits(monkeypatch):
    monkeypatch.setattr(journal.Entry, "covers", lambda *_: True)


def claims_before_tasks(monkeypatch):
    commit = store.FileStore._commit

    def reversed_commit(self, writing, txn):
        if len(writing.tasks) == 1:
            write_all(self._disk, writing.entries, self._local, durable=False)
            writing.entries = []
        return commit(self, writing, txn)

    monkeypatch.setattr(store.FileStore, "_commit", reversed_commit)


def readers_that_see_half(monkeypatch):
    monkeypatch.setattr(journal.Journal, "pending", lambda _: {})


def in_place(monkeypatch):
    def write(disk, writes, _scratch, *, durable):
        for each in writes:
            if not each.exclusive and disk.exists(each.path):
                disk.unlink(each.path)
            disk.write_new(each.path, each.text.encode(), durable=durable)

    for module in (store, journal):
        monkeypatch.setattr(module, "write_all", write)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bug", "which"),
    [
        (without_journal, Crashes),
        (recovery_that_knows_no_edits, CrashesAndEdits),
        (claims_before_tasks, Crashes),
        (readers_that_see_half, Crashes),
        (in_place, Crashes),
    ],
    ids=lambda each: each.__name__,
)
def test_a_seeded_bug_is_found(monkeypatch, bug, which):
    bug(monkeypatch)
    with pytest.raises(AssertionError, match="half of it|is not kept|a claim nobody|what was seen|overwritten"):
        play(which, 200, 30, phases=[Phase.generate], database=None, derandomize=True)
