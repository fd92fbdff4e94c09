"""Reading a small file strictly, and replacing one so that readers and power cuts see the old or the new, whole."""

from __future__ import annotations

import contextlib
import os
import stat
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_BYTES = 1024 * 1024
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)

Signature = tuple[int, int, int, int]


class NotPlain(ValueError):
    """What lies there is not a small regular file of UTF-8 text. `text`: what could be made of it, for display."""

    def __init__(self, message: str, text: str = "") -> None:
        super().__init__(message)
        self.text = text


def signature(found: os.stat_result) -> Signature:
    """What changes when a file does. Inode numbers are reused, so that no part of it is enough alone."""
    return (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)


def read_text(path: str) -> tuple[str, os.stat_result]:
    """The text of a regular file of at most 1 MiB, strict UTF-8 without BOM. Raises NotPlain, FileNotFoundError."""
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
        if found.st_size > MAX_BYTES:
            raise NotPlain(f"larger than {MAX_BYTES // 1024} KiB")
        data = b""
        while len(data) <= MAX_BYTES and (part := os.read(fd, MAX_BYTES + 1 - len(data))):
            data += part
    except OSError as error:
        raise NotPlain(f"cannot be read: {error.strerror}") from None
    finally:
        os.close(fd)
    if data.startswith(b"\xef\xbb\xbf"):
        raise NotPlain("1: starts with a byte order mark", data.decode("utf-8", "replace"))
    if len(data) > MAX_BYTES:  # it grew while we read
        raise NotPlain(f"larger than {MAX_BYTES // 1024} KiB")
    try:
        return data.decode(), found
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise NotPlain(f"{line}: not UTF-8 (byte {error.start})", data.decode("utf-8", "replace")) from None


def sync(fd: int) -> None:
    """Bring a file or folder to the disk itself."""
    if sys.platform == "darwin":
        import fcntl

        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
    else:
        os.fsync(fd)


def sync_folder(path: str) -> None:
    """Bring the names in a folder to the disk."""
    if os.name == "posix":  # elsewhere a folder cannot be opened, and renames are journalled
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            sync(fd)
        finally:
            os.close(fd)


class Write:
    """One file to be written whole: `text` at `path`, which must be new (`exclusive`) or is replaced."""

    def __init__(self, path: str, text: str, *, exclusive: bool = False) -> None:
        self.path, self.text, self.exclusive = path, text, exclusive


def commit(writes: Sequence[Write], scratch: str, *, durable: bool) -> None:
    """Write files, in their order, each appearing whole. Raises FileExistsError before anything appeared.

    scratch: a folder on the same file system for the parts. durable: fsync each file and folder.
    """
    parts: list[str] = []
    try:
        for number, write in enumerate(writes):
            parts.append(os.path.join(scratch, f"part-{number}.tmp"))
            _write_part(parts[-1], write, durable=durable)
        for write in writes:
            if write.exclusive and os.path.lexists(write.path):
                raise FileExistsError(write.path)
        for part, write in zip(parts, writes, strict=True):
            _appear(part, write)
        if durable:
            for folder in dict.fromkeys(os.path.dirname(write.path) for write in writes):
                sync_folder(folder)
    finally:
        for part in parts:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(part)


def _write_part(part: str, write: Write, *, durable: bool) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(part)  # left by a process that was killed; we hold the lock
    fd = os.open(part, _WRITE, 0o666)
    try:
        data = write.text.encode()
        while data:
            data = data[os.write(fd, data) :]
        with contextlib.suppress(FileNotFoundError):
            os.chmod(fd, stat.S_IMODE(os.stat(write.path).st_mode))
        if durable:
            sync(fd)
    finally:
        os.close(fd)


def _appear(part: str, write: Write) -> None:
    if not write.exclusive:
        os.replace(part, write.path)
        return
    try:
        os.link(part, write.path)  # fails when the name is taken, which a rename would not
    except FileExistsError:
        raise
    except OSError:
        os.rename(part, write.path)  # a file system without hard links; the lock keeps our own out
