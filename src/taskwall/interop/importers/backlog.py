"""Backlog.md: a Markdown file a task; the folder it lies in decides whether it is a draft, archived or completed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ...core.model import CANCELLED, COMPLETED, IN_PROGRESS, PENDING, Task
from ...core.rules.incoming import GUESSED, Finding, Incoming
from .front import front_matters
from .source import STATUSES, Batch, Reading, Text, as_list, as_priority, as_text, keys, rest, times

FOLDERS = ("tasks", "drafts", "completed", "archive")
"""Where tasks lie, in the order in which the first of two with one id keeps it."""

_USED = keys("id title status created_date updated_date labels dependencies priority parent_task_id")
_SECTIONS = (
    "Description|Acceptance Criteria|Definition of Done|Implementation Plan|Implementation Notes|Notes|Final Summary"
)
_HEADING = re.compile(rf"^## ({_SECTIONS})[ \t]*\n", re.MULTILINE)
_MARKER = re.compile(r"^<!-- (?:SECTION:\w+|AC|DOD):(?:BEGIN|END) -->[ \t]*\n?", re.MULTILINE)
_NUMBER = re.compile(r"\d+(?:\.\d+)*$")
MAX_TAIL = 40
"""How many characters at the end of an id are searched for its number: in a long one that would take long."""


def read(texts: Sequence[Text]) -> Batch:
    """The tasks of a `backlog` folder."""
    reading = Reading()
    for source, where, fields, body in front_matters(reading, sorted(texts, key=_rank)):
        _add(reading, source.name.split("/"), where, fields, body)
    batch = reading.batch()
    findings = list(batch.findings)
    renamed = _Renamed(batch.items)
    items = tuple(renamed.settle(item, findings) for item in batch.items)
    return batch.replace(items=items, findings=tuple(findings))


def _rank(source: Text) -> tuple[int, str]:
    folder = source.name.partition("/")[0]
    return FOLDERS.index(folder) if folder in FOLDERS else len(FOLDERS), source.name


def _add(reading: Reading, path: list[str], where: str, fields: dict[str, Any], body: str) -> None:
    source = as_text(fields["id"]).strip()
    if path[0] == "completed":
        status: dict[str, Any] = {"status": COMPLETED}
    elif path[0] == "drafts":
        status = {"status": PENDING, "hold": "a draft when it was imported"}
    else:
        status = reading.status(fields["status"], STATUSES, where, source)
    if path[0] == "archive" and status["status"] != COMPLETED:
        status = {"status": CANCELLED}
    kept = rest(fields, _USED)
    if status["status"] in (COMPLETED, IN_PROGRESS) and (names := as_list(fields.get("assignee"))):
        status["owner"] = names[0].removeprefix("@")
        kept |= {"assignee": names[1:]}
    description, summary = _parts(body)
    if summary and status["status"] != COMPLETED:
        description, summary = f"{description}\n\n## Final Summary\n\n{summary}", ""
    task = Task(
        source,
        as_text(fields.get("title")),
        description=description,
        labels=tuple(as_list(fields.get("labels"))),
        blocked_by=tuple(as_list(fields.get("dependencies"))),
        parent=as_text(fields.get("parent_task_id")) or None,
        result=summary or None,
        **status,
        **as_priority(fields.get("priority")),
        **times(fields, "created_date", "updated_date", "updated_date" if status["status"] == COMPLETED else ""),
    )
    reading.add(source, where, task, kept)


def _parts(body: str) -> tuple[str, str]:
    """The description, with the other sections below it, and the final summary."""
    first, *parts = _HEADING.split(_MARKER.sub("", body.replace("\r\n", "\n")))
    told, summary = [first.strip()], ""
    for title, text in zip(parts[::2], parts[1::2], strict=True):
        if title == "Final Summary":
            summary = text.strip()
        elif text.strip():
            told.append(text.strip() if title == "Description" else f"## {title}\n\n{text.strip()}")
    return "\n\n".join(filter(None, told)), summary


class _Renamed:
    """Finds the task that an id means when the prefix of ids was changed since, or its case."""

    def __init__(self, items: Sequence[Incoming]) -> None:
        self.exact = {item.source.lower(): item.source for item in reversed(items)}
        self.numbers: dict[str, list[str]] = {}
        for item in items:
            if (number := _NUMBER.search(item.source[-MAX_TAIL:])) and "~" not in item.source:
                self.numbers.setdefault(number[0], []).append(item.source)

    def settle(self, item: Incoming, findings: list[Finding]) -> Incoming:
        """The task with its edges in the ids of today."""
        task = item.task
        return item.replace(
            task=task.replace(
                blocked_by=tuple(self._meant(name, item, findings) for name in task.blocked_by),
                parent=self._meant(task.parent, item, findings) if task.parent else None,
            )
        )

    def _meant(self, name: str, item: Incoming, findings: list[Finding]) -> str:
        if found := self.exact.get(name.lower()):
            return found
        number = _NUMBER.search(name[-MAX_TAIL:])
        same = self.numbers.get(number[0], []) if number else []
        if len(same) != 1:
            return name
        findings.append(Finding(GUESSED, item.where, f"{item.source} names {name}: taken for {same[0]} by its number"))
        return same[0]
