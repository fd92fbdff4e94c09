"""What comes from another board, and the words of the loss report at the end of an import."""

from __future__ import annotations

from ..record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..model import Task

UNREADABLE, SKIPPED, DUPLICATE, DANGLING, CYCLIC = "unreadable", "skipped", "duplicate", "dangling", "cyclic"
CONFLICT, EARLY, RELEASED, GUESSED = "changed here", "early", "in progress", "guessed"
FITTED, RENAMED, METADATA, GONE = "fitted", "renamed", "metadata", "gone"
KINDS = {
    UNREADABLE: "could not be read, not imported",
    SKIPPED: "no task, left out",
    DUPLICATE: "stood there more than once",
    DANGLING: "led to a task that does not exist",
    CYCLIC: "would close a ring; the edge is kept in metadata",
    GONE: "no longer in the source, left as it is here",
    CONFLICT: "changed here too, left as it is here",
    EARLY: "completed before what it waits for",
    RELEASED: "pending here, for nobody holds it",
    GUESSED: "not certain",
    FITTED: "did not fit",
    RENAMED: "got another id here",
    METADATA: "had no field here, kept in metadata",
}
"""What a loss report tells, in its order."""


class Finding(Record):
    """One line of a loss report. where: file and line in the source; kind: one of KINDS."""

    kind: str
    where: str
    text: str


def short(text: str) -> str:
    """A source id, or what stands there, as a finding names it: one that is made of long texts is cut in its middle."""
    return text if len(text) <= MAX_NAME else f"{text[: MAX_NAME // 2]}…{text[-MAX_NAME // 2 :]}"


MAX_NAME = 100


class Incoming(Record):
    """A task of another board in our fields; `blocked_by` and `parent` are ids of that board.

    source: its id there, by which it is known again. task.id: the id it should have here. kept: what has no field here.
    native: it comes from a board of ours, keeps its id, and is left alone where it exists. unnamed: it has no id there,
    and `source` is made of its text and place.
    """

    source: str
    task: Task
    where: str
    kept: dict[str, Any] = {}
    native: bool = False
    unnamed: bool = False


class Brought(Record):
    """What an import changes (or would), by the ids of the tasks, and the findings."""

    put: tuple[Task, ...]
    events: tuple[dict[str, Any], ...]
    created: tuple[str, ...]
    updated: tuple[str, ...]
    unchanged: int
    findings: tuple[Finding, ...]
