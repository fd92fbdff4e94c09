"""Which imported task an item is that has no id in its source, though it or what stands above it was edited there.

Its source id is made of its text and its place; it ends in `~2` where another of that text stands before it in the
same place. So an id that is new need not be a new task, and one that is known may by now be another's.
"""

from __future__ import annotations

from collections import Counter
from itertools import count

from .incoming import GUESSED, Finding, short
from .remembered import UNITS, digest, last_seen, mark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..model import Task
    from .incoming import Incoming

STANDING = (("source", "status"), ("place", "subject", "status"), ("source",))
"""What an item has in common with its task when its place is the same; of several alike each gets one, in order."""

MOVED = (("subject", "parent"), ("subject",))
"""The same of one that stands elsewhere, when there is just one such item and one such task."""

MAX_NAMED = 3


class Recognised:
    """The tasks that these items are, by the ids of the items in the source. known: tasks by their source ids.

    was: the source ids of those tasks until now.
    """

    def __init__(self, items: Sequence[Incoming], known: Mapping[str, Task], findings: list[Finding]) -> None:
        self.tasks: dict[str, Task] = {}
        self.was: dict[str, str] = {}
        self._findings, self._known = findings, known
        self._items = {item.source: item for item in items}
        self._waiting = {i.source: _traits(i.source, {unit: mark(i.task, unit) for unit in UNITS}) for i in items}
        # What no item is yet, those alike by their numbers.
        self._left = {name: _traits(name, last_seen(known[name])) for name in sorted(known, key=lambda n: (len(n), n))}
        sides = [Counter(map(_place, side)) for side in (self._waiting, self._left)]
        self._alike = {place for side in sides for place, number in side.items() if number > 1}
        for keys in STANDING:
            self._pair(keys)
        # Each that is found may tell those below it apart.
        while self._waiting and self._left and any(self._pair(keys, alone=True) for keys in MOVED):
            pass
        self._tell_doubts()

    def name(self, source: str) -> str:
        """The source id to be remembered: never that of a task which is gone from there, lest two have one."""
        if source not in self._left:
            return source
        if self.was[source] not in self._items:
            return self.was[source]
        names = (f"{_place(source)}~{number}" for number in count(2))
        return next(name for name in names if name not in self._items and name not in self._known)

    def is_doubtful(self, source: str | None) -> bool:
        """Whether it may be another's task: there are several of its text in one place, or it stands below such."""
        while source in self._items:
            if _place(source) in self._alike:
                return True
            source = self._items[source].task.parent
        return False

    def _pair(self, keys: tuple[str, ...], *, alone: bool = False) -> bool:
        """Whether items were found by what they have in common with tasks; alone: only one with one."""
        groups: dict[tuple[str, ...], tuple[list[str], list[str]]] = {}
        waiting = {source: traits | {"parent": self._above(source)} for source, traits in self._waiting.items()}
        for side, named in enumerate((waiting, self._left)):
            for name, traits in named.items():
                groups.setdefault(tuple(traits[key] for key in keys), ([], []))[side].append(name)
        before = len(self.tasks)
        for sources, names in groups.values():
            if not alone or len(sources) == len(names) == 1:
                for source, name in zip(sources, names, strict=False):
                    self._take(source, name)
        return len(self.tasks) > before

    def _above(self, source: str) -> str:
        """The mark of the task here of the item above; one that is new here has nothing known below it."""
        parent = self._items[source].task.parent
        found = self.tasks.get(parent or "")
        return digest(found.id if found else parent)

    def _take(self, source: str, name: str) -> None:
        task = self._known[name]
        self.tasks[source], self.was[source] = task, name
        del self._waiting[source], self._left[name]
        if task.closed and not self._items[source].task.closed and name != source:
            self._tell(source, f"is taken for {task.id}, which is {task.status} here and was {short(name)} there")

    def _tell(self, source: str, text: str) -> None:
        self._findings.append(Finding(GUESSED, self._items[source].where, f"{short(source)} {text}"))

    def _tell_doubts(self) -> None:
        """Items that may be tasks which are gone, and tasks that stay where another of their text is gone."""
        gone: dict[str, list[str]] = {}
        for name, traits in self._left.items():
            gone.setdefault(traits["subject"], []).append(self._known[name].id)
        for source, traits in self._waiting.items():
            if found := gone.get(traits["subject"]):
                self._tell(source, f"may be {' or '.join(found[:MAX_NAMED])}; that is not certain, so it is a new task")
        places = set(map(_place, self._left))
        for source, task in self.tasks.items():
            if _place(source) in places:
                self._tell(source, f"is taken for {task.id}; another of its text is gone from there")


def _traits(name: str, units: Mapping[str, str]) -> dict[str, str]:
    return {"source": name, "place": _place(name), **units}


def _place(source: str) -> str:
    """A source id without its number among those alike."""
    place, _, number = source.rpartition("~")
    return place if number.isdigit() else source
