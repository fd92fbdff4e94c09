"""Which tasks a list is to hold."""

from __future__ import annotations

from heapq import merge

from .core.errors import Invalid
from .core.model import CLOSED, MAX_ID, PENDING
from .core.state import STATES, state
from .core.view import age

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .core.model import Task
    from .core.view import View


ARCHIVED = "archived"


def require_states(states: Sequence[str]) -> None:
    """Raise Invalid when one of these is no state."""
    unknown = [name for name in states if name not in (*STATES, PENDING, ARCHIVED)]
    if unknown:
        way = f"states are: {', '.join(STATES)}; pending is what nobody has begun, archived what is put away"
        raise Invalid(f"no state {unknown[0]!r}", next=way)


def chosen(view: View, owner: str, label: str, glob: str, text: str, states: Sequence[str]) -> Iterator[Task]:
    """The tasks that match all that is given, by age. Raises Invalid."""
    archived = [*view.archived_ids()] if ARCHIVED in states else []
    view.expect(archived)
    put_away = sorted(filter(None, map(view.get, archived)), key=age)
    away = {task.id for task in put_away}
    for task in merge(view.by_age(closed=not states or bool({*states} & {*CLOSED})), put_away, key=age):
        if (
            (not owner or task.owner == owner)
            and (not label or label in task.labels)
            and (not glob or _matches(task.id, glob))
            and (not text or text.casefold() in f"{task.subject}\n{task.description}".casefold())
            and (not states or task.id in away or _is_in(view, task, states))
        ):
            yield task


def _is_in(view: View, task: Task, states: Sequence[str]) -> bool:
    return state(view, task).name in states or (PENDING in states and task.status == PENDING)


def _matches(task_id: str, pattern: str) -> bool:
    if len(pattern) > MAX_ID:  # no id is longer, and matching may take time that grows faster than the pattern
        raise Invalid(f"a pattern of {len(pattern)} characters matches no id", next=f"give at most {MAX_ID}")
    from fnmatch import fnmatchcase  # imported late: seldom asked for

    return fnmatchcase(task_id, pattern)
