"""What came of a claim, and of a worker's whole time."""

from __future__ import annotations

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
    """What a worker did. offer: what `next` answered at its end."""

    outcomes: tuple[Outcome, ...]
    seconds: float
    offer: Offer
    interrupted: bool = False

    @property
    def exit(self) -> int:
        return INTERRUPTED if self.interrupted else self.offer.exit
