"""A board of files: `.tasks/`, one JSON file a task, and `.tasks/.local/` for what belongs to this machine alone."""

from __future__ import annotations

import errno
import json
import os
import time
from contextlib import ExitStack, contextmanager, suppress

from ...core.claims import settle
from ...core.errors import Invalid, Locked, Unreadable, Unwritable
from ...core.model import IN_PROGRESS, Settings, Task
from ...core.view import View
from ..base import Txn
from .changes import Kept, differences, free_form, key_order, new_file
from .dialects import NotATask, read
from .disk import MAX_BYTES, NotPlain, Write, commit, read_text
from .folder import SUFFIX, Folder
from .ledger import Ledger
from .lock import lock
from .patch import NotStrict, encode, parse, patch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

LOCAL = ".local"


class FileView(View):
    """A scan of the folder, each task read together with its ledger entry."""

    def __init__(self, folder: Folder, ledger: Ledger, settings: Settings) -> None:
        self.in_files, self.names = folder.scan()
        self.ledger = ledger
        self._read_again(folder)
        super().__init__((self._settled(task) for task in self.in_files.values()), {}, settings)
        if any(task.blocks for task in self.in_files.values()):
            self._report_one_sided()

    def claim(self, task_id: str) -> Any:
        """The latest claim on this task, whether it still stands or not."""
        return self.ledger.get(task_id)

    def _read_again(self, folder: Folder) -> None:
        """A file whose claim has moved on may have been written since the scan, for a reader takes no lock."""
        for task_id in self.ledger.known & self.in_files.keys():
            task = self.in_files[task_id]
            entry = None if task.closed or task.flaw else self.ledger.get(task_id)
            if entry and (entry.epoch > task.epoch or (task.status == IN_PROGRESS and not entry.open)):
                now = folder.read_again(self.names[task_id])
                if now and now.id == task_id:
                    self.in_files[task_id] = now

    def _report_one_sided(self) -> None:
        for task in list(self):
            for blocker in self.blockers(task)[len(dict.fromkeys(task.blocked_by)) :]:
                notice = f"waits for {blocker}, which only the `blocks` of that task's file says"
                known = self._tasks[task.id]
                self._tasks[task.id] = known.replace(notices=(*known.notices, notice))

    def _settled(self, task: Task) -> Task:
        if task.flaw or (task.gated and task.closed):  # finished in the file wins, and history taxes no read
            return task
        booked = task if task.gated else self.ledger.book(task)
        return settle(booked, self.ledger.get(task.id), self.ledger.ended(task.id))


class FileStore:
    """The board in `path`, a `.tasks` folder. `monotonic`: seconds, by which leases lapse."""

    def __init__(
        self, path: str, settings: Settings | None = None, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self.path = path
        self.settings = settings or Settings()
        self._monotonic = monotonic
        self._folder = Folder(path)
        self._local = os.path.join(path, LOCAL)

    def read(self) -> FileView:
        """The board as its files say now. Writes nothing, waits for nobody."""
        return FileView(self._folder, Ledger(self._in_local("claims"), self._monotonic), self.settings)

    @contextmanager
    def write(self) -> Iterator[Txn]:
        """A transaction under the board's lock. Raises Locked, Unwritable, Invalid."""
        with ExitStack() as stack:
            try:
                self._make_local()
                still_locked = stack.enter_context(lock(self._in_local("lock")))
            except OSError as error:
                raise self._unwritable(error) from None
            view = self.read()
            txn = Txn(view)
            yield txn
            if not still_locked():
                raise Locked(
                    "the board's lock file was removed while this command ran; nothing was written",
                    next="repeat the command; leave .local alone while others work",
                )
            try:
                self._commit(view, txn)
            except FileExistsError as error:
                taken = error.filename2 or error.filename or error.args[0]
                raise Invalid(f"{taken} exists already", next="choose another id") from None
            except OSError as error:
                raise self._unwritable(error) from None

    def events(self, task_id: str | None = None) -> list[dict[str, Any]]:
        """What happened, oldest first; lines that cannot be read are left out."""
        try:
            with open(self._in_local("events.jsonl"), encoding="utf-8", errors="replace") as file:
                found = [event for line in file if (event := _event(line))]
        except OSError:
            return []
        return [event for event in found if task_id in (None, event.get("task"))]

    def _in_local(self, name: str) -> str:
        return os.path.join(self._local, name)

    def _make_local(self) -> None:
        for folder in (self._local, self._in_local("claims")):
            with suppress(FileExistsError):
                os.mkdir(folder)
            # A link that came with a repository would lead our writes out of the board.
            if os.path.islink(folder) or not os.path.isdir(folder):
                raise OSError(errno.ENOTDIR, f"{folder} is not a folder of its own")
        with suppress(FileExistsError):
            fd = os.open(self._in_local(".gitignore"), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
            os.write(fd, b"*\n")
            os.close(fd)

    def _commit(self, view: FileView, txn: Txn) -> None:
        """Task files first: they are the commit point. The ledger and the log of events follow."""
        durable = self.settings.durability == "full"
        _continue_epochs(txn)
        free: dict[str, dict[str, Any]] = {}
        writes = [w for task in txn.changed.values() if (w := self._task_write(view, txn, task, free))]
        entries = view.ledger.writes(txn.claimed, txn.changed, free, _unknown_ends(view, txn))
        commit(writes, self._local, durable=durable)
        try:
            commit(entries, self._local, durable=durable)
        except OSError as error:
            if not writes:
                raise
            raise Unwritable(
                f"the task is written, but {error.filename or 'its claim'} is not: {error.strerror}",
                next="make room and see that the folder may be written; `taskwall show` tells how the task stands",
            ) from None
        with suppress(OSError):  # history alone is no reason to call a change that is kept a failure
            self._append(txn.log)

    def _task_write(self, view: FileView, txn: Txn, task: Task, free: dict[str, dict[str, Any]]) -> Write | None:
        if txn.is_new(task):
            path = os.path.join(self.path, task.id + SUFFIX)
            return Write(path, _checked_size(task, encode(new_file(task), indent="  ") + "\n"), exclusive=True)
        path = os.path.join(self.path, view.names[task.id])
        text, raw, old = _read_again(path, view.in_files[task.id])
        if old.status != IN_PROGRESS == task.status and not task.gated:
            free[task.id] = free_form(old, raw)
        try:
            changes, removed = differences(old, task, raw, _numeric(txn), view.ledger.free(task.id))
        except Kept as kept:
            raise Invalid(
                f"{path}: its {kept} is {encode(raw[kept.key])[:80]}, which is not ours to replace",
                task=task.id,
                next=f"rename {kept} in that file by hand, or leave it out of this request",
            ) from None
        patched = patch(text, changes, removed, key_order(task.dialect))
        return Write(path, _checked_size(task, patched)) if patched != text else None

    def _append(self, events: list[dict[str, Any]]) -> None:
        if not events:
            return
        lines = "".join(encode(event) + "\n" for event in events)
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
        with open(os.open(self._in_local("events.jsonl"), flags, 0o644), "a+b", buffering=0) as file:
            # A line that a killed process left unfinished must not take this one with it.
            end = file.seek(0, os.SEEK_END)
            file.seek(max(end - 1, 0))
            file.write((b"" if file.read(1) in (b"", b"\n") else b"\n") + lines.encode())

    def _unwritable(self, error: OSError) -> Unwritable:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        return Unwritable(
            f"the board {self.path} cannot be written: {error.strerror or error}; nothing was changed",
            next="make room on the disk and repeat the command"
            if full
            else f"allow this process to write in {self.path}",
        )


def _read_again(path: str, seen: Task) -> tuple[str, dict[str, Any], Task]:
    """The text, object and task of a file, which is still the one that was seen when the transaction began."""
    try:
        text, _ = read_text(path)
        raw = parse(text)
        found = read(raw)
    except (OSError, NotPlain, NotStrict, NotATask) as flaw:
        raise Unreadable(
            f"{path} was changed by another program just now: {flaw}; nothing was written", task=seen.id
        ) from None
    if found != seen:
        raise Unwritable(
            f"{path} was changed by another program just now; nothing was written",
            task=seen.id,
            next="repeat the command",
        )
    return text, raw, found


def _checked_size(task: Task, text: str) -> str:
    """Return what can be read again. Raises Invalid: a file that has outgrown the reader would be lost to the board."""
    if len(text.encode()) > MAX_BYTES:
        raise Invalid(
            f"the file of {task.id} would be larger than {MAX_BYTES // 1024} KiB",
            task=task.id,
            next="keep long text in a file of its own and name that",
        )
    return text


def _continue_epochs(txn: Txn) -> None:
    """A new task under the id of one that was removed goes on from there: no epoch is given out twice."""
    for task in list(txn.changed.values()):
        if txn.is_new(task) and (entry := txn.claim(task.id)):
            txn.put(task.replace(epoch=entry.epoch))
            if entry.open:
                txn.record(entry.replace(open=False))


def _unknown_ends(view: FileView, txn: Txn) -> dict[str, int]:
    """The epochs of claims made by hand in files of other programs that end here: neither file nor claim tells them."""
    ends = {}
    for task in txn.changed.values():
        before, entry = view.get(task.id), txn.claim(task.id)
        unknown = entry is None or entry.epoch < task.epoch
        if before and not task.gated and unknown and before.status == IN_PROGRESS != task.status:
            ends[task.id] = before.epoch
    return ends


def _numeric(txn: Txn) -> Callable[[str], bool]:
    def numeric(task_id: str) -> bool:
        task = txn.get(task_id)
        return task is not None and task.numeric

    return numeric


def _event(line: str) -> dict[str, Any] | None:
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) and "at" in event and "verb" in event else None
