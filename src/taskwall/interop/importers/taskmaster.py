"""Task Master: `.taskmaster/tasks/tasks.json`, flat or by tags, with subtasks in subtasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...core.model import Task
from ...core.rules.incoming import GUESSED, SKIPPED
from ...stores.files.dialects import utc_time
from .source import STATUSES, Batch, Lines, Reading, Text, as_priority, as_text, json_files, keys, rest, sections

MAIN_TAGS = ("", "master")
_USED = keys("id title description details testStrategy priority dependencies status subtasks")
_COPIED = frozenset(("parentTaskId", "parentId"))
"""Keys of a subtask that repeat where it stands."""


def read(texts: Sequence[Text]) -> Batch:
    """The tasks of every tag; a subtask is a task of its own whose parent is the task it stands in."""
    reading = Reading()
    for source, board in json_files(reading, texts):
        tags = dict(_tags(board))
        if not tags:
            reading.tell(SKIPPED, f"{source.name}:1", "no list of tasks is in it: another program's file")
        lines = Lines(source, "title")
        for tag, facts in _facts(board):
            told = f"{', '.join(facts)} of {tag or 'the file'}, which are of no task"
            reading.tell(SKIPPED, f"{source.name}:1", told)
        for tag, tasks in tags.items():
            _Tag(reading, lines, tag, alone=len(tags) == 1).add_all(tasks)
    return reading.batch()


def _tags(board: Any) -> Iterator[tuple[str, list[Any]]]:
    """Every tag and its tasks; a flat file has the one tag ``. Only where that is all is the leaked copy looked at."""
    found = board if isinstance(board, dict) else {}
    tags = {"": found.get("tasks")} | {name: v.get("tasks") for name, v in found.items() if isinstance(v, dict)}
    known = [(name, tasks) for name, tasks in tags.items() if isinstance(tasks, list) and name != LEAKED]
    yield from known or (_tags(found[LEAKED]) if LEAKED in found else ())


def _facts(board: Any) -> Iterator[tuple[str, list[str]]]:
    """What a file or its tags tell of themselves."""
    for tag, value in [("", board), *(board.items() if isinstance(board, dict) else ())]:
        if isinstance(value, dict) and isinstance(value.get("metadata"), dict) and value["metadata"]:
            yield tag, list(value["metadata"])


LEAKED = "_rawTaggedData"


class _Tag:
    """The tasks of one tag, within which ids are unique."""

    def __init__(self, reading: Reading, lines: Lines, tag: str, *, alone: bool) -> None:
        self.reading, self.lines, self.tag = reading, lines, tag
        self.prefix = "" if tag in MAIN_TAGS else f"{tag}/"
        self.wish = "" if alone or tag in MAIN_TAGS else f"{tag}-"
        self.known: set[str] = set()

    def add_all(self, tasks: Sequence[Any]) -> None:
        """The tasks and all below them, in the order of the file."""
        todo: list[tuple[Any, str, str]] = [(task, "", "") for task in reversed(tasks)]
        found = []
        while todo:
            task, parent, where = todo.pop()
            self.reading.records += 1
            if not isinstance(task, dict) or not as_text(task.get("id")):
                self.reading.tell(SKIPPED, where or self.lines.where(""), "no task: it has no id")
                continue
            where = self.lines.where(as_text(task.get("title")))
            number = self._number(task["id"], parent, where)
            found.append((task, number, parent, where))
            subtasks = task.get("subtasks")
            todo += [(sub, number, where) for sub in reversed(subtasks if isinstance(subtasks, list) else [])]
        self.known = {number for _, number, _, _ in found}
        for task, number, parent, where in found:
            self._add(task, number, parent, where)

    def _number(self, value: Any, parent: str, where: str) -> str:
        """`3` for a task, `3.1` for a subtask, whose own id may be 1, "1", "3.1" or 3.1."""
        number = as_text(value)
        number = number if not parent or number.startswith(f"{parent}.") else f"{parent}.{number}"
        if isinstance(value, float):
            self.reading.tell(GUESSED, where, f"the id {value} is a number: {number}.0 and {number}0 would be the same")
        return number

    def _add(self, task: dict[str, Any], number: str, parent: str, where: str) -> None:
        source = self.prefix + number
        word = task.get("status")
        if not word:
            self.reading.tell(GUESSED, where, f"{source} has no status: pending")
        kept = rest(task, _USED | _COPIED if parent else _USED)
        drafted = Task(
            self.wish + number,
            as_text(task.get("title")),
            description=sections(
                ("", task.get("description")),
                ("Details", task.get("details")),
                ("Test strategy", task.get("testStrategy")),
            ),
            parent=self.prefix + parent if parent else None,
            blocked_by=self._blockers(task.get("dependencies"), parent, where, source),
            labels=() if self.tag in MAIN_TAGS else (self.tag,),
            updated_at=utc_time(kept.pop("updatedAt", None)),
            **self.reading.status(word or "pending", STATUSES, where, source),
            **as_priority(task.get("priority")),
        )
        self.reading.add(source, where, drafted, kept)

    def _blockers(self, dependencies: Any, parent: str, where: str, source: str) -> tuple[str, ...]:
        """In a subtask a bare number is a sibling; a dotted one names task and subtask."""
        if not isinstance(dependencies, list):
            dependencies = [] if dependencies is None else [dependencies]
        found = []
        for value in dependencies:
            name = as_text(value).strip()
            sibling = f"{parent}.{name}"
            if not name:
                self.reading.tell(GUESSED, where, f"{source} depends on {str(value)[:80]!r}, which is no id: left out")
                continue
            if parent and "." not in name and (sibling in self.known or name not in self.known):
                name = sibling
            elif parent and "." not in name:
                told = f"{source} depends on {name}, which is no subtask beside it but a task"
                self.reading.tell(GUESSED, where, told)
            found.append(self.prefix + name)
        return tuple(found)
