"""What came of a claim, and of a worker's whole time."""

from __future__ import annotations

from collections.abc import Collection

from ..core.errors import EXITS
from ..core.record import Record
from ..results import Answer, Offer

FAILED, RELEASED, STOPPED, SUPERSEDED, GONE = "failed", "released", "stopped", "superseded", "gone"
INTERRUPTED = 130


class Outcome(Record):
    """What came of a claim, by the board.

    kind: completed or cancelled; failed, or stopped with the worker, and given back by us; released by the agent;
    superseded; gone with the task's file. told: its result, or why it came to none. log: the agent's, as seen from the
    root of the board. work: the branch, its commits, and where more of the work lies.
    """

    kind: str
    task: str
    subject: str
    seconds: float
    log: str
    told: str = ""
    work: str = ""


class Worked(Answer):
    """What a worker did. offer: what `next` answered at its end. untrusted: left, as their checks may not run."""

    outcomes: tuple[Outcome, ...]
    seconds: float
    offer: Offer
    untrusted: tuple[str, ...] = ()
    interrupted: bool = False

    @property
    def exit(self) -> int:
        if self.interrupted:
            return INTERRUPTED
        return EXITS["waiting_on_person"] if self.untrusted else self.offer.exit


def unread(untrusted: Collection[str]) -> list[str]:
    """Who must act for tasks whose checks may not run here."""
    names = ", ".join(sorted(untrusted))
    return [f"waiting on user to read their checks (`taskwall trust`): {names}"] if names else []
