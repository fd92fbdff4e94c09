"""Which imported task an item is that has no id in its source, though it or what stands above it was edited there.

Its source id is made of its text and its place; it ends in `~2` where another of that text stands before it in the
same place. So an id that is new need not be a new task, and one that is known may by now be another's.
"""

from __future__ import annotations

from .incoming import GUESSED, Finding, short
from .remembered import UNSET, digest, last_seen, mark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..model import Task
    from .incoming import Incoming

STANDING = (("source", "status"), ("place", "subject", "status"), ("source",))
"""What an item has in common with its task when its place is the same; of several alike each gets one, in order."""

MOVED = (("subject", "parent"), ("subject",))
"""The same of one that stands elsewhere, when there is just one such item and one such task."""

GUESSES = ((("subject", "parent", "status"), False), (("subject", "parent"), True))
"""What is tried when that does not tell, and whether as many items as tasks are taken in their order."""


class Recognised:
    """The tasks that these items are, by the ids of the items in the source. known: tasks by their source ids.

    was: the source ids of those tasks until now. alike: the ids of items of which several have one text in one place,
    so that which is which may be wrong, and of what stands below them.
    """

    def __init__(self, items: Sequence[Incoming], known: Mapping[str, Task], findings: list[Finding]) -> None:
        self.tasks: dict[str, Task] = {}
        self.was: dict[str, str] = {}
        self._findings = findings
        self._items = {item.source: item for item in items}
        self._known = known
        self._traits = {name: _of_task(name, task) for name, task in known.items()}
        self._waiting = {item.source: _of_item(item) for item in items}
        self._left = dict(self._traits)  # what no item is yet
        self.alike = _alike(self._waiting, self._traits)
        for keys in STANDING:
            self._pair(keys, in_order=True)
        while self._waiting and self._left and self._pair_moved():
            pass
        self.alike |= self._below_alike()
        self._tell_doubts()

    def name(self, source: str) -> str:
        """The source id to be remembered: never that of a task which is gone from there, lest two have one."""
        if source not in self._left:
            return source
        if self.was[source] not in self._items:
            return self.was[source]
        number = 2
        while (name := f"{_place(source)}~{number}") in self._items or name in self._known:
            number += 1
        return name

    def _pair_moved(self) -> bool:
        """Whether more were found: then what stands below them can be found by its parent."""
        self._waiting = {source: self._below(source, traits) for source, traits in self._waiting.items()}
        if any(self._pair(keys) for keys in MOVED):
            return True
        return any(self._pair(keys, in_order=in_order, guessed=True) for keys, in_order in GUESSES)

    def _below(self, source: str, traits: dict[str, str]) -> dict[str, str]:
        """With the id here of the item above; one that is new here has nothing known below it."""
        parent = self._items[source].task.parent
        found = self.tasks.get(parent) if parent else None
        return traits | {"parent": digest(found.id) if found else digest([parent]) if parent else UNSET["parent"]}

    def _pair(self, keys: tuple[str, ...], *, in_order: bool = False, guessed: bool = False) -> bool:
        """Whether items were found by what they have in common with tasks: one with one, else in order if allowed.

        guessed: in order only when there are as many items as tasks.
        """
        groups: dict[tuple[str, ...], tuple[list[str], list[str]]] = {}
        for side, traits in enumerate((self._waiting, self._left)):
            for source, found in traits.items():
                groups.setdefault(tuple(found[key] for key in keys), ([], []))[side].append(source)
        before = len(self.tasks)
        for sources, names in groups.values():
            is_one = len(sources) == len(names) == 1
            if is_one or (in_order and (not guessed or len(sources) == len(names))):
                for source, name in zip(sources, sorted(names, key=self._age), strict=False):
                    self._take(source, name, is_sure=not guessed)
        return len(self.tasks) > before

    def _age(self, name: str) -> tuple[str, int, str]:
        """Tasks of one import were made in the order of their file."""
        return (self._known[name].created_at or "", len(name), name)

    def _below_alike(self) -> set[str]:
        found: set[str] = set()
        for source, item in self._items.items():  # those above come first
            if item.task.parent in found or item.task.parent in self.alike:
                found.add(source)
        return found

    def _take(self, source: str, name: str, *, is_sure: bool) -> None:
        item, task = self._items[source], self._known[name]
        self.tasks[source], self.was[source] = task, name
        del self._waiting[source], self._left[name]
        if not is_sure:
            self.alike.add(source)
            self._tell(
                source, f"is taken for {task.id}, one of several of its text that no longer stand where they did"
            )
        elif task.closed and not item.task.closed and name != source:
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
        places = {(traits["place"], traits["subject"]) for traits in self._left.values()}
        for source, task in self.tasks.items():
            if source in self.alike and (_place(source), mark(self._items[source].task, "subject")) in places:
                self._tell(source, f"is taken for {task.id}; another of its text is gone from there")


MAX_NAMED = 3


def _of_task(name: str, task: Task) -> dict[str, str]:
    found = last_seen(task)
    return {"source": name, "place": _place(name)} | {unit: found[unit] for unit in ("subject", "status", "parent")}


def _of_item(item: Incoming) -> dict[str, str]:
    found = {unit: mark(item.task, unit) for unit in ("subject", "status")}
    return {"source": item.source, "place": _place(item.source)} | found


def _place(source: str) -> str:
    """A source id without its number among those alike."""
    place, _, number = source.rpartition("~")
    return place if number.isdigit() else source


def _alike(*sides: Mapping[str, dict[str, str]]) -> set[str]:
    """The ids of those of which a side has several with one text in one place."""
    found: set[str] = set()
    for traits in sides:
        groups: dict[tuple[str, str], list[str]] = {}
        for source, trait in traits.items():
            groups.setdefault((trait["place"], trait["subject"]), []).append(source)
        for sources in groups.values():
            found.update(sources if len(sources) > 1 else ())
    return found
