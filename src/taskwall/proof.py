"""Proof of done: finds the products of a task and runs its checks. Whether that is enough, core decides.

Nothing here may be called under the board's lock.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress

from .core.errors import Invalid, Locked, Unwritable
from .core.model import checked_glob
from .core.record import Record
from .core.rules import Failed, Proof

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Sequence
    from typing import IO, Any

    from .core.model import Task

MAX_RECORDED = 50
"""How many files of one glob are recorded as evidence."""
KEPT_BYTES = 64 * 1024
"""How much of a check's output is kept while it runs: its end."""
TOLD, STORED = 20, 5
"""Last lines of output that a refusal repeats, and that are stored as evidence."""
MAX_LINE = 200

_STYLING = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")


class Beat:
    """Keeps the lease of a claim while its checks run: when one begins, and five times a lease.

    renew: raises when the claim was taken over, and the check need not go on. minutes: the length of the lease, None
    where there is none to keep.
    """

    def __init__(self, renew: Callable[[], object], minutes: float | None) -> None:
        self._renew = renew
        self.every = 60 * minutes / 5 if minutes else None

    def __call__(self) -> None:
        """Renew the lease; a board that cannot be written now may be in a moment."""
        if self.every:
            with suppress(Locked, Unwritable):
                self._renew()


def prove(task: Task, root: str, trusts: Callable[[str], bool], minutes: float, beat: Beat) -> Proof:
    """Look for what a task promised under `root`. Its checks run there, one after the other, until one fails.

    trusts: whether a command may run; unless all may, none does. minutes: what a check may take.
    Products are looked for before the checks and, since those take their time, after them.
    """
    promised = Proof(task.id, task.epoch, task.products, task.checks)
    if untrusted := tuple(command for command in task.checks if not trusts(command)):
        return promised.replace(untrusted=untrusted)
    found, missing = find_products(root, task.products)
    ran: list[Ran] = []
    for command in () if missing else task.checks:
        ran.append(run_check(command, root, minutes, beat))
        if ran[-1].code != 0:
            return promised.replace(failed=ran[-1].failed())
    if ran:
        found, missing = find_products(root, task.products)
    evidence = {"products": found, "checks": [each.evidence() for each in ran], "commit": head_commit(root)}
    return promised.replace(missing=missing, evidence={name: value for name, value in evidence.items() if value})


# Products


def find_products(root: str, globs: Sequence[str]) -> tuple[dict[str, int], tuple[str, ...]]:
    """The files under `root` that match, with their sizes in bytes, and the globs that nothing matches."""
    from glob import glob  # imported late: few tasks promise products

    found: dict[str, int] = {}
    missing = []
    for pattern in globs:
        names: list[str] = []
        if _is_inside(pattern):
            # A name with brackets in it is a name before it is a pattern.
            names = [pattern, *glob(pattern, root_dir=root, recursive=True)]
        sizes = {name: size for name in names if (size := _size(os.path.join(root, name))) is not None}
        found |= {name: sizes[name] for name in sorted(sizes)[:MAX_RECORDED]}
        if not sizes:
            missing.append(pattern)
    return found, tuple(missing)


def _is_inside(pattern: str) -> bool:
    """Whether a glob is one that a verb would have accepted: those in a file may come from anywhere."""
    try:
        return bool(checked_glob(pattern))
    except Invalid:
        return False


def _size(path: str) -> int | None:
    try:
        return os.path.getsize(path)
    except OSError:  # a link to nothing, or a file removed since
        return None


# Checks


class Ran(Record):
    """A check that has ended. code: its exit status, below 0 for a signal, None when it was ended by us or never began.

    end: how it ended, in words. lines: the last ones of its output.
    """

    command: str
    code: int | None
    end: str
    seconds: float
    lines: tuple[str, ...]

    def failed(self) -> Failed:
        """What a refusal tells of it."""
        return Failed(self.command, self.end, self.lines)

    def evidence(self) -> dict[str, Any]:
        """What is stored of it."""
        told = {"command": self.command, "exit": self.code, "seconds": round(self.seconds, 2)}
        return told | {"output": "\n".join(self.lines[-STORED:])}


def run_check(command: str, root: str, minutes: float, beat: Beat) -> Ran:
    """Run a command under `root`, with all that it started ended when it ends, takes too long or is interrupted."""
    import time

    from .signals import deferred, interruptible

    began = time.monotonic()
    running = _Running()
    with interruptible():
        try:
            with deferred():  # nothing comes between a process and what ends it
                running.start(command, root)
            code = _wait(running.process, 60 * minutes, beat)
        except OSError as error:
            return Ran(command, None, f"could not be run: {error.strerror}", 0, ())
        finally:
            running.end()
    return Ran(command, code, _told(code, minutes), time.monotonic() - began, running.lines())


class _Running:
    """A process in a group of its own, and the end of what it writes, which a thread reads so that it never waits."""

    process: subprocess.Popen[bytes]
    _pipe: IO[bytes] | None = None
    _kept = b""

    def start(self, command: str, root: str) -> None:
        """Begin. A process that is still there when this program ends, is ended with it. Raises OSError."""
        import atexit
        import subprocess
        from threading import Thread

        self.process = subprocess.Popen(  # noqa: S602 - it is a line for a shell; a person trusted exactly this one
            command,
            shell=True,
            cwd=root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._pipe = self.process.stdout
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()
        atexit.register(self._kill)  # a thread that nobody waits for may be the one that runs the check

    def end(self) -> None:
        """End it and its children, if it began. What left its group may hold the pipe, and is not waited for."""
        import atexit

        if self._pipe:
            self._kill()
            atexit.unregister(self._kill)
            self._reader.join(SECONDS_TO_READ)
            if not self._reader.is_alive():
                self._pipe.close()

    def lines(self) -> tuple[str, ...]:
        """The last lines of what it wrote."""
        return last_lines(self._kept, TOLD)

    def _kill(self) -> None:
        import signal

        try:
            # By its group, which bears its number for as long as anything of it lives.
            os.killpg(self.process.pid, signal.SIGKILL)
        except (AttributeError, ProcessLookupError, PermissionError):  # no groups on Windows; nothing left elsewhere
            self.process.kill()
        self.process.wait()

    def _read(self) -> None:
        assert self._pipe is not None
        while part := os.read(self._pipe.fileno(), KEPT_BYTES):
            self._kept = (self._kept + part)[-KEPT_BYTES:]


SECONDS_TO_READ = 2


def last_lines(output: bytes, most: int) -> tuple[str, ...]:
    """The last lines that a program wrote, without the styling that terminals know, each of them cut."""
    text = _STYLING.sub("", output.decode("utf-8", "replace")).replace("\r\n", "\n")
    lines = (line.rstrip().rpartition("\r")[2][:MAX_LINE] for line in text.split("\n"))
    return tuple([line for line in lines if line][-most:])


def _wait(process: subprocess.Popen[bytes], seconds: float, beat: Beat) -> int | None:
    """The exit status, None when it takes too long."""
    import time
    from subprocess import TimeoutExpired

    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        beat()
        with suppress(TimeoutExpired):
            return process.wait(min(left, beat.every or left))
    return None


def _told(code: int | None, minutes: float) -> str:
    if code is None:
        return f"took longer than {minutes:g} minutes (`check_minutes` in board.toml) and was ended"
    return f"exit code {code}" if code >= 0 else f"ended by signal {-code}"


# Git, read from its files: no process of its runs


def head_commit(root: str) -> str:
    """The commit that is checked out where a folder lies; empty where there is none or it cannot be told."""
    try:
        commit = _head(_git_folder(root))
    except (OSError, ValueError):  # ValueError: no name of a file
        return ""
    return commit if re.fullmatch("[0-9a-f]{40,64}", commit) else ""


def _head(git: str) -> str:
    head = _line(git, "HEAD")
    if not head.startswith("ref: "):
        return head
    pointer = os.path.join(git, "commondir")
    common = os.path.join(git, _line(pointer)) if os.path.exists(pointer) else git
    ref = head.removeprefix("ref: ")
    loose = os.path.join(common, ref)
    return _line(loose) if os.path.exists(loose) else _packed(common, ref)


def _git_folder(root: str) -> str:
    folder = os.path.realpath(root)
    while not os.path.exists(os.path.join(folder, ".git")):
        folder, below = os.path.dirname(folder), folder
        if folder == below:
            raise FileNotFoundError(root)
    dot_git = os.path.join(folder, ".git")
    return dot_git if os.path.isdir(dot_git) else os.path.join(folder, _line(dot_git).removeprefix("gitdir: "))


def _packed(common: str, ref: str) -> str:
    with open(os.path.join(common, "packed-refs"), encoding="utf-8", errors="replace") as file:
        return next((line.split()[0] for line in file if line.rstrip().endswith(f" {ref}")), "")


def _line(*path: str) -> str:
    with open(os.path.join(*path), encoding="utf-8", errors="surrogateescape") as file:
        return file.readline(4096).strip()
