"""Answers and refusals as JSON, the same for every face. Never localised."""

from __future__ import annotations

from .core.jsontext import dumps as encoded
from .core.model import IN_PROGRESS, stored
from .core.record import Record
from .results import Row
from .wording import replaced

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .core.errors import Refused
    from .outcomes import Changed, Created, Released
    from .overviews import Graph, Why
    from .results import Answer, Inbox, Listing, Offer, Shown


def envelope(answer: Answer) -> dict[str, Any]:
    """`{"v": 1, "ok": true, "data": …}`; one task is `data.task`, lists are `data.tasks` with `data.more`."""
    return {"v": 1, "ok": True, "data": _DATA.get(type(answer).__name__, _plain)(answer)}


def refusal_envelope(error: Refused) -> dict[str, Any]:
    """`{"v": 1, "ok": false, "error": {code, message, task, by, next}}`."""
    told = {"code": error.code, "message": error.message, "task": error.task, "by": list(error.by), "next": error.next}
    return {"v": 1, "ok": False, "error": told}


def dumps(value: Any) -> str:
    """JSON on one line, Unicode unescaped but for what is not safe to print."""
    return replaced(encoded(value), lambda character: f"\\u{ord(character):04x}")


def _task(row: Row) -> dict[str, Any]:
    task = row.task
    found = stored(task) | {"state": row.state}
    if task.flaw:
        found["flaw"] = task.flaw
    if row.waits:
        found["waits"] = list(row.waits)
    if row.reserved and not task.closed:
        found["reserved"] = row.reserved
    if task.status == IN_PROGRESS:
        found["token"] = task.token
    return found


def _brief(row: Row) -> dict[str, Any]:
    task = row.task
    brief: dict[str, Any] = {"id": task.id, "subject": task.subject, "status": task.status, "state": row.state}
    return brief | ({"reserved": row.reserved} if row.reserved else {})


def _plain(value: Any) -> Any:
    """Records as objects, rows as tasks."""
    if isinstance(value, Row):
        return _task(value)
    if isinstance(value, Record):
        return {name: _plain(getattr(value, name)) for name in value.__fields__}
    return [_plain(item) for item in value] if isinstance(value, (tuple, list)) else value


def _changed_data(answer: Changed) -> dict[str, Any]:
    data: dict[str, Any] = {"task": _task(answer.row), "already": answer.already}
    data["unblocked"] = [_brief(row) for row in answer.unblocked]
    if answer.also:
        data["also"] = [_brief(row) for row in answer.also]
    return data | {"notices": list(answer.notices)}


def _created_data(answer: Created) -> dict[str, Any]:
    tasks = [_task(row) for row in answer.rows]
    one = {"task": tasks[0]} if len(tasks) == 1 else {}
    return one | {"tasks": tasks, "more": 0, "already": list(answer.already), "notices": list(answer.notices)}


def _listing_data(answer: Listing) -> dict[str, Any]:
    tasks = [_task(row) for row in answer.rows]
    return {"tasks": tasks, "more": answer.more, "finished": answer.finished, "total": answer.total}


def _inbox_data(answer: Inbox) -> dict[str, Any]:
    data = _listing_data(answer)
    for task, behind in zip(data["tasks"], answer.behind, strict=True):
        task["dependents"] = list(behind)
    return data


def _shown_data(answer: Shown) -> dict[str, Any]:
    task = _task(answer.row) | ({"extra": answer.row.task.extra} if answer.row.task.extra else {})
    task["reasons"] = [_plain(reason) for reason in answer.row.reasons]
    task["notices"] = list(answer.row.task.notices)
    related = {name: [_brief(row) for row in getattr(answer, name)] for name in ("blockers", "children", "dependents")}
    unblocks = [_brief(row) for row in answer.would_unblock]
    return {"task": task, **related, "missing": list(answer.missing), "would_unblock": unblocks, "claim": answer.claim}


def _offer_data(answer: Offer) -> dict[str, Any]:
    tasks = [_task(row) for row in answer.rows]
    return {"tasks": tasks, "more": answer.more, "open": answer.open, "waiting": _plain(answer.waiting)}


def _why_data(answer: Why) -> dict[str, Any]:
    chain = [_brief(step.row) | {"depth": step.depth, "waits": list(step.row.waits)} for step in answer.steps]
    first = answer.steps[0].row
    task = _task(first) | {"reasons": [_plain(reason) for reason in first.reasons]}
    return {"task": task, "chain": chain, "more": answer.more, "waiting": _plain(answer.waiting)}


def _graph_data(answer: Graph) -> dict[str, Any]:
    tasks = [_brief(step.row) | {"depth": step.depth} for step in answer.steps]
    edges = [list(edge) for edge in answer.edges]
    return {"tasks": tasks, "more": answer.more, "edges": edges, "finished": answer.finished}


def _released_data(answer: Released) -> dict[str, Any]:
    return {"session": answer.session, "tasks": [_task(row) for row in answer.rows], "more": 0}


_DATA: dict[str, Callable[[Any], Any]] = {
    "Changed": _changed_data,
    "Created": _created_data,
    "Released": _released_data,
    "Inbox": _inbox_data,
    "Listing": _listing_data,
    "Shown": _shown_data,
    "Offer": _offer_data,
    "Why": _why_data,
    "Graph": _graph_data,
}
"""By the name of an answer's type: who shows one need not load the others."""
