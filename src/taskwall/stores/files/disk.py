"""Every operation on a board's files, one method each, so that a proof can stop, fail or forget at any of them.

Small files are read strictly and replaced whole: readers and power cuts see the old text or the new, never a part.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_BYTES = 1024 * 1024
_CLOEXEC = getattr(os, "O_CLOEXEC", 0)
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | _CLOEXEC
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | _CLOEXEC
_APPEND = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0) | _CLOEXEC

Signature = tuple[int, int, int, int]


class NotPlain(ValueError):
    """What lies there is not a small regular file of UTF-8 text. `text`: what could be made of it, for display."""

    def __init__(self, message: str, text: str = "") -> None:
        super().__init__(message)
        self.text = text


class Disk:
    """The file system itself. Paths are strings; everything raises OSError as the system does."""

    # Looking

    def names(self, folder: str) -> list[tuple[str, Signature]]:
        """The entries of a folder, sorted, with what changes when one does; links are not followed."""
        found = []
        with os.scandir(folder) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):  # removed since the folder was listed
                    found.append((entry.name, signature(entry.stat(follow_symlinks=False))))
        return sorted(found)

    def read(self, path: str, most: int = MAX_BYTES) -> tuple[bytes, Signature]:
        """The bytes of a regular file of at most `most` bytes. Raises NotPlain, FileNotFoundError."""
        try:
            fd = os.open(path, _READ)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise NotPlain("a symbolic link" if os.path.islink(path) else str(error.strerror)) from None
        try:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode):
                raise NotPlain("not a regular file")
            data = b""
            while len(data) <= most and (part := os.read(fd, most + 1 - len(data))):
                data += part
        except OSError as error:
            raise NotPlain(f"cannot be read: {error.strerror}") from None
        finally:
            os.close(fd)
        if max(found.st_size, len(data)) > most:
            raise NotPlain(f"larger than {most // 1024} KiB")
        return data, signature(found)

    def seen(self, path: str) -> Signature | None:
        """What changes when this file does, None when nothing has this name."""
        try:
            return signature(os.lstat(path))
        except (FileNotFoundError, NotADirectoryError):
            return None

    def exists(self, path: str) -> bool:
        """Whether anything has this name, a link to nothing too."""
        return self.seen(path) is not None

    # Changing

    def make_folder(self, path: str) -> None:
        """A folder, with those above it, unless it is there."""
        os.makedirs(path, exist_ok=True)

    def write_new(self, path: str, data: bytes, *, like: str | None = None, durable: bool) -> None:
        """A file that must not exist yet, with the permissions of the file `like`; `durable`: on the disk itself."""
        fd = self._open_new(path)
        try:
            while data:
                data = data[self._write(fd, data) :]
            if like is not None:
                with contextlib.suppress(FileNotFoundError):
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
    """One file to be written whole: `text` at `path`, which must be new (`exclusive`) or is replaced."""

    def __init__(self, path: str, text: str, *, exclusive: bool = False) -> None:
        self.path, self.text, self.exclusive = path, text, exclusive


def write_all(disk: Disk, writes: Sequence[Write], scratch: str, *, durable: bool) -> None:
    """Write files, in their order, each appearing whole: all parts, then all names, then the folders.

    scratch: a folder on the same file system. Raises FileExistsError before anything appeared.
    """
    parts = [os.path.join(scratch, f"part-{number}.tmp") for number in range(len(writes))]
    try:
        for part, write in zip(parts, writes, strict=True):
            with contextlib.suppress(FileNotFoundError):
                disk.unlink(part)  # left by a process that was killed; we hold the lock
            like = None if write.exclusive else write.path
            disk.write_new(part, write.text.encode(), like=like, durable=durable)
        for write in writes:
            if write.exclusive and disk.exists(write.path):
                raise FileExistsError(write.path)
        for part, write in zip(parts, writes, strict=True):
            _appear(disk, part, write)
        if durable:
            for folder in dict.fromkeys(os.path.dirname(write.path) for write in writes):
                disk.sync_folder(folder)
    finally:
        for part in parts:
            if disk.exists(part):
                disk.unlink(part)


def _appear(disk: Disk, part: str, write: Write) -> None:
    if not write.exclusive:
        disk.rename(part, write.path)
        return
    try:
        disk.link(part, write.path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links; the lock keeps our own out
        disk.rename(part, write.path)
