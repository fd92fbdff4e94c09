"""A thread that keeps a session's claims alive while its process lives, and notices when one was taken over."""

from __future__ import annotations

import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from types import TracebackType
    from typing import Self

    from .board import Board

BEATS_PER_LEASE = 5


class Heartbeat:
    """Beats for everything that `board`'s session holds, by the command line too, five times a lease.

    It never raises. `lost`: a line about each claim that was taken over, until `take_lost` is asked. The board is its
    own, for it is used by the thread, and has a lease.
    """

    def __init__(self, board: Board, but: Collection[str] = ()) -> None:
        """but: tokens that somebody else looks after."""
        assert board.lease, "claims by hand need no heartbeat"
        self.board, self.lease = board, board.lease
        self.but = but
        self._held: set[str] = set()
        self._lost: list[str] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Beat from now on."""
        self._thread.start()

    def stop(self, seconds: float = 5) -> None:
        """Beat no more; a beat that is under way is given so many seconds to end."""
        self._stop.set()
        self._thread.join(timeout=seconds)

    def beat(self) -> None:
        """Renew every lease once."""
        try:
            held, superseded = self.board.beat(self._held, ttl=self.lease, but=self.but)
        except Exception:  # noqa: BLE001 - a board that cannot be written now may be in a moment; the lease gives it time
            return
        self._held = held
        self._lost += superseded

    def take_lost(self) -> list[str]:
        """What was lost since this was last asked."""
        lost, self._lost = self._lost, []
        return lost

    def _run(self) -> None:
        self.beat()  # a session that goes on under a new process finds its leases short
        while not self._stop.wait(60 * self.lease / BEATS_PER_LEASE):
            self.beat()
