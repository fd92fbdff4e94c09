"""Text that others wrote, made to fit a task: the caps are those of creation, what exceeds them goes elsewhere."""

from __future__ import annotations

import json
import unicodedata
from contextlib import suppress

from ..errors import Invalid
from ..model import MAX_SUBJECT, MAX_TEXT
from .making import CHECKED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from ..model import Task

MAX_DEPTH = 12
"""How deeply a value in metadata is nested before it is kept as text: a file of ours must stay readable."""


def fit(task: Task, now: str) -> tuple[Task, list[str]]:
    """The task with text that can be stored, and what was done for that; a task that fits is left as it is.

    Text too long goes on in notes, which are of the time `now`.
    """
    told: list[str] = []
    over: list[tuple[str, str]] = []
    subject = line(task.subject)
    description = _unicode(task.description)
    if len(subject) > MAX_SUBJECT:
        told.append(f"its subject has {len(subject)} characters; all of it stands in the description")
        description = f"{subject}\n\n{description}".strip()
        subject = f"{subject[: MAX_SUBJECT - 1]}…"
    elif not subject:
        told.append("it has no subject")
        subject = "(no subject)"
    fields: dict[str, Any] = {"description": description}
    fields |= {name: _unicode(value) for name in _TEXTS if (value := getattr(task, name)) is not None}
    for name, value in fields.items():
        first, *rest = _parts(value)
        fields[name] = first
        if rest:
            told.append(f"its {name} has {len(value)} characters; it goes on in its notes")
            over += [(name, part) for part in rest]
    notes = [(n["at"], n["by"], part) for n in task.notes for part in _parts(_unicode(n["text"]))]
    notes += [(now, "import", f"{name}, continued: {part}") for name, part in over]
    products, checks = (_accepted(name, getattr(task, name)) for name in ("products", "checks"))
    left_out = [value for value in (*task.products, *task.checks) if value not in (*products, *checks)]
    told += [f"{value!r} can be no product or check; kept in metadata" for value in left_out]
    fitted = task.replace(
        subject=subject,
        owner=line(task.owner)[:MAX_SUBJECT] or None if task.owner else None,
        parent=task.parent or None,
        labels=_lines(task.labels),
        options=_lines(task.options),
        notes=tuple({"at": _unicode(at), "by": line(by), "text": text} for at, by, text in notes),
        products=tuple(products),
        checks=tuple(checks),
        metadata=shallow(task.metadata | ({"left_out": left_out} if left_out else {})),
        **fields,
    )
    return fitted, told


def _accepted(name: str, values: Iterable[str]) -> list[str]:
    """Those that a verb would accept: a product that leads outside of the worktree is none."""
    found = []
    for value in values:
        with suppress(Invalid):
            found += CHECKED[name]([value])
    return found


_TEXTS = ("hold", "question", "answer", "result")


def line(text: str) -> str:
    """One line without control characters or spaces around it; nothing is cut."""
    controls = ("Cc", "Zl", "Zp")
    return "".join(" " if unicodedata.category(c) in controls else c for c in _unicode(text)).strip()


def _lines(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(short for value in values if (short := line(value)[:MAX_SUBJECT].strip())))


def _unicode(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def _parts(text: str) -> list[str]:
    """Text in parts of which each can be stored."""
    if len(text.encode()) <= MAX_TEXT:
        return [text]
    step = MAX_TEXT // 4 - 100  # a character has at most four bytes, and a note says whose text goes on
    return [text[at : at + step] for at in range(0, len(text), step)]


def shallow(value: Any, depth: int = MAX_DEPTH) -> Any:
    """A JSON value whose parts below this depth are kept as text."""
    if not isinstance(value, (dict, list)):
        return value
    if not depth:
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return [shallow(item, depth - 1) for item in value]
    return {name: shallow(item, depth - 1) for name, item in value.items()}
