"""Which task here each task of another board is, and which id a new one gets."""

from __future__ import annotations

import hashlib
import json
import unicodedata

from ..model import id_flaw
from .incoming import DANGLING, RENAMED, Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from ..model import Task
    from ..view import View
    from .incoming import Incoming


class Places:
    """Which id here each id of the source means: `here` for the tasks that come, `refer` for what they name."""

    def __init__(self, view: View, items: Sequence[Incoming], origin: dict[str, str], findings: list[Finding]) -> None:
        self._view, self._origin, self._findings = view, origin, findings
        self._known = {name: task.id for task in view if (name := source_id(task, origin))}
        self._taken = {task.id.casefold() for task in view}  # ids become names of files, some of which ignore case
        self._missing: dict[str, str] = {}
        self.here: dict[str, str] = {}
        self._taken |= {item.task.id.casefold() for item in items if item.native}
        for item in items:
            self.here[item.source] = found = self._place(item)
            if found != item.task.id and item.source not in self._known:
                findings.append(Finding(RENAMED, item.where, f"{item.source} is {found} here"))

    def _place(self, item: Incoming) -> str:
        if item.native:
            return item.task.id
        return self._known.get(item.source) or self._free(item.task.id, item.source)

    def refer(self, name: str, item: Incoming) -> str:
        """The id here of a task that another one names; one that is not there keeps a place of its own."""
        if found := self.here.get(name) or self._known.get(name):
            return found
        if item.native and name in self._view:
            return name
        if name not in self._missing:
            self._missing[name] = name if item.native else self._free(name, name)
        found = self._missing[name]
        # It still blocks, as a typo must not open a gate.
        self._findings.append(Finding(DANGLING, item.where, f"{item.source} names {name}, which is not there"))
        return found

    def _free(self, wish: str, source: str) -> str:
        """An id that no other task has: the one wished for, else one that is the same at every import."""
        for candidate in _candidates(wish, self._origin["format"], digest([self._origin, source])):
            standing = self._view.get(candidate)
            # A file that cannot be read may hold this very task: no twin beside it.
            if standing and (standing.flaw or source_id(standing, self._origin) == source):
                return candidate
            if not standing and candidate.casefold() not in self._taken:
                self._taken.add(candidate.casefold())
                return candidate
        raise AssertionError("candidates do not end")


def _candidates(wish: str, format: str, mark: str) -> Iterator[str]:
    if id_flaw(wish) is None and wish[0] not in ".-":
        yield wish
    slug = "".join(c if c.isalnum() or c in "._-" else "-" for c in unicodedata.normalize("NFC", wish))
    slug = slug.strip("-.")[:MAX_SLUG].rstrip("-.") or "task"
    for candidate in (slug, f"{format}-{slug}"):
        if id_flaw(candidate) is None:
            yield candidate
    number = 1
    while True:
        yield f"{format}-{mark}-{number}"
        number += 1


MAX_SLUG = 40


def source_id(task: Task, origin: dict[str, str]) -> str | None:
    """The id under which this source has the task, when it was imported from there."""
    source = task.metadata.get("source")
    if not isinstance(source, dict) or {name: source[name] for name in ("format", "board") if name in source} != origin:
        return None
    return source["id"] if isinstance(source.get("id"), str) else None


def digest(value: Any) -> str:
    """A short mark that is the same for the same value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:8]
