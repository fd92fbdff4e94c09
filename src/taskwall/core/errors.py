"""Every refusal: a stable code, what was refused, who or what is in the way, and the next safe step.

Refused
├── Invalid      an argument is not acceptable
├── UnknownTask  no task has this id           ├── AmbiguousId  several tasks match
├── Locked       another process has the lock  ├── Unwritable   the board cannot be written
├── Unreadable   a file is no readable task    ├── ReadOnly     we never write this kind of file
└── what rules refuse: see `refusals`, which who only looks need not load
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

EXITS = {
    "invalid": 2,
    "unknown_task": 3,
    "ambiguous_id": 3,
    "blocked": 4,
    "held": 4,
    "reserved": 4,
    "busy": 4,
    "already_resolved": 4,
    "not_claimed": 4,
    "cycle": 4,
    "open_dependents": 4,
    "products_missing": 4,
    "check_failed": 4,
    "untrusted": 4,
    "read_only": 4,
    "locked": 4,
    "unwritable": 4,
    "already_claimed": 5,
    "not_owner": 5,
    "superseded": 5,
    "nothing_actionable": 6,
    "waiting_on_person": 7,
    "unreadable": 8,
}
"""The one table from code to exit status."""


class Refused(Exception):
    """A request that was not carried out; nothing was written.

    message: what was refused and why, for people and models, on one line; lines: the rest of it, a line each. task: the
    id it is about. by: ids or actors in the way. next: the next safe step, `way_out` when not given; names a command,
    never another task to work on, never anything that destroys data.
    """

    code = "invalid"
    way_out = "correct that and repeat the command"

    def __init__(
        self,
        message: str,
        *,
        lines: Iterable[str] = (),
        task: str | None = None,
        by: tuple[str, ...] = (),
        next: str = "",
    ) -> None:
        # A line break in what is quoted must not begin a line that reads like one of ours.
        self.message = "\n".join(line.replace("\n", "\\n") for line in (message, *lines))
        super().__init__(self.message)
        self.task, self.by, self.next = task, by, next or self.way_out

    @property
    def exit(self) -> int:
        """The exit status of a command refused with this code."""
        return EXITS[self.code]


class Invalid(Refused):
    """An argument is not acceptable as it is."""

    code = "invalid"


class UnknownTask(Refused):
    """No task has this id."""

    code = "unknown_task"


class AmbiguousId(Refused):
    """Several tasks match what was given for an id."""

    code = "ambiguous_id"


class ReadOnly(Refused):
    """A file in a dialect that is read but never written."""

    code = "read_only"


class Locked(Refused):
    """Another process kept the board's lock for too long."""

    code = "locked"


class Unwritable(Refused):
    """The board's folder cannot be written by this process."""

    code = "unwritable"


class Unreadable(Refused):
    """A file cannot be read as a task, and nothing will write to it."""

    code = "unreadable"
