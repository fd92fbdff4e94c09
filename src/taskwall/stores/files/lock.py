"""One writer at a time: a kernel lock that dies with the process that holds it.

`flock` on POSIX, `msvcrt.locking` on Windows (written for, untested). No pid files, nothing to clean up.
"""

from __future__ import annotations

import os
import sys
import time
from _thread import allocate_lock, start_new_thread  # `threading` takes time to import

from ...core.errors import Locked
from ...core.light import cache, contextmanager, suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MESSAGE = 240
"""How long the line about the holder is, in bytes."""
DEADLINE = 10.0
"""Seconds to wait for another process before giving up."""
TURN = 0.01
"""Seconds for which a process that has waited for its turn may come back before others: to let another process go on
after each change costs more than the change, for it finds nothing of its own in the processor's cache."""
PAUSE = 0.001
"""Seconds between two tries where the system cannot wake who waits."""

if sys.platform != "win32":
    import fcntl

    def _try(fd: int) -> bool:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_UN)

    def _granted(fd: int, seconds: float) -> bool:
        """Whether the lock became ours in time. The kernel wakes who waits as soon as it is free, one after the other.

        It knows no deadline: a thread waits for us. One that waited in vain gives back what it gets later.
        """
        own, granted, decided = os.dup(fd), allocate_lock(), allocate_lock()
        granted.acquire()

        def wait() -> None:
            fcntl.flock(own, fcntl.LOCK_EX)
            if decided.acquire(blocking=False):
                granted.release()
            else:
                _unlock(own)
            os.close(own)

        try:
            start_new_thread(wait, ())
        except RuntimeError:  # there may be no more of them
            os.close(own)
            return _polled(fd, seconds)
        try:
            return granted.acquire(timeout=seconds) or not decided.acquire(blocking=False)
        except BaseException:  # an interrupt
            if not decided.acquire(blocking=False):
                _unlock(fd)
            raise
else:
    import msvcrt

    def _try(fd: int) -> bool:
        try:
            os.lseek(fd, 0, os.SEEK_SET)
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _unlock(fd: int) -> None:
        os.lseek(fd, 0, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)

    def _granted(fd: int, seconds: float) -> bool:
        return _polled(fd, seconds)


def _polled(fd: int, seconds: float) -> bool:
    """Whether the lock became ours in time, tried for again and again."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if _try(fd):
            return True
        time.sleep(PAUSE * (128 + os.urandom(1)[0]) / 256)  # jitter, so that waiters do not march in step
    return False


@contextmanager
def lock(path: str, deadline: float = DEADLINE) -> Iterator[Callable[[], bool]]:
    """Hold the lock at `path` for the block. Raises Locked, naming the holder, after `deadline` seconds.

    Yields a question to ask before anything is written: whether the lock is still this one. Somebody who removes the
    file lets the next process in beside us.
    """
    fd = _acquire(path, time.monotonic() + deadline)
    try:
        # Always as long as the last one: to make a file shorter takes longer than all else here.
        os.pwrite(fd, _myself().encode("utf-8", "replace")[:MESSAGE].ljust(MESSAGE), 0)
        yield lambda: _is_at(fd, path)
    finally:
        # Explicitly, because a forked child that still has the descriptor would keep the lock.
        _unlock(fd)
        os.close(fd)


def is_locked(path: str) -> bool:
    """Whether somebody holds the lock at this path now."""
    try:
        fd = os.open(path, os.O_RDWR | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return False
    try:
        if not _try(fd):
            return True
        _unlock(fd)
        return False
    finally:
        os.close(fd)


def _myself() -> str:
    """For the message of somebody who waits in vain; nobody decides by it."""
    who, command = _process(os.getpid())
    return f"{who} since {time.strftime('%FT%TZ', time.gmtime())}: {command}"


@cache
def _process(pid: int) -> tuple[str, str]:
    host = os.uname().nodename if hasattr(os, "uname") else "this host"
    # An address may hold a password, and this is read by whoever waits.
    words = " ".join(word.partition("://")[0] + "://…" if "://" in word else word for word in sys.argv)
    return f"pid {pid} on {host}", "".join(c if c.isprintable() else " " for c in words[:80])


_turns: dict[tuple[int, str], float] = {}
"""When the turn of a process at a lock ends."""


def _acquire(path: str, until: float) -> int:
    key = (os.getpid(), path)
    if time.monotonic() < _turns.get(key, 0.0):
        with suppress(TimeoutError):
            return _taken(path, 0.0)
    try:
        fd = _in_turn(path, until)
    except TimeoutError:
        holder = _holder(path)
        raise Locked(
            f"the board is locked by another process ({holder or 'unknown'})",
            next="try again; if that process hangs, end it: its lock goes with it",
        ) from None
    _turns[key] = time.monotonic() + TURN
    return fd


def _in_turn(path: str, until: float) -> int:
    # Whoever comes next waits alone at the lock and the others behind it: a process that lets go and comes back at once
    # would else be first again and again, for it need not wake up.
    next_one = _taken(path + ".next", until)
    try:
        return _taken(path, until)
    finally:
        _unlock(next_one)
        os.close(next_one)


def _taken(path: str, until: float) -> int:
    """The descriptor of a locked file. Raises TimeoutError."""
    while True:
        fd = _open(path)
        try:
            left = until - time.monotonic()
            ours = _try(fd) or (left > 0 and _granted(fd, left))
            if ours and _is_at(fd, path):
                return fd
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)
        if not ours:
            raise TimeoutError


def _open(path: str) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0), 0o644)


def _holder(path: str) -> str:
    try:
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return ""
    try:
        return os.pread(fd, MESSAGE, 0).decode("utf-8", "replace").strip()
    finally:
        os.close(fd)


def _is_at(fd: int, path: str) -> bool:
    """Whether the locked file is still the one at this path: a lock on a deleted file locks nobody out."""
    try:
        there = os.stat(path)
    except FileNotFoundError:
        return False
    here = os.fstat(fd)
    return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)
