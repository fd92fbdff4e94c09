"""A whole board at one moment, as it goes from one store to another: every task with its file, its claim, history."""

from __future__ import annotations

import json

from ..core.errors import Unwritable
from ..core.record import Record
from .files.changes import differences, free_form, key_order
from .files.dialects import read
from .files.folder import ARCHIVE
from .files.patch import patch
from .files.strict import encode, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from ..core.model import Claim, Task

UNSTORED = ("lease", "left", "process")
"""What of a claim is judged anew wherever it is read: leases begin anew where a board is moved to."""


def is_archived(name: str) -> bool:
    """Whether a file of this name, relative to the board, lies in the archive."""
    return name.startswith(f"{ARCHIVE}/")


class Piece(Record):
    """One task. name, text: its file, relative to the board, which tells the task as it stands."""

    name: str
    text: str
    task: Task
    claim: Claim | None = None

    @property
    def archived(self) -> bool:
        """Whether the file lies in the archive."""
        return is_archived(self.name)


class Whole(Record):
    """All of a board. settings: the text of its `board.toml`."""

    pieces: tuple[Piece, ...]
    events: tuple[dict[str, Any], ...] = ()
    settings: str = ""


def renewed(text: str, task: Task, is_numeric: Callable[[str], bool]) -> str:
    """The text of a task's file, so that it tells the task as it stands; the rest stays byte for byte."""
    raw = parse(text)
    old = read(raw)
    changed, removed = differences(old, task, raw, is_numeric, free_form(old, raw) if not old.owner else {})
    return patch(text, changed, removed, key_order(old.dialect))


def require_same(wanted: Whole, found: Whole) -> None:
    """Raise Unwritable unless a board was kept as it was given."""
    if differing := unlike(wanted, found):
        told = f"what was written differs in {len(differing)} things, such as {differing[0]}; the board stays"
        way = "report this, please; `taskwall doctor` tells whether the board itself is sound"
        raise Unwritable(told, next=way)


def unlike(one: Whole, other: Whole) -> list[str]:
    """What two boards differ in, in a few words each; nothing when they are the same."""
    mine, theirs = ({piece.task.id: piece for piece in whole.pieces} for whole in (one, other))
    found = [f"{task_id} is missing on one side" for task_id in sorted(mine.keys() ^ theirs.keys())]
    for task_id in mine.keys() & theirs.keys():
        found += [f"{what} of {task_id}" for what in _unlike(mine[task_id], theirs[task_id])]
    if list(map(encode, one.events)) != list(map(encode, other.events)):
        found.append("the history")
    return found + (["the settings"] if one.settings != other.settings else [])


def _unlike(one: Piece, other: Piece) -> Iterable[str]:
    if one.task.replace(notices=()) != other.task.replace(notices=()):
        yield "the task"
    if (one.name, one.text) != (other.name, other.text):
        yield "the file"
    if _kept(one.claim) != _kept(other.claim):
        yield "the claim"


def _kept(claim: Claim | None) -> str:
    known = {name: getattr(claim, name) for name in claim.__fields__ if name not in UNSTORED} if claim else None
    return json.dumps(known)
