"""Every operation on a board's files, one method each, so that a proof can stop, fail or forget at any of them.

Small files are read strictly and replaced whole: readers and power cuts see the old text or the new, never a part.
"""

from __future__ import annotations

import errno
import os
import stat
import sys

from ...core.light import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Self

MAX_BYTES = 1024 * 1024
_CLOEXEC = getattr(os, "O_CLOEXEC", 0)
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | _CLOEXEC
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | _CLOEXEC
_APPEND = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0) | _CLOEXEC

TICK_NS = 1_000_000
"""Less than what lies between two time stamps that the kernel gives one after the other."""

Signature = tuple[int, int, int, int]


_NO_LINKS = frozenset((errno.EPERM, errno.EACCES, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK))
"""How file systems without hard links answer."""


class NotPlain(ValueError):
    """What lies there is not a small regular file of UTF-8 text. `text`: what could be made of it, for display.

    error: set when the system would not let us look, so that nothing is known of what lies there.
    """

    def __init__(self, message: str, text: str = "", error: OSError | None = None) -> None:
        super().__init__(message)
        self.text, self.error = text, error


class Changed(OSError):
    """A file is no longer what it was when the change of it was made; nothing was written."""


class Unsettled(OSError):
    """All is in its place, but the disk has not confirmed it: a power cut may take it back."""


class Disk:
    """The file system itself. Paths are strings; everything raises OSError as the system does."""

    # Looking

    def names(self, folder: str) -> list[tuple[str, Signature]]:
        """The entries of a folder, sorted, with what changes when one does; links are not followed."""
        found = []
        with os.scandir(folder) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):  # removed since the folder was listed
                    found.append((entry.name, signature(entry.stat(follow_symlinks=False))))
        return sorted(found)

    def count(self, folder: str) -> int:
        """How many entries a folder has."""
        return len(os.listdir(folder))

    def named(self, folder: str, suffix: str) -> list[bytes]:
        """The names in a large folder that end so, sorted by their bytes."""
        end = os.fsencode(suffix)
        return sorted(name for name in os.listdir(os.fsencode(folder)) if name.endswith(end))

    def listed(self, folder: str, suffix: str) -> Iterator[tuple[bytes, Signature]]:
        """The same, one after the other, with what changes when a file does."""
        path = os.fsencode(folder)
        for name in self.named(folder, suffix):
            with suppress(FileNotFoundError):
                yield name, signature(os.lstat(path + b"/" + name))

    def read(self, path: str, most: int = MAX_BYTES) -> tuple[bytes, Signature]:
        """The bytes of a regular file of at most `most` bytes. Raises NotPlain, FileNotFoundError."""
        fd = self._open_old(path)
        try:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode):
                raise NotPlain("not a regular file")
            if found.st_size > most:
                raise NotPlain(f"larger than {most // 1024} KiB")
            data = b""
            # As much as it had when it was looked at: what is written from then on changes the signature.
            while len(data) < found.st_size and (part := os.read(fd, found.st_size - len(data))):
                data += part
        except OSError as error:
            raise NotPlain(f"cannot be read: {error.strerror}", error=error) from None
        finally:
            os.close(fd)
        return data, signature(found)

    def read_back(self, path: str, block: int, most: int) -> Iterator[bytes]:
        """The last `most` bytes of a regular file in blocks, from its end backwards. Raises as `read`, and OSError.

        A block ends where the file does, or at a multiple of its size: one that is full is the same at every reading.
        """
        fd = self._open_old(path)
        try:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode):
                raise NotPlain("not a regular file")
            last = (found.st_size - 1) // block * block
            for start in range(last, max(-1, last - most), -block):
                os.lseek(fd, start, os.SEEK_SET)
                yield os.read(fd, block)
        finally:
            os.close(fd)

    def seen(self, path: str) -> Signature | None:
        """What changes when this file does, None when nothing has this name."""
        try:
            return signature(os.lstat(path))
        except (FileNotFoundError, NotADirectoryError):
            return None

    def exists(self, path: str) -> bool:
        """Whether anything has this name, a link to nothing too."""
        return self.seen(path) is not None

    def is_folder(self, path: str) -> bool:
        """Whether a folder of its own lies there: a link that came with a repository would lead our writes out."""
        try:
            return stat.S_ISDIR(os.lstat(path).st_mode)
        except OSError:
            return False

    # Changing

    def hold(self, path: str) -> int | None:
        """A file that nobody else holds, as what `let_go` takes; None when somebody does.

        Raises NotPlain, FileNotFoundError.
        """
        import fcntl  # imported late: where there is none, nothing is held

        fd = self._open_old(path)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:  # a file system without such locks keeps nobody out
            if isinstance(error, BlockingIOError):
                os.close(fd)
                return None
        return fd

    def let_go(self, fd: int) -> None:
        """Hold a file no more, even where a forked child still has the descriptor."""
        import fcntl

        with suppress(OSError):
            fcntl.flock(fd, fcntl.LOCK_UN)
        os.close(fd)

    def make_folder(self, path: str) -> None:
        """A folder, unless something has that name."""
        with suppress(FileExistsError):
            os.mkdir(path)

    def write_new(self, path: str, data: bytes, *, like: str | None = None, durable: bool) -> None:
        """A file that must not exist yet, with the permissions of the file `like`; `durable`: on the disk itself."""
        fd = self._open_new(path)
        try:
            while data:
                data = data[self._write(fd, data) :]
            if like is not None:
                with suppress(FileNotFoundError):
                    os.chmod(fd, stat.S_IMODE(os.stat(like).st_mode))
            if durable:
                self._sync(fd)
        finally:
            os.close(fd)

    def append(self, path: str, data: bytes) -> None:
        """Lines at the end of a file; one that a killed process left unfinished does not take ours with it."""
        fd = os.open(path, _APPEND, 0o666)
        try:
            size = os.fstat(fd).st_size
            torn = size > 0 and os.pread(fd, 1, size - 1) != b"\n"
            self._write(fd, (b"\n" if torn else b"") + data)
        finally:
            os.close(fd)

    def stamp(self, folder: str, now: int, before: int) -> int | None:
        """Give a folder a time stamp that the kernel does not, and return it; None when that is not possible.

        Less than a tick above the present one, and above `before` when that was such a stamp of the same tick. A file
        system that keeps another one shows it as changed.
        """
        mine = max(now, before if before - now < TICK_NS else 0) + 1
        try:
            os.utime(folder, ns=(now, mine))
        except OSError:  # the folder is somebody else's
            return None
        return mine

    def rename(self, old: str, new: str) -> None:
        """The file under its new name, in place of what was there."""
        os.replace(old, new)

    def link(self, old: str, new: str) -> None:
        """The file under a second name. Raises FileExistsError when that is taken, which a rename would not."""
        os.link(old, new)

    def unlink(self, path: str) -> None:
        """The name gone."""
        os.unlink(path)

    def sync_folder(self, path: str) -> None:
        """The names in a folder on the disk itself."""
        if os.name == "posix":  # elsewhere a folder cannot be opened, and renames are journalled
            fd = os.open(path, os.O_RDONLY | _CLOEXEC)
            try:
                self._sync(fd)
            finally:
                os.close(fd)

    def _open_old(self, path: str) -> int:
        try:
            return os.open(path, _READ)
        except FileNotFoundError:
            raise
        except NotADirectoryError as error:  # above it lies a file: nothing has this name either
            raise FileNotFoundError(error.errno, error.strerror, path) from None
        except OSError as error:
            if os.path.islink(path):
                raise NotPlain("a symbolic link") from None
            raise NotPlain(str(error.strerror), error=error) from None

    def _open_new(self, path: str) -> int:
        return os.open(path, _WRITE, 0o666)

    def _write(self, fd: int, data: bytes) -> int:
        return os.write(fd, data)

    def _sync(self, fd: int) -> None:
        if sys.platform == "darwin":
            import fcntl

            fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
        else:
            os.fsync(fd)


def signature(found: os.stat_result) -> Signature:
    """What changes when a file does. Inode numbers are reused, so that no part of it is enough alone."""
    return (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)


def decode(data: bytes) -> str:
    """The text in these bytes: strict UTF-8 without BOM. Raises NotPlain, which begins with the line."""
    if data.startswith(b"\xef\xbb\xbf"):
        raise NotPlain("1: starts with a byte order mark", data.decode("utf-8", "replace"))
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise NotPlain(f"{line}: not UTF-8 (byte {error.start})", data.decode("utf-8", "replace")) from None


DISK = Disk()


def read_text(path: str, disk: Disk = DISK) -> tuple[str, Signature]:
    """The text of a small regular file. Raises NotPlain, FileNotFoundError."""
    data, seen = disk.read(path)
    return decode(data), seen


class Write:
    """One file to be written whole: `text` at `path`, which must be new (`exclusive`) or is replaced.

    seen: the signature of what it replaces; when that is another by then, nothing is written.
    """

    def __init__(self, path: str, text: str, *, exclusive: bool = False, seen: Signature | None = None) -> None:
        self.path, self.text, self.exclusive, self.seen = path, text, exclusive, seen


def part_at(scratch: str, mark: str, number: int) -> str:
    """Where a file lies that is about to be written."""
    return f"{scratch}{os.sep}part-{mark}{number}.tmp"


class Prepared:
    """Files written whole beside their places, to appear there later. As a block: what did not appear is dropped.

    scratch: a folder on the same file system. mark: digits that nobody uses there meanwhile; the lock's holder needs
    none. first: how many that have the same mark are there.
    """

    def __init__(
        self, disk: Disk, writes: Sequence[Write], scratch: str, *, durable: bool, mark: str = "", first: int = 0
    ) -> None:
        self._disk, self._writes, self._durable = disk, writes, durable
        self._parts = [part_at(scratch, mark, number) for number in range(first, first + len(writes))]

    def __enter__(self) -> Self:
        try:
            for part, write in zip(self._parts, self._writes, strict=True):
                _write_part(self._disk, part, write, durable=self._durable)
        except BaseException:
            self._drop()
            raise
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            self._drop()

    def _drop(self) -> None:
        for part in self._parts:
            with suppress(OSError):  # the next write removes it, and what was written stands
                self._disk.unlink(part)

    def appear(self) -> None:
        """All names, in their order. Raises FileExistsError and Changed before anything appeared."""
        for write in self._writes:
            _require_unchanged(self._disk, write)
        for part, write in zip(self._parts, self._writes, strict=True):
            _appear(self._disk, part, write)

    def settle(self) -> None:
        """Their folders on the disk, when they are to be durable. Raises Unsettled."""
        if self._durable:
            _settle(self._disk, self._writes)


def write_all(disk: Disk, writes: Sequence[Write], scratch: str, *, durable: bool) -> None:
    """Write files, in their order, each appearing whole: all parts, then all names, then the folders.

    scratch: a folder on the same file system. Raises FileExistsError and Changed before anything appeared, Unsettled
    when all has appeared.
    """
    with Prepared(disk, writes, scratch, durable=durable) as prepared:
        prepared.appear()
        prepared.settle()


def _write_part(disk: Disk, part: str, write: Write, *, durable: bool) -> None:
    like = None if write.exclusive else write.path
    data = write.text.encode()
    try:
        disk.write_new(part, data, like=like, durable=durable)
    except FileExistsError:  # left by a process that was killed; nobody else has this name now
        disk.unlink(part)
        disk.write_new(part, data, like=like, durable=durable)


def _require_unchanged(disk: Disk, write: Write) -> None:
    """Editors take no lock of ours: one more look, for bringing the parts to the disk took milliseconds."""
    if write.exclusive and disk.exists(write.path):
        raise FileExistsError(write.path)
    if write.seen:
        require_seen(write, disk.seen(write.path))


def is_same(seen: Signature, now: Signature | None) -> bool:
    """Whether a file holds what it held when it had this signature."""
    # Not by the time of status change: it moves with the number of names, which a killed writer's leftovers share.
    return now is not None and (now[0], *now[2:]) == (seen[0], *seen[2:])


def require_seen(write: Write, now: Signature | None) -> None:
    """Raise Changed when the text that this write replaces is not the one that its maker saw."""
    if write.seen and not is_same(write.seen, now):
        raise Changed(errno.EBUSY, "changed by another program just now", write.path)


def _settle(disk: Disk, writes: Sequence[Write]) -> None:
    try:
        for folder in dict.fromkeys(os.path.dirname(write.path) for write in writes):
            disk.sync_folder(folder)
    except OSError as error:
        raise Unsettled(error.errno, error.strerror) from error


def _appear(disk: Disk, part: str, write: Write) -> None:
    if not write.exclusive:
        disk.rename(part, write.path)
        return
    try:
        disk.link(part, write.path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        disk.rename(part, write.path)  # the lock keeps our own out
    else:
        with suppress(OSError):  # the next write removes it, and what was written stands
            disk.unlink(part)
