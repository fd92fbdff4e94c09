"""What verbs answer: plain records, made where the board is at hand and rendered where it is not.

Here are those of the looks that agents take all day. `outcomes`: what was done. `overviews`: looks at all that waits.
"""

from __future__ import annotations

from .core.errors import EXITS
from .core.model import IDLE
from .core.record import Record
from .core.state import Waiting, reservation, state, waits_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from .core.model import Task
    from .core.state import Reason
    from .core.view import View


class Row(Record):
    """A task with its derived state, enough for one line about it."""

    task: Task
    state: str
    reasons: tuple[Reason, ...] = ()
    waits: tuple[str, ...] = ()  # the blockers and children that are not completed
    reserved: str | None = None
    idle: bool = False  # claimed by hand more than a day ago

    @classmethod
    def of(cls, view: View, task: Task) -> Row:
        """The row of a task in this view."""
        now = state(view, task)
        claim = view.standing(task)
        waits = tuple(waits_in(view, task, now))
        kept = reservation(view, task) if not task.closed else None
        return cls(task, now.name, now.reasons, waits, kept, claim is not None and claim.lease == IDLE)


def rows(view: View, tasks: Iterable[Task]) -> tuple[Row, ...]:
    """One row a task."""
    return tuple(Row.of(view, task) for task in tasks)


class Answer(Record):
    """What every verb's answer has: the exit status of the command that asked.

    wide: its lines grow with what they tell, and are cut where they do not fit a terminal.
    """

    wide = False

    @property
    def exit(self) -> int:
        return 0


class Report(Answer):
    """An answer of a room of its own, which says itself how it reads.

    long: it may be, and gives up what does not fit; others tell all that was found, in as few lines as that takes.
    """

    long = False

    def lines(self) -> list[str]:
        """It as text; what is not safe to print is escaped by `render`."""
        raise NotImplementedError


class Listing(Answer):
    """Tasks by age. more: how many follow after the last one; finished: how many are left out for being finished."""

    rows: tuple[Row, ...]
    more: int = 0
    finished: int = 0
    total: int = 0


class Inbox(Listing):
    """What waits for a person. behind: per row, the open tasks that wait for it."""

    behind: tuple[tuple[str, ...], ...] = ()


class Shown(Answer):
    """Everything about one task."""

    row: Row
    blockers: tuple[Row, ...] = ()
    missing: tuple[str, ...] = ()
    children: tuple[Row, ...] = ()
    dependents: tuple[Row, ...] = ()
    would_unblock: tuple[Row, ...] = ()
    claim: dict[str, Any] | None = None


PAGE = 50
"""How many lines a list has at most."""
ALL = "--json tells all"
"""Said where text leaves something out."""
MOST_COUNTED = 9
"""How many more startable tasks an offer counts: what it costs does not depend on how many there are."""


class Offer(Answer):
    """What may be started next, best first; when nothing may, who must act. more: at most MOST_COUNTED."""

    rows: tuple[Row, ...]
    more: int = 0
    open: int = 0
    total: int = 0
    waiting: Waiting = Waiting()

    @property
    def exit(self) -> int:
        return 0 if self.rows or not self.open else EXITS[self.waiting.code]
