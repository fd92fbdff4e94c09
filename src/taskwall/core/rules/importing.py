"""Bringing in tasks of another board: which are new, which are updated where nobody changed them here, which are left.

What was imported is remembered in `metadata.source` of each task: `format`, `board` and `id` of where it came from;
`seen`, a digest of each field as it was imported last; `kept`, what has no field here; `dropped`, edges that would
have closed a ring.
"""

from __future__ import annotations

import json

from ..graph import finish_order, rings
from ..model import COMPLETED, IN_PROGRESS, PENDING, Task, stored
from ..record import Record
from ..state import open_waits
from ..view import Overlay
from .change import event
from .fitting import fit, shallow
from .incoming import CONFLICT, CYCLIC, EARLY, FITTED, GUESSED, RELEASED, UNREADABLE, Brought, Finding, Incoming, short
from .places import Places
from .remembered import UNITS, UNSET, last_seen, mark, plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ..model import Actor
    from ..view import View


class _Arrival(Record):
    """A task on its way: as it stands here (None: not yet) and as it is to be. owned: the UNITS that imports alone set.

    seen: the digest of each unit to be remembered. dropped: its edges that would close a ring.
    """

    item: Incoming
    old: Task | None
    new: Task
    owned: frozenset[str] = frozenset(UNITS)
    seen: dict[str, str] = {}
    dropped: dict[str, Any] = {}


def bring_in(
    view: View, actor: Actor, incoming: Sequence[Incoming], times: Sequence[str], *, format: str, board: str
) -> Brought:
    """All of these tasks on this board, none of them twice. times: one a task.

    format and board: within which the ids of the source are unique. An edge that would close a ring is left out.
    """
    findings: list[Finding] = []
    origin = {"format": format, **({"board": board} if board else {})}
    items = [fitted for item, now in zip(incoming, times, strict=True) if (fitted := _fitted(item, now, findings))]
    places = Places(view, items, origin, findings)
    arrivals = [_arrive(view.get(places.here[item.source]), item, places, findings) for item in items]
    arrivals = [_dated(arrival, actor, now) for arrival, now in zip(arrivals, times, strict=False)]
    after = Overlay(view, [arrival.new for arrival in arrivals])
    arrivals = _without_rings(after, arrivals, findings)
    settled = [(a, _remembered(a, origin | {"id": places.recognised.name(a.item.source)})) for a in arrivals]
    changed = [(a, task) for a, task in settled if task != a.old]
    put = [task.replace(rev=task.rev + 1, updated_at=times[-1]) if a.old else task for a, task in changed]
    for a, task in changed:
        if a.old and a.old.closed and not task.closed and places.recognised.is_doubtful(a.item.source):
            told = f"{task.id} was {a.old.status} and is open again; another of its text may be meant"
            findings.append(Finding(GUESSED, a.item.where, told))
        if task.status == COMPLETED and (waits := open_waits(after, task)):
            findings.append(Finding(EARLY, a.item.where, f"{task.id} is completed, and {waits[0].text}"))
    places.tell_gone()
    return Brought(
        tuple(put),
        tuple(event(actor, times[-1], "import", task, **origin) for task in put),
        tuple(task.id for a, task in changed if not a.old),
        tuple(task.id for a, task in changed if a.old),
        len(arrivals) - len(changed),
        tuple(findings),
    )


def _fitted(item: Incoming, now: str, findings: list[Finding]) -> Incoming | None:
    """The task as it can be stored, and held by nobody: the claim of another program is none here."""
    task = item.task
    if task.status == IN_PROGRESS and not item.native:
        text = f"was in progress{f' by {task.owner}' if task.owner else ''} when it was imported"
        findings.append(Finding(RELEASED, item.where, f"{short(item.source)} {text}"))
        was = {"at": task.updated_at or task.created_at or now, "by": "import", "text": text}
        task = task.replace(status=PENDING, owner=None, notes=(*task.notes, was))
    task, told = fit(task, now)
    kept = shallow(item.kept)
    findings += [Finding(FITTED, item.where, f"{short(item.source)}: {text}") for text in told]
    whole = json.dumps([stored(task), kept], ensure_ascii=False)
    if (size := len(whole.encode("utf-8", "backslashreplace"))) > MAX_TASK:
        too_large = f"{short(item.source)} has {size // 1024} KiB, at most {MAX_TASK // 1024}"
        findings.append(Finding(UNREADABLE, item.where, too_large))
        return None
    return item.replace(task=task, kept=kept)


MAX_TASK = 512 * 1024
"""How large a task from elsewhere may be in its file, in bytes."""


def _arrive(old: Task | None, item: Incoming, places: Places, findings: list[Finding]) -> _Arrival:
    """The task under its id here: new, or what stands here with what was changed in the source alone."""
    new = item.task.replace(
        id=places.here[item.source],
        dialect=Task.__defaults__["dialect"],
        blocked_by=tuple(dict.fromkeys(places.refer(name, item) for name in item.task.blocked_by)),
        parent=places.refer(item.task.parent, item) if item.task.parent else None,
    )
    seen = {unit: mark(new, unit) for unit in UNITS}
    if old is None:
        return _Arrival(item, None, new, seen=seen)
    if item.native or not old.gated or old.flaw or not places.is_same(item, old):
        if old.flaw or stored(old) != stored(new):
            why = f"cannot be read: {old.flaw}" if old.flaw else "is on this board already, and differs"
            findings.append(Finding(CONFLICT, item.where, f"{old.id} {why}"))
        return _Arrival(item.replace(native=True), old, old, frozenset())
    return _merged(old, item, new, seen, findings)


def _merged(old: Task, item: Incoming, new: Task, seen: dict[str, str], findings: list[Finding]) -> _Arrival:
    base, dropped = last_seen(old), plain(old.metadata["source"].get("dropped"))
    owned, moves = set(), set()
    for unit, theirs in seen.items():
        before, mine = base[unit], mark(old, unit, dropped)
        if mine == before:
            owned.add(unit)
            moves |= {unit} if theirs != before else set()
        elif theirs not in (before, mine):
            seen[unit] = before
            findings.append(Finding(CONFLICT, item.where, f"{old.id}: its {unit}"))
    fields = {field: getattr(new, field) for unit in moves for field in UNITS[unit]}
    if "status" in moves:
        fields |= {"started_at": new.started_at, "completed_at": new.completed_at}
    told = {(note["by"], note["text"]) for note in old.notes}
    notes = (*old.notes, *(note for note in new.notes if (note["by"], note["text"]) not in told))
    kept = {unit: edges for unit, edges in dropped.items() if unit not in moves}
    return _Arrival(item, old, old.replace(**fields, notes=notes), frozenset(owned), seen, kept)


def _dated(arrival: _Arrival, actor: Actor, now: str) -> _Arrival:
    """A new task, with the times that its source does not tell; one of ours comes back as it was."""
    new = arrival.new
    if arrival.old or arrival.item.native:
        return arrival
    known = {"created_at": new.created_at or now, "created_by": new.created_by or actor.name}
    return arrival.replace(new=new.replace(**known, updated_at=new.updated_at or now, rev=new.rev or 1))


def _remembered(arrival: _Arrival, named: dict[str, str]) -> Task:
    """The task with what the next import must know of this one; one of ours is known by its id."""
    if arrival.item.native:
        dropped = {"dropped": arrival.dropped} if arrival.dropped else {}
        return arrival.new.replace(metadata=arrival.new.metadata | dropped)
    seen = {unit: found for unit, found in arrival.seen.items() if found != UNSET[unit]}
    told = {"seen": seen, "kept": arrival.item.kept, "dropped": arrival.dropped}
    source = named | {name: value for name, value in told.items() if value}
    return arrival.new.replace(metadata=arrival.new.metadata | {"source": source})


def _without_rings(after: Overlay, arrivals: Sequence[_Arrival], findings: list[Finding]) -> list[_Arrival]:
    """The same without the edges of theirs that would close a ring. Puts what it changes into `after`."""
    setting = {arrival.new.id: arrival for arrival in arrivals if arrival.owned}
    place = {task_id: number for number, task_id in enumerate(setting)}
    dropped: dict[str, dict[str, Any]] = {}
    for ring in list(rings(setting, lambda i: _waits(after, i))):
        starts = sorted(ring, key=lambda i: place.get(i, len(place)))
        for waiter, blocker in _closing(after, starts, setting):
            where = setting[waiter if waiter in setting else blocker].item.where
            findings.append(Finding(CYCLIC, where, f"{waiter} would wait for {blocker}, which waits for it"))
            if waiter in setting and blocker in setting[waiter].new.blocked_by:
                dropped.setdefault(waiter, {}).setdefault("blockedBy", []).append(blocker)
            if blocker in setting and setting[blocker].new.parent == waiter:
                dropped.setdefault(blocker, {})["parent"] = waiter
    for task_id, edges in dropped.items():
        arrival = setting[task_id]
        new, before = arrival.new, arrival.dropped
        kept = tuple(i for i in new.blocked_by if i not in edges.get("blockedBy", ()))
        new = new.replace(blocked_by=kept, parent=None if "parent" in edges else new.parent)
        after.put(new)
        both = {"blockedBy": [*before.get("blockedBy", ()), *edges["blockedBy"]]} if "blockedBy" in edges else {}
        setting[task_id] = arrival.replace(new=new, dropped=before | edges | both)
    return [setting.get(arrival.new.id, arrival) for arrival in arrivals]


def _waits(after: View, task_id: str) -> list[str]:
    """What a task names and what calls it its parent, finished or not, for what is finished may be reopened.

    One that is not there yet counts too: it may come.
    """
    task = after.get(task_id)
    return [*(after.blockers(task) if task else ()), *(child.id for child in after.children(task_id))]


def _closing(after: View, ring: Sequence[str], setting: dict[str, _Arrival]) -> list[tuple[str, str]]:
    """The waits that an import brings into this ring without which it is none: few, and the same at every import."""
    members = set(ring)
    edges = [(i, w) for i in ring for w in _waits(after, i) if w in members]
    theirs = {edge for edge in edges if _is_theirs(after, *edge, setting)}
    # A child that waits for its own parent stays its child.
    closing = [(i, w) for i, w in edges if (i, w) in theirs and (task := after.get(i)) and task.parent == w != i]
    gone = set(closing)
    rest = [edge for edge in edges if edge not in gone]
    back = _against(ring, rest, rest)
    if not theirs.issuperset(back):
        back = [edge for edge in _against(ring, rest, [e for e in rest if e not in theirs]) if edge in theirs]
    return closing + back


def _against(
    ring: Sequence[str], edges: Sequence[tuple[str, str]], kept: Sequence[tuple[str, str]]
) -> list[tuple[str, str]]:
    """Those of the edges without which no ring is left, given one of the orders in which the kept ones agree."""
    waits: dict[str, list[str]] = {i: [] for i in ring}
    for waiter, blocker in kept:
        waits[waiter].append(blocker)
    left = finish_order(ring, waits.__getitem__)
    return [(waiter, blocker) for waiter, blocker in edges if left[blocker] >= left[waiter]]


def _is_theirs(after: View, waiter: str, blocker: str, setting: dict[str, _Arrival]) -> bool:
    """Whether this wait goes when the import leaves out what it brings."""
    task, child = after.get(waiter), after.get(blocker)
    is_named = task is not None and blocker in after.blockers(task)
    is_child = child is not None and child.parent == waiter
    upper, lower = setting.get(waiter), setting.get(blocker)
    names_it = upper is not None and "blockedBy" in upper.owned and blocker in upper.new.blocked_by
    adopts_it = lower is not None and "parent" in lower.owned
    return (names_it or not is_named) and (adopts_it or not is_child)
