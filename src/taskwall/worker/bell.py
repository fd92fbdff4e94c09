"""What wakes a worker beside changes of the board: an agent that ended, and signals that end the worker."""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Iterator

from .. import signals


class Bell:
    """Rung by signals. A pipe, because a handler must not take a lock that the code it interrupts may hold.

    asked: how often the worker was asked to end.
    """

    def __init__(self) -> None:
        self.asked = 0
        self._out, self._in = os.pipe()
        for end in (self._out, self._in):
            os.set_blocking(end, False)

    @contextlib.contextmanager
    def hung(self) -> Iterator[None]:
        """Signals ring it for as long as the block lasts, instead of ending the process."""
        ending = signals.handled((signal.SIGINT, *signals.ENDING), lambda *_: self.ask())
        try:
            with ending, signals.handled((signal.SIGCHLD,), lambda *_: self.ring()):
                yield
        finally:
            os.close(self._out)
            os.close(self._in)

    def ask(self) -> None:
        """Ask the worker to end; twice: to hurry."""
        self.asked += 1
        self.ring()

    def ring(self) -> None:
        """Wake whoever waits, or does so next."""
        with contextlib.suppress(BlockingIOError):  # it is ringing already
            os.write(self._in, b".")

    def wait(self, seconds: float) -> bool:
        """Whether it rang within so many seconds; returns as soon as it does."""
        rang = bool(select.select([self._out], [], [], seconds)[0])
        if rang:
            os.read(self._out, 4096)
        return rang
