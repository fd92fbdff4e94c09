"""A board in memory: for trying things out, dry runs and tests."""

from __future__ import annotations

import time
from contextlib import contextmanager
from threading import RLock

from ..core.model import BY_HAND, LAPSED, LIVE, Settings
from ..core.view import View
from .base import Txn, Watch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from ..core.model import Claim, Task


class MemoryStore:
    """Keeps tasks for as long as the process lives. `monotonic`: seconds, by which leases lapse."""

    address = ""

    def __init__(
        self,
        tasks: Iterable[Task] = (),
        settings: Settings | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.settings = settings or Settings()
        self.notices: list[str] = []
        self._tasks = {task.id: task for task in tasks}
        self._archived: dict[str, Task] = {}
        self._claims: dict[str, Claim] = {}
        self._deadlines: dict[str, float] = {}
        self._events: list[dict[str, Any]] = []
        self._writes = 0
        self._monotonic = monotonic
        self._lock = RLock()

    def read(self, *, anew: bool = False) -> View:  # noqa: ARG002 - nothing is derived here
        """A view of the board as it is now."""
        with self._lock:
            return View(
                self._tasks.values(),
                {i: self._judged(claim) for i, claim in self._claims.items()},
                self.settings,
                dict(self._archived),
            )

    @contextmanager
    def write(self, *, alone: bool = True, choosing: bool = False) -> Iterator[Txn]:  # noqa: ARG002 - everybody is
        """A transaction; its changes are kept when the block ends without an exception."""
        with self._lock:
            txn = Txn(self.read())
            yield txn
            self._tasks.update(txn.changed)
            for task_id in txn.changed:
                self._archived.pop(task_id, None)
            for claim in txn.claimed.values():
                self._claims[claim.task] = claim
                self._deadlines[claim.task] = self._monotonic() + 60 * (claim.ttl or 0)
            self._events += txn.log
            self._writes += 1

    def events(self, task_id: str | None = None, since: str | None = None) -> list[dict[str, Any]]:
        """What happened, oldest first."""
        with self._lock:
            late = [event for event in self._events if since is None or event["at"] >= since]
            return [event for event in late if task_id in (None, event["task"])]

    def archive(self, ids: Sequence[str]) -> tuple[list[str], list[str]]:
        """Take finished tasks out of the way."""
        with self._lock:
            gone = [i for i in ids if i in self._tasks and self._tasks[i].closed]
            self._archived |= {i: self._tasks.pop(i) for i in gone}
            self._writes += 1
            return gone, [i for i in ids if i not in gone]

    def is_tidy(self) -> bool:
        """There are no files to get rid of."""
        return True

    def watch(self) -> Watch:
        """Notices changes from now on."""
        return Watch(lambda: self._writes)

    def _judged(self, claim: Claim) -> Claim:
        if claim.ttl is None:
            return claim.replace(lease=BY_HAND)
        left = (self._deadlines[claim.task] - self._monotonic()) / 60
        return claim.replace(lease=LIVE if left > 0 else LAPSED, left=max(left, 0.0))
