"""`taskwall selftest`: a small part of the proof on the user's own file system, in a temporary board beside theirs.

Each trial races or kills processes of its own (POSIX; elsewhere it is skipped, and said to be). One that runs out of
time stops early, and the table tells how much was tried.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from . import render, signals
from .board import Board
from .core.errors import Locked, Refused, Unwritable
from .core.model import Actor
from .core.record import Record
from .core.refusals import NothingActionable
from .core.rules import Draft
from .results import Answer
from .stores.files.disk import DISK, Disk, Write, write_all
from .stores.files.lock import lock
from .stores.files.store import FileStore

Work = Callable[[], object]
Trial = Callable[[str, float], tuple[int, list[str]]]

SECONDS = 25.0
"""After which no trial begins and those that run come to their end."""
RACERS, LOOKING = 4, 2.0
NETWORK = re.compile(
    r"(nfs|cifs|smb|9p|afs|ceph|lustre|gpfs|ncpfs|vboxsf|prl_fs|virtiofs|fuse\.\w*(ssh|nfs|smb|s3|gluster|ceph)).*"
)


class Tried(Record):
    """One line of the table. bad: what did not hold."""

    what: str
    times: int
    bad: tuple[str, ...]
    seconds: float
    skipped: str = ""


class Selftest(Answer):
    """What was tried on which file system, and whether all of it held. warnings: what is not safe there, or unknown."""

    folder: str
    file_system: str
    held: bool
    tried: tuple[Tried, ...]
    warnings: tuple[str, ...]

    @property
    def exit(self) -> int:
        return 0 if self.held else 1


def run(board: str) -> Selftest:
    """Try everything in a folder beside the board at this path; it is removed whatever happens. Raises Unwritable."""
    beside = os.path.dirname(os.path.realpath(board))
    if os.path.isdir(board) and os.stat(board).st_dev != os.stat(beside).st_dev:
        beside = board  # a mount of its own
    until = time.monotonic() + SECONDS
    try:
        folder = tempfile.mkdtemp(prefix=".taskwall-selftest-", dir=beside)
    except OSError as error:
        raise Unwritable(f"{beside} cannot be written: {error.strerror}", next="name another: --board PATH") from None
    with signals.handled(signals.ENDING, _end):
        try:
            tried = tuple(_tried(what, trial, folder, until) for what, trial in TRIALS.items())
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    system = _file_system(beside)
    return Selftest(beside, system, not any(each.bad for each in tried), tried, _warnings(system))


def _lines(answer: Selftest) -> list[str]:
    """The table as text."""
    width = max(len(each.what) for each in answer.tried)
    found = [f"{answer.folder} is on {answer.file_system or 'a file system of unknown type'}", ""]
    found.append(f"{'what was tried':{width}}  {'times':>5}  {'seconds':>7}  held")
    for each in answer.tried:
        verdict = f"skipped: {each.skipped}" if each.skipped else f"NO: {len(each.bad)} times" if each.bad else "yes"
        found.append(f"{each.what:{width}}  {each.times:>5}  {each.seconds:>7.1f}  {verdict}")
        found += [f"    {flaw}" for flaw in each.bad[:3]]
    verdict = "What was tried held." if answer.held else "NOT ALL OF IT HELD: do not share a board in this place."
    return [*found, "", verdict, *answer.warnings]


render.LINES[Selftest] = _lines


# The file system


def _file_system(path: str) -> str:
    """The type of the file system at a path, as the kernel calls it; empty where that is not told."""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            mounts = [line.split() for line in file]
    except OSError:
        return ""
    best, kind = "", ""
    for fields in mounts:
        point = re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), fields[4])
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):  # of two mounts on one point, the later one covers the other
            best, kind = point, fields[fields.index("-") + 1]
    return kind


def _warnings(kind: str) -> tuple[str, ...]:
    """What is not safe on a file system of this type, and what no trial here can tell."""
    found = []
    if NETWORK.fullmatch(kind):
        found.append(
            f"NOT SAFE: {kind} is a network file system. Locks and renames may not reach other machines, whatever held "
            "here. Keep the board on a local disk."
        )
    elif not kind or kind.startswith("fuse"):
        name = kind or "a file system whose type is not told here"
        found.append(f"Unknown: what {name} promises. On a network file system (NFS, SMB, sshfs) a board is not safe.")
    return (*found, "Not tried: a power cut, and processes of other machines.")


# Processes


def _end(number: int, _: object) -> NoReturn:
    sys.exit(128 + number)


@contextlib.contextmanager
def _beside(work: Work) -> Iterator[int]:
    """A process that works while the block runs and no longer; yields where its result is read from."""
    source, sink = os.pipe()
    # Whoever ends us in between would leave it alone: nobody could tell it to end.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
    pid = os.fork()
    if pid == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        try:
            said = {"found": work()}
        except BaseException as error:  # noqa: BLE001 - whatever it is, it belongs into the table
            said = {"flaw": f"{type(error).__name__}: {error}"}
        try:
            os.write(sink, json.dumps(said).encode())
        finally:
            os._exit(0)
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.close(sink)
        yield source
    finally:
        os.close(source)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _race(*works: Work) -> tuple[list[Any], list[str]]:
    """Let all of these go at once; what they found, and what went wrong in them."""
    with contextlib.ExitStack() as stack:
        sources = [stack.enter_context(_beside(work)) for work in works]
        said = [json.loads(_heard(source) or '{"flaw": "killed"}') for source in sources]
    return [each for one in said for each in one.get("found", ())], [one["flaw"] for one in said if "flaw" in one]


def _heard(source: int) -> bytes:
    return b"".join(iter(lambda: os.read(source, 65536), b""))


# Trials: how often, and what was bad


def _tried(what: str, trial: Trial, folder: str, until: float) -> Tried:
    started = time.monotonic()
    if not hasattr(os, "fork") or started > until:
        return Tried(what, 0, (), 0.0, "no time was left" if hasattr(os, "fork") else "it needs processes of POSIX")
    place = os.path.join(folder, re.sub(r"\W", "-", what))
    os.mkdir(place)
    try:
        times, bad = trial(place, until)
    except (OSError, Refused) as error:
        times, bad = 1, [f"{type(error).__name__}: {error}"]
    return Tried(what, times, tuple(bad), time.monotonic() - started, "" if times else "not possible here")


def _board(folder: str, name: str = "selftest", disk: Disk = DISK) -> Board:
    return Board(FileStore(folder, disk=disk), Actor(name, name), root=folder)


def _names(folder: str, until: float) -> tuple[int, list[str]]:
    """A file that is replaced is seen whole, and a name that is taken is not given away again."""
    path, texts = os.path.join(folder, "file"), ("a" * 100_000, "b" * 90_000)

    def write_on() -> None:
        for text in itertools.cycle(texts):
            write_all(DISK, [Write(path, text)], folder, durable=True)

    write_all(DISK, [Write(path, texts[0], exclusive=True)], folder, durable=True)
    until, looks, bad = min(until, time.monotonic() + LOOKING), 0, []
    with _beside(write_on):
        while time.monotonic() < until:
            data = DISK.read(path)[0].decode()
            looks += 1
            if data not in texts:
                bad.append(f"{len(data)} bytes that were never the whole file")
    DISK.write_new(path + ".other", b"", durable=True)
    with contextlib.suppress(OSError):  # it is taken; or there are no hard links here, and renames under the lock do
        DISK.link(path + ".other", path)
        bad.append("a name that was taken was given away again")
    return looks, bad


def _exclude(folder: str, until: float) -> tuple[int, list[str]]:
    path = os.path.join(folder, "counter")
    DISK.write_new(path, b"0", durable=False)

    def count() -> list[int]:
        made: list[int] = []
        while len(made) < 100 and time.monotonic() < until:
            with lock(path + ".lock"), open(path, "r+b", buffering=0) as file:
                made.append(int(file.read()))
                time.sleep(0.0005)  # long enough for whoever is let in beside this one
                file.seek(0)
                file.write(b"%d" % (made[-1] + 1))
        return made

    numbers, bad = _race(*[count] * RACERS)
    doubles = len(numbers) - len(set(numbers))
    return len(numbers), bad + [f"{doubles} holders had company"] * (doubles > 0)


def _inherit(folder: str, until: float) -> tuple[int, list[str]]:
    path, times, bad = os.path.join(folder, "lock"), 0, []

    def hold() -> None:
        with lock(path):
            DISK.write_new(path + ".held", b"", durable=False)
            time.sleep(60)

    while times < 10 and time.monotonic() < until:
        with _beside(hold):
            while not DISK.exists(path + ".held") and time.monotonic() < until:
                time.sleep(0.002)
            with contextlib.suppress(Locked), lock(path, deadline=0.02):
                bad.append("let in beside the holder")
        with lock(path, deadline=2):  # raises Locked when the dead holder still has it
            DISK.unlink(path + ".held")
            times += 1
    return times, bad


def _races(folder: str, until: float) -> tuple[int, list[str]]:
    def work() -> list[str]:
        board, done = _board(folder, f"agent{os.getpid()}"), list[str]()
        # Of a name that all of them want, one gets it.
        for own in ("", *(f"same-{number}" for number in range(9)), *[""] * 5):
            with contextlib.suppress(Refused):
                done.append("create " + board.create([Draft(subject="new", id=own)]).rows[0].task.id)
        with contextlib.suppress(NothingActionable):
            while time.monotonic() < until:
                done.append("claim " + board.claim().row.task.id)
        return done

    done, bad = _race(*[work] * RACERS)
    tasks = [task for task in _board(folder).store.read() if not task.flaw]
    stand = [f"create {task.id}" for task in tasks] + [f"claim {task.id}" for task in tasks if task.epoch == 1]
    return len(done), bad + [f"{len(done)} were acknowledged, {len(stand)} stand"] * (sorted(done) != sorted(stand))


class _Deadly(Disk):
    """Ends its process, as kill -9 does, before its change number `left`."""

    def __init__(self, left: int) -> None:
        self.left = left

    def __getattribute__(self, name: str) -> Any:
        if name in ("_open_new", "_write", "_sync", "rename", "link", "unlink", "append"):
            self.left -= 1
            if self.left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return super().__getattribute__(name)


def _kills(folder: str, until: float) -> tuple[int, list[str]]:
    bad: list[str] = []
    for number in itertools.count():
        plan = [Draft(subject=f"{number}", ref=str(n), blocked_by=(str(n - 1),) if n else ()) for n in range(3)]
        flaws = _race(lambda: _board(folder, disk=_Deadly(number)).create(plan) and ())[1]  # noqa: B023
        for _ in range(2):  # what a reader sees, and again after the next writer has recovered
            made = [task.flaw for task in _board(folder).store.read() if task.flaw or task.subject == f"{number}"]
            if made not in ([], [None] * 3):
                bad.append(f"killed at change {number}: {len(made)} of 3 tasks, {made}")
            _board(folder).create([Draft(subject="next")])
        if flaws != ["killed"] or time.monotonic() > until:
            return number, bad + flaws * (flaws != ["killed"])
    raise AssertionError


TRIALS: dict[str, Trial] = {
    "files and names: replaced whole, given once": _names,
    "the lock lets one process in": _exclude,
    "the lock dies with its holder (kill -9)": _inherit,
    f"{RACERS} processes create and claim: once, all kept": _races,
    "kill -9 of who writes a plan: all or nothing": _kills,
}
