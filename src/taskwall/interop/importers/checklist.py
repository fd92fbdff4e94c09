"""Markdown checklists: `- [ ] text` is a task, one below it a child, other text its description, a heading a label."""

from __future__ import annotations

import re

from ...core.model import CANCELLED, COMPLETED, IN_PROGRESS, PENDING, Task
from ...core.rules.fitting import line as one_line
from .source import Reading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .source import Batch, Text

ITEM = re.compile(r"(?P<indent>[ ]*)(?:[-*+]|\d+[.)])[ ]+\[(?P<mark>[ xX/~-])\][ ]+(?P<text>\S.*)")
_FENCE = re.compile(r"[ ]*(```|~~~)")
_HEADING = re.compile(r"#{1,6}[ ]+(.+)")
_STATUSES = {" ": PENDING, "x": COMPLETED, "X": COMPLETED, "-": CANCELLED, "~": CANCELLED, "/": IN_PROGRESS}
MAX_SLUG = 40


def read(texts: Sequence[Text]) -> Batch:
    """The items of one or more files. An item is known again by its text and those of the items above it."""
    reading = Reading()
    for source in texts:
        _File(reading, source).read()
    return reading.batch()


class _File:
    """Where the reading of one file stands: the items above by their indent, the heading, whether in code."""

    def __init__(self, reading: Reading, source: Text) -> None:
        self.reading, self.source = reading, source
        self.above: list[tuple[int, str]] = []
        self.heading = ""
        self.fence = ""
        self.seen: dict[str, int] = {}
        self.told: list[str] = []  # the text below the last item

    def read(self) -> None:
        for number, line in enumerate(self.source.text.expandtabs(4).splitlines(), 1):
            item = None if self.fence else ITEM.match(line)
            if item:
                self.reading.records += 1
                self._add(item, f"{self.source.name}:{number}")
            elif self.above and (not line.strip() or len(line) - len(line.lstrip()) > self.above[-1][0]):
                self.told += filter(None, [line.strip()])
            else:
                self.above.clear()
                heading = None if self.fence else _HEADING.match(line)
                self.heading = one_line(heading[1].rstrip(" #")) if heading else self.heading
            if fence := _FENCE.match(line):
                self.fence = "" if self.fence == fence[1] else self.fence or fence[1]
        self._describe()

    def _add(self, item: re.Match[str], where: str) -> None:
        self._describe()
        indent, text = len(item["indent"]), item["text"].rstrip()
        while self.above and self.above[-1][0] >= indent:
            self.above.pop()
        parent = self.above[-1][1] if self.above else None
        source = f"{parent or self.heading}/{text}"
        task = Task(
            slug(text),
            text,
            status=_STATUSES[item["mark"]],
            parent=parent,
            labels=(self.heading,) if self.heading else (),
        )
        self.seen[source] = self.seen.get(source, 0) + 1
        source = f"{source}~{self.seen[source]}" if self.seen[source] > 1 else source
        self.reading.add(source, where, task, {})
        self.above.append((indent, source))

    def _describe(self) -> None:
        if self.told:
            last = self.reading.items[-1]
            self.reading.items[-1] = last.replace(task=last.task.replace(description="\n".join(self.told)))
            self.told.clear()


def slug(text: str) -> str:
    """An id out of a text, in its own letters."""
    words = "".join(c if c.isalnum() else " " for c in text.lower()).split()
    return "-".join(words)[:MAX_SLUG].strip("-") or "task"
