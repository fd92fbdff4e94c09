"""Which tasks a list is to hold."""

from __future__ import annotations

from .core.errors import Invalid
from .core.model import CLOSED, MAX_ID, PENDING
from .core.state import STATES, state
from .core.view import age

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from .core.model import Task
    from .core.view import View


ARCHIVED = "archived"


def require_states(states: Sequence[str]) -> None:
    """Raise Invalid when one of these is no state."""
    unknown = [name for name in states if name not in (*STATES, PENDING, ARCHIVED)]
    if unknown:
        raise Invalid(
            f"no state {unknown[0]!r}",
            next=f"states are: {', '.join(STATES)}; pending is what nobody has begun, archived what is put away",
        )


def among(view: View, states: Sequence[str]) -> Iterator[Task]:
    """The tasks among which those in these states are, by age."""
    yield from view.by_age(closed=not states or bool({*states} & {*CLOSED}))
    if ARCHIVED in states:
        yield from sorted(filter(None, map(view.get, view.archived_ids())), key=age)


def wanted_by(
    view: View, owner: str, label: str, glob: str, text: str, states: Sequence[str]
) -> Callable[[Task], bool]:
    """What tells whether a task matches all that is given. Raises Invalid."""
    archived = {*view.archived_ids()} if ARCHIVED in states else ()

    def is_in(task: Task) -> bool:
        known = state(view, task).name in states or (PENDING in states and task.status == PENDING)
        return known or task.id in archived

    return lambda task: (
        (not owner or task.owner == owner)
        and (not label or label in task.labels)
        and (not glob or _matches(task.id, glob))
        and (not text or text.casefold() in f"{task.subject}\n{task.description}".casefold())
        and (not states or is_in(task))
    )


def _matches(task_id: str, pattern: str) -> bool:
    if len(pattern) > MAX_ID:  # no id is longer, and matching may take time that grows faster than the pattern
        raise Invalid(f"a pattern of {len(pattern)} characters matches no id", next=f"give at most {MAX_ID}")
    from fnmatch import fnmatchcase  # imported late: seldom asked for

    return fnmatchcase(task_id, pattern)
