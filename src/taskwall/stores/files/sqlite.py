"""What the index uses of SQLite, and its connections, without what loading that brings along.

`sqlite3` is written in Python around `_sqlite3`, and takes longer to load for what is not used here. `_sqlite3` itself
loads `functools`, and `collections` with it, a quarter of an interpreter start, to take `lru_cache` from it: the cache
of a connection's statements. Where nobody has loaded `functools` yet, it is shown another room with such a function.
"""

from __future__ import annotations

import os
import sys
import time

from ...core import light

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from sqlite3 import Connection, Error, connect
    from typing import Any
else:
    # A program of several threads has loaded it with `threading`: no other thread meets this by chance.
    alone = sys.modules.setdefault("functools", light) is light
    try:
        try:
            from _sqlite3 import Error, connect
        finally:
            if alone:
                del sys.modules["functools"]
    except AttributeError:  # one that takes more from there
        from _sqlite3 import Error, connect
    except ImportError:  # a Python built without it
        connect, Error = None, OSError


LOG = "-wal"
BESIDE = (LOG, "-shm")
"""How the log of a file is called, and what leads through that."""
LONG_LOG = 512 * 1024
"""Bytes that are read in a third of a millisecond, and come together in half a dozen writes."""
OLD = 24 * 60 * 60
"""Seconds after which a file of another boot is no other machine's that is at work here."""
MOMENT = 0.2
"""Seconds that SQLite waits for another process: none holds a file for longer but one that takes in a whole board."""


def storable(value: Any) -> Any:
    """A value as SQLite takes it: JSON may hold halves of characters."""
    return value if not isinstance(value, str) or value.isascii() else value.encode("utf-8", "replace").decode()


def is_busy(error: Exception) -> bool:
    """Whether nothing is wrong but that another process writes."""
    return getattr(error, "sqlite_errorname", "").startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


def path_in(local: str, boot: str) -> str:
    """Where the index lies; empty when nothing keeps its name from being known beforehand.

    SQLite trusts what lies beside its file, and would remove whatever that names as left over from a crash. So the
    name is none that a repository could bring along: that of this boot, else the moment at which the folder was made.
    """
    with light.suppress(OSError):
        boot = boot or str(getattr(os.stat(local), "st_birthtime", ""))
    return os.path.join(local, f"index-{boot}") if boot else ""


@light.contextmanager
def _alone_in(folder: str) -> Iterator[None]:
    """While nobody else makes a file there. Raises OSError when somebody does."""
    if sys.platform == "win32":  # a folder cannot be locked, nor a file be removed that is in use
        yield
        return
    import fcntl  # imported late: an index is made once a boot

    fd = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(fd)


class Connections:
    """Those of one process to one file: one for each that is in use at a time, kept for the next."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._idle: list[Connection] = []
        self._owner = (0, 0)  # the process and the inode that idle ones belong to

    def open(self) -> Connection:
        """One to the file as it is now, which is made when there is none. Raises Error, OSError."""
        owner = self._here()
        if owner != self._owner:  # a child must not touch those of its parent; a file that was replaced is another one
            self._idle, self._owner = [], owner
        with light.suppress(IndexError):  # asked and taken at once: threads may share a store
            return self._idle.pop()
        self._make_file()
        connection = connect(self._path, MOMENT, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA synchronous = OFF")  # after a power cut, all is made anew
        connection.execute("PRAGMA journal_mode = WAL")  # readers and writers do not wait for each other
        self._owner = self._here()
        return connection

    def _make_file(self) -> None:
        """An empty file, unless there is one.

        Where one was removed alone, what lies beside it would be read as this one's, while a process has that open.
        """
        if os.path.lexists(self._path):
            return
        with _alone_in(os.path.dirname(self._path)):  # else somebody else may have opened it by then
            if not os.path.lexists(self._path):
                for end in BESIDE:
                    with light.suppress(FileNotFoundError):
                        os.unlink(self._path + end)
                os.close(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))
                self._tidy_up()

    def _tidy_up(self) -> None:
        """Remove those of boots long ago, and whatever came with a repository under such a name."""
        folder, ours = os.path.split(self._path)
        for name in os.listdir(folder):
            if name.startswith("index") and not name.startswith(ours):
                path = os.path.join(folder, name)
                with light.suppress(OSError):
                    if not name.startswith("index-") or os.lstat(path).st_mtime < time.time() - OLD:
                        os.unlink(path)

    def close(self, connection: Connection) -> None:
        """Give one back."""
        with light.suppress(Error):
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            if self._owner == self._here():
                self._idle.append(connection)

    def fold(self, connection: Connection) -> None:
        """Take a long log into the file, unless somebody reads just now.

        Commands end without closing it, which would take longer than to answer, and who opens it next reads the log.
        """
        with light.suppress(Error, OSError):  # all is kept without that
            if os.stat(self._path + LOG).st_size > LONG_LOG:
                connection.execute("PRAGMA busy_timeout = 0")
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                connection.execute(f"PRAGMA busy_timeout = {MOMENT * 1000:.0f}")

    def discard(self, error: Exception) -> bool:
        """Remove a file that is damaged. False when that is not possible, or it is only in use."""
        if is_busy(error):
            return False
        self._idle = []
        try:
            for end in (*BESIDE, ""):
                if os.path.lexists(self._path + end):
                    os.unlink(self._path + end)
        except OSError:
            return False
        return True

    def _here(self) -> tuple[int, int]:
        try:
            return os.getpid(), os.stat(self._path).st_ino
        except OSError:
            return os.getpid(), 0


__all__ = ["Connections", "Error", "connect", "is_busy", "path_in", "storable"]
