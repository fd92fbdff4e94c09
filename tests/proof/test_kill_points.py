"""A process killed before any operation on the board's files, and half-way through any write; and again while it recovers.

Each process is a fork that leaves by `os._exit`: nothing of it runs any more, and its locks go as a kill takes them.
"""

from __future__ import annotations

import os

import pytest

from taskwall.stores.files import journal, store
from taskwall.stores.files.disk import Disk, write_all
from taskwall.stores.files.journal import Entry, Journal
from taskwall.stores.files.store import FileStore

from acts import (
    BY_NAME,
    CASES,
    NOON,
    Case,
    board_dir,
    kept,
    open_board,
    open_store,
    outcome,
    prepared,
    restore,
    seen_by,
    tasks_in,
    world_of,
)

KILLED, FAILED = 9, 3


class KillDisk(Disk):
    """Counts what changes the disk, and leaves the process before operation `at`, or half-way through that write.

    The kernel outlives the process, so that nothing needs to be brought to the disk itself.
    """

    def __init__(self, at=None, half=False):
        self.at, self.half, self.done = at, half, []

    def step(self, kind):
        if len(self.done) == self.at and not (self.half and kind == "write"):
            os._exit(KILLED)
        self.done.append(kind)

    def make_folder(self, path):
        self.step("make_folder")
        super().make_folder(path)

    def append(self, path, data):
        self.step("append")
        super().append(path, data)

    def rename(self, old, new):
        self.step("rename")
        super().rename(old, new)

    def link(self, old, new):
        self.step("link")
        super().link(old, new)

    def unlink(self, path):
        self.step("unlink")
        super().unlink(path)

    def _open_new(self, path):
        self.step("open")
        return super()._open_new(path)

    def _write(self, fd, data):
        here = len(self.done) == self.at
        self.step("write")
        if here:
            super()._write(fd, data[: len(data) // 2])
            os._exit(KILLED)
        return super()._write(fd, data)

    def _sync(self, fd):
        self.step("sync")

    @property
    def points(self):
        """Where to kill: `(at, half)`."""
        return [(n, False) for n in range(len(self.done))] + [
            (n, True) for n, k in enumerate(self.done) if k == "write"
        ]


def in_fork(work):
    """Run `work` in a process of its own; returns how it ended."""
    pid = os.fork()
    if not pid:
        try:
            work()
        except BaseException:
            os._exit(FAILED)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def recover(path, disk=None):
    """What the next writer does before anything else."""
    with open_store(path, disk or Disk(), "fast").write():
        pass


class Trial:
    """One transaction on a board in `path`, and what may be left of it."""

    def __init__(self, case, path):
        self.case, self.path = case, str(path / ".tasks")
        self.start = prepared(case, self.path)
        self.expected = outcome(case, self.path, self.start)
        self.views = []
        for world in self.expected.worlds(acknowledged=False):
            restore(self.path, world)
            self.views.append(seen_by(open_store(self.path)))

    def act(self, disk):
        self.case.act(open_board(self.path, disk))

    def killed(self, work, at, half):
        code = in_fork(lambda: work(KillDisk(at, half)))
        assert code == KILLED, (str(self.case), at, half, code)

    def flaws(self, where):
        """What a reader without a lock, and then the next writer, find wrong."""
        found = [f"{self.case} {where}: a reader saw half"] if self.read() not in self.views else []
        recover(self.path)
        left = world_of(self.path)
        if kept(left) not in [kept(world) for world in self.expected.worlds(acknowledged=False)]:
            found.append(f"{self.case} {where}: half is left")
        if self.read() not in self.views:
            found.append(f"{self.case} {where}: a reader sees half after recovery")
        # Parts of a claim that was made ahead of the lock go with the next one from the same seat.
        parts = [name for name in left if name.endswith(".tmp") and not name.startswith(".local/part-0")]
        if ".local/journal" in left or parts:
            found.append(f"{self.case} {where}: not cleaned up")
        return found

    def read(self):
        try:
            return seen_by(open_store(self.path))
        except Exception as error:
            return error


def kill_points(case, path, every=1, *, until_found=False):
    """Kill the transaction everywhere. Returns how often, the flaws, and the worlds left with a committed journal."""
    trial = Trial(case, path)
    restore(trial.path, trial.start)
    whole = KillDisk()
    trial.act(whole)
    flaws, crashed = [], []
    assert kept(world_of(trial.path)) == kept(trial.expected.after)
    points = whole.points[::every]
    for at, half in points:
        if flaws and until_found:
            break
        restore(trial.path, trial.start)
        trial.killed(trial.act, at, half)
        left = world_of(trial.path)
        if ".local/journal" in left:
            crashed.append(left)
        flaws += trial.flaws(f"killed at {at} ({whole.done[at]}{', half' * half})")
    return trial, len(points), flaws, crashed


def kills_in_recovery(trial, crashed, every=1):
    """Kill the recovery of these worlds everywhere, and recover again."""
    tried, flaws = 0, []
    for world in crashed:
        restore(trial.path, world)
        whole = KillDisk()
        recover(trial.path, whole)
        outcome = kept(world_of(trial.path))
        for at, half in whole.points[::every]:
            restore(trial.path, world)
            trial.killed(lambda disk: recover(trial.path, disk), at, half)
            flaws += trial.flaws(f"recovery killed at {at} ({whole.done[at]})")
            if kept(world_of(trial.path)) != outcome:
                flaws.append(f"{trial.case}: recovering twice at {at} left something else")
            tried += 1
    return tried, flaws


def prove(cases, path, every=1):
    tried, again, flaws = 0, 0, []
    for case in cases:
        trial, points, bad, crashed = kill_points(case, path, every)
        # Neighbouring crashes leave much the same to recover: the first, the last and every twelfth.
        more, worse = kills_in_recovery(trial, [*crashed[:1], *crashed[1:-1:12], *crashed[1:][-1:]], every)
        tried, again, flaws = tried + points, again + more, [*flaws, *bad, *worse]
    return tried, again, flaws


@pytest.mark.slow
def test_a_board_killed_at_any_operation_has_all_of_a_change_or_nothing(board_dir, figure):
    tried, again, flaws = prove(CASES, board_dir)
    figure("kill points, in process", tried=tried, bad=[f for f in flaws if "recover" not in f], at_least=480)
    figure("kills during recovery", tried=again, bad=[f for f in flaws if "recover" in f], at_least=430)


def test_kill_points_in_brief(board_dir, figure):
    tried, again, flaws = prove([BY_NAME["ask"], BY_NAME["complete"], BY_NAME["note"]], board_dir, every=3)
    figure("kill points, in process, a few", tried=tried + again, bad=flaws, at_least=40)


def claim_ahead(board):
    """The best task, through an index that speaks for the folder: all but the commit is done before the lock is taken."""
    path, disk = board.store.path, board.store._disk
    for folder in (path, os.path.join(path, ".local", "claims")):
        os.utime(folder, ns=(NOON, NOON))
    board.store = FileStore(path, board.store.settings, monotonic=lambda: 1000.0, disk=disk, index_from=0)
    board.store.read(anew=True)
    board.claim()


def test_a_claim_made_ahead_of_the_lock_is_killed_at_any_operation(board_dir, figure):
    case = Case("claim the best", claim_ahead)
    trial, tried, flaws, _ = kill_points(case, board_dir)
    restore(trial.path, trial.start)
    trial.act(whole := KillDisk())
    part = ["open", "write", "sync"]
    assert whole.done == [*part, *part, "rename", "sync", "rename", "append", "write", "sync"], (
        "both parts before either name"
    )
    figure("kill points of a claim ahead of the lock", tried=tried, bad=flaws, at_least=13)


def edits_after_a_crash(case, path, every=1):
    """A person edits, removes or makes one file between the crash and its recovery: the edit stays, ours lies beside it."""
    trial, _, _, crashed = kill_points(case, path)
    tried, flaws = 0, []
    names = [n for n in tasks_in(trial.expected.after) if trial.expected.after[n] != trial.start.get(n)]
    for world in crashed[::every]:
        restore(trial.path, world)
        unfinished = open_store(trial.path)._journal.pending()
        for name in names:
            for edit in (b'{"id": "theirs", "subject": "by hand"}\n', None):
                if edit is None and name not in trial.start:
                    continue  # a new file that was removed and one that is not there yet look the same
                edited = {k: v for k, v in world.items() if k != name} | ({name: edit} if edit else {})
                restore(trial.path, edited)
                told = open_store(trial.path)
                with told.write():
                    pass
                left = world_of(trial.path)
                parked = [v for k, v in left.items() if k.startswith(".local/conflicts/") and not k.endswith("/")]
                tried += 1
                if left.get(name) != edit or any(left.get(n) != trial.expected.after[n] for n in names if n != name):
                    flaws.append(
                        f"{case}: {name} {'edited' if edit else 'removed'}: overwritten, or the rest is missing"
                    )
                if unfinished and (parked != [trial.expected.after[name]] or name not in " ".join(told.notices)):
                    flaws.append(f"{case}: {name}: ours is not parked, or nobody was told")
    return tried, flaws


@pytest.mark.slow
def test_an_edit_made_after_the_crash_is_kept_and_ours_lies_beside_it(board_dir, figure):
    tried, flaws = 0, []
    for name in ("ask", "plan", "cascade"):
        more, bad = edits_after_a_crash(BY_NAME[name], board_dir, every=4)
        tried, flaws = tried + more, flaws + bad
    figure("edits between crash and recovery", tried=tried, bad=flaws, at_least=40)


def test_edits_after_a_crash_in_brief(board_dir, figure):
    tried, flaws = edits_after_a_crash(BY_NAME["ask"], board_dir, every=12)
    figure("edits between crash and recovery, a few", tried=tried, bad=flaws, at_least=4)


# Seeded bugs: each step of the protocol left out, and found


def in_place(self, old, new):
    self.step("rename")
    with open(old, "rb") as file:
        data = file.read()
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    while data:
        data = data[self._write(fd, data) :]
    os.close(fd)
    os.unlink(old)


def removed_first(self, entries, serial, applied=bool):
    self.disk.unlink(self.path)
    todo = [store.Write(os.path.join(self.board, e.name), e.new) for e in entries]
    write_all(self.disk, todo, self.local, durable=self.durable)
    return []


def one_after_another(self, writes, applied=bool):
    write_all(self.disk, writes, self.local, durable=self.durable)
    return []


def ledger_first(self, writing, txn):
    write_all(self._disk, writing.entries, self._local, durable=self._durable)
    write_all(self._disk, writing.tasks, self._local, durable=self._durable)


def copied_over(self, entries, serial, applied=bool):
    """The files are written whole but under their own names at once: no part, no rename."""
    for entry in entries:
        path = os.path.join(self.board, entry.name)
        if self.disk.exists(path):
            self.disk.unlink(path)
        self.disk.write_new(path, entry.new.encode(), durable=False)
    self.disk.unlink(self.path)
    return []


BUGS = {
    "written in place": (KillDisk, "rename", in_place, "note"),
    "journal removed before it is applied": (Journal, "_finish", removed_first, "ask"),
    "no journal": (Journal, "commit", one_after_another, "ask"),
    "no recovery": (Journal, "recover", lambda self: [], "cascade"),
    "readers do not read through the journal": (Journal, "pending", lambda self: {}, "ask"),
    "the ledger before the task file": (FileStore, "_commit", ledger_first, "complete"),
    "a journal applied in place, without checking": (Journal, "_finish", copied_over, "drop edges"),
}


@pytest.mark.parametrize("bug", BUGS)
def test_seeded_bugs_are_found_by_killing(bug, board_dir, monkeypatch):
    where, name, broken, case = BUGS[bug]
    monkeypatch.setattr(where, name, broken)
    assert kill_points(BY_NAME[case], board_dir, until_found=True)[2]


def test_a_recovery_that_overwrites_newer_edits_is_found(board_dir, monkeypatch):
    monkeypatch.setattr(Entry, "covers", lambda self, current: True)
    assert edits_after_a_crash(BY_NAME["ask"], board_dir, every=12)[1]
