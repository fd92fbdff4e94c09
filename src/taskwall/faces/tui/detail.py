"""One task, whole, in lines; a line about another task leads there."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from rich.cells import cell_len

from ...core.record import Record
from ...core.state import Reason
from ...fleet import seconds
from ...results import Shown
from ..words import span
from .acts import offered
from .drawing import MARKS, Line, Part, lease_bar, named, one_line, wrapped
from .items import Item
from .sight import Sight


class Told(Record):
    """A task, what happened to it, and what may be done with it now."""

    shown: Shown
    events: tuple[dict[str, Any], ...]
    actions: tuple[str, ...]


def detail(sight: Sight, told: Told, width: int) -> list[Item]:
    """All of it."""
    task, t = told.shown.row.task, sight.t
    return [
        *_head(sight, told, width),
        *_text(t("task.question"), _question(sight, told), width),
        *_reasons(sight, told, width),
        *_related(sight, told, width),
        *_text(t("task.result"), task.result or "", width),
        *_text(t("task.description"), task.description or t("task.none"), width),
        *_proof(sight, told, width),
        *_text(t("task.notes"), "\n".join(_note(sight, note) for note in task.notes), width),
        *_text(t("task.details"), "\n".join(_details(sight, told)), width),
        *_text(t("task.history"), "\n".join(_event(sight, event) for event in reversed(told.events)), width),
        *_text(t("task.notices"), "\n".join(task.notices), width),
    ]


def _head(sight: Sight, told: Told, width: int) -> Iterator[Item]:
    row, t = told.shown.row, sight.t
    task = row.task
    for line in wrapped(task.subject, width):
        yield "", ((line, "strong"),)
    lease = lease_bar(sight, sight.rows.get(task.id, {}))
    parts: list[Part] = [(f"{MARKS[row.state]} {t(f'state.{row.state}')}", row.state)]
    parts += [(text, kind) for text, kind in ((task.owner, ""), (lease, row.state), (task.id, "soft")) if text]
    parts += [(f"#{label}", "soft") for label in task.labels]
    yield from (("", line) for line in _flowed(parts, width))
    acts = [(f"{act.key or '.'} {t(f'act.{act.name}')}", "accent") for act in offered(told.actions)]
    yield from (("", line) for line in _flowed(acts or [(t("act.none"), "soft")], width))


def _flowed(parts: Iterable[Part], width: int) -> list[Line]:
    """Parts in as many lines as they need."""
    lines: list[list[Part]] = [[]]
    left = width
    for text, kind in parts:
        shown = one_line(text, width)
        if cell_len(shown) > left and lines[-1]:
            lines.append([])
            left = width
        lines[-1] += [(shown, kind), ("   ", "")]
        left -= cell_len(shown) + 3
    return [tuple(line) for line in lines]


def _text(head: str, text: str, width: int) -> Iterator[Item]:
    if text:
        yield "", ()
        yield "", ((head, "accent"),)
        for line in wrapped(text, width - 2):
            yield "", (("  ", ""), (line, ""))


def _question(sight: Sight, told: Told) -> str:
    task = told.shown.row.task
    lines = [task.question, *(f"- {option}" for option in task.options)] if task.question else []
    return "\n".join([*lines, *([f"{sight.t('task.answered')}: {task.answer}"] if task.answer else [])])


def _reasons(sight: Sight, told: Told, width: int) -> Iterator[Item]:
    reasons = told.shown.row.reasons
    yield from _text(sight.t("task.reasons"), "\n".join(_reason(sight, reason) for reason in reasons), width)


def _reason(sight: Sight, reason: Reason) -> str:
    key = f"reason.{reason.how or reason.kind}"
    subject = reason.subject or ""
    words = sight.t(key, subject=sight.called(subject), id=subject, text=reason.text)
    return reason.text if words == key else words


def _related(sight: Sight, told: Told, width: int) -> Iterator[Item]:
    shown = told.shown
    frees = {row.task.id for row in shown.would_unblock}
    groups = {
        "blockers": [*(row.task.id for row in shown.blockers), *shown.missing],
        "children": [row.task.id for row in shown.children],
        "dependents": [row.task.id for row in shown.dependents],
    }
    for name, ids in groups.items():
        if ids:
            yield "", ()
            yield "", ((f"{sight.t(f'task.{name}')} {len(ids)}", "accent"),)
        for task_id in ids:
            marks: list[Part] = [(f"↳ {sight.t('task.unblocks')}", "accent")] if task_id in frees else []
            yield task_id, (("  ", ""), *named(sight.rows.get(task_id), task_id, width - 2, marks))


def _proof(sight: Sight, told: Told, width: int) -> Iterator[Item]:
    """What was promised, and what was found when the task was completed."""
    task, t = told.shown.row.task, sight.t
    sizes, ran = task.evidence.get("products"), task.evidence.get("checks")
    sizes = sizes if isinstance(sizes, dict) else {}
    found = {one.get("command"): one for one in ran or () if isinstance(one, dict)} if isinstance(ran, list) else {}
    products = [
        f"{p}  {t('evidence.bytes', n=sizes[p]) if p in sizes else t('task.unverified')}" for p in task.products
    ]
    checks = []
    for command in task.checks:
        one = found.get(command)
        told_of = t("evidence.check", exit=one.get("exit"), seconds=one.get("seconds")) if one else t("task.unverified")
        checks.append(f"{command}  {told_of}")
    yield from _text(t("task.products"), "\n".join(products), width)
    yield from _text(t("task.checks"), "\n".join(checks), width)


def _note(sight: Sight, note: dict[str, str]) -> str:
    return f"{_ago(sight, note.get('at'))}  {note.get('by')}: {note.get('text')}"


def _event(sight: Sight, event: dict[str, Any]) -> str:
    verb = str(event.get("verb"))
    words = sight.t(f"event.{verb}")
    reason = f": {event['reason']}" if event.get("reason") else ""
    return (
        f"{_ago(sight, str(event.get('at')))}  {event.get('by')}  {verb if words == f'event.{verb}' else words}{reason}"
    )


def _ago(sight: Sight, stamp: str | None) -> str:
    then = seconds(stamp)
    return str(stamp or "") if then is None else sight.t("time.ago", time=span(sight.t, sight.clock() - then))


def _details(sight: Sight, told: Told) -> Iterator[str]:
    task, t, claim = told.shown.row.task, sight.t, told.shown.claim or {}
    facts = {
        "id": task.id,
        "reserved": told.shown.row.reserved,
        "priority": t(f"priority.{task.priority}"),
        "parent": task.parent and sight.called(task.parent),
        "session": claim.get("session"),
        "created": task.created_at and f"{task.created_at}  {task.created_by or ''}",
        "started": task.started_at,
        "completed": task.completed_at,
        "attempts": task.attempts or None,
        "metadata": json.dumps(task.metadata, ensure_ascii=False) if task.metadata else None,
    }
    width = max(cell_len(t(f"detail.{name}")) for name in facts)
    for name, fact in facts.items():
        if fact:
            words = t(f"detail.{name}")
            yield words + " " * (width - cell_len(words) + 2) + str(fact)
    if task.extra:
        yield f"{t('task.extra')}: {json.dumps(task.extra, ensure_ascii=False)}"
