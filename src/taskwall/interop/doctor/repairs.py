"""What `doctor --fix` does: a small set of changes of single files, each with a copy of what it found kept first."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from ...core.errors import Refused
from ...core.record import Record
from ...stores.files.disk import DISK, MAX_BYTES, NotPlain, Write, write_all
from ...stores.files.lock import lock
from ..driver import make_local

COPIES = "repairs"
MOST = 64 * MAX_BYTES


class Repair(Record):
    """One change of one file. words: what is done, after "doctor --fix". seen: the bytes it was made for.

    text: written in its place; to: its new path; aside: only the copy stays; mode: its permissions. before: done first,
    such as keeping what the new text does not hold.
    """

    words: str
    path: str
    seen: bytes | None = None
    text: str | None = None
    to: str | None = None
    aside: bool = False
    mode: int | None = None
    before: Callable[[], object] | None = None


def carry_out(board: str, plan: Sequence[Repair], now: float) -> tuple[tuple[str, ...], str | None]:
    """Do these repairs under the board's lock: what was done, in words, and where the copies lie. Raises Locked.

    A file that is no longer as it was seen is left alone.
    """
    try:
        local = make_local(board)
    except OSError as error:
        return (f"nothing: {error}",), None
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
    copies = (board, COPIES, stamp)
    with lock(os.path.join(local, "lock")):
        done = tuple(_told(repair, _done(repair, local, copies)) for repair in plan)
    kept = os.path.join(local, *copies[1:])
    return done, kept if os.path.isdir(kept) else None


def _told(repair: Repair, failure: str) -> str:
    return f"not done ({failure}): {repair.words}" if failure else repair.words


def _done(repair: Repair, local: str, copies: tuple[str, ...]) -> str:
    """Why it was not done, nothing when it was."""
    try:
        if repair.mode is not None:
            os.chmod(repair.path, repair.mode)
            return ""
        if _bytes(repair.path) != repair.seen:
            return "it was changed just now"
        if repair.seen is not None:
            _keep(repair, make_local(*copies))
        if repair.before:
            repair.before()
        _change(repair, local)
    except (OSError, NotPlain, Refused) as error:
        return str(error)
    return ""


def _bytes(path: str) -> bytes | None:
    try:
        return DISK.read(path, MOST)[0]
    except FileNotFoundError:
        return None


def _keep(repair: Repair, copies: str) -> None:
    """A copy under the name of the file; two of one name get a number."""
    name = os.path.join(copies, os.path.basename(repair.path))
    path = next(p for p in (name, *(f"{name}.{n}" for n in range(1, 10_000))) if not DISK.exists(p))
    DISK.write_new(path, repair.seen or b"", durable=True)


def _change(repair: Repair, local: str) -> None:
    if repair.to is not None and DISK.exists(repair.to):
        raise FileExistsError(f"{repair.to} exists already")
    if repair.text is not None:
        write_all(DISK, [Write(repair.path, repair.text)], local, durable=True)
    if repair.to is not None:
        DISK.rename(repair.path, repair.to)
    elif repair.aside:
        DISK.unlink(repair.path)
    with suppress(OSError):
        DISK.sync_folder(os.path.dirname(repair.path))
