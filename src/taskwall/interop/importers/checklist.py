"""Markdown checklists: `- [ ] text` is a task, one below it a child, other text its description, a heading a label."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...core.model import DEFAULT_PRIORITY, Task
from ...core.rules.fitting import line as one_line
from ...core.rules.incoming import GUESSED, SKIPPED, Incoming, short
from .source import PRIORITIES, STATUSES, Batch, Reading, Text

_LIST = r"(?:[-*+]|\d+[.)])[ ]+"
_ITEM = re.compile(rf"(?P<indent>[ ]*){_LIST}\[(?P<mark>[^\[\]])\ufe0f?\](?P<gap>\s*)(?P<text>\S.*)")
_BOX = re.compile(rf"(?P<indent>[ >]*){_LIST}\[(?:\s*\](?!\()|(?![\^@])[^\[\]]{{1,20}}\](?![(\[:]))")
"""A list line that begins with a box, and so with no link, footnote or citation."""
_FENCE = re.compile(rf"[ ]*(?:{_LIST})?(?P<fence>`{{3,}}+(?![^`]*`)|~{{3,}})(?P<info>.*)")
_HEADING = re.compile(r"#{1,6}[ ]+(.+)")
_MARKS = {"/": "in progress", ">": "deferred", "-": "cancelled", "~": "cancelled"}
_MARKS |= dict.fromkeys(" \u3000!", "open") | dict.fromkeys("xXvV✓✔√☑✅", "done")
"""Marks and the status that they mean: GitHub knows `x`, Obsidian's tasks `/ - > !` too, and GitLab `~`."""
MAX_SLUG = 40


def read(texts: Sequence[Text]) -> Batch:
    """The items of one or more files. An item is known again by its text and those of the items above it."""
    reading = Reading()
    for source in texts:
        _File(reading, source).read()
    return reading.batch()


def item_in(line: str) -> re.Match[str] | None:
    """The item that stands in a line: one mark in a box, a space and text.

    The space may be missing, but a link `[x](…)` and a key `[q]uit` are no items; neither is a reference `[1] Knuth`.
    """
    item = _ITEM.match(line)
    if item is None or item["mark"].isdigit():
        return None
    is_other = item["text"][0] in "([:" or (item["mark"].isalnum() and item["mark"] not in "xX")
    return None if is_other and not item["gap"] else item


class _File:
    """Where the reading of one file stands: the items above by their indent, the heading, whether in code."""

    def __init__(self, reading: Reading, source: Text) -> None:
        self.reading, self.source = reading, source
        self.above: list[tuple[int, str]] = []
        self.heading = ""
        self.fence = ""
        self.began = ""  # where the fence stands
        self.hidden = 0  # lines with a box since then
        self.seen: dict[str, int] = {}
        self.told: list[str] = []  # the text below the last item

    def read(self) -> None:
        for number, line in enumerate(self.source.text.expandtabs(4).splitlines(), 1):
            where = f"{self.source.name}:{number}"
            item = None if self.fence else item_in(line)
            if item:
                self.reading.records += 1
                self._add(item, where)
                continue
            if box := _BOX.match(line):
                self._tell_box(box, where)
            self._read_other(line)
            # Code ends at a fence of the same kind, as long as the first or longer, with nothing behind it.
            fence = _FENCE.match(line)
            if fence and not self.fence:
                self.fence, self.began, self.hidden = fence["fence"], where, 0
            elif fence and fence["fence"].startswith(self.fence) and not fence["info"].strip():
                self.fence = ""
        self._describe()
        if self.fence and self.hidden:
            lines = f"{self.hidden} line{'s' * (self.hidden > 1)} with a box"
            self.reading.tell(SKIPPED, self.began, f"code begins here and never ends, with {lines} in it")

    def _tell_box(self, box: re.Match[str], where: str) -> None:
        self.hidden += 1
        if not self.fence:
            # What is quoted is another text: so does our own export show a description.
            is_quoted = ">" in box["indent"]
            flaw = "it is quoted" if is_quoted else "that is one mark in a box, no number, then a space and text"
            self.reading.tell(SKIPPED, where, f"{short(box.string.strip())!r} is no item: {flaw}")

    def _read_other(self, line: str) -> None:
        """What belongs to the item above: lines that are empty or stand deeper. Any other ends the list."""
        if self.above and (not line.strip() or len(line) - len(line.lstrip()) > self.above[-1][0]):
            self.told += filter(None, [line.strip()])
            return
        self.above.clear()
        heading = None if self.fence else _HEADING.match(line)
        self.heading = one_line(heading[1].rstrip(" #")) if heading else self.heading

    def _add(self, item: re.Match[str], where: str) -> None:
        self._describe()
        indent, text, mark = len(item["indent"]), item["text"].rstrip(), item["mark"]
        while self.above and self.above[-1][0] >= indent:
            self.above.pop()
        parent = self.above[-1][1] if self.above else None
        source = f"{parent or self.heading}/{text}"
        self.seen[source] = self.seen.get(source, 0) + 1
        source = f"{source}~{self.seen[source]}" if self.seen[source] > 1 else source
        if mark == "~":
            self.reading.tell(GUESSED, where, f"{short(source)} is marked `~`: cancelled, though some mean half done")
        task = Task(
            slug(text),
            text,
            parent=parent,
            priority=PRIORITIES["high"] if mark == "!" else DEFAULT_PRIORITY,
            labels=(self.heading,) if self.heading else (),
            **self.reading.status(_MARKS.get(mark, mark), STATUSES, where, source),
        )
        self.reading.items.append(Incoming(source, task, where, unnamed=True))
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
