"""Tasks and claims as rows. The body of a task is the text of a task file of ours; the others follow from it."""

from __future__ import annotations

import json

from ...core.model import BY_HAND, COMPLETED, IDLE, IN_PROGRESS, LAPSED, LIVE, stored
from ...process import is_gone
from ..files.dialects import read
from ..files.folder import task_of
from ..files.ledger import IDLE_AFTER, STORED, boot_id, claim_of
from ..files.strict import NotStrict, encode, parse
from ..files.tables import sortable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ...core.model import Claim, Task

COLUMNS = "id, body, origin, archived, waits, -behind, claim, lapses - {now}, {now} - taken"
"""What `Kept` is made of. now: the present second, as an expression or a number."""


class Kept:
    """A row: a task, its latest claim with the lease judged when it was read, its rank, and whether it waits."""

    def __init__(self, row: tuple[Any, ...]) -> None:
        task_id, body, self.origin, self.archived, self.waits, self.rank, claim, left, age = row
        self.task = task_from(task_id, body, self.origin)
        if self.archived:
            self.task = self.task.replace(notices=(*self.task.notices, "archived"))
        self.claim = _judged(task_id, claim, left, age) if claim else None


def task_from(task_id: str, body: str, origin: str | None) -> Task:
    """The task in a row. origin: what its file says that we never write, and in which format."""
    task = task_of(f"row {task_id}", body)
    if task.flaw:
        return task.replace(id=task_id)
    if origin is None:
        return task
    file = read(parse(json.loads(origin)[1]))
    names = ("dialect", "numeric", "blocks", "extra", "notices")
    return task.replace(**{name: getattr(file, name) for name in names})


def body_of(task: Task) -> str:
    """The text that is kept of a task. By its `rev` it is read as ours, whatever its file is."""
    return encode(stored(task) | {"rev": task.rev})


def row_of(task: Task) -> dict[str, Any]:
    """The columns that follow from a task alone."""
    open = not task.closed and not task.flaw
    return {
        "body": body_of(task),
        "open": open,
        "done": task.status == COMPLETED,
        "held": task.status == IN_PROGRESS and not task.flaw,
        "priority": task.priority,
        "created": short(task.created_at or ""),
        "sort": sortable(task.id).replace("\0", "\1"),
        "subject": plain(task.subject),
        "key": task.key and short(task.key),
        "parent": task.parent and short(task.parent),
    }


def plain(text: str) -> str:
    """Text that PostgreSQL takes in a column that something is looked for by; the body keeps it as it is."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")


LONGEST = 300
"""Characters of what is found by an index. Longer text is no id, and of no use as a key or name of a session."""


def short(text: str) -> str:
    """Text by which a row is looked for; what follows when it is longer than any id, the body knows."""
    return plain(text)[:LONGEST]


def edges_of(task: Task) -> set[tuple[str, str, bool]]:
    """The edges that a task's own text names: blocker, task, and whether only the blocker names it."""
    if task.flaw:
        return set()
    own = {(short(blocker), task.id, False) for blocker in task.blocked_by}
    return own | {(task.id, short(blocked), True) for blocked in task.blocks}


EVENT = "INSERT INTO taskwall.events (board, at, task, event) VALUES (%s, %s, %s, %s)"


def event_row(board: int, event: dict[str, Any]) -> tuple[Any, ...]:
    """The values of EVENT. What came from a log of files may be of any type."""
    at, task = (short(value) if isinstance(value := event.get(key), str) else "" for key in ("at", "task"))
    return board, at, task or None, encode(event)


def claim_text(claim: Claim) -> str:
    """What is kept of a claim; `boot` says on which machine its process can be looked for."""
    return encode({name: getattr(claim, name) for name in STORED} | {"boot": boot_id() if claim.process else ""})


def _judged(task_id: str, text: str, left: float | None, age: float | None) -> Claim | None:
    try:
        entry = parse(text)
    except NotStrict:  # somebody wrote it by hand; it is as good as none
        return None
    claim = claim_of(task_id, entry)
    if claim is None:
        return None
    if left is None or not claim.open:
        idle = claim.open and age is not None and age > IDLE_AFTER
        return claim.replace(lease=IDLE if idle else BY_HAND)
    processes = [each for each in claim.process.split(",") if each]
    here = entry.get("boot") == boot_id() != ""
    living = [each for each in processes if not (here and is_gone(each))]
    minutes = max(left, 0.0) / 60 if living or not processes else 0.0
    return claim.replace(lease=LIVE if minutes > 0 else LAPSED, left=minutes, process=",".join(living or processes))
