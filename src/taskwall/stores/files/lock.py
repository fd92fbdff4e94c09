"""One writer at a time: a kernel lock that dies with the process that holds it.

`flock` on POSIX, `msvcrt.locking` on Windows (written for, untested). No pid files, nothing to clean up.
"""

from __future__ import annotations

import os
import sys
import time
from _thread import allocate_lock, start_new_thread  # `threading` takes time to import

from ...core.errors import Locked
from ...core.light import cache, contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

MESSAGE = 240
"""How long the line about the holder is, in bytes."""
MARK = 32
"""How long a mark is at most."""
DEADLINE = 10.0
"""Seconds to wait for another process before giving up."""
TURN, LONG_TURN = 0.02, 0.1
"""Seconds that a turn lasts at most, and one at a seat, beside which others have theirs."""
SOON, LOOK = 0.001, 0.005
"""Seconds within which a process comes back to keep its turn, and between looks whether it did."""
NAPS, NAP = 5, 0.00001
"""How often, and for how many seconds at least, one waits for a change before a thread does: few take long."""
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


def _napped(fd: int, naps: int) -> bool:
    """Whether the lock became ours within so many naps."""
    for _ in range(naps):
        time.sleep(NAP)
        if _try(fd):
            return True
    return False


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
    until = time.monotonic() + deadline
    with _turn(path, path, until, TURN), _held(path, until) as is_still_there:
        yield is_still_there


class Seat:
    """A place from which the lock at `path` may be taken.

    mark: digits that nobody else has then, no thread of ours. last: those of who sat here before us, once a turn.
    """

    def __init__(self, path: str, until: float, mark: str, last: str) -> None:
        self._path, self._until, self.mark, self.last = path, until, mark, last

    def lock(self) -> AbstractContextManager[Callable[[], bool]]:
        """The lock itself, as `lock` has it."""
        return _held(self._path, self._until)


@contextmanager
def seat(path: str, seats: int, deadline: float = DEADLINE) -> Iterator[Seat]:
    """One of so many seats for the block, in turns. Raises Locked after `deadline` seconds."""
    until = time.monotonic() + deadline
    number = _seat_of(path, seats)
    queue = f"{path}.{number}"
    with _turn(path, queue, until, LONG_TURN) as turn:
        if not turn.alone.acquire(timeout=max(0.0, until - time.monotonic())):
            raise _refused(path)
        try:
            # Not by the number alone: somebody who removes the seat's file lets another process in.
            mark = f"0{os.getpid()}{number}"
            yield Seat(path, until, mark, turn.sign(mark))
        finally:
            turn.alone.release()


def _seat_of(path: str, seats: int) -> int:
    """The seat that this process still has, else one that is free, else the one at which it waits."""
    own = os.getpid() % seats
    for number in range(seats):
        if (turn := _turns.get(f"{path}.{number}")) and turn.lasts:
            return number
    return next((n for n in (own, *range(seats)) if not is_locked(f"{path}.{n}.next")), own)


@contextmanager
def _turn(path: str, queue: str, until: float, longest: float) -> Iterator[_Turn]:
    try:
        turn = _turn_at(queue, until, longest)
    except TimeoutError:
        raise _refused(path) from None
    try:
        yield turn
    finally:
        turn.leave()


def _refused(path: str) -> Locked:
    told = f"the board is locked by another process ({_holder(path) or 'unknown'})"
    return Locked(told, next="try again; if that process hangs, end it: its lock goes with it")


@contextmanager
def _held(path: str, until: float) -> Iterator[Callable[[], bool]]:
    try:
        fd = _taken(path, until, NAPS)
    except TimeoutError:
        raise _refused(path) from None
    try:
        # Always as long as the last one: to make a file shorter takes longer than all else here.
        os.pwrite(fd, _myself().encode("utf-8", "replace")[:MESSAGE].ljust(MESSAGE), 0)
        yield lambda: _is_at(fd, path)
    finally:
        _let_go(fd)


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


class _Turn:
    """The turn of this process at a lock: the others wait for its end, and not for that of each change.

    To let another process go on after each change costs about as much as the change, for it has to wake up and finds
    nothing of its own in the processor's cache. So who comes back at once keeps the turn, for a moment.
    """

    def __init__(self, path: str, fd: int, longest: float, *, busy: bool) -> None:
        """fd: the locked file that the others wait for. longest: seconds. busy: this process came back at once."""
        self._path, self._fd, self._busy = path, fd, busy
        self._inside, self._kept, self._signed = 1, False, False
        self._until = time.monotonic() + longest
        self.alone = allocate_lock()  # for one thread at a time, where it matters

    @property
    def lasts(self) -> bool:
        """Whether it is a turn still."""
        return self._fd >= 0

    def join(self) -> bool:
        """Go on with it, unless it is over."""
        over = time.monotonic() > self._until
        if over and not self._inside:
            self.end(_let_go)
        if over or not self.lasts:
            return False
        self._inside += 1
        return True

    def sign(self, mark: str) -> str:
        """Leave a mark for who has the next turn. Returns that of the last one, empty when it is told already."""
        if self._signed:
            return ""
        self._signed = True
        last = os.pread(self._fd, MARK, 0).decode("ascii", "replace").strip()
        os.pwrite(self._fd, mark.encode().ljust(MARK), 0)
        return last if last.isdecimal() and last != mark else ""

    def leave(self) -> None:
        """End a change, and the turn with it unless this process may well come back."""
        with _guard:
            self._inside -= 1
            now = _left[self._path] = time.monotonic()
            if self._inside:
                return
            if now > self._until or not self._busy:
                self.end(_let_go)
            elif not self._kept:
                self._keep()

    def _keep(self) -> None:
        try:
            start_new_thread(self._end_in_time, ())
            self._kept = True
        except RuntimeError:  # there may be no more of them
            self.end(_let_go)

    def _end_in_time(self) -> None:
        while True:
            time.sleep(LOOK)
            with _guard:
                now = time.monotonic()
                if now > self._until or (not self._inside and now - _left[self._path] > SOON):
                    if not self._inside:
                        self.end(_let_go)
                    return

    def end(self, give: Callable[[int], object]) -> None:
        """Be no turn any more. give: what becomes of the locked file."""
        if self._fd >= 0:
            give(self._fd)
        self._fd = -1


_guard = allocate_lock()
_turns: dict[str, _Turn] = {}
_left: dict[str, float] = {}
"""When this process last let go of a lock."""


def _turn_at(path: str, until: float, longest: float) -> _Turn:
    """The turn of this process at a lock: the present one, or a new one when that has come. Raises TimeoutError."""
    with _guard:
        if (turn := _turns.get(path)) and turn.join():
            return turn
        busy = time.monotonic() - _left.get(path, float("-inf")) < SOON
    fd = _taken(path + ".next", until)
    with _guard:
        turn = _turns[path] = _Turn(path, fd, longest, busy=busy)
    return turn


def _forget() -> None:
    """In a forked child: the turns are its parent's, who may be gone before they end."""
    for turn in _turns.values():
        turn.end(os.close)
    _turns.clear()
    _left.clear()
    _guard.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_guard.acquire, after_in_parent=_guard.release, after_in_child=_forget)


def _let_go(fd: int) -> None:
    # Explicitly, because a forked child that still has the descriptor would keep the lock.
    _unlock(fd)
    os.close(fd)


def _taken(path: str, until: float, naps: int = 0) -> int:
    """The descriptor of a locked file. naps: how often it is looked at before a thread waits. Raises TimeoutError."""
    while True:
        fd = _open(path)
        try:
            left = until - time.monotonic()
            ours = _try(fd) or (left > 0 and (_napped(fd, naps) or _granted(fd, left)))
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
