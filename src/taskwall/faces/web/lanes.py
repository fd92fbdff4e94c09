"""Who worked on what and when, from the board's events: a lane for each session of each actor."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from ...core.model import IN_PROGRESS
from ...core.state import is_lapsed
from ...core.view import View

Span = dict[str, Any]

ENDS = {"complete": "done", "answer": "done", "release": "released", "hold": "held", "cancel": "cancelled"}
"""The events that end a claim, and how it then ended; the next claim of the task ends it as well."""
MAX_SPANS = 500


def lanes(events: Iterable[dict[str, Any]], view: View) -> list[dict[str, Any]]:
    """`{actor, session, spans: [{task, subject, from, to, end}]}`, the lane that was active last first.

    end: done, released, held, cancelled, stolen, expired (its lease ran out), open, or lost (the file says otherwise).
    `to` is absent while no event has ended the claim. events: the latest, from whenever on.
    """
    spans: list[Span] = []
    current: dict[str, Span] = {}
    for event in events:
        task_id, verb = str(event.get("task")), event.get("verb")
        before = current.get(task_id)
        if before and (verb == "claim" or verb in ENDS):
            del current[task_id]
            lapsed = verb == "claim" and not event.get("reason")
            before |= {"to": event.get("at"), "end": "expired" if lapsed else ENDS.get(str(verb), "stolen")}
        if verb == "claim":
            current[task_id] = {"by": (event.get("by"), event.get("session")), "task": task_id, "from": event.get("at")}
            spans.append(current[task_id])
    for task_id, span in current.items():
        span["end"] = _standing(view, task_id)
    return _grouped(view, [*_older(view, current), *spans][-MAX_SPANS:])


def _older(view: View, known: Collection[str]) -> Iterator[Span]:
    """The claims that stand and were made before the first of the events."""
    for task in view.in_progress():
        claim = view.standing(task)
        if claim and task.id not in known:
            by = (claim.actor, claim.session)
            yield {"by": by, "task": task.id, "from": claim.since, "end": _standing(view, task.id)}


def _standing(view: View, task_id: str) -> str:
    task = view.get(task_id)
    if task is None or task.status != IN_PROGRESS:
        return "lost"
    return "expired" if is_lapsed(view, task) else "open"


def _grouped(view: View, spans: Iterable[Span]) -> list[dict[str, Any]]:
    found: dict[Any, dict[str, Any]] = {}
    for span in spans:
        actor, session = by = span.pop("by")
        lane = found.pop(by, None) or {"actor": actor, "session": session, "spans": []}
        task = view.get(span["task"])
        lane["spans"].append(span | {"subject": task.subject if task else ""})
        found[by] = lane
    return list(found.values())[::-1]
