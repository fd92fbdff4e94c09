"""beads: `.beads/issues.jsonl`, one issue a line. Only `blocks` gates; `parent-child` groups."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

from ...core.model import COMPLETED, IN_PROGRESS, Task
from ...core.rules.incoming import DANGLING, GUESSED, SKIPPED
from .source import (
    HOLD,
    STATUSES,
    Batch,
    Reading,
    Text,
    as_list,
    as_note,
    as_priority,
    as_text,
    json_lines,
    keys,
    rest,
    sections,
    times,
)

BLOCKS, PARENT = "blocks", "parent-child"
NO_GATE = keys("discovered-from related relates-to supersedes duplicates replies-to tracks caused-by validates until")
"""Types of a dependency that make nobody wait."""

_STATUSES = STATUSES | {"hooked": IN_PROGRESS, "pinned": f"{HOLD}pinned when it was imported"}
_USED = keys(
    "id title description design acceptance_criteria notes status priority labels comments created_at "
    "created_by updated_at closed_at close_reason deleted_at delete_reason dependencies"
)

_EITHER = {"closed_at": "deleted_at", "close_reason": "delete_reason"}
"""Keys that have one field here; the second counts where the first is missing."""


def read(texts: Sequence[Text]) -> Batch:
    """The issues of one or more files. A deleted one is cancelled, and nothing waits for it."""
    reading = Reading()
    records = []
    for where, record in (found for source in texts for found in json_lines(reading, source)):
        if record.get("status") and as_text(record.get("id")) and as_text(record.get("title")):
            records.append((where, record))
        else:
            name = as_text(record.get("_type")) or "a record"
            reading.tell(SKIPPED, where, f"{name} without id, title and status")
    deleted = {as_text(record["id"]) for _, record in records if record["status"] == "tombstone"}
    for where, record in records:
        _add(reading, where, record, deleted)
    return reading.batch(newest=True)


def _add(reading: Reading, where: str, record: dict[str, Any], deleted: Container[str]) -> None:
    source = as_text(record["id"])
    status = reading.status(record["status"], _STATUSES, where, source)
    kept = rest(record, _USED)
    if record.get("issue_type") == "task":
        del kept["issue_type"]
    kept |= {name: record.get(name) for used, name in _EITHER.items() if record.get(used)}
    assignee = as_text(record.get("assignee"))
    if status.get("status") in (COMPLETED, IN_PROGRESS) and assignee:
        status["owner"] = kept.pop("assignee")
    edges, kept["dependencies"] = _edges(reading, where, source, record.get("dependencies"), deleted)
    task = Task(
        source,
        as_text(record["title"]),
        description=sections(
            ("", record.get("description")),
            ("Design", record.get("design")),
            ("Acceptance criteria", record.get("acceptance_criteria")),
        ),
        labels=tuple(as_list(record.get("labels"))),
        result=as_text(record.get("close_reason")) or as_text(record.get("delete_reason")) or None,
        notes=_notes(record),
        created_by=as_text(record.get("created_by")) or None,
        **status,
        **edges,
        **as_priority(record.get("priority")),
        **times(record, "created_at", "updated_at", "closed_at" if record.get("closed_at") else "deleted_at"),
    )
    reading.add(source, where, task, kept)


def _notes(record: dict[str, Any]) -> tuple[dict[str, str], ...]:
    comments = record.get("comments")
    told = [c for c in comments if isinstance(c, dict)] if isinstance(comments, list) else []
    if as_text(record.get("notes")):
        told.insert(0, {"created_at": record.get("created_at"), "text": record["notes"]})
    return tuple(as_note(c.get("created_at"), c.get("author"), c.get("text")) for c in told)


def _edges(
    reading: Reading, where: str, source: str, dependencies: Any, deleted: Container[str]
) -> tuple[dict[str, Any], list[Any]]:
    """The edges that have a field here, and the dependencies that are kept."""
    blockers: list[str] = []
    parents: list[str] = []
    kept: list[Any] = []
    for edge in dependencies if isinstance(dependencies, list) else []:
        known = edge if isinstance(edge, dict) else {}
        kind, target = as_text(known.get("type")), as_text(known.get("depends_on_id"))
        own = bool(target) and edge.get("issue_id", source) == source
        if own and target in deleted:
            reading.tell(DANGLING, where, f"{source} names {target}, which is deleted there; kept in metadata")
            kept.append(edge)
        elif own and kind == BLOCKS:
            blockers.append(target)
        elif own and kind == PARENT and not parents:
            parents.append(target)
        else:
            if not own or kind not in NO_GATE:
                told = f"{source}: the dependency {kind!r} on {target!r} does not gate; kept in metadata"
                reading.tell(GUESSED, where, told)
            kept.append(edge)
    return {"blocked_by": tuple(blockers), "parent": parents[0] if parents else None}, kept
