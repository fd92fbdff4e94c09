"""How a run ends."""

from __future__ import annotations

FINISHED, FAILED, SUPERSEDED, NO_MODEL, SPENT, INTERRUPTED = 0, 1, 5, 9, 10, 130
"""As exit statuses: the model is done; it went nowhere; its one task was taken over; no model answered; a budget is
used up; somebody stopped it."""


class Ended(Exception):
    """The run is over: its exit status and why, in words."""

    def __init__(self, exit: int, why: str) -> None:
        super().__init__(why)
        self.exit, self.why = exit, why
