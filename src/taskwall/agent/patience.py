"""Asking again: what may pass is repeated under one deadline, and after repeated overload another model is asked."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence

from .answers import Answer, Model, ModelError, Say, Schemas, Transient
from .messages import Message

PATIENCE = 1800.0
"""Seconds for one answer, all tries and waits together."""
FIRST_PATIENCE = 10.0
"""Seconds for the first one where nothing answers at all: it is more likely a wrong address than a bad night."""
FIRST_WAIT, LONGEST_WAIT = 0.5, 60.0
"""Seconds before the second try, twice as many before each later one, up to the longest."""
OVERLOADS = 3
"""Overloads in a row after which the next model is asked."""


class Patient:
    """Models that stand in for each other, asked until one answers."""

    def __init__(
        self,
        models: Sequence[Model],
        note: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """note: tells a person what goes on."""
        self.models, self.note, self._clock, self._sleep = list(models), note, clock, sleep
        self.answered = False

    def answer(self, messages: Sequence[Message], tools: Schemas, *, deadline: float, say: Say) -> Answer:
        """The next answer. Raises ModelError when there will be none in time."""
        began = self._clock()
        deadline = min(deadline, began + PATIENCE)
        wait, overloads = FIRST_WAIT, 0
        while True:
            try:
                answer = self.models[0].answer(messages, tools, deadline=deadline, say=say)
            except Transient as error:
                self.answered |= bool(error.status)
                overloads = overloads + 1 if error.overloaded else 0
                if overloads == OVERLOADS and len(self.models) > 1:
                    self._ask_the_next(error)
                    overloads, wait = 0, FIRST_WAIT
                    continue
                self._wait(error, wait, deadline if self.answered else min(deadline, began + FIRST_PATIENCE))
                wait = min(2 * wait, LONGEST_WAIT)
            else:
                self.answered = True
                return answer

    def _ask_the_next(self, error: Transient) -> None:
        self.models.append(self.models.pop(0))
        self.note(f"{error}. Another model is asked: {getattr(self.models[0], 'name', '')}")

    def _wait(self, error: Transient, wait: float, deadline: float) -> None:
        """Wait as long as the endpoint wants, if that leaves time for another try. Raises ModelError."""
        # Never at once for ever, and never all together: others wait for the same endpoint.
        early = random.random() / 4  # noqa: S311 - it guards nothing
        wait = wait * (1 - early) if error.after is None else max(wait / 8, error.after)
        if self._clock() + wait >= deadline:
            asked = f"; it asks to wait {wait:.0f} seconds" if error.after else ""
            raise ModelError(f"{error}{asked}, and there is no time left to ask again") from None
        self.note(f"{error}. Asking again in {wait:.1f} s")
        self._sleep(wait)
