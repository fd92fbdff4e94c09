"""Plans as people write them: JSON, or one line a task.

schema: set up the database schema
api: create API endpoints <- schema
    An indented line belongs to the description of the task above it.
# A comment. The marks may be Chinese: `文档：写文档 ← api、schema`.
docs: write the docs <- api, task_0123456789
"""

from __future__ import annotations

import json
import re

from ...core.errors import Invalid
from ...registry import draft

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ...core.rules import Draft

_LINE = re.compile(r"(?:(?P<ref>[\w.-]+)(?::\s+|：\s*))?(?P<subject>.*?)(?:\s+(?:<-|←)\s*(?P<blockers>.*))?$")
_JSON = re.compile(r"\s*(?:\{|\[\s*[\[{\"\]\d-])")
_BULLET = re.compile(r"[-*+]\s")
_BETWEEN = re.compile("[，、]")


def read_plan(text: str) -> list[Draft]:
    """The tasks of a plan. Raises Invalid, naming the line."""
    text = text.removeprefix("\ufeff")
    items = _from_json(text) if _JSON.match(text) else _from_lines(text)
    return [draft(item) for item in items]


def _from_json(text: str) -> list[Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        way = "mend it, or write lines `ref: subject <- ref, id`"
        raise Invalid(f"the plan is not JSON: {error}", next=way) from None
    except RecursionError:
        raise Invalid("the plan is nested too deeply", next='give a list, or {"tasks": […]}') from None
    tasks = found.get("tasks") if isinstance(found, dict) else found
    if not isinstance(tasks, list):
        raise Invalid("the plan has no list of tasks", next='give a list, or {"tasks": […]}')
    return tasks


def _from_lines(text: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if line[0].isspace():
            if not items:
                told = f"line {number} is indented, but no task stands above it"
                raise Invalid(told, next="begin with a task's line")
            items[-1]["description"] = "\n".join(filter(None, [items[-1].get("description"), line.strip()]))
            continue
        if _BULLET.match(line):
            way = "`taskwall import FILE` reads checklists; in a plan a line is `ref: subject <- ref, id`"
            raise Invalid(f"line {number} is of a Markdown list: {line!r}", next=way)
        match = _LINE.match(line.rstrip())
        if not match or not match["subject"]:
            raise Invalid(f"line {number} of the plan names no task: {line!r}", next="write `ref: subject <- ref, id`")
        blockers = _BETWEEN.sub(",", match["blockers"] or "")
        items.append({"ref": match["ref"], "subject": match["subject"], "blockedBy": blockers})
    return items
