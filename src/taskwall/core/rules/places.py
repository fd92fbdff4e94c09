"""Which task here each task of another board is, and which id a new one gets."""

from __future__ import annotations

import unicodedata
from itertools import chain, count, islice

from ..model import id_flaw
from .incoming import DANGLING, GONE, RENAMED, Finding, short
from .recognising import Recognised
from .remembered import digest, source_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..model import Task
    from ..view import View
    from .incoming import Incoming


class Places:
    """Which id here each id of the source means: `here` for the tasks that come, `refer` for what they name.

    recognised: which tasks those are that have no id there.
    """

    def __init__(self, view: View, items: Sequence[Incoming], origin: dict[str, str], findings: list[Finding]) -> None:
        self._view, self._origin, self._findings = view, origin, findings
        self._known = {name: task for task in view if (name := source_id(task, origin))}
        self._taken = {task.id.casefold() for task in view}  # ids become names of files, some of which ignore case
        self._missing: dict[str, str] = {}
        self.here: dict[str, str] = {}
        self._taken |= {item.task.id.casefold() for item in items if item.native}
        unnamed = [item for item in items if item.unnamed]
        self.recognised = Recognised(unnamed, self._put_away(unnamed) | self._known if unnamed else {}, findings)
        self._given = {task.id for task in self.recognised.tasks.values()}
        for item in items:
            task = self.recognised.tasks.get(item.source) if item.unnamed else self._known.get(item.source)
            found = item.task.id if item.native else task.id if task else self._free(item.task.id, item.source)
            self.here[item.source] = found
            if found != item.task.id and not task:
                findings.append(Finding(RENAMED, item.where, f"{short(item.source)} is {found} here"))

    def _put_away(self, unnamed: Sequence[Incoming]) -> dict[str, Task]:
        """Tasks in the archive, which no view goes through, by their source ids: they have ids that such items get."""
        unknown = [item for item in unnamed if item.source not in self._known]
        ids = (islice(self._candidates(item.task.id, item.source), MAX_LOOKED_FOR) for item in unknown)
        tasks = filter(None, map(self._view.get, chain.from_iterable(ids)))
        return {name: task for task in tasks if (name := source_id(task, self._origin))}

    def is_same(self, item: Incoming, task: Task) -> bool:
        """Whether a task that has the id of an item here was imported as that item."""
        return source_id(task, self._origin) == self.recognised.was.get(item.source, item.source)

    def tell_gone(self) -> None:
        """Report the tasks that are no longer there; of a format whose boards have no names they may be in another."""
        if board := self._origin.get("board"):
            here = set(self.here.values())
            where = board.rpartition("/")[2]
            for task in self._known.values():
                if task.id not in here:
                    self._findings.append(Finding(GONE, where, f"{task.id}: {short(task.subject)} [{task.status}]"))

    def refer(self, name: str, item: Incoming) -> str:
        """The id here of a task that another one names; one that is not there keeps a place of its own."""
        if found := self.here.get(name):
            return found
        if task := self._known.get(name):
            return task.id
        if item.native and name in self._view:
            return name
        if name not in self._missing:
            self._missing[name] = name if item.native else self._free(name, name)
        found = self._missing[name]
        # It still blocks, as a typo must not open a gate.
        told = f"{short(item.source)} names {short(name)}, which is not there"
        self._findings.append(Finding(DANGLING, item.where, told))
        return found

    def _free(self, wish: str, source: str) -> str:
        """An id that no other task has: the one wished for, else one that is the same at every import."""
        for candidate in self._candidates(wish, source):
            standing = self._view.get(candidate)
            is_it = standing and candidate not in self._given and source_id(standing, self._origin) == source
            # A file that cannot be read may hold this very task: no twin beside it.
            if standing and (standing.flaw or is_it):
                return candidate
            if not standing and candidate.casefold() not in self._taken:
                self._taken.add(candidate.casefold())
                return candidate
        raise AssertionError("candidates do not end")

    def _candidates(self, wish: str, source: str) -> Iterator[str]:
        if id_flaw(wish) is None and wish[0] not in ".-":
            yield wish
        slug = "".join(c if c.isalnum() or c in "._-" else "-" for c in unicodedata.normalize("NFC", wish))
        slug = slug.strip("-.")[:MAX_SLUG].rstrip("-.") or "task"
        format, mark = self._origin["format"], digest([self._origin, source])
        yield from (candidate for candidate in (slug, f"{format}-{slug}") if id_flaw(candidate) is None)
        yield from (f"{format}-{mark}-{number}" for number in count(1))


MAX_SLUG = 40
MAX_LOOKED_FOR = 4
"""How many of the ids that an item would get are looked up in the archive."""
