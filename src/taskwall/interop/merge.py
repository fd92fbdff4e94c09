"""Three-way merge of one task file by its fields: texts in, text out, no disk. What is written is a patch of ours.

The rules, which commute but for whose text is kept when both sides wrote one:

- status, owner and what belongs to them come from the side that changed them; when both did, from the one that is
  further (completed, cancelled, in progress, pending), then of the larger epoch, then first by name, then by time;
- lists keep what neither side took out and gain what either added; notes are put together in the order of their times;
- epoch and rev are the larger; a text that both sides changed stays as ours is and theirs is parked;
- any other value comes from the side that changed it; when both did, from the one written last. The other is parked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from ..core.model import ALWAYS, CANCELLED, COMPLETED, IN_PROGRESS, PENDING, READ_ONLY_DIALECTS, Task
from ..core.record import Record
from ..stores.files.changes import key_order
from ..stores.files.dialects import ABSENT, DIALECTS, OUR_KEYS, RESEARCH, read
from ..stores.files.disk import MAX_BYTES
from ..stores.files.patch import patch
from ..stores.files.plain import NotATask, fits
from ..stores.files.strict import NotStrict, parse

Rule = Callable[["_Merge", str, Any, Any, Any], Any]

ORDER = (COMPLETED, CANCELLED, IN_PROGRESS, PENDING)
UNIT = ("status", "owner", "startedAt", "completedAt", "result", "evidence", "answer")
TOLD = ("result", "evidence", "answer")
"""What of the unit somebody wrote, and what is therefore parked when the other side's is taken."""


class Unmergeable(ValueError):
    """One side is no task, or the sides are not the same task: a person decides."""


class DifferentTasks(Unmergeable):
    """git took one task's file for another's that was removed; lines of the one must not get into the other."""


class MadeApart(Unmergeable):
    """Both sides made a task under this id, and nothing tells that they mean the same one."""


class Merged(Record):
    """The merged text. parked: by key, what one side wrote and the text does not hold, as {"kept", "parked"}."""

    task: str
    text: str
    parked: dict[str, dict[str, Any]]


def merge(base: str, ours: str, theirs: str) -> Merged:
    """The merge of two texts that both came from `base`, which is empty when both sides made the file.

    Raises Unmergeable.
    """
    return _Merge(base, ours, theirs).result()


class _Side:
    """One text, its object, and the task in it."""

    def __init__(self, name: str, text: str) -> None:
        self.text = text
        try:
            self.raw = parse(text)
            self.task: Task = read(self.raw)
        except (NotStrict, NotATask) as flaw:
            raise Unmergeable(f"{name} cannot be read as a task: {flaw}") from None

    def get(self, key: str) -> Any:
        return self.raw.get(key, ABSENT)


class _Merge:
    """One merge under way: what each key becomes, and what is parked on the way."""

    def __init__(self, base: str, ours: str, theirs: str) -> None:
        self.ours, self.theirs = _Side("our side", ours), _Side("their side", theirs)
        self.base = _Side("the common ancestor", base) if base.strip() else None
        sides = [side for side in (self.ours, self.theirs, self.base) if side]
        self.dialect = DIALECTS[self.ours.task.dialect]
        if len({side.task.id for side in sides}) > 1:
            raise DifferentTasks("the sides are different tasks")
        if any(DIALECTS[side.task.dialect].renamed != self.dialect.renamed for side in sides):
            raise Unmergeable("the sides are written in different formats")
        if self.ours.task.dialect in READ_ONLY_DIALECTS:
            raise Unmergeable(f"the format {self.ours.task.dialect!r} is never written here")
        if self.base is None and _are_apart(self.ours.task, self.theirs.task):
            two = f"{self.ours.task.subject!r} and {self.theirs.task.subject!r}"
            raise MadeApart(f"two tasks were made under the id {self.ours.task.id}: {two}")
        self.parked: dict[str, dict[str, Any]] = {}

    def result(self) -> Merged:
        unit = [self.dialect.key(key) for key in UNIT]
        known = self.base.raw if self.base else {}
        merged = dict(zip(unit, self._unit(unit), strict=True))
        for key in dict.fromkeys([*self.ours.raw, *self.theirs.raw]):
            if key not in merged:
                merged[key] = self._value(key, known.get(key, ABSENT), self.ours.get(key), self.theirs.get(key))
        raw = self.ours.raw
        changes = {k: v for k, v in merged.items() if v is not ABSENT and _canon(raw.get(k, ABSENT)) != _canon(v)}
        removed = [key for key, value in merged.items() if value is ABSENT]
        text = patch(self.ours.text, changes, removed, key_order(self.dialect.name))
        if len(text.encode()) > MAX_BYTES:
            raise Unmergeable("the merged file would be too large")
        _Side("the merge", text)  # what could not be read again is none
        return Merged(self.ours.task.id, text, self.parked)

    def _unit(self, keys: list[str]) -> list[Any]:
        """Status and owner, and what belongs to them, from one side."""
        ours, theirs = ([side.get(key) for key in keys] for side in (self.ours, self.theirs))
        base = [self.base.raw.get(key, ABSENT) for key in keys] if self.base else None
        first, other = (
            (ours, theirs) if _rank(self.ours.task, ours) <= _rank(self.theirs.task, theirs) else (theirs, ours)
        )
        if base is not None and _canon(base) in (_canon(ours), _canon(theirs)):
            return theirs if _canon(base) == _canon(ours) else ours
        for key, kept, lost in zip(keys, first, other, strict=True):
            at_first = base[keys.index(key)] if base else ABSENT
            if key in map(self.dialect.key, TOLD) and _canon(lost) not in (_canon(kept), _canon(at_first)):
                self.park(key, kept, lost)
        return first

    def _value(self, key: str, base: Any, ours: Any, theirs: Any) -> Any:
        """One value: the side that changed it, or what the rule of its key makes of both."""
        rule = _RULES.get(self.our_key(key) or "", _scalar)
        if rule not in (_largest, _latest):
            if _canon(theirs) in (_canon(base), _canon(ours)):
                return ours
            if _canon(ours) == _canon(base):
                return theirs
        return rule(self, key, base, ours, theirs)

    def our_key(self, key: str) -> str | None:
        """What a key of the file is called among ours."""
        return "blocks" if key == self.dialect.key("blocks") else OUR_KEYS[self.dialect.name].get(key)

    def park(self, name: str, kept: Any, lost: Any) -> None:
        if lost is not ABSENT and lost not in (None, "", [], {}):
            self.parked[name] = {"kept": None if kept is ABSENT else kept, "parked": lost}

    def newest(self, ours: Any, theirs: Any) -> tuple[Any, Any]:
        """Two values, first the one that stays: what is there before what is not, what was written last, then any."""

        def weight(side: _Side, value: Any) -> tuple[Any, ...]:
            return (value is not ABSENT, str(side.raw.get("updatedAt") or ""), _canon(value))

        ours_last = weight(self.ours, ours) >= weight(self.theirs, theirs)
        return (ours, theirs) if ours_last else (theirs, ours)


def _are_apart(ours: Task, theirs: Task) -> bool:
    """Whether two tasks of one id that come from no common file are two: made at other times, of other subjects.

    The same idempotency key, or the same task of another board, is one task whatever it says by now.
    """
    told = ((task.subject, task.created_at, task.key, _source(task)) for task in (ours, theirs))
    return not any(one is not None and one == other for one, other in zip(*told, strict=True))


def _source(task: Task) -> list[Any] | None:
    """From where a task was imported: the format, the board and the id there."""
    source = task.metadata.get("source")
    return [source.get(name) for name in ("format", "board", "id")] if isinstance(source, dict) else None


def _rank(task: Task, unit: list[Any]) -> tuple[Any, ...]:
    """Smaller for the side whose status and owner stay."""
    owner = (task.owner is None, task.owner or "")
    return (ORDER.index(task.status), -task.epoch, *owner, task.started_at or "", _canon(unit))


def _canon(value: Any) -> str:
    """Values that are the same JSON, and only those, have the same text."""
    return json.dumps(value, sort_keys=True, default=lambda _: {"\0": "absent"})


# One rule a kind of key. Both sides have changed the value, and differently, but for `_largest` and `_latest`.


def _scalar(merge: _Merge, key: str, base: Any, ours: Any, theirs: Any) -> Any:
    kept, lost = merge.newest(ours, theirs)
    merge.park(key, kept, lost)
    return kept


def _text(merge: _Merge, key: str, base: Any, ours: Any, theirs: Any) -> Any:
    if not all(value in (ABSENT, None) or isinstance(value, str) for value in (ours, theirs)):
        return _scalar(merge, key, base, ours, theirs)
    kept, lost = (theirs, ours) if ours in (ABSENT, None, "") else (ours, theirs)
    merge.park(key, kept, lost)
    return kept


def _largest(merge: _Merge, key: str, base: Any, ours: Any, theirs: Any) -> Any:
    counts = [value for value in (base, ours, theirs) if fits("epoch", value)]
    return max(counts) if counts else merge.newest(ours, theirs)[0]


def _attempts(merge: _Merge, key: str, base: Any, ours: Any, theirs: Any) -> Any:
    counted = fits("attempts", ours) and fits("attempts", theirs)
    return (_largest if counted else _scalar)(merge, key, ABSENT, ours, theirs)


def _latest(merge: _Merge, key: str, base: Any, ours: Any, theirs: Any) -> Any:
    return merge.newest(ours, theirs)[0]


def _list(merge: _Merge, key: str, base: Any, ours: Any, theirs: Any) -> Any:
    """What neither side took out, then what they added, each in its own order."""
    before, left, right = ([] if value in (ABSENT, None) else value for value in (base, ours, theirs))
    if not all(isinstance(value, list) for value in (before, left, right)):
        return _scalar(merge, key, base, ours, theirs)
    name = str if merge.our_key(key) in ("blockedBy", "blocks") else _canon
    kept = _reordered(before, left, right, name)
    added = sorted(
        ([item for item in side if name(item) not in set(map(name, before))] for side in (left, right)), key=_canon
    )
    found = {name(item): item for item in kept}
    for item in (*added[0], *added[1]):
        found.setdefault(name(item), item)
    return list(found.values()) or _empty(merge, key)


def _reordered(before: list[Any], left: list[Any], right: list[Any], name: Callable[[Any], str]) -> list[Any]:
    """What both sides still have, in the order of the one that changed it, else as it was."""
    still = {name(item): item for item in before if name(item) in set(map(name, left)) & set(map(name, right))}
    was, *orders = ([n for n in dict.fromkeys(map(name, side)) if n in still] for side in (before, left, right))
    return [still[n] for n in min((order for order in orders if order != was), default=was)]


def _empty(merge: _Merge, key: str) -> Any:
    ours = merge.our_key(key)
    return [] if ours in ALWAYS and merge.dialect.name != RESEARCH else ABSENT


def _notes(merge: _Merge, key: str, base: Any, ours: Any, theirs: Any) -> Any:
    before, left, right = ([] if value in (ABSENT, None) else value for value in (base, ours, theirs))
    if not all(fits("notes", value) for value in (before, left, right)):
        return _scalar(merge, key, base, ours, theirs)
    known = set(map(_canon, before))
    kept = [item for item in before if item in left or item in right]
    added = {_canon(item): item for item in (*left, *right) if _canon(item) not in known}
    return kept + [item for _, item in sorted(added.items(), key=lambda entry: (entry[1]["at"], entry[0]))]


def _object(merge: _Merge, key: str, base: Any, ours: Any, theirs: Any) -> Any:
    before, left, right = ({} if value in (ABSENT, None) else value for value in (base, ours, theirs))
    if not all(isinstance(value, dict) for value in (before, left, right)):
        return _scalar(merge, key, base, ours, theirs)
    found: dict[str, Any] = {}
    for name in _names(left, right):
        was, a, b = (side.get(name, ABSENT) for side in (before, left, right))
        if _canon(b) in (_canon(was), _canon(a)):
            found[name] = a
        elif _canon(a) == _canon(was):
            found[name] = b
        else:
            found[name] = _scalar(merge, f"{key}.{name}", was, a, b)
    return {name: value for name, value in found.items() if value is not ABSENT} or ABSENT


def _names(*sides: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(name for side in sides for name in side))


_RULES: dict[str, Rule] = {
    **dict.fromkeys(("epoch", "rev"), _largest),
    **dict.fromkeys(("subject", "description", "question", "hold"), _text),
    **dict.fromkeys(("blockedBy", "blocks", "labels", "products", "checks", "options"), _list),
    "attempts": _attempts,
    "updatedAt": _latest,
    "notes": _notes,
    "metadata": _object,
}
