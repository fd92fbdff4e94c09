"""Taskwarrior: what `task export` prints, an array of tasks or one task a line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...core.model import Task
from ...core.rules.incoming import SKIPPED
from .source import (
    HOLD,
    STATUSES,
    Batch,
    Lines,
    Reading,
    Text,
    as_list,
    as_note,
    as_priority,
    as_text,
    json_files,
    json_lines,
    keys,
    rest,
    times,
)

_STATUSES = STATUSES | {
    "waiting": f"{HOLD}waiting when it was imported",
    "recurring": f"{HOLD}a template of recurring tasks",
}
_PRIORITIES = {"h": 1, "m": 2, "l": 3}
_USED = keys("uuid id description status depends tags annotations priority entry modified end urgency")


def read(texts: Sequence[Text]) -> Batch:
    """The tasks of one or more exports; of records with one uuid the latest counts."""
    reading = Reading()
    for where, record in (found for source in texts for found in _records(reading, source)):
        if as_text(record.get("uuid")) and "description" in record:
            _add(reading, where, record)
        else:
            reading.tell(SKIPPED, where, "a record without uuid and description")
    return reading.batch(newest=True)


def _records(reading: Reading, source: Text) -> Iterator[tuple[str, dict[str, Any]]]:
    """One record a line, as it is printed; where a record goes over several lines, the file is read as a whole."""
    lines = source.text.split("\n")
    if all(line.strip().rstrip(",").endswith("}") or line.strip() in ("", "[", "]") for line in lines):
        yield from json_lines(reading, source)
        return
    for _, found in json_files(reading, [source]):
        places = Lines(source, "uuid")
        for record in found if isinstance(found, list) else [found]:
            reading.records += 1
            known = isinstance(record, dict)
            where = places.where(as_text(record.get("uuid")) if known else "")
            if known:
                yield where, record
            else:
                reading.tell(SKIPPED, where, "no object")


def _add(reading: Reading, where: str, record: dict[str, Any]) -> None:
    source = as_text(record["uuid"])
    annotations = record.get("annotations")
    project = as_text(record.get("project"))
    status = reading.status(record.get("status"), _STATUSES, where, source)
    task = Task(
        source,
        as_text(record["description"]),
        labels=(*as_list(record.get("tags")), *([f"project:{project}"] if project else [])),
        blocked_by=tuple(as_list(record.get("depends"))),
        notes=tuple(
            as_note(note.get("entry"), "", note.get("description"))
            for note in (annotations if isinstance(annotations, list) else [])
            if isinstance(note, dict)
        ),
        **status,
        **as_priority(record.get("priority"), _PRIORITIES),
        **times(record, "entry", "modified", "end"),
    )
    reading.add(source, where, task, rest(record, _USED | ({"project"} if project else set()), _PRIORITIES))
