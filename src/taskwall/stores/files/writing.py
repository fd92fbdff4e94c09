"""A transaction as the files it changes: the patched text of each task, and the entries of the claim ledger."""

from __future__ import annotations

import os

from ...core.claims import is_held
from ...core.errors import Invalid, Unreadable, Unwritable
from ...core.model import IN_PROGRESS, stored
from .changes import Kept, differences, free_form, key_order
from .disk import MAX_BYTES, NotPlain, Write, read_text
from .folder import ARCHIVE, SUFFIX, UNSEEN, Found, object_of, promised
from .patch import patch
from .plain import NotATask
from .strict import NotStrict, encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ...core.model import Task
    from ..base import Txn
    from .disk import Disk, Signature
    from .view import FileView


class Writing:
    """The files of one transaction, made under the lock. Raises Refused when somebody else changed one of them."""

    def __init__(self, disk: Disk, board: str, view: FileView, txn: Txn) -> None:
        self._disk, self._board, self.view, self._txn = disk, board, view, txn
        self._free: dict[str, dict[str, Any]] = {}
        self.left: list[str] = []  # files of the archive whose tasks come back
        _continue_epochs(txn)
        writes = {task.id: write for task in txn.changed.values() if (write := self._of(task))}
        ends = _unknown_ends(view, txn)
        entries = view.ledger.writes(txn.claimed, txn.changed, self._free, ends)
        self.tasks, self.entries = [*writes.values()], [*entries.values()]
        # What is then there, so that nobody need read it again.
        self.found = {i: self._promised(txn.changed[i], write) for i, write in writes.items()}
        self.standing = {i: (write.text, self._is_held(i, ends)) for i, write in entries.items()}

    def _of(self, task: Task) -> Write | None:
        if self._txn.is_new(task):
            path = f"{self._board}{os.sep}{task.id}{SUFFIX}"
            text = encode(stored(task), indent="  ") + "\n"
            _check_size(task, text)
            return Write(path, text, exclusive=True)
        name, known = self.view.in_file(task.id)
        path = f"{self._board}{os.sep}{name}"
        text, raw, old, seen = self._read_again(path, known, self.view.read(name))
        if old.status != IN_PROGRESS == task.status and not task.gated:
            self._free[task.id] = free_form(old, raw)
        try:
            changes, removed = differences(old, task, raw, self._numeric, self.view.ledger.free(task.id))
        except Kept as kept:
            told = f"{path}: its {kept} is {encode(raw[kept.key])[:80]}, which is not ours to replace"
            way = f"rename {kept} in that file by hand, or leave it out of this request"
            raise Invalid(told, task=task.id, next=way) from None
        patched = patch(text, changes, removed, key_order(task.dialect))
        if patched == text:
            return None
        _check_size(task, patched)
        if name.startswith(ARCHIVE + os.sep):  # what changes is no longer out of the way
            self.left.append(path)
            return Write(os.path.join(self._board, os.path.basename(name)), patched, exclusive=True)
        return Write(path, patched, seen=seen)

    def _read_again(self, path: str, known: Task, read: Found | None) -> tuple[str, dict[str, Any], Task, Signature]:
        """The text, object and task of a file, which is still the one that was seen when the transaction began."""
        try:
            text, seen = (read.text, read.seen) if read else read_text(path, self._disk)
            raw, found = object_of(text)
        except (OSError, NotPlain, NotStrict, NotATask) as flaw:
            told = f"{path} was changed by another program just now: {flaw}; nothing was written"
            raise Unreadable(told, task=known.id) from None
        if found != known:
            told = f"{path} was changed by another program just now; nothing was written"
            raise Unwritable(told, task=known.id, next="repeat the command")
        return text, raw, found, seen

    def _promised(self, task: Task, write: Write) -> Found:
        name = os.path.basename(write.path)
        if task.gated:  # all of it is in the file
            return Found(name, task, UNSEEN, settled=False, text=write.text)
        return promised(name, write.text)

    def _is_held(self, task_id: str, ends: Mapping[str, int]) -> bool:
        task = self.found[task_id].task if task_id in self.found else self.view.in_file(task_id)[1]
        return is_held(task, self._txn.claim(task_id), ends.get(task_id) or self.view.ledger.ended(task_id))

    def _numeric(self, task_id: str) -> bool:
        task = self._txn.get(task_id)
        return task is not None and task.numeric


def _check_size(task: Task, text: str) -> None:
    """Raise Invalid when this could not be read again: a file that has outgrown the reader is lost to the board."""
    if len(text.encode()) > MAX_BYTES:
        told = f"the file of {task.id} would be larger than {MAX_BYTES // 1024} KiB"
        raise Invalid(told, task=task.id, next="keep long text in a file of its own and name that")


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
