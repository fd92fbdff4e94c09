"""What state a task is in and why, what may be started next, and who must act when nothing may.

`state` is the one place that knows; every list, filter, claim and picture asks it.
"""

from __future__ import annotations

from .graph import cycle_through, leads_to, natural, reached, rings
from .model import CANCELLED, COMPLETED, IN_PROGRESS, LAPSED, PENDING, PERSONS, READ_ONLY_DIALECTS, WILD_HOLD, Settings
from .record import Record
from .view import Overlay, age

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from .model import Actor, Task
    from .view import View

BROKEN, HELD, BLOCKED, STALE, WAITING, READY = "broken", "held", "blocked", "stale", "waiting", "ready"
STATES = (READY, IN_PROGRESS, STALE, WAITING, BLOCKED, HELD, BROKEN, COMPLETED, CANCELLED)

STARTABLE = (READY, WAITING, STALE)
"""The states in which somebody may start a task; who may, `is_for` says."""

MISSING, UNREADABLE, OPEN = "missing", "unreadable", "open"


class Reason(Record):
    """Why a task is in its state. `kind` says what `subject` is: the id of a task, or an actor's name."""

    kind: str  # blocker, child, hold, attempts, holder, lapsed, reserved, flaw
    text: str
    subject: str | None = None
    how: str = ""  # of a blocker or child: open, cancelled, missing or unreadable


class State(Record):
    """A task's state and the reasons for it."""

    name: str
    reasons: tuple[Reason, ...] = ()


def open_waits(view: View, task: Task) -> tuple[Reason, ...]:
    """The blockers and children that keep a task from being started or completed."""
    return tuple(_open_wait(*wait) for wait in _waits(view, task))


def _waits(view: View, task: Task) -> Iterator[tuple[str, str, Task | None]]:
    """What `open_waits` tells of, without its words: the kind, the id, and the task of that id."""
    for blocker_id in view.blockers(task):
        # An id that names no task blocks: a typo must not open a gate.
        if not view.is_completed(blocker_id):
            yield "blocker", blocker_id, view.get(blocker_id)
    for child in view.children(task.id):
        if not child.closed:
            yield "child", child.id, child


def _open_wait(kind: str, task_id: str, task: Task | None) -> Reason:
    if task is None:
        return Reason(kind, f"{task_id} does not exist", task_id, MISSING)
    if kind == "blocker" and task.flaw:
        return Reason(kind, f"{task_id} cannot be read: {task.flaw}", task_id, UNREADABLE)
    how = CANCELLED if task.status == CANCELLED else OPEN
    who = f" by {task.owner}" if task.status == IN_PROGRESS and task.owner else ""
    return Reason(kind, f"{task.id} is {task.status}{who}: {task.subject}", task.id, how)


def is_waiting(view: View, task: Task) -> bool:
    """Whether a blocker or child keeps a task from being started or completed."""
    return next(_waits(view, task), None) is not None


def is_lapsed(view: View, task: Task) -> bool:
    """Whether the task is in progress under a lease that nobody kept up."""
    claim = view.standing(task)
    return claim is not None and claim.lease == LAPSED


def attempts(view: View, task: Task) -> int:
    """Claims that ended in failure or expiry; a lapsed lease counts before anybody takes the task."""
    return task.attempts + is_lapsed(view, task)


def reservation(view: View, task: Task) -> str | None:
    """For whom alone an open task is, when it is not in somebody's hands."""
    if task.status != IN_PROGRESS:
        return task.owner
    claim = view.current(task)
    return claim.reserved if claim else None


def is_for(owner: str | None, actor: Actor, settings: Settings) -> bool:
    """Whether a task reserved for `owner` is for this actor: `name/1` works for `name`, any person is `user`."""
    if owner is None or actor.name == owner:
        return True
    if settings.is_person(owner):  # an agent called `user/1` is no person
        return owner in PERSONS and settings.is_person(actor.name)
    return actor.name.startswith(f"{owner}/")


def _hold(view: View, task: Task) -> Reason | None:
    if task.hold is not None and not (task.hold == WILD_HOLD and view.settings.is_person(task.owner)):
        return Reason("hold", task.hold)
    if (tried := attempts(view, task)) >= view.settings.max_attempts:
        return Reason("attempts", f"{tried} attempts failed; a person looks at it and resumes it")
    return None


def state(view: View, task: Task) -> State:
    """The state of a task, with its reasons. The rows are tried in the order of DESIGN section 2."""
    if task.closed:
        return State(task.status)
    if task.flaw:
        return State(BROKEN, (Reason("flaw", task.flaw),))
    lapsed = is_lapsed(view, task)
    if task.status == IN_PROGRESS and not lapsed:
        return State(IN_PROGRESS, (Reason("holder", f"held by {task.owner or 'somebody unnamed'}", task.owner),))
    if held := _hold(view, task):
        return State(HELD, (held,))
    if waits := open_waits(view, task):
        return State(BLOCKED, waits)
    if lapsed:
        ran_out = Reason("lapsed", f"the lease of {task.owner} ran out", task.owner)
        return State(STALE, (ran_out, *_reserved(view, task)))
    return State(WAITING if view.settings.is_person(task.owner) else READY, _reserved(view, task))


def _reserved(view: View, task: Task) -> tuple[Reason, ...]:
    owner = reservation(view, task)
    return (Reason("reserved", f"reserved for {owner}", owner),) if owner else ()


def is_actionable(view: View, task: Task, actor: Actor) -> bool:
    """Whether this actor may start the task now."""
    if task.dialect in READ_ONLY_DIALECTS or not is_for(reservation(view, task), actor, view.settings):
        return False
    return state(view, task).name in STARTABLE


def actionable(view: View, actor: Actor, among: Iterable[Task] | None = None) -> Iterator[Task]:
    """The tasks this actor may start now, best first: never claimed before stale, priority, rank, age.

    among: these alone, which are in the order of `view.unblocked`.
    """
    stale = []
    for task in view.unblocked() if among is None else among:
        if is_actionable(view, task, actor):
            if is_lapsed(view, task):
                stale.append(task)
            else:
                yield task
    yield from stale


def waits_for(view: View, task_id: str) -> list[str]:
    """The edges along which open work waits: to open blockers and children. Finished work ends a chain."""
    task = view.get(task_id)
    if task is None or task.closed or task.flaw:
        return []
    return [wait for _, wait, _ in _waits(view, task)]


def waits_in(view: View, task: Task, now: State) -> list[str]:
    """The same for a task whose state is known: that it waits for nothing, or for what, is part of most."""
    if now.name == BLOCKED:
        return [reason.subject for reason in now.reasons if reason.subject]
    return [] if now.name in STARTABLE else waits_for(view, task.id)


def _behind(view: View, task_id: str) -> list[str]:
    """The same edges the other way: the open tasks that wait for this one."""
    task = view.get(task_id)
    return [after.id for after in view.behind(task)] if task else []


def find_cycle(view: View, changed: Iterable[str]) -> list[str] | None:
    """A cycle of open work through one of these tasks, as a closed path, or None.

    Linear in what waits for them, which for new tasks is little, however much they wait for.
    """
    among = dict.fromkeys(changed)
    waiting = reached(among, lambda i: _behind(view, i))
    for ring in rings(among, lambda i: [wait for wait in waits_for(view, i) if wait in waiting]):
        if member := next((i for i in ring if i in among), None):
            return cycle_through(member, lambda i: waits_for(view, i))
    return None


def find_cycle_over(view: View, waiter: str, added: Iterable[str]) -> list[str] | None:
    """A cycle of open work that one of these edges of `waiter` closes; one that was there before is none of theirs.

    Costs as much as the smaller of what they wait for and what waits for `waiter`.
    """
    still = set(added)
    if not leads_to(still, waiter, lambda i: waits_for(view, i), lambda i: _behind(view, i)):
        return None
    return cycle_through(waiter, lambda i: [w for w in waits_for(view, i) if i != waiter or w in still])


def unblocked(before: View, after: View, changed: Iterable[str]) -> tuple[Task, ...]:
    """The pending tasks that waited for something before these tasks changed and wait for nothing now."""
    freed: dict[str, Task] = {}
    for task_id in changed:
        for task in [*_around(before, task_id), *_around(after, task_id)]:
            now = after.get(task.id)
            old = before.get(task.id)
            if not now or not old or now.status != PENDING or now.flaw:
                continue
            # Asked before and after, because a dependent that was free already is not news.
            if is_waiting(before, old) and not is_waiting(after, now):
                freed[now.id] = now
    return tuple(sorted(freed.values(), key=age))


def _around(view: View, task_id: str) -> list[Task]:
    task = view.get(task_id)
    return [task, *view.waiters(task)] if task else view.dependents(task_id)


def would_unblock(view: View, task: Task) -> tuple[Task, ...]:
    """What completing this task alone would unblock."""
    after = Overlay(view, [task.replace(status=COMPLETED)])
    return unblocked(view, after, [task.id])


class Waiting(Record):
    """Who must act before anything can move, found by following every open task's waits to their ends."""

    decisions: tuple[tuple[str, str], ...] = ()  # (person, task)
    holds: tuple[tuple[str, str], ...] = ()  # (task, reason)
    holders: tuple[tuple[str, str], ...] = ()  # (actor, task)
    reserved: tuple[tuple[str, str], ...] = ()  # (agent, task)
    missing: tuple[tuple[str, str], ...] = ()  # (id that does not exist, the task that names it)
    cancelled: tuple[tuple[str, str], ...] = ()  # (cancelled blocker, the task that names it)
    archived: tuple[tuple[str, str], ...] = ()  # (unfinished blocker in the archive, the task that names it)
    cycles: tuple[tuple[str, ...], ...] = ()  # closed paths
    broken: tuple[tuple[str, str], ...] = ()  # (task, flaw)
    foreign: tuple[tuple[str, str], ...] = ()  # (task, the format that is never written here)

    @property
    def code(self) -> str:
        """The refusal for which these waits are the reason; its exit status is that of an empty answer."""
        if self.broken:
            return "unreadable"
        gone = self.missing or self.cancelled or self.archived
        if self.holders or self.reserved or gone or self.cycles or self.foreign:
            return "nothing_actionable"
        return "waiting_on_person" if self.decisions or self.holds else "nothing_actionable"

    def lines(self) -> list[str]:
        """Who must act, a line each, at most MAX_LINES of them."""
        persons = dict.fromkeys(who for who, _ in self.decisions)
        lines = [f"waiting on {p}: {named([task for who, task in self.decisions if who == p], ', ')}" for p in persons]
        lines += [f"held until a person resumes it: {task} ({reason})" for task, reason in self.holds]
        lines += [f"in progress by {who}: {task}" for who, task in self.holders]
        lines += [f"reserved for {who}: {task}" for who, task in self.reserved]
        lines += [f"missing: {task} waits for {gone}, which does not exist" for gone, task in self.missing]
        lines += [f"cancelled: {task} waits for {gone}, which is cancelled" for gone, task in self.cancelled]
        astray = "which is not finished and lies in the archive: `taskwall doctor --fix` brings it back"
        lines += [f"archived: {task} waits for {away}, {astray}" for away, task in self.archived]
        lines += [f"cycle: {named(path, ' → ')}" for path in self.cycles]
        lines += [f"unreadable: {task}: {flaw}" for task, flaw in self.broken]
        lines += [f"in another program's hands: {task} ({form!r} format; import it)" for task, form in self.foreign]
        return lines[:MAX_LINES] + ([f"… {len(lines) - MAX_LINES} more"] if len(lines) > MAX_LINES else [])


MAX_LINES = 20
"""How many ends of chains an answer names."""


def named(ids: Sequence[str], between: str) -> str:
    """The first MAX_LINES of these in a line, and how many more there are."""
    more = f"{between}… {len(ids) - MAX_LINES} more" if len(ids) > MAX_LINES else ""
    return between.join(ids[:MAX_LINES]) + more


def who_must_act(view: View, tasks: Iterable[Task] | None = None) -> Waiting:
    """Follow the waits of these tasks (all open ones when not given) down to who must act.

    A holder that is a person counts under decisions: only people can move that chain.
    """
    ends: dict[str, dict[Any, None]] = {name: {} for name in Waiting.__fields__}
    asked = view.by_age() if tasks is None else sorted(tasks, key=age)
    queue = {task.id: task for task in asked if not task.closed}
    todo = list(queue.values())
    for task in todo:
        now = state(view, task)
        if now.name in STARTABLE and task.dialect in READ_ONLY_DIALECTS:
            ends["foreign"][task.id, task.dialect] = None
        for reason in now.reasons:
            after = view.get(reason.subject) if now.name == BLOCKED and reason.subject else None
            if reason.how == OPEN and after and after.id not in queue:
                queue[after.id] = after
                todo.append(after)
                if tasks is None:  # all that the board shows were there from the start
                    ends["archived"][after.id, task.id] = None
            elif reason.how != OPEN and reason.kind != "lapsed":
                room, entry = _end(view, task, now.name, reason)
                ends[room][entry] = None
    for ring in rings(queue, lambda i: waits_for(view, i)):
        path = cycle_through(min(ring, key=natural), lambda i: waits_for(view, i))
        ends["cycles"][tuple(path or ring)] = None
    return Waiting(**{name: tuple(entries) for name, entries in ends.items()})


def _end(view: View, task: Task, name: str, reason: Reason) -> tuple[str, tuple[str, str]]:
    """In which list of `Waiting` a chain ends, and its entry there."""
    who = reason.subject or "somebody"
    unreadable = task if name == BROKEN else view.get(who) if reason.how == UNREADABLE else None
    if unreadable:
        return "broken", (unreadable.id, unreadable.flaw or "")
    if reason.how in (MISSING, CANCELLED):
        return reason.how, (who, task.id)
    if name == HELD:
        return "holds", (task.id, reason.text)
    if view.settings.is_person(who):
        return "decisions", (who, task.id)
    return ("holders" if name == IN_PROGRESS else "reserved"), (who, task.id)
