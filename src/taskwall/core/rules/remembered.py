"""What is remembered in `metadata.source` of a task that was imported: where it came from, and how it was then."""

from __future__ import annotations

import hashlib
import json

from ..model import Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

UNITS = {
    "subject": ("subject",),
    "description": ("description",),
    "status": ("status", "owner", "hold", "question", "options", "answer", "result"),
    "blockedBy": ("blocked_by",),
    "parent": ("parent",),
    "priority": ("priority",),
    "labels": ("labels",),
}
"""What is changed as one, here or there, and the fields that belong to it."""


def source_id(task: Task, origin: Mapping[str, str]) -> str | None:
    """The id under which this source has the task, when it was imported from there."""
    source = task.metadata.get("source")
    if not isinstance(source, dict) or {name: source[name] for name in ("format", "board") if name in source} != origin:
        return None
    return source["id"] if isinstance(source.get("id"), str) else None


def digest(value: Any) -> str:
    """A short mark that is the same for the same value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:8]


def mark(task: Task, unit: str, dropped: Mapping[str, Any] = {}) -> str:
    """The digest of a unit as it is; an edge that was dropped counts as there."""
    if unit == "blockedBy":
        return digest(sorted({*task.blocked_by, *dropped.get(unit, ())}))
    if unit == "parent":
        return digest(task.parent or dropped.get(unit))
    return digest([getattr(task, field) for field in UNITS[unit]])


def last_seen(task: Task) -> dict[str, str]:
    """The digest of each unit of an imported task as it was imported last."""
    return UNSET | plain(task.metadata["source"].get("seen"))


def plain(value: Any) -> dict[str, Any]:
    """What is remembered in metadata, which anybody may have edited: texts and lists of them by their names."""
    found = value.items() if isinstance(value, dict) else ()
    lists = {name: [i for i in inner if isinstance(i, str)] for name, inner in found if isinstance(inner, list)}
    return lists | {name: inner for name, inner in found if isinstance(inner, str)}


UNSET = {unit: mark(Task("", ""), unit) for unit in UNITS}
"""The digests that are not kept, for nothing is set."""
