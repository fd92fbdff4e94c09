"""Changes of several files, all or none: a redo journal, finished by whoever takes the lock next.

`.local/journal` is a line of header `{v, serial, length, sha256}` and one of entries `[[name, new, sha256(old)]]`.
Its rename into place is the commit point; from then on readers read through it. `.local/serial` keeps the number of the
last journal that was applied, so that one which comes back (a restored backup, a lost unlink) is not applied again.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time

from ...core.record import Record
from .disk import NotPlain, Write, write_all
from .patch import encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .disk import Disk

VERSION = 1
MAX_JOURNAL = 1024 * 1024 * 1024
_NAME = re.compile(r"(?:\.local/claims/)?[^/\\\0]+\.json")


class Entry(Record):
    """One file of a journal. name: relative to the board. old: the digest of what it replaces, None for nothing."""

    name: str
    new: str
    old: str | None


class Journal:
    """The journal of one board. Everything but `pending` and `mark` is for the holder of the lock."""

    def __init__(self, disk: Disk, board: str, *, durable: bool) -> None:
        self.disk, self.board, self.durable = disk, board, durable
        self.local = os.path.join(board, ".local")
        self.path = os.path.join(self.local, "journal")

    def commit(self, writes: Sequence[Write]) -> None:
        """Write all of these files, or none. Raises FileExistsError and OSError, and then none is written."""
        for write in writes:
            if write.exclusive and self.disk.exists(write.path):
                raise FileExistsError(write.path)
        entries = [Entry(os.path.relpath(w.path, self.board), w.text, _digest(self._current(w.path))) for w in writes]
        serial = self.serial + 1
        self._seal(entries, serial)
        with contextlib.suppress(OSError):  # it is committed: whoever writes next finishes it
            self._finish(entries, serial)

    def recover(self) -> list[str]:
        """Finish what a killed process committed. Returns what a person should know: edits that were kept over ours."""
        if not self.disk.exists(self.path):
            return []
        entries, serial = self._read()
        if entries:
            return self._finish(entries, serial)
        self.disk.unlink(self.path)  # never committed, or applied before
        return []

    def pending(self) -> dict[str, str]:
        """The texts that files will have once a committed journal is applied, by their names relative to the board."""
        entries = self._read()[0] if self.disk.exists(self.path) else []
        return {entry.name: entry.new for entry in entries if self._stands(entry)}

    @property
    def mark(self) -> tuple[object, ...]:
        """Something that differs before and after any change of several files was committed or applied."""
        return self.serial, self.disk.seen(self.path)

    @property
    def serial(self) -> int:
        """The number of the last journal that was applied, 0 when none was."""
        try:
            return int(self.disk.read(os.path.join(self.local, "serial"))[0])
        except (OSError, ValueError):  # NotPlain is one
            return 0

    def _seal(self, entries: Sequence[Entry], serial: int) -> None:
        """Bring the journal to the disk: the commit point is its rename."""
        body = encode([[entry.name, entry.new, entry.old] for entry in entries])
        data = body.encode()
        header = {"v": VERSION, "serial": serial, "length": len(data), "sha256": _digest(data)}
        try:
            write_all(
                self.disk, [Write(self.path, f"{json.dumps(header)}\n{body}\n")], self.local, durable=self.durable
            )
        except OSError:
            # Its place on the disk is not known; what was not acknowledged must not happen later.
            with contextlib.suppress(FileNotFoundError):
                self.disk.unlink(self.path)
            raise

    def _read(self) -> tuple[list[Entry], int]:
        """The entries and the number of a journal that is whole and was not applied yet; none otherwise."""
        try:
            head, body, _ = self.disk.read(self.path, most=MAX_JOURNAL)[0].split(b"\n", 2)
            header = json.loads(head)
            whole = header["length"] == len(body) and header["sha256"] == _digest(body)
            if header["v"] != VERSION or not whole or header["serial"] <= self.serial:
                return [], 0
            entries = [Entry(*fields) for fields in json.loads(body)]
        except (OSError, ValueError, KeyError, TypeError):
            return [], 0
        return (entries, header["serial"]) if all(_NAME.fullmatch(entry.name) for entry in entries) else ([], 0)

    def _finish(self, entries: Sequence[Entry], serial: int) -> list[str]:
        todo, told = [], []
        for entry in entries:
            path = os.path.join(self.board, entry.name)
            if self._stands(entry):
                todo.append(Write(path, entry.new, exclusive=entry.old is None))
            elif self._current(path) != entry.new.encode():
                told.append(self._park(entry))
        write_all(self.disk, todo, self.local, durable=self.durable)
        applied = Write(os.path.join(self.local, "serial"), f"{serial}\n")
        write_all(self.disk, [applied], self.local, durable=self.durable)
        self.disk.unlink(self.path)
        if self.durable:
            self.disk.sync_folder(self.local)
        return told

    def _stands(self, entry: Entry) -> bool:
        """Whether the file is still what the entry was to replace: nobody has edited it since."""
        current = self._current(os.path.join(self.board, entry.name))
        return _digest(current) == entry.old

    def _park(self, entry: Entry) -> str:
        """Keep the newer edit of a file, and ours beside it under `.local/conflicts/`."""
        folder = os.path.join(self.local, "conflicts")
        self.disk.make_folder(folder)
        parked = os.path.join(
            folder, f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{os.path.basename(entry.name)}"
        )
        write_all(self.disk, [Write(parked, entry.new)], self.local, durable=self.durable)
        return f"{entry.name} was edited while a change of it was unfinished; the edit is kept, ours lies in {parked}"

    def _current(self, path: str) -> bytes | None:
        try:
            return self.disk.read(path)[0]
        except FileNotFoundError:
            return None
        except NotPlain:
            return b"\0not a plain file"


def _digest(data: bytes | None) -> str | None:
    from hashlib import sha256  # imported late: only changes of several files need it

    return None if data is None else sha256(data).hexdigest()
