"""What can be done with a task: the key of each act, what is asked before it, the verb that it calls with that.

Which acts are legal the core says; one that is not is refused by it, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from ...core.errors import Refused
from ...core.model import Task
from ...core.record import Record
from ...results import Answer
from ...wording import safe
from .sight import Row, Sight


class Field(Record):
    """Something that is asked. kind: line, text, flag, priority or task. options: answers to choose from."""

    name: str
    kind: str = "line"
    required: bool = False
    value: str = ""
    options: tuple[str, ...] = ()


class Act(Record):
    """needs: the action of the core that must be legal for it; its own name without one. fixed: what it always says."""

    name: str
    key: str
    verb: str
    fields: tuple[Field, ...] | None = None  # None: done at once
    needs: str = ""
    fixed: dict[str, Any] = {}


class Question(Record):
    """What a form says. choices: other ways to send it, and what each of them adds. task_id: the task it is about."""

    title: str
    about: str = ""
    text: str = ""
    fields: tuple[Field, ...] = ()
    submit: str = ""
    choices: tuple[tuple[str, dict[str, Any]], ...] = ()
    task_id: str = ""


PRIORITY = Field("priority", "priority", value="2")
ACTS = {
    act.name: act
    for act in (
        Act("claim", "c", "claim_task"),
        Act("complete", "d", "complete_task", (Field("result"),)),
        Act("answer", "a", "answer", (Field("answer"),)),
        Act("release", "r", "release_task", (Field("reason"), Field("failed", "flag"))),
        Act("steal", "", "claim_task", (Field("reason", required=True),), fixed={"steal": True}),
        Act("resume", "", "resume"),
        Act("reopen", "", "reopen"),
        Act("ask", "k", "ask_person", (Field("question", required=True), Field("options", "text"))),
        Act("block", "b", "update_task", (Field("blocker", "task", required=True),)),
        Act("hold", "h", "hold", (Field("reason"),)),
        Act("note", "m", "update_task", (Field("note", required=True),), needs="edit"),
        Act("edit", "e", "update_task", ()),
        Act("cancel", "", "cancel", ()),
    )
}
KEYS = {act.key: act.name for act in ACTS.values() if act.key}
CREATE = Act(
    "new",
    "n",
    "create_task",
    (
        Field("subject", required=True),
        Field("description", "text"),
        PRIORITY,
        Field("blockers"),
        Field("labels"),
        Field("owner"),
    ),
)
RELEASE_ALL = Act("session", "R", "release_task")
CALLED = {"answer": "text", "blocker": "addBlockedBy", "blockers": "blockedBy"}
"""What the verbs call a field, where not like it."""


def offered(actions: Collection[str]) -> list[Act]:
    """The acts that these legal actions allow, in the order in which they are offered."""
    return [act for act in ACTS.values() if (act.needs or act.name) in actions]


def question(sight: Sight, act: Act, row: Row, task: Task | None) -> Question:
    """What is asked before an act on this task. task: itself as it is stored, for an edit."""
    t = sight.t
    title = t(f"ask.{act.name}", name=row.get("owner"))
    fields = _as_it_is(task) if task else act.fields or ()
    if act.name == "answer":
        title = row.get("question") or row["subject"]
        fields = (Field("answer", required=bool(row.get("question")), options=tuple(row.get("options", ()))),)
    text = t(f"ask.{act.name}.text")
    said = "" if text.startswith("ask.") else text
    return Question(title, row["subject"], said, fields, t(f"act.{act.name}"), task_id=row["id"])


def _as_it_is(task: Task) -> tuple[Field, ...]:
    owner = (Field("owner", value=safe(task.owner or "")),) if task.status == "pending" else ()
    return (
        Field("subject", required=True, value=safe(task.subject)),
        Field("description", "text", value=safe(task.description, lines=True)),
        PRIORITY.replace(value=str(task.priority)),
        Field("labels", value=safe(", ".join(task.labels))),
        *owner,
    )


def about_dependents(sight: Sight, task_id: str, error: Refused) -> Question:
    """What is asked when others wait for a task that is to be cancelled."""
    t = sight.t
    text = t("ask.dependents.text", names=sight.named(error.by))
    choices = ((t("ask.drop"), {"drop_edges": True}), (t("ask.cascade"), {"cascade": True}))
    return Question(t("ask.dependents"), sight.called(task_id), text, choices=choices, task_id=task_id)


def about_session(sight: Sight, row: Row) -> Question:
    """What is asked before all that the holder of a task holds is given back."""
    t = sight.t
    title = t("ask.session", name=row.get("owner"))
    return Question(title, text=t("ask.session.text"), fields=(Field("reason"),), submit=t("agents.release"))


def arguments(given: dict[str, Any]) -> dict[str, Any]:
    """The arguments of the verb for what was typed into the fields."""
    return {CALLED.get(name, name): _meant(name, value) for name, value in given.items()}


def _meant(name: str, value: Any) -> Any:
    if name == "options":
        return [line.strip() for line in value.split("\n") if line.strip()]
    if name in ("labels", "blockers"):
        return [part.strip() for part in re.split("[,，]", value) if part.strip()]
    if name == "owner":
        return value or "-"
    return [value] if name == "blocker" else value


def told(sight: Sight, answer: Answer) -> str:
    """What came of an act, in a line or two."""
    t = sight.t
    row = getattr(answer, "row", None) or next(iter(getattr(answer, "rows", ())), None)
    subject = row.task.subject if row else ""
    what = t(f"event.{getattr(answer, 'verb', 'release' if hasattr(answer, 'session') else 'create')}")
    already = getattr(answer, "already", False) is True
    lines = [t("said.already" if already else "said.done", subject=subject, what=what)]
    if freed := getattr(answer, "unblocked", ()):
        lines.append(t("said.unblocked", names=", ".join(row.task.subject for row in freed)))
    return "\n".join(safe(line) for line in (*lines, *getattr(answer, "notices", ())))


def explained(sight: Sight, error: Refused) -> str:
    """A refusal: what is in the way in the reader's words, then as it was said, and the way out."""
    names = " → ".join(map(sight.called, error.by)) if error.code == "cycle" else sight.named(error.by)
    known = sight.t(f"code.{error.code}", by=names)
    title = error.message if known == f"code.{error.code}" else known
    said = [title, *([error.message] if error.message != title else [])]
    return safe(": ".join(said), lines=True) + "\n→ " + safe(error.next)
