"""The board as the page keeps it: a small row a task, from what the core says of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from ...core.model import CANCELLED, LIVE, PENDING, Actor, Claim, Task
from ...core.record import Record
from ...core.state import BROKEN, HELD, STALE, WAITING, is_for, reservation
from ...core.view import View
from ...results import Row

EXPLAINED = (HELD, STALE, BROKEN)
"""States whose first reason a row tells."""
JITTER = 2_000
"""Milliseconds by which the end of a lease may seem to move without having moved."""
LONGEST_WAIT = 60.0
"""Seconds after which the board is looked at even when nothing has changed: a claim by hand becomes idle."""
TRY_AGAIN = 2.0
"""Seconds after which a board that could not be read is looked at again."""


class Look(Record):
    """The rows of the board as it was once, by id, and the tasks that they were made of."""

    rows: dict[str, dict[str, Any]] = {}
    tasks: dict[str, Task] = {}


def look(view: View, actor: Actor, now: int, before: Look) -> Look:
    """A row for every task. now: milliseconds since 1970. before: the last look."""
    tasks = {task.id: task for task in view}
    # Nothing but a change of its own file changes a finished task, so that history costs nothing.
    kept = {i: before.rows[i] for i, task in tasks.items() if task.closed and before.tasks.get(i) is task}
    rows = {i: Row.of(view, task) for i, task in tasks.items() if i not in kept}
    # What completing a task would unblock: those that wait for it alone.
    frees = Counter(r.waits[0] for r in rows.values() if len(r.waits) == 1 and r.task.status == PENDING)
    made = {i: _row(view, r, actor, now, before.rows.get(i, {})) | _set(frees=frees[i]) for i, r in rows.items()}
    return Look(kept | made, tasks)


def next_lapse(seen: Look, now: int, longest: float) -> float:
    """Seconds until a lease may run out, which changes a state without changing a file; at most the longest."""
    claims = (row["claim"] for row in seen.rows.values() if "claim" in row)
    ends = (float(claim["until"] - now + 100) / 1000 for claim in claims if claim["lease"] == LIVE)
    return max(0.1, min(longest, min(ends, default=longest)))


def _row(view: View, row: Row, actor: Actor, now: int, before: Mapping[str, Any]) -> dict[str, Any]:
    task = row.task
    children = (child.id for child in view.children(task.id) if child.status != CANCELLED)
    claim = view.standing(task)
    return {"id": task.id, "subject": task.subject, "state": row.state, "priority": task.priority} | _set(
        owner=task.owner,
        reserved=row.reserved,
        labels=task.labels,
        parent=task.parent,
        blockers=tuple(dict.fromkeys([*view.blockers(task), *children])),
        waits=row.waits,
        rank=view.rank(task.id),
        attempts=task.attempts,
        why={"kind": row.reasons[0].kind, "text": row.reasons[0].text} if row.state in EXPLAINED else None,
        question=task.question if row.state == WAITING else None,
        options=task.options if row.state == WAITING else None,
        you=_waits_for(view, row, actor),
        createdAt=task.created_at,
        startedAt=task.started_at,
        completedAt=task.completed_at,
        rev=task.rev,
        claim=_claim(claim, now, before.get("claim", {})) if claim else None,
    )


def _set(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value}


def _waits_for(view: View, row: Row, actor: Actor) -> bool:
    """Whether this very actor is the one who must act: to decide, to resume, to mend."""
    if row.state == WAITING:
        return is_for(reservation(view, row.task), actor, view.settings)
    return row.state in (HELD, BROKEN) and view.settings.is_person(actor.name)


def _claim(claim: Claim, now: int, before: Mapping[str, Any]) -> dict[str, Any]:
    """until: when the lease lapses, in milliseconds since 1970, which stays the same while nobody renews it."""
    told: dict[str, Any] = {"session": claim.session, "since": claim.since, "lease": claim.lease, "epoch": claim.epoch}
    if claim.lease == LIVE and claim.left is not None:
        until = now + round(60_000 * claim.left)
        same = abs(before.get("until", 0) - until) < JITTER
        told |= {"ttl": claim.ttl, "until": before["until"] if same else until}
    return told
