"""ticket (tk): `.tickets/*.md`, front matter, a title as the first heading, then text and notes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ...core.model import COMPLETED, IN_PROGRESS, Task
from .front import front_matters
from .source import STATUSES, Batch, Reading, Text, as_list, as_note, as_priority, as_text, keys, rest, times

_USED = keys("id status deps parent created priority tags")
_TITLE = re.compile(r"^# +(.+)$", re.MULTILINE)
_NOTES = re.compile(r"^## Notes\s*$", re.MULTILINE)
_NOTE = re.compile(r"^\*\*(\d{4}-\d\d-\d\d[T ][^*]*)\*\*\s*$", re.MULTILINE)


def read(texts: Sequence[Text]) -> Batch:
    """A ticket a file."""
    reading = Reading()
    for _, where, fields, body in front_matters(reading, texts):
        _add(reading, where, fields, body)
    return reading.batch()


def _add(reading: Reading, where: str, fields: dict[str, Any], body: str) -> None:
    source = as_text(fields["id"])
    status = reading.status(fields["status"], STATUSES, where, source)
    kept = rest(fields, _USED)
    if fields.get("type") == "task":
        del kept["type"]
    if status.get("status") in (COMPLETED, IN_PROGRESS) and as_text(fields.get("assignee")):
        status["owner"] = kept.pop("assignee")
    title = _TITLE.search(body)
    text = body[title.end() :] if title else body
    text, *after = _NOTES.split(text, maxsplit=1)
    told, *notes = _NOTE.split(after[0]) if after else [""]
    task = Task(
        source,
        title[1].strip() if title else "",
        description="\n\n".join(filter(None, [text.strip(), told.strip()])),
        blocked_by=tuple(as_list(fields.get("deps"))),
        parent=as_text(fields.get("parent")) or None,
        labels=tuple(as_list(fields.get("tags"))),
        notes=tuple(as_note(at, "", text.strip()) for at, text in zip(notes[::2], notes[1::2], strict=True)),
        **status,
        **as_priority(fields.get("priority")),
        **times(fields, "created", "", ""),
    )
    reading.add(source, where, task, kept)
