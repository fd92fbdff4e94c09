"""Cancelling a task, and taking the end of one back."""

from __future__ import annotations

from .. import errors, refusals
from ..model import CANCELLED, COMPLETED, IN_PROGRESS, PENDING
from ..state import find_cycle_over, is_lapsed, named, unblocked, waits_for
from ..view import Overlay
from .change import (
    Change,
    ended,
    event,
    holder,
    is_mine,
    require_acyclic,
    require_left_to_persons,
    require_open,
    require_writable,
    written,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ..model import Actor, Task
    from ..view import View


def cancel(
    view: View,
    actor: Actor,
    task: Task,
    epoch: int | None,
    now: str,
    *,
    cascade: bool = False,
    drop_edges: bool = False,
) -> Change:
    """Open → cancelled. Open dependents: cancelled too (`cascade`), or freed from waiting (`drop_edges`).

    Raises OpenDependents, AlreadyResolved, AlreadyClaimed, Reserved, Held.
    """
    require_writable(task)
    if task.status == CANCELLED:
        return Change(task, already=True)
    if cascade and drop_edges:
        raise errors.Invalid("--cascade and --drop-edges exclude each other", task=task.id, next="choose one")
    _require_cancellable(view, actor, task)
    dependents = _open_dependents(view, task)
    if not (cascade or drop_edges):
        _require_none(task, dependents)
    doomed = [task, *(_open_dependents(view, task, transitive=True) if cascade else [])]
    for each in doomed[1:]:
        _require_cancellable(view, actor, each)
    freed = dependents if drop_edges else []
    for each in freed:
        require_writable(each)
    end = {"status": CANCELLED, "completed_at": now}
    put = tuple(written(t, now, **end, blocks=() if drop_edges else t.blocks) for t in doomed)
    put += tuple(written(t, now, blocked_by=tuple(i for i in t.blocked_by if i != task.id)) for t in freed)
    return Change(
        put[0],
        put=put,
        claims=tuple(entry for t in doomed for entry in ended(view, t)),
        events=tuple(event(actor, now, "cancel", t) for t in doomed)
        + tuple(event(actor, now, "update", t, fields=["blocked_by"]) for t in freed),
        unblocked=unblocked(view, Overlay(view, put), [t.id for t in put]),
        also=put[1 : len(doomed)],
    )


def _require_none(task: Task, dependents: Sequence[Task]) -> None:
    if ids := [dependent.id for dependent in dependents]:
        way = "choose: --cascade cancels them too, --drop-edges lets them go on without it"
        told = f"open tasks wait for {task.id}: {named(ids, ', ')}"
        raise refusals.OpenDependents(told, task=task.id, by=tuple(ids), next=way)


def _open_dependents(view: View, task: Task, *, transitive: bool = False) -> list[Task]:
    found = {task.id: task}
    todo = [task]
    for each in todo:
        fresh = [t for t in view.dependents(each.id) if not (t.closed or t.flaw or t.id in found)]
        found |= {t.id: t for t in fresh}
        todo += fresh if transitive else []
    return list(found.values())[1:]


def _require_cancellable(view: View, actor: Actor, task: Task) -> None:
    require_open(task)
    if view.settings.is_person(actor.name):
        return
    require_left_to_persons(view, actor, task, "cancels it")
    if task.hold is not None:
        way = f"ask a person to `taskwall cancel {task.id}`, or to `taskwall resume` it"
        raise refusals.Held(f"{task.id} is held ({task.hold}); only a person cancels it", task=task.id, next=way)
    if task.status == IN_PROGRESS and not is_lapsed(view, task) and not is_mine(view, task, actor, None):
        told = f"{task.id} is held by {holder(view, task)}; only a person cancels work in somebody's hands"
        way = "wait for its holder, or ask a person"
        raise refusals.AlreadyClaimed(told, task=task.id, by=(task.owner or "",), next=way)


def archivable(view: View, before: str | None) -> list[Task]:
    """The finished tasks, oldest first. before: only those that are known to have been finished before this time."""
    finished = [task for task in view.by_age(closed=True) if task.closed]
    if before is None:
        return finished
    return [task for task in finished if (ended := task.completed_at or task.updated_at) and ended < before]


def reopen(view: View, actor: Actor, task: Task, epoch: int | None, now: str) -> Change:
    """Finished → pending, reserved as before its claim; names who relied on it. Raises Cycle, Reserved."""
    require_writable(task)
    if not task.closed:
        return Change(task, already=True)
    if task.status == COMPLETED:
        require_left_to_persons(view, actor, task, "takes the answer back")
    undone: dict[str, Any] = {"status": PENDING, "completed_at": None, "answer": None, "result": None, "evidence": {}}
    again = written(task, now, owner=_reserved_before(view, task), **undone)
    after = Overlay(view, [again])
    require_acyclic(find_cycle_over(after, again.id, waits_for(after, again.id)))
    suspects = [t for t in _reliant(view, again) if t.status in (IN_PROGRESS, COMPLETED)]
    return Change(again, put=(again,), events=(event(actor, now, "reopen", again),), also=tuple(suspects))


def _reserved_before(view: View, task: Task) -> str | None:
    """For whom a finished task was before somebody took it."""
    entry = view.current(task)
    if entry and entry.actor == task.owner:
        return entry.reserved
    # Cancelled without a claim, its owner is still the one it is for; an agent that completed it is not.
    return task.owner if task.status == CANCELLED or view.settings.is_person(task.owner) else None


def _reliant(view: View, task: Task) -> list[Task]:
    """The tasks in progress or finished that rested on this one, directly or through finished ones."""
    found: dict[str, Task] = {}
    todo = [task]
    for each in todo:
        for dependent in view.waiters(each):
            if dependent.status in (IN_PROGRESS, COMPLETED) and dependent.id not in found and not dependent.flaw:
                found[dependent.id] = dependent
                todo.append(dependent)
    return list(found.values())
