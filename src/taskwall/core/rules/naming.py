"""Which task is meant."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..model import Task
    from ..view import View


def locate(view: View, name: str) -> tuple[Task, int | None]:
    """The task that is meant, and the epoch of a token `ID#epoch`. Raises UnknownTask, AmbiguousId."""
    if task := view.exact(name):
        return task, None
    head, mark, tail = name.strip().rpartition("#")
    if mark and head and tail.isdecimal() and len(tail) <= MAX_DIGITS:
        return view.find(head), int(tail)
    return view.find(name), None


MAX_DIGITS = 15
"""How many digits the epoch of a token may have."""
