"""The rows of the board now and after each change, from one thread that looks at it for as long as the wall is open."""

from __future__ import annotations

import threading
from collections.abc import Callable

from ...board import Board
from ...core.errors import Refused
from ...stores.base import Outdated
from ..web.rows import LONGEST_WAIT, TRY_AGAIN, Look, look, next_lapse


def follow(
    open_board: Callable[[], Board],
    tell: Callable[[Look | Refused], object],
    over: threading.Event,
    clock: Callable[[], float],
) -> None:
    """Tell how the board looks, at once and after each change, or why it cannot be read, until it is over."""
    seen: Look | None = None
    board = open_board()
    watch = board.store.watch()
    while not over.is_set():
        now = int(1000 * clock())
        try:
            latest = look(board.store.read(), board.actor, now, seen or Look())
        except Outdated:
            continue
        except Refused as error:
            seen = None
            tell(error)
        else:
            if seen is None or latest.rows != seen.rows:
                tell(latest)
            seen = latest
        watch.wait(next_lapse(seen, now, LONGEST_WAIT) if seen else TRY_AGAIN, pause=over.wait)
