"""The disk refuses an operation: full, broken, forbidden, interrupted. The command says so or succeeds; nothing is lost."""

from __future__ import annotations

import errno
import os
import re

import pytest

from acts import BY_NAME, CASES, board_dir, kept, open_board, open_store, outcome, prepared, restore, seen_by, world_of
from taskwall.core.errors import Refused
from taskwall.core.rules import Edit
from taskwall.stores.files import journal, store, sure
from taskwall.stores.files.disk import Disk, NotPlain, Unsettled, write_all
from taskwall.stores.files.journal import Journal

ERRORS = (errno.ENOSPC, errno.EIO, errno.EACCES, errno.EINTR)
MAYBE = ("is written", "not known")


class FailDisk(Disk):
    """Fails operation `at` with an error, and all that change something from then on when the error `stays`."""

    def __init__(self, at=None, code=errno.EIO, *, stays=False):
        self.at, self.code, self.stays, self.done, self.unread = at, code, stays, [], None

    def step(self, kind, path="", looks=False):
        here = len(self.done)
        self.done.append(kind)
        if here == self.at or (self.stays and self.at is not None and here > self.at and not looks):
            raise OSError(self.code, os.strerror(self.code), path)

    def names(self, folder):
        self.step("names", folder, looks=True)
        return super().names(folder)

    def read(self, path, most=1024 * 1024):
        try:
            self.step("read", path, looks=True)
        except OSError as error:
            self.unread = os.path.basename(path)
            raise NotPlain(f"cannot be read: {error.strerror}", error=error) from None
        return super().read(path, most)

    def seen(self, path):
        self.step("seen", path, looks=True)
        return super().seen(path)

    def make_folder(self, path):
        self.step("make_folder", path)
        super().make_folder(path)

    def append(self, path, data):
        self.step("append", path)
        super().append(path, data)

    def rename(self, old, new):
        self.step("rename", new)
        super().rename(old, new)

    def link(self, old, new):
        self.step("link", new)
        super().link(old, new)

    def unlink(self, path):
        self.step("unlink", path)
        super().unlink(path)

    def _open_new(self, path):
        self.step("open", path)
        return super()._open_new(path)

    def _write(self, fd, data):
        try:
            self.step("write")
        except OSError:
            super()._write(fd, data[: len(data) // 2])  # what still found room
            raise
        return super()._write(fd, data)

    def _sync(self, fd):
        self.step("sync")


def timeless(world):
    """The clock of a test moves at every look, and fewer tasks need fewer looks."""
    return {name: re.sub(rb"T[\d:.]+Z", b"", data or b"") for name, data in world.items()}


class Trial:
    def __init__(self, case, path):
        self.case, self.path = case, str(path / ".tasks")
        self.start = prepared(case, self.path)
        self.expected = outcome(case, self.path, self.start)
        restore(self.path, self.start)
        whole = FailDisk()
        case.act(open_board(self.path, whole))
        self.operations = whole.done

    def flaws(self, at, code, *, stays=False):
        """Let one operation fail; returns what is wrong with the answer and with the board after it."""
        restore(self.path, self.start)
        where = f"{self.case}: {errno.errorcode[code]}{' from' * stays} at {at} ({self.operations[at]})"
        told, disk = None, FailDisk(at, code, stays=stays)
        try:
            self.case.act(open_board(self.path, disk))
        except Refused as refusal:
            told = refusal
        except BaseException as error:
            return [f"{where}: {error!r}"]
        return [f"{where}: {flaw}" for flaw in self._left(told, disk.unread)]

    def _left(self, told, unread):
        """The next command of a healthy disk finishes what was begun; then the answer must have been true."""
        try:
            seen_by(open_store(self.path))
            with open_store(self.path, durability="fast").write():
                pass
            left = kept(world_of(self.path))
        except BaseException as error:
            yield f"the next command fails: {error!r}"
            return
        before, after = kept(self.expected.before), kept(self.expected.after)
        allowed = [after] if told is None else [before]
        if told is not None and any(word in told.message for word in MAYBE):
            allowed = [kept(world) for world in self.expected.worlds(acknowledged=False)]
        if told is None and unread and left.get(unread) == before.get(unread):
            # A task that cannot be read is a broken one: it is not written, and a cascade ends at it.
            rest = {name: data if data == before.get(name) else after.get(name) for name, data in left.items()}
            allowed += [left] if timeless(rest) == timeless(left) else []
        if left not in allowed:
            yield f"not what was answered ({told or 'success'})"
        if told is not None and not (told.message and told.way_out):
            yield "the refusal tells no way out"
        try:
            for task in list(open_store(self.path).read()):
                if not task.closed:
                    open_board(self.path, name=task.owner or "user", hour=3, durability="fast").update(
                        task.id, Edit(note="on")
                    )
        except BaseException as error:
            yield f"the board is not usable afterwards: {error!r}"


def fail_everywhere(cases, path, errors=ERRORS, every=1, *, until_found=False):
    tried, flaws = 0, []
    for case in cases:
        trial = Trial(case, path)
        for code in errors:
            for at in range(0, len(trial.operations), every):
                for stays in (False, True):
                    if flaws and until_found:
                        return tried, flaws
                    tried += 1
                    flaws += trial.flaws(at, code, stays=stays)
    return tried, flaws


@pytest.mark.slow
def test_a_disk_that_fails_at_any_operation_loses_nothing_and_is_named(board_dir, figure):
    tried, flaws = fail_everywhere(CASES, board_dir, every=3)
    figure("I/O errors", tried=tried, bad=flaws, at_least=1_000)


def test_io_errors_in_brief(board_dir, figure):
    tried, flaws = fail_everywhere([BY_NAME["complete"], BY_NAME["ask"]], board_dir, errors=(errno.EIO,), every=3)
    figure("I/O errors, a few", tried=tried, bad=flaws, at_least=40)


def test_a_committed_change_that_could_not_be_applied_is_seen_and_finished(board_dir, figure):
    """Past the commit point nothing that fails takes the change back."""
    trial, bad, tried = Trial(BY_NAME["ask"], board_dir), [], 0
    for at in range(len(trial.operations)):
        restore(trial.path, trial.start)
        try:
            trial.case.act(open_board(trial.path, FailDisk(at, errno.ENOSPC, stays=True)))
        except Refused:
            continue
        tried += 1
        view = open_store(trial.path).read()
        if view.get("a").status != "pending" or "task_0100000000" not in view:
            bad.append(at)
    figure("I/O errors past the commit point", tried=tried, bad=bad, at_least=5)


# Seeded bugs


def trusting(disk, writes, scratch, *, durable, write_all=write_all):
    """After a failed sync: once more, and then all must be well."""
    try:
        write_all(disk, writes, scratch, durable=durable)
    except Unsettled:
        return


def blind(self, path, most=0, current=Journal._current):
    try:
        return current(self, path, most or 1024 * 1024)
    except OSError:
        return None, None


def denying(self, error):
    raise error


BUGS = {
    "an unreadable file counts as absent": lambda patch: patch.setattr(Journal, "_current", blind),
    "errors are not caught": lambda patch: patch.setattr(store.FileStore, "_unwritable", denying),
    "an unreadable ledger counts as empty": lambda patch: patch.setattr(sure, "Sure", lambda disk: disk),
    "a journal that failed stays": lambda patch: patch.setattr(Journal, "_take_back", lambda self: None),
}


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS)
def test_seeded_bugs_are_found_by_failing(bug, board_dir, monkeypatch):
    BUGS[bug](monkeypatch)
    cases = [BY_NAME["complete in a dialect"], BY_NAME["release"], BY_NAME["ask"]]
    assert fail_everywhere(cases, board_dir, errors=(errno.EIO,), until_found=True)[1]


def test_success_after_a_failed_sync_is_found(board_dir, monkeypatch):
    """The answer of a command whose sync failed may be anything but yes."""
    monkeypatch.setattr(store, "write_all", trusting)
    assert yes_after_a_failed_sync(board_dir)


def yes_after_a_failed_sync(path, every=1):
    """Syncs that fail before the commit point is passed, and a yes all the same."""
    wrong = []
    for name in ("complete", "note", "create"):
        trial = Trial(BY_NAME[name], path)
        last = max(n for n, kind in enumerate(trial.operations) if kind in ("rename", "link"))
        first = min(n for n, kind in enumerate(trial.operations) if kind in ("rename", "link"))
        for at, kind in enumerate(trial.operations):
            if kind == "sync" and at <= max(first + 3, last):
                restore(trial.path, trial.start)
                try:
                    trial.case.act(open_board(trial.path, FailDisk(at, errno.EIO)))
                    wrong.append((name, at))
                except Refused:
                    pass
    return wrong


def test_no_command_says_yes_after_a_failed_sync(board_dir, figure):
    figure("a failed sync is not trusted", tried=3, bad=yes_after_a_failed_sync(board_dir))
