"""A board of files: `.tasks/`, one JSON file a task, and `.tasks/.local/` for what belongs to this machine alone."""

from __future__ import annotations

import errno
import json
import os
import time
from contextlib import contextmanager

from ...core.claims import settle
from ...core.errors import Invalid, Unreadable, Unwritable
from ...core.model import Settings, Task
from ...core.view import View
from ..base import Txn
from .dialects import differences, key_order, new_file, read
from .disk import NotPlain, Write, commit, read_text
from .folder import SUFFIX, Folder
from .ledger import Ledger
from .lock import lock
from .patch import NotStrict, encode, parse, patch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

LOCAL = ".local"


class FileView(View):
    """A scan of the folder, each task read together with its ledger entry."""

    def __init__(self, folder: Folder, ledger: Ledger, settings: Settings) -> None:
        tasks, self.names = folder.scan()
        self.ledger = ledger
        super().__init__((self._settled(task) for task in tasks.values()), {}, settings)

    def claim(self, task_id: str) -> Any:
        """The latest claim on this task, whether it still stands or not."""
        return self.ledger.get(task_id)

    def _settled(self, task: Task) -> Task:
        booked = task if task.gated or task.flaw else self.ledger.book(task)
        return settle(booked, self.ledger.get(task.id))


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
        try:
            self._make_local()
        except OSError as error:
            raise self._unwritable(error) from None
        with lock(self._in_local("lock")):
            view = self.read()
            txn = Txn(view)
            yield txn
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
        os.makedirs(self._in_local("claims"), exist_ok=True)
        ignore = self._in_local(".gitignore")
        if not os.path.exists(ignore):
            with open(ignore, "w", encoding="utf-8") as file:
                file.write("*\n")

    def _commit(self, view: FileView, txn: Txn) -> None:
        """Task files first: they are the commit point. The ledger and the log of events follow."""
        durable = self.settings.durability == "full"
        commit([self._task_write(view, txn, task) for task in txn.changed.values()], self._local, durable=durable)
        commit(view.ledger.writes(txn.claimed, txn.changed), self._local, durable=durable)
        if txn.log:
            self._append(txn.log)

    def _task_write(self, view: FileView, txn: Txn, task: Task) -> Write:
        if txn.is_new(task):
            path = os.path.join(self.path, task.id + SUFFIX)
            return Write(path, encode(new_file(task), indent="  ") + "\n", exclusive=True)
        path = os.path.join(self.path, view.names[task.id])
        try:
            text, _ = read_text(path)
            raw = parse(text)
        except (NotPlain, NotStrict, FileNotFoundError) as flaw:
            raise Unreadable(f"{path} changed while it was being written: {flaw}", task=task.id) from None
        changes, removed = differences(read(raw), task, raw, _numeric(txn))
        return Write(path, patch(text, changes, removed, key_order(task.dialect)))

    def _append(self, events: list[Mapping[str, Any]] | list[dict[str, Any]]) -> None:
        lines = "".join(encode(event) + "\n" for event in events)
        with open(self._in_local("events.jsonl"), "ab", buffering=0) as file:
            file.write(lines.encode())

    def _unwritable(self, error: OSError) -> Unwritable:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        return Unwritable(
            f"the board {self.path} cannot be written: {error.strerror or error}; nothing was changed",
            next="make room on the disk and repeat the command"
            if full
            else f"allow this process to write in {self.path}",
        )


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
