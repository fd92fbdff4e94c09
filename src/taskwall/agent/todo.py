"""todo_write: the model's own note of steps, for this run alone."""

from __future__ import annotations

import json
from typing import Any

from ..core.errors import Invalid
from ..core.record import Record
from .tool import Tool

MARKS = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]"}
KINDLY = {"done": "completed", "todo": "pending", "open": "pending"}

_ITEM = {
    "type": "object",
    "properties": {
        "content": {"type": "string", "description": "the step"},
        "status": {"type": "string", "enum": list(MARKS), "description": "where it stands"},
        "activeForm": {"type": "string", "description": "the step while it is being done"},
    },
    "required": ["content", "status"],
    "additionalProperties": False,
}
SCHEMA = {
    "type": "object",
    "properties": {"todos": {"type": "array", "description": "the whole list", "items": _ITEM}},
    "required": ["todos"],
    "additionalProperties": False,
}


class Todo(Record):
    """One step."""

    content: str
    status: str
    active: str = ""


def todo_tool() -> Tool:
    """The note is kept in the conversation itself: each call holds all of it."""
    doc = "Note your steps within this run; replaces the whole list. At most one in_progress. Not the board."
    return Tool("todo_write", doc, SCHEMA, lambda given: rendered(read(given)))


def read(given: Any) -> list[Todo]:
    """The steps of a call. Raises Invalid."""
    items = given.get("todos") if isinstance(given, dict) else given
    if isinstance(items, str):
        items = json.loads(items) if items.lstrip().startswith("[") else [items]
    if not isinstance(items, list):
        raise Invalid("todo_write needs todos: the whole list", next="send a list of {content, status}")
    todos = [_todo(item) for item in items]
    if sum(todo.status == "in_progress" for todo in todos) > 1:
        raise Invalid("more than one todo is in_progress", next="leave one in_progress and send the whole list again")
    return todos


def _todo(item: Any) -> Todo:
    item = {"content": item} if isinstance(item, str) else item
    content = item.get("content") if isinstance(item, dict) else None
    if not isinstance(content, str) or not content.strip():
        raise Invalid(f"a todo is {item!r}, must have content", next="give each todo content and status")
    given = str(item.get("status") or "pending")
    status = KINDLY.get(given, given)
    if status not in MARKS:
        raise Invalid(f"a todo's status is {given!r}, must be one of {', '.join(MARKS)}", next="send the list again")
    return Todo(content.strip(), status, str(item.get("activeForm") or ""))


def rendered(todos: list[Todo]) -> str:
    """The list as a model and a person see it."""
    lines = [f"{MARKS[t.status]} {t.active or t.content if t.status == 'in_progress' else t.content}" for t in todos]
    return "\n".join([*lines, f"({sum(t.status == 'completed' for t in todos)}/{len(todos)} completed)"])
