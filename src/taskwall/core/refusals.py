"""What rules refuse. All are kinds of `errors.Refused`, whose table gives each its exit status.

Refused
├── Blocked            a blocker is not completed   ├── Held           a person must resume it
├── Reserved           it is for somebody else      ├── Busy           the session holds enough
├── AlreadyResolved    it is finished               ├── NotClaimed     nobody holds it
├── Cycle              tasks would wait in a ring   ├── OpenDependents others wait for it
├── ProductsMissing    promised files are absent    ├── CheckFailed    a check did not exit 0
├── Untrusted          its checks may not run here  ├── AlreadyClaimed somebody holds it
├── NotOwner           somebody else holds it
├── NothingActionable  nothing may be started       ├── WaitingOnPerson  only people can change that
└── Superseded         your claim was taken over
"""

from __future__ import annotations

from .errors import Refused


class Blocked(Refused):
    """A blocker or child is not completed yet."""

    code = "blocked"


class Held(Refused):
    """A hold is on the task, or its attempts are used up; a person lifts it."""

    code = "held"


class Reserved(Refused):
    """The task is for one owner alone, and that is somebody else."""

    code = "reserved"


class Busy(Refused):
    """The session already holds as many tasks as the board allows."""

    code = "busy"


class AlreadyResolved(Refused):
    """The task is completed or cancelled."""

    code = "already_resolved"


class NotClaimed(Refused):
    """Nobody holds the task, so nothing can be done as its holder."""

    code = "not_claimed"


class Cycle(Refused):
    """Tasks would wait for each other in a ring."""

    code = "cycle"


class OpenDependents(Refused):
    """Open tasks wait for this one."""

    code = "open_dependents"


class ProductsMissing(Refused):
    """A file that the task promised does not exist."""

    code = "products_missing"


class CheckFailed(Refused):
    """A check of the task did not exit with 0."""

    code = "check_failed"


class Untrusted(Refused):
    """A command from a task file may not run here."""

    code = "untrusted"


class AlreadyClaimed(Refused):
    """Somebody holds the task."""

    code = "already_claimed"


class NotOwner(Refused):
    """The task is held, and not by this actor and session."""

    code = "not_owner"


class Superseded(Refused):
    """The claim was taken over by somebody else since."""

    code = "superseded"


class NothingActionable(Refused):
    """No task may be started by this actor now."""

    code = "nothing_actionable"


class WaitingOnPerson(Refused):
    """No task may be started, and only people can change that."""

    code = "waiting_on_person"
