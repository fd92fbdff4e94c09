"""A folder of task files, one JSON object each: every dialect that a board of ours reads, and Claude Code's lists."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...core.graph import natural
from ...core.model import KEYS, Task
from ...core.rules.incoming import DANGLING, GUESSED, SKIPPED
from ...stores.files.dialects import NESTED, OUR_KEYS, OURS, utc_time
from ...stores.files.dialects import read as read_task
from ...stores.files.plain import BOOKKEEPING, NotATask, fits
from .source import Batch, Reading, Text, json_files


def read(texts: Sequence[Text]) -> Batch:
    """The tasks of these files; a file that holds a whole board is read task by task."""
    reading = Reading()
    for source, value in json_files(reading, sorted(texts, key=lambda text: natural(text.name))):
        for raw in _objects(value):
            reading.records += 1
            add_object(reading, raw, f"{source.name}:1")
    _turn_around(reading)
    return reading.batch()


def _objects(value: Any) -> Iterator[Any]:
    tasks = value.get("tasks") if isinstance(value, dict) and "id" not in value else None
    if isinstance(tasks, (dict, list)):
        yield from tasks.values() if isinstance(tasks, dict) else tasks
    else:
        yield value


def add_object(reading: Reading, raw: Any, where: str) -> None:
    """The task in one object, in whatever dialect; what is none is reported."""
    try:
        task = read_task(raw if isinstance(raw, dict) else {})
    except NotATask as flaw:
        reading.tell(SKIPPED, where, str(flaw))
        return
    for notice in task.notices:
        if not notice.endswith("is ignored"):  # for it is not: it is kept
            reading.tell(GUESSED, where, f"{task.id}: {notice}")
    kept = _kept(task, raw | (raw["TaskPayload"] if task.dialect == NESTED else {}))
    native = task.dialect == OURS
    if native:
        task = task.replace(metadata=task.metadata | ({"kept": kept} if kept else {}), rev=task.rev or 1)
    else:
        told = {field: value for key, field in _TIMES.items() if (value := utc_time(raw.get(key)))}
        task = task.replace(numeric=False, products=(), checks=(), metadata={}, **told)
    reading.add(task.id, where, task.replace(extra={}, notices=()), {} if native else kept, native=native)


def _kept(task: Task, raw: dict[str, Any]) -> dict[str, Any]:
    """The values that have no field: keys of others, and of ours those of another type or without meaning there."""
    ours = OUR_KEYS[task.dialect]
    found = {key: value for key, value in task.extra.items() if not (key in _TIMES and utc_time(value))}
    for theirs, value in raw.items():
        key = ours.get(theirs)
        if key is None or value is None or key in ("id", "status") or (theirs in _TIMES and utc_time(value)):
            continue
        lost = task.dialect != OURS and key in BOOKKEEPING | {"products", "checks", "metadata"}
        if lost or not fits(KEYS[key], value):
            found[theirs] = value
    return found


_TIMES = {
    "createdAt": "created_at",
    "created_at": "created_at",
    "updatedAt": "updated_at",
    "updated_at": "updated_at",
    "started_at": "started_at",
    "completed_at": "completed_at",
}
"""The time fields, by the keys that other dialects have for them."""


def _turn_around(reading: Reading) -> None:
    """Edges that only the blocker's file names become edges of the tasks that wait; to missing ones they are kept."""
    place = {item.source: number for number, item in reversed(list(enumerate(reading.items)))}
    for number, item in enumerate(reading.items):
        for name in item.task.blocks:
            if name not in place:
                reading.tell(DANGLING, item.where, f"{item.source} blocks {name}, which is not there; kept in metadata")
            elif item.source not in (waiter := reading.items[place[name]]).task.blocked_by:
                task = waiter.task.replace(blocked_by=(*waiter.task.blocked_by, item.source))
                reading.items[place[name]] = waiter.replace(task=task)
                reading.tell(GUESSED, item.where, f"{name} waits for {item.source}, which only `blocks` there says")
        missing = [name for name in item.task.blocks if name not in place]
        turned = reading.items[number].replace(kept=item.kept | ({"blocks": missing} if missing else {}))
        reading.items[number] = turned.replace(task=turned.task.replace(blocks=()))
