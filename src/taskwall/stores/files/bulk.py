"""The tables of an index from all files of a folder; those of a very large one are read by two processes.

The second reads them from the last to the first and hands their rows over, while we read from the first on, until we
meet. Nothing depends on it: what it has not handed over, because it was killed or could not even start, we read.
"""

from __future__ import annotations

import gc
import os
import sys
from bisect import bisect_left

from ...core.light import contextmanager, suppress
from .disk import DISK, Disk
from .folder import SUFFIX, UNSEEN, read_each
from .tables import TABLES, fill, rows_of, run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from sqlite3 import Connection

    from .tables import Beside, Rows

TWO_FROM = 20_000
"""From so many files on, a second process is worth its start."""
SOME = 100
"""How many files are handed over at once."""
ROOM = 1 << 20
"""Bytes that may wait in the pipe: who writes into a full one does nothing else."""
_SIZE, _BLOCK, _KILL = 8, 262_144, 9
_START = (
    "import sys; sys.path.insert(0, sys.argv[1]); from taskwall.stores.files.bulk import hand_over as o; o(sys.argv[2])"
)


def make(connection: Connection, disk: Disk, board: str, beside: Beside, about: tuple[int, str]) -> None:
    """Tables of all files of a folder, in place of what there was. about: the version of the index, and the boot."""
    for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        connection.execute(f'DROP TABLE "{name}"')
    run(connection, TABLES)
    connection.execute("INSERT INTO about VALUES (?, ?, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0)", about)
    with _uncollected():
        fill(connection, every_row(disk, board), beside)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Nothing that is made for an index refers to itself: to look for that takes a twentieth of the time."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def every_row(disk: Disk, board: str) -> Iterator[Rows]:
    """The rows of all files of a folder, some files at a time."""
    names = disk.named(board, SUFFIX)
    at, end = 0, len(names)
    second = _Second(board) if end >= TWO_FROM and type(disk) is Disk and _processors() > 1 else None
    try:
        while at < end:
            if second and (handed := second.handed_over()):
                first = bisect_left(names, handed[0])
                if first >= at:
                    end = first
                    yield handed[1]
                    continue
                second.end()
            yield _rows(disk, board, names[at : min(at + SOME, end)])
            at += SOME
    finally:
        if second:
            second.end()


def _rows(disk: Disk, board: str, names: Iterable[bytes]) -> Rows:
    return rows_of(list(read_each(disk, board, ((name, UNSEEN) for name in names))))


def _roomy_pipe() -> tuple[int, int]:
    read, write = os.pipe()
    with suppress(ImportError, AttributeError, OSError):  # where there is no such thing, or not so much
        import fcntl

        fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, ROOM)
    return read, write


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Second:
    """The second process, if it could be started."""

    def __init__(self, board: str) -> None:
        self._pipe, self._pid, self._data = -1, 0, b""
        if not sys.executable or not hasattr(os, "posix_spawn"):
            return
        self._pipe, end = _roomy_pipe()
        os.set_blocking(self._pipe, False)
        package = os.path.abspath(os.path.join(__file__, *[os.pardir] * 4))
        words = [sys.executable, "-I", "-S", "-B", "-c", _START, package, board]
        quiet = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 2)]
        with suppress(OSError):
            actions = [(os.POSIX_SPAWN_DUP2, end, 1), *quiet]
            self._pid = os.posix_spawn(words[0], words, os.environ, file_actions=actions)
        os.close(end)

    def handed_over(self) -> tuple[bytes, Rows] | None:
        """The name of a file, and the rows of all files from that one up to those handed over before; None without.

        Not waited for: on a machine with much to do, the second process may have to.
        """
        if self._pipe >= 0:
            with suppress(BlockingIOError):
                part = os.read(self._pipe, _BLOCK)
                self._data += part
                if not part:
                    self.end()
        size = int.from_bytes(self._data[:_SIZE], "little")
        if not size or len(self._data) < _SIZE + size:
            return None
        import marshal  # imported late: few boards are so large

        handed: tuple[bytes, Rows] = marshal.loads(self._data[_SIZE : _SIZE + size])  # noqa: S302 - our own code wrote it
        self._data = self._data[_SIZE + size :]
        return handed

    def end(self) -> None:
        """Let it go on no longer."""
        if self._pipe >= 0:
            os.close(self._pipe)
        if self._pid:
            with suppress(OSError):
                os.kill(self._pid, _KILL)
                os.waitpid(self._pid, 0)
        self._pipe, self._pid = -1, 0


def hand_over(board: str) -> None:
    """What the second process does: write the rows of all files to its output, those of the last files first."""
    import marshal

    gc.disable()
    names = DISK.named(board, SUFFIX)
    for end in range(len(names), 0, -SOME):
        some = names[max(0, end - SOME) : end]
        handed = marshal.dumps((some[0], _rows(DISK, board, some)))
        data = len(handed).to_bytes(_SIZE, "little") + handed
        while data:
            data = data[os.write(1, data) :]
