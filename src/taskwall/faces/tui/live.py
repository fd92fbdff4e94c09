"""The rows of the board now and after each change, from one thread that looks at it for as long as the wall is open."""

from __future__ import annotations

from ...core.errors import Refused
from ...core.model import LIVE
from ...stores.base import Outdated
from ..web.rows import Look, look

TYPE_CHECKING = False
if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from ...board import Board

LONGEST_WAIT, TRY_AGAIN = 60.0, 2.0
"""Seconds between two looks when nothing changes; when the board could not be read."""


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
        watch.wait(_next_lapse(seen, now), pause=over.wait)


def _next_lapse(seen: Look | None, now: int) -> float:
    """Seconds until a lease may run out, which changes a state without changing a file."""
    if seen is None:
        return TRY_AGAIN
    claims = (row["claim"] for row in seen.rows.values() if "claim" in row)
    ends = (float(claim["until"] - now + 100) / 1000 for claim in claims if claim["lease"] == LIVE)
    return max(0.1, min(LONGEST_WAIT, min(ends, default=LONGEST_WAIT)))
