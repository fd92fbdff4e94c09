"""How long a worker waits after failures: at first half a second, then twice as long each time."""

from __future__ import annotations

import time
from collections.abc import Callable

FIRST, LONGEST = 0.5, 900.0
"""Seconds of the first wait, and of the longest."""


def wait_after(failures: int) -> float:
    """Seconds to wait after so many failures in a row."""
    return min(FIRST * 2.0 ** min(failures - 1, 30), LONGEST)


class Pace:
    """A task that came to nothing cools down; a worker all of whose agents fail, one after the other, slows down.

    So a task that cannot be done costs less and less, and an endpoint that is down is asked ever more seldom. While the
    worker takes nothing, nothing cools: others go first then, too.
    """

    def __init__(self, agents: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._agents, self._clock = agents, clock
        self._failures: dict[str, int] = {}
        self._until: dict[str, float] = {}
        self._row = 0
        self._pause = 0.0

    def failed(self, task_id: str) -> None:
        """An attempt at this task came to nothing."""
        self.stumbled()
        self._cool(task_id)

    def given_back(self, task_id: str) -> None:
        """An agent gave this task back: agents do work here."""
        self.succeeded()
        self._cool(task_id)

    def _cool(self, task_id: str) -> None:
        self._failures[task_id] = self._failures.get(task_id, 0) + 1
        self._until[task_id] = max(self._clock(), self._pause) + wait_after(self._failures[task_id])

    def stumbled(self) -> None:
        """Something went wrong, and not with a task."""
        self._row += 1
        # As many failures as there are agents say nothing yet: other tasks may go well.
        if rounds := (self._row - 1) // self._agents:
            now = self._clock()
            end = now + wait_after(rounds)
            longer, self._pause = end - max(now, self._pause), end
            self._until = {task_id: until + longer for task_id, until in self._until.items() if until > now}

    def succeeded(self) -> None:
        """A task was completed: agents do work here."""
        self._row, self._pause = 0, 0.0

    def cooling(self) -> set[str]:
        """The tasks that are not to be taken yet."""
        now = self._clock()
        return {task_id for task_id, until in self._until.items() if until > now}

    def pausing(self) -> bool:
        """Whether nothing is to be taken yet."""
        return self._pause > self._clock()

    def due(self) -> list[float]:
        """In how many seconds each of these waits is over."""
        now = self._clock()
        return [until - now for until in (self._pause, *self._until.values()) if until > now]
