"""Changes of several files, all or none: a redo journal, finished by whoever takes the lock next.

`.local/journal` is a line of header `{v, serial, length, sha256}` and one of entries `[[name, new, sha256(old)]]`.
Its rename into place is the commit point; from then on readers read through it. `.local/serial` keeps the number of the
last journal that was applied, so that one which comes back (a restored backup, a lost unlink) is not applied again.
What the disk will not let us see is never taken for absent: every method then raises OSError.
"""

from __future__ import annotations

import errno
import os

from ...core.errors import Unreadable
from ...core.jsontext import loads
from ...core.light import suppress
from ...core.model import id_flaw
from ...core.record import Record
from .disk import MAX_BYTES, NotPlain, Unsettled, Write, require_seen, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .disk import Disk, Signature

VERSION = 1
MAX_DIGITS = 18
MAX_JOURNAL = 1024 * 1024 * 1024
_NAME = r"(?:\.local/claims/)?[^/\\\0]+\.json"


class Entry(Record):
    """One file of a journal. name: relative to the board. old: the digest of what it replaces, None for nothing."""

    name: str
    new: str
    old: str | None

    def covers(self, current: bytes | None) -> bool:
        """Whether a file is what this was to replace, or is replaced already: nobody has edited it since."""
        return _digest(current) == self.old or current == self.new.encode()


class Journal:
    """The journal of one board. Everything but `pending` and `mark` is for the holder of the lock."""

    def __init__(self, disk: Disk, board: str, *, durable: bool) -> None:
        self.disk, self.board, self.durable = disk, board, durable
        self.local = os.path.join(board, ".local")
        self.path = os.path.join(self.local, "journal")

    def commit(self, writes: Sequence[Write], applied: Callable[[], object] = bool) -> list[str]:
        """Write all of these files, or none. Returns what `recover` does. applied: is called when all are in place.

        Raises FileExistsError, Changed and OSError, and then none is written; Unsettled, and then it is not known.
        """
        entries = [self._entry(write) for write in writes]
        serial = self.serial + 1
        if self.durable:
            # The files that this change builds on must not fall back behind it, be they of a process that was killed.
            for folder in dict.fromkeys([self.board, *(os.path.dirname(write.path) for write in writes)]):
                self.disk.sync_folder(folder)
        self._seal(entries, serial)
        try:
            return self._finish(entries, serial, applied)
        except OSError:  # it is committed: whoever writes next finishes it
            return []

    def recover(self) -> list[str]:
        """Finish what a killed process committed. Returns what a person should know: edits that were kept over ours."""
        if not self.is_there:
            return []
        entries, serial = self._read()
        if entries:
            if self.durable:
                self._place(entries, serial)  # it may have been killed before the journal was on the disk itself
            return self._finish(entries, serial)
        self.disk.unlink(self.path)  # never committed, or applied before
        return []

    def pending(self) -> dict[str, str]:
        """The texts that files will have once a committed journal is applied, by their names relative to the board."""
        entries = self._read()[0] if self.is_there else []
        # Those that are applied too: whoever asks may have read the file before.
        return {entry.name: entry.new for entry in entries if self._stands(entry)}

    @property
    def is_there(self) -> bool:
        """Whether there is one: somebody was killed who had the lock, or is at work."""
        return self.disk.exists(self.path)

    @property
    def mark(self) -> tuple[object, ...]:
        """Something that differs before and after any change of several files was committed or applied."""
        return self.serial, self.disk.seen(self.path)

    @property
    def serial(self) -> int:
        """The number of the last journal that was applied, 0 when none was."""
        data, _ = self._current(os.path.join(self.local, "serial"))
        return int(data) if data and data.strip().isdigit() and len(data) <= MAX_DIGITS else 0

    def _entry(self, write: Write) -> Entry:
        current, seen = self._current(write.path)
        if write.exclusive and seen is not None:
            raise FileExistsError(write.path)
        require_seen(write, seen)
        return Entry(os.path.relpath(write.path, self.board), write.text, _digest(current))

    def _seal(self, entries: Sequence[Entry], serial: int) -> None:
        """Bring the journal to the disk: the commit point is its rename."""
        try:
            self._place(entries, serial)
        except Unsettled as error:
            # Its place on the disk is not known; what was not acknowledged must not happen later.
            self._take_back()
            raise OSError(error.errno, error.strerror) from error

    def _place(self, entries: Sequence[Entry], serial: int) -> None:
        import json  # imported late: most changes are of one file

        body = json.dumps([[entry.name, entry.new, entry.old] for entry in entries])  # ASCII, whatever a file is called
        header = {"v": VERSION, "serial": serial, "length": len(body), "sha256": _digest(body.encode())}
        journal = Write(self.path, f"{json.dumps(header)}\n{body}\n")
        write_all(self.disk, [journal], self.local, durable=self.durable)

    def _take_back(self) -> None:
        """The journal gone again. Raises Unsettled when it stays, for then it counts."""
        try:
            self.disk.unlink(self.path)
        except OSError as error:
            raise Unsettled(error.errno, error.strerror) from error
        with suppress(OSError):  # nothing hangs on it: the disk that failed is not asked to vouch
            self.disk.sync_folder(self.local)

    def _read(self) -> tuple[list[Entry], int]:
        """The entries and the number of a journal that is whole and was not applied yet; none otherwise.

        Raises Unreadable when a newer program wrote it.
        """
        data, _ = self._current(self.path, MAX_JOURNAL)
        if data is None:
            return [], 0
        try:
            head, body, _ = data.split(b"\n", 2)
            header = loads(head.decode())
            version, serial = header["v"], header["serial"]
            if type(version) is int and version > VERSION:
                told = f"{self.path} holds a change that a newer taskwall began"
                raise Unreadable(told, next="update taskwall to finish it")
            whole = version == VERSION and header["length"] == len(body) and header["sha256"] == _digest(body)
            if not whole or type(serial) is not int or serial <= self.serial:
                return [], 0
            entries = [Entry(*fields) for fields in loads(body.decode())]
            return (entries, serial) if all(map(_is_sound, entries)) else ([], 0)
        except (ValueError, KeyError, TypeError, RecursionError):
            return [], 0

    def _finish(self, entries: Sequence[Entry], serial: int, applied: Callable[[], object] = lambda: None) -> list[str]:
        todo, told = [], []
        for entry in entries:
            path = os.path.join(self.board, entry.name)
            current, seen = self._current(path)
            if entry.covers(current):
                # What is new already is written again: whether it reached the disk, only who wrote it would know.
                todo.append(Write(path, entry.new, exclusive=seen is None, seen=seen))
            else:
                told.append(self._park(entry))
        write_all(self.disk, todo, self.local, durable=self.durable)
        if not told:  # else not all that is there is ours
            applied()
        last = Write(os.path.join(self.local, "serial"), f"{serial}\n")
        write_all(self.disk, [last], self.local, durable=self.durable)
        self.disk.unlink(self.path)
        if self.durable:
            self.disk.sync_folder(self.local)
        return told

    def _stands(self, entry: Entry) -> bool:
        return entry.covers(self._current(os.path.join(self.board, entry.name))[0])

    def _park(self, entry: Entry) -> str:
        """Keep the newer edit of a file, and ours beside it under `.local/conflicts/`."""
        folder = os.path.join(self.local, "conflicts")
        self.disk.make_folder(folder)
        if not self.disk.is_folder(folder):
            raise OSError(errno.ENOTDIR, "not a folder of its own", folder)
        # Named by its content, so that a recovery which is itself cut short parks nothing twice.
        digest = _digest(entry.new.encode()) or ""
        parked = os.path.join(folder, f"{digest[:12]}-{os.path.basename(entry.name)}")
        write_all(self.disk, [Write(parked, entry.new)], self.local, durable=self.durable)
        return f"{entry.name} was edited while a change of it was unfinished; the edit is kept, ours lies in {parked}"

    def _current(self, path: str, most: int = MAX_BYTES) -> tuple[bytes | None, Signature | None]:
        """What a file holds and its signature, None and None without one."""
        try:
            return self.disk.read(path, most)
        except FileNotFoundError:
            return None, None
        except NotPlain as flaw:
            if flaw.error is not None:
                raise flaw.error from None
            return b"\0not a plain file", self.disk.seen(path)


def _is_sound(entry: Entry) -> bool:
    """Whether this is a file of a board and a text: a journal may come with a hostile repository."""
    import re  # imported late: seldom is a change found unfinished

    texts = isinstance(entry.name, str) and isinstance(entry.new, str) and isinstance(entry.old, str | None)
    if not texts or not re.fullmatch(_NAME, entry.name) or not entry.new.encode():
        return False
    # A file that is there may be called anything; what we make is called like its task.
    there = entry.old is not None and "/" not in entry.name
    return there or id_flaw(os.path.basename(entry.name).removesuffix(".json")) is None


def _digest(data: bytes | None) -> str | None:
    from hashlib import sha256  # imported late: only changes of several files need it

    return None if data is None else sha256(data).hexdigest()
