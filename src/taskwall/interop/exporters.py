"""The board in other formats: each a pure function from a view of it to text, without what cannot be read."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from typing import Any

from ..core.model import CANCELLED, COMPLETED, IN_PROGRESS, PENDING, Task, stored, to_the_minute
from ..core.view import View, age
from ..envelope import dumps
from ..wording import safe


def all_of(view: View) -> list[Task]:
    """All tasks by age, archived or not."""
    archived = list(view.archived_ids())
    view.expect(archived)
    return sorted([*view, *filter(None, map(view.get, archived))], key=age)


def tasks_of(view: View) -> list[Task]:
    """Those of them that can be read."""
    return [task for task in all_of(view) if not task.flaw]


def jsonl(view: View) -> str:
    """Every task on a line, in the keys of a file of ours, keys of other programs after them: to import again."""
    return "".join(f"{dumps(_line(task))}\n" for task in tasks_of(view))


def _line(task: Task) -> dict[str, Any]:
    # The `rev` says that it is ours, whatever dialect its file is in.
    ours = stored(task) | {"rev": task.rev or 1}
    return ours | {key: value for key, value in task.extra.items() if key not in ours}


_BEADS_STATUS = {PENDING: "open", IN_PROGRESS: "in_progress", COMPLETED: "closed", CANCELLED: "closed"}


def beads(view: View) -> str:
    """Issues for beads, one a line: what it has no field for stands in the description."""
    return "".join(f"{dumps(_issue(task))}\n" for task in tasks_of(view))


def _issue(task: Task) -> dict[str, Any]:
    held = task.status == PENDING and task.hold is not None
    edges = [(blocker, "blocks") for blocker in task.blocked_by]
    edges += [(task.parent, "parent-child")] if task.parent else []
    ended = task.completed_at or task.updated_at if task.closed else None
    dated = {"created_at": task.created_at or EPOCH, "created_by": task.created_by or ""}
    issue = {
        "id": task.id,
        "title": task.subject,
        "description": "\n\n".join([task.description] * bool(task.description) + _told(task)),
        "status": "blocked" if held else _BEADS_STATUS[task.status],
        "priority": task.priority,
        "issue_type": "task",
        "assignee": task.owner,
        "labels": list(task.labels),
        **dated,
        "updated_at": task.updated_at or task.created_at or EPOCH,
        "closed_at": ended or (EPOCH if task.closed else None),
        "close_reason": task.answer or task.result or ("cancelled" if task.status == CANCELLED else None),
        "dependencies": [{"issue_id": task.id, "depends_on_id": to, "type": kind, **dated} for to, kind in edges],
        "comments": [
            {"id": number, "issue_id": task.id, "author": note["by"], "text": note["text"], "created_at": note["at"]}
            for number, note in enumerate(task.notes, 1)
        ],
    }
    return {key: value for key, value in issue.items() if value not in (None, "", [])}


EPOCH = "1970-01-01T00:00:00Z"
"""The time of what has none, where a format wants one."""


def _told(task: Task) -> list[str]:
    """What most formats have no field for, in words."""
    told = (
        ("Held", task.hold),
        ("Question", task.question),
        ("Options", ", ".join(task.options)),
        ("Products", ", ".join(task.products)),
        ("Checks", "; ".join(task.checks)),
    )
    return [f"{name}: {value}" for name, value in told if value]


def markdown(view: View) -> str:
    """A checklist of all tasks, then a section for each."""
    tasks = tasks_of(view)
    listed = [f"- {_BOX.get(task.status, '[ ]')} {_inline(task.subject)} (`{task.id}`)" for task in tasks]
    sections = [line for task in tasks for line in _section(task)]
    return safe("\n".join(["# Tasks", "", *listed, *sections]) + "\n", lines=True)


_BOX = {COMPLETED: "[x]", CANCELLED: "[-]", IN_PROGRESS: "[/]"}
_SPECIAL = re.compile(r"([\\`*_\[\]<>#|~&])")


def _inline(text: str) -> str:
    """Text that means nothing but itself in Markdown."""
    return _SPECIAL.sub(r"\\\1", text.replace("\n", " "))


def _section(task: Task) -> list[str]:
    facts = {
        "Status": task.status.replace("_", " "),
        "Owner": task.owner,
        "Waits for": ", ".join(task.blocked_by),
        "Parent": task.parent,
        "Priority": f"P{task.priority}",
        "Labels": ", ".join(task.labels),
        "Created": task.created_at,
        "Completed": task.completed_at,
    }
    lines = ["", f"## {_inline(task.subject)}", "", f"`{task.id}`", ""]
    lines += [f"- {name}: {_inline(value)}" for name, value in facts.items() if value]
    lines += [f"- {_inline(told)}" for told in _told(task)]
    texts = (("", task.description), ("Answer", task.answer), ("Result", task.result))
    notes = [(f"Note of {to_the_minute(note['at'])} by {note['by']}", note["text"]) for note in task.notes]
    for title, text in (*texts, *notes):
        # Quoted, so that headings and lists of a text stay below its task.
        quoted = [f"> {line}".rstrip() for line in text.split("\n")] if text else []
        lines += ["", *([f"{_inline(title)}:", ""] if title else []), *quoted] if quoted else []
    return lines


_COLUMNS: dict[str, Callable[[Task], object]] = {
    "id": lambda task: task.id,
    "subject": lambda task: task.subject,
    "status": lambda task: task.status,
    "owner": lambda task: task.owner,
    "priority": lambda task: task.priority,
    "blockedBy": lambda task: " ".join(task.blocked_by),
    "parent": lambda task: task.parent,
    "labels": lambda task: ", ".join(task.labels),
    "hold": lambda task: task.hold,
    "description": lambda task: task.description,
    "result": lambda task: task.answer or task.result,
    "createdAt": lambda task: task.created_at,
    "completedAt": lambda task: task.completed_at,
}


def table(view: View) -> str:
    """Comma-separated values after RFC 4180, a task a row; no cell can be taken for a formula.

    Unless all is ASCII it begins with a byte order mark, without which spreadsheets do not take it for UTF-8.
    """
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow(_COLUMNS)
    writer.writerows([_cell(value(task)) for value in _COLUMNS.values()] for task in tasks_of(view))
    text = out.getvalue()
    return text if text.isascii() else f"\ufeff{text}"


def _cell(value: object) -> str:
    text = "" if value is None else safe(str(value), lines=True)
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r", "\n")) else text


EXPORTERS: dict[str, Callable[[View], str]] = {"jsonl": jsonl, "beads": beads, "markdown": markdown, "csv": table}
"""Every format by its name."""
