"""The graph and the claims: what can never start, what nobody can finish, what was finished too early."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ...core.model import CANCELLED, COMPLETED, IDLE, IN_PROGRESS, Task
from ...core.state import STALE, state, who_must_act
from .findings import Found, found
from .sight import Sight

TOLD_ELSEWHERE = ("in progress without an owner", "waits for itself", "taken back", "`blocks`")
"""Oddities of a file that have codes of their own."""


def cycles(sight: Sight) -> Iterator[Found]:
    for path in who_must_act(sight.view).cycles:
        first, after = path[0], path[1]
        way = f"drop the edge that is wrong: `taskwall unblock {first} {after}`, or the next, or a parent by `edit`"
        yield found("cycle", " → ".join(path), way, task=first)


def edges(sight: Sight) -> Iterator[Found]:
    """Blockers, parents and dependents that are not there."""
    view = sight.view
    for task in _readable(sight):
        file = sight.file_of(task)
        for blocker_id in view.blockers(task) if not task.closed else ():
            blocker = view.get(blocker_id)
            if blocker is None:
                told = f"{task.id} waits for {blocker_id}, which does not exist"
                way = f"`taskwall unblock {task.id} {quote(blocker_id)}`, or bring its file back"
                yield found("missing_blocker", told, way, file=file, task=task.id)
            elif blocker.status == CANCELLED and not blocker.flaw:
                told = f"{task.id} waits for {blocker_id}, which is cancelled"
                way = f"`taskwall unblock {task.id} {blocker_id}`, `taskwall reopen {blocker_id}` or `cancel {task.id}`"
                yield found("cancelled_blocker", told, way, file=file, task=task.id)
            elif blocker_id not in task.blocked_by:
                told = f"{task.id} waits for {blocker_id}, which only the `blocks` of that file says"
                yield found("one_sided_edge", told, f"add it to {file} too, or leave it", file=file, task=task.id)
        if task.parent and task.parent not in view:
            told = f"{task.id} is a child of {task.parent}, which does not exist"
            yield found("missing_parent", told, f"`taskwall edit {task.id} --parent ID`", file=file, task=task.id)
        for gone in (i for i in task.blocks if i not in view):
            told = f"{task.id} says that {gone} waits for it, which does not exist"
            yield found("missing_dependent", told, f"take {gone} out of `blocks` in {file}", file=file, task=task.id)


def holders(sight: Sight) -> Iterator[Found]:
    """Claims that nobody stands behind, or that git took back."""
    view = sight.view
    for task in (each for each in _readable(sight) if each.status == IN_PROGRESS):
        file, claim = sight.file_of(task), view.standing(task)
        steal = f"`taskwall claim {task.id} --steal --reason TEXT`"
        if task.owner is None:
            yield found("no_owner", f"{task.id} is in progress, held by nobody", steal, file=file, task=task.id)
        if state(view, task).name == STALE:
            way = f"`taskwall claim {task.id}`, or leave it: the next claim takes it"
            yield found("stale_claim", f"{task.id} is held by {task.owner}", way, file=file, task=task.id)
        elif claim and claim.lease == IDLE:
            way = f"{task.owner} finishes or releases it; otherwise {steal}"
            told = f"{task.id} is held by {task.owner} since {claim.since}"
            yield found("idle_claim", told, way, file=file, task=task.id)
        if view.is_displaced(task):
            told = f"{task.id} is held by {task.owner}, claimed on another machine"
            yield found("displaced_claim", told, "nothing to do: the holder here is refused", file=file, task=task.id)


def order(sight: Sight) -> Iterator[Found]:
    """Work that is under way or over although it waits for open work."""
    view = sight.view
    for task in _readable(sight):
        if task.status not in (IN_PROGRESS, COMPLETED):
            continue
        blockers = [b for i in view.blockers(task) if (b := view.get(i)) and not b.closed and not b.flaw]
        open_waits = [each.id for each in (*blockers, *(c for c in view.children(task.id) if not c.closed))]
        if open_waits:
            code, way = "started_early", "finish those first"
            if task.status == COMPLETED:
                code, way = "finished_early", f"`taskwall reopen {task.id}`, or finish those"
            told = f"{task.id} is {task.status}, and waits for {', '.join(open_waits)}"
            yield found(code, told, way, file=sight.file_of(task), task=task.id)


def oddities(sight: Sight) -> Iterator[Found]:
    """What the reader noticed and left alone."""
    for task in _readable(sight):
        file = sight.file_of(task)
        for notice in task.notices:
            if "taken back" in notice:
                way = "nothing to do, or bring the newer file back with git"
                yield found("reverted", f"{task.id}: {notice}", way, file=file, task=task.id)
            elif not any(part in notice for part in TOLD_ELSEWHERE):
                yield found("oddity", f"{task.id}: {notice}", f"correct {file} by hand", file=file, task=task.id)


def _readable(sight: Sight) -> Iterator[Task]:
    return (task for task in sight.view if not task.flaw)


CHECKS = (cycles, edges, holders, order, oddities)
