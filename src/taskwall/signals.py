"""What ends us from outside: Ctrl-C, and the signals that are taken as one. Only the main thread handles any."""

from __future__ import annotations

import contextlib
import signal
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

ENDING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


@contextlib.contextmanager
def handled(numbers: tuple[Any, ...], handler: Any) -> Iterator[None]:
    """Handle these signals so for the block. One that is ignored stays ignored, as under nohup."""
    before = {}
    if threading.current_thread() is threading.main_thread():
        before = {n: was for n in numbers if (was := signal.getsignal(n)) not in (signal.SIG_IGN, None)}
    try:
        for number in before:
            signal.signal(number, handler)
        yield
    finally:
        for number, was in before.items():
            signal.signal(number, was)


def ending() -> contextlib.AbstractContextManager[None]:
    """SIGTERM and SIGHUP raise KeyboardInterrupt with their name."""
    return handled(ENDING, _end)


def interruptible() -> contextlib.AbstractContextManager[None]:
    """Ctrl-C and they raise KeyboardInterrupt at once, though around the block they wait (`deferred`)."""
    return handled((signal.SIGINT, *ENDING), _end)


def _end(number: int, _: Any) -> None:
    raise KeyboardInterrupt(f"ended by {signal.Signals(number).name}")


def end_by_the_first() -> None:
    """From now on the first of them raises KeyboardInterrupt and the others are ignored, until this process ends."""

    def end(*_: Any) -> None:
        ignore()
        raise KeyboardInterrupt

    for number in (signal.SIGINT, *ENDING):
        signal.signal(number, end)


def ignore() -> None:
    """From now on nothing but SIGKILL ends this process."""
    for number in (signal.SIGINT, *ENDING):
        signal.signal(number, signal.SIG_IGN)


def undisturbed() -> contextlib.AbstractContextManager[None]:
    """Nothing ends the block: a second Ctrl-C must not keep what is held."""
    return handled((signal.SIGINT, *ENDING), signal.SIG_IGN)


@contextlib.contextmanager
def deferred() -> Iterator[None]:
    """What would end the run waits for the end of the block: no change of the board is cut in half."""
    came: list[int] = []
    try:
        with handled((signal.SIGINT, *ENDING), lambda number, _: came.append(number)):
            yield
    finally:
        for number in came[:1]:
            signal.raise_signal(number)
