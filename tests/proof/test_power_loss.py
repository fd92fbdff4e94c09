"""The power fails after any operation, and again during recovery: every state the disk may be in is recovered and judged."""

from __future__ import annotations

import os
import random
from itertools import count
from typing import NamedTuple

import pytest

from acts import (
    BY_NAME,
    CASES,
    entries_in,
    expected,
    kept,
    open_board,
    open_store,
    prepared,
    seen_by,
)
from simdisk import Killed, SimDisk, after_power_loss, some_power_loss
from taskwall.core.errors import Refused
from taskwall.core.rules import Edit
from taskwall.stores.files import journal, store
from taskwall.stores.files.disk import write_all
from taskwall.stores.files.journal import Journal
from taskwall.stores.files.store import FileStore


class Tally(NamedTuple):
    """How many states were judged, how many of them were different ones, and what was wrong."""

    states: int
    distinct: int
    again: int
    flaws: list


class Judge:
    """Recovers worlds and compares what is left with what may be left. Equal worlds are judged once and counted."""

    def __init__(self, board, second_losses, *, until_found=False):
        self.board, self.second_losses, self.until_found = board, second_losses, until_found
        self.states, self.again, self.flaws = 0, 0, []
        self._known, self._views, self._same, self.chance = {}, {}, {}, random.Random(3)

    @property
    def tally(self):
        return Tally(self.states, len(self._known), self.again, self.flaws)

    def all_of(self, disk, allowed, what, since=0):
        """Judge every state of this disk. allowed: what may be left, by the position in the log, as `kept` worlds."""
        reached, left = None, []
        for position, world in after_power_loss(disk, since):
            if self.flaws and self.until_found:
                return
            self.states += 1
            if position != reached:
                reached, left = position, self._distinct(allowed(position))
            self.one(world, left, f"{what}, power lost at {position} after {disk.log[position - 1 :][:1]}")

    def _distinct(self, worlds):
        """Equal worlds as one and the same: what is known of one holds for the other."""
        same = [self._same.setdefault(frozenset(world.items()), world) for world in worlds]
        return list({id(world): world for world in same}.values())

    def one(self, world, allowed, where):
        key = (frozenset(world.items()), tuple(sorted(id(each) for each in allowed)))
        if key not in self._known:
            self._known[key] = flaw = self._flaw(world, allowed)
            if flaw:
                self.flaws.append(f"{where}: {flaw}")

    def _flaw(self, world, allowed):
        views = [self._view(each) for each in allowed]
        disk = SimDisk(self.board, world)
        try:
            if seen_by(open_store(self.board, disk)) not in views:
                return "a reader sees half, or an acknowledged change is gone"
            disk = SimDisk(self.board, world)
            with open_store(self.board, disk).write():
                pass
            if kept(disk.world()) not in allowed:
                return "half is left, or an acknowledged change is gone"
            if seen_by(open_store(self.board, disk)) not in views:
                return "a reader sees half after recovery"
        except Refused as refusal:
            return f"refused: {refusal}"
        return self._lost_again(disk, allowed, views) if ".local/journal" in world else None

    def _lost_again(self, first, allowed, views):
        """The power fails during recovery too: a sample of the states of that, drawn from all of it."""
        for world in some_power_loss(first, self.chance, self.second_losses):
            self.again += 1
            disk = SimDisk(self.board, world)
            with open_store(self.board, disk).write():
                pass
            if kept(disk.world()) not in allowed or seen_by(open_store(self.board, disk)) not in views:
                return "half is left when the power fails during recovery"
        return None

    def _view(self, world):
        if id(world) not in self._views:
            # Holds on to the world too: its identity is the key.
            self._views[id(world)] = world, seen_by(open_store(self.board, SimDisk(self.board, with_folders(world))))
        return self._views[id(world)][1]


def with_folders(world):
    return world | {".local/": b"", ".local/claims/": b""}


def run(case, board, world, die_at=None):
    """The disk after the transaction (killed before its change number `die_at`)."""
    disk = SimDisk(board, world, die_at)
    try:
        case.act(open_board(board, disk))
    except Killed:
        return disk, False
    return disk, True


def one_transaction(case, board, judge):
    start = prepared(case, board)
    disk, _ = run(case, board, start)
    left = expected(kept(start), kept(disk.world()))
    unsure, sure = left.worlds(acknowledged=False), left.worlds(acknowledged=True)
    judge.all_of(disk, lambda at: sure if at == len(disk.log) else unsure, str(case))
    return start, disk, left


def nothing(board):
    with board.store.write():
        pass


SECOND = (
    ("nothing", nothing),
    ("a note", lambda b: b.update("a", Edit(note="second"))),
    ("a question", lambda b: b.ask("a", "really?")),
    ("edges dropped", lambda b: b.cancel("b", drop_edges=True)),
)


def killed_and_gone_on(case, board, judge, every=1):
    """The first transaction is killed anywhere, another process does something else, and then the power fails."""
    start = prepared(case, board)
    whole, _ = run(case, board, start)
    first = expected(kept(start), kept(whole.world()))
    for die_at in range(0, len(whole.log), every):
        for what, act in (*SECOND, ("the same again", case.act)):
            if judge.flaws and judge.until_found:
                return
            disk, _ = run(case, board, start, die_at)
            since = len(disk.log)
            try:
                act(open_board(board, disk.survive(), hour=1 if act is case.act else 2))
            except Refused:
                continue  # what was not acknowledged promises nothing
            after = kept(disk.world())
            found = found_by_the_second(disk, board, since, start)
            second = expected(found, after)
            sure = [after, without_claims_of_the_first(after, found, start)]
            unsure = [*first.worlds(acknowledged=False), *second.worlds(acknowledged=False)]
            unsure += [without_claims_of_the_first(world, found, start) for world in unsure]
            if alone := without_the_first(act, board, start):  # neither was acknowledged: each may be lost by itself
                unsure += alone.worlds(acknowledged=False)
            judge.all_of(
                disk,
                lambda at, sure=sure, unsure=unsure, end=len(disk.log): sure if at == end else unsure,
                f"{case} killed at {die_at}, then {what}",
                since,
            )


def without_claims_of_the_first(after, found, start):
    """The first was never acknowledged: entries of its own that the second did not touch may fall back by themselves."""
    touched = {name for name in after if after[name] != found.get(name)}
    files = {name: data for name, data in after.items() if "/" not in name or name in touched}
    return {name: data for name, data in entries_in(start).items() if name not in touched} | files


def without_the_first(act, board, start):
    disk = SimDisk(board, start)
    try:
        act(open_board(board, disk, hour=2))
    except Refused:
        return None
    return expected(kept(start), kept(disk.world()))


def found_by_the_second(disk, board, since, start):
    """What the second process began with, once it had finished what the first had committed."""
    replay = SimDisk(board, start)
    for operation in disk.log[:since]:
        redo(replay, operation)
    replay._next = count(1_000_000)  # the numbers that the first process used are taken
    with open_store(board, replay).write():
        pass
    return kept(replay.world())


def redo(disk, operation):
    kind, *rest = operation
    if kind == "mkdir":
        disk.folders.add(rest[0])
    elif kind == "create":
        disk.names_[rest[0]], disk.inodes[rest[1]], disk.stamps[rest[1]] = rest[1], b"", rest[1]
    elif kind == "data":
        disk.inodes[rest[0]] = rest[1]
    elif kind == "rename":
        disk.names_[rest[1]] = disk.names_.pop(rest[0])
    elif kind == "link":
        disk.names_[rest[0]] = rest[1]
    elif kind == "unlink":
        del disk.names_[rest[0]]


@pytest.fixture
def board(tmp_path):
    """Where the simulated board says that it lies; only its lock is real."""
    (tmp_path / ".tasks" / ".local").mkdir(parents=True)
    return str(tmp_path / ".tasks")


GONE_ON = {"ask": 6, "complete": 2, "claim": 2, "create": 1, "note": 1, "first plan": 2, "claim in a dialect": 2}
"""Transactions that are killed before another goes on, and at how many of their operations: at every, every second …"""


@pytest.mark.slow
def test_no_power_loss_tears_a_change_or_takes_back_an_acknowledged_one(board, figure):
    judge = Judge(board, second_losses=2)
    for case in CASES:
        if case.name != "cascade over dialects":  # nothing that the others have not, in five times as many states
            one_transaction(case, board, judge)
    for name, every in GONE_ON.items():
        killed_and_gone_on(BY_NAME[name], board, judge, every)
    states, distinct, again, flaws = judge.tally
    figure("power loss: states", tried=states, bad=flaws, at_least=100_000)
    figure("power loss: different ones of these", tried=distinct, bad=flaws, at_least=3_000)
    figure("power loss: again during recovery", tried=again, bad=flaws, at_least=2_000)


def test_power_loss_in_brief(board, figure):
    judge = Judge(board, second_losses=1)
    for name in ("complete", "ask"):
        one_transaction(BY_NAME[name], board, judge)
    killed_and_gone_on(BY_NAME["note"], board, judge, every=2)
    figure("power loss: states, a few", tried=judge.states, bad=judge.flaws, at_least=300)


# Seeded bugs: each thing that is brought to the disk, not brought there, or too late


def not_synced(self, path, data, *, like=None, durable, write_new=SimDisk.write_new):
    write_new(self, path, data, like=like, durable=False)


def synced_too_late(disk, writes, scratch, *, durable, write_all=write_all):
    write_all(disk, writes, scratch, durable=False)
    for write in writes if isinstance(disk, SimDisk) else ():
        disk._do("fsync", disk.names_[write.path])
        disk.sync_folder(os.path.dirname(write.path))


def journal_gone_too_early(self, entries, serial, applied=bool, finish=Journal._finish):
    self.durable = False
    try:
        return finish(self, entries, serial)
    finally:
        self.durable = True
        self.disk.sync_folder(self.local)


def only_what_is_old(self, entries, serial, applied=bool, finish=Journal._finish):
    def is_new(entry):
        return self._current(os.path.join(self.board, entry.name))[0] == entry.new.encode()

    return finish(self, [entry for entry in entries if not is_new(entry)], serial)


def upon_sand(self, writes, applied=bool):
    entries, serial = [self._entry(write) for write in writes], self.serial + 1
    self._seal(entries, serial)
    return self._finish(entries, serial)


def believing_the_journal(self):
    entries, serial = self._read() if self.disk.exists(self.path) else ([], 0)
    return self._finish(entries, serial) if entries else []


def unsettled_answer(self, writing, txn, commit=FileStore._commit):
    if writing.tasks:
        commit(self, writing, txn)
    else:
        write_all(self._disk, writing.entries, self._local, durable=self._durable)


BUGS = {
    "files are not synced": (SimDisk, "write_new", not_synced),
    "folders are not synced": (SimDisk, "sync_folder", lambda self, path: None),
    "renamed before the data are synced": ("write_all", None, synced_too_late),
    "journal removed before what it says is on the disk": (Journal, "_finish", journal_gone_too_early),
    "built upon what is not on the disk yet": (Journal, "commit", upon_sand),
    "answered with what is not on the disk yet": (FileStore, "_commit", unsettled_answer),
}
SLOW_BUGS = {
    "recovery trusts what it finds written": (Journal, "_finish", only_what_is_old),
    "recovery trusts that the journal is on the disk": (Journal, "recover", believing_the_journal),
}


@pytest.mark.slow
@pytest.mark.parametrize("bug", [*BUGS, *(pytest.param(bug, marks=pytest.mark.slow) for bug in SLOW_BUGS)])
def test_seeded_bugs_are_found_by_losing_power(bug, board, monkeypatch):
    where, name, broken = (BUGS | SLOW_BUGS)[bug]
    for owner, attribute in [(where, name)] if name else [(journal, where), (store, where)]:
        monkeypatch.setattr(owner, attribute, broken)
    judge = Judge(board, second_losses=0, until_found=True)
    for case in ("complete", "ask") if bug in BUGS else ():  # the slow ones show only after a kill
        judge.flaws or one_transaction(BY_NAME[case], board, judge)
    for case, every in (("note", 1), ("complete", 1), ("ask", 3)) if bug in BUGS else (("ask", 2),):
        judge.flaws or killed_and_gone_on(BY_NAME[case], board, judge, every)
    assert judge.flaws
