"""The contract of a store: a consistent view to read, and a transaction that is also a view.

Every store passes the same suite (`tests/test_store_contract.py`).
"""

from __future__ import annotations

import time

from ..core.errors import ReadOnly, Unreadable
from ..core.view import Overlay

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager
    from typing import Any, Protocol

    from ..core.model import Claim, Settings, Task
    from ..core.rules import Change
    from ..core.view import View

    class Store(Protocol):
        """How the tasks of one board are kept."""

        address: str  # what `--board` takes, empty where only memory holds the board; it may hold a password
        settings: Settings
        notices: list[str]  # what recovery found that a person should know

        def read(self, *, anew: bool = False) -> View:
            """A consistent view of the board as it is now. Never waits for a writer, writes nothing on the board.

            anew: before an empty answer: what was derived from the board earlier is compared with it.
            """

        def write(self, *, alone: bool = True, choosing: bool = False) -> AbstractContextManager[Txn]:
            """The only writer for as long as the block lasts; its changes are kept when it ends without an exception.

            alone: without it, others may change other tasks meanwhile, where the store lets them. Then only claims are
            changed, and status and owner with them, of tasks that `lock`, `unblocked` or `held_by` has told of; and
            `unblocked` passes over what others are about to change.
            choosing: one task at most is claimed, the last that `unblocked` has told of. It may be chosen before others
            are kept out; Overtaken is raised when somebody changed it by then.
            When the block ends normally, everything is durable; when it raises, nothing was written.
            Raises Locked, Unwritable, and Invalid when a new id is taken.
            """

        def events(self, task_id: str | None = None, since: str | None = None) -> list[dict[str, Any]]:
            """What happened, oldest first: `{at, by, session, verb, task, …}`; of one task when an id is given.

            since: only what happened at or after this time, in the form of `at`; costs no more than there is of it.
            """

        def archive(self, ids: Sequence[str]) -> tuple[list[str], list[str]]:
            """Take finished tasks out of the way. Returns the ids of those that went, and of those that stay."""

        def is_tidy(self) -> bool:
            """Whether tasks were archived within the last hour."""

        def watch(self) -> Watch:
            """Notices changes of the board from now on, whoever makes them."""


class Watch:
    """Waits for changes by looking, more rarely the dearer a look is: at most a tenth of the time goes into it.

    look: tells what differs after every change. A lease that runs out is no change: bound the wait by it.
    """

    def __init__(self, look: Callable[[], object]) -> None:
        self._look = look
        self._seen = look()

    def wait(self, timeout: float, pause: Callable[[float], object] = time.sleep) -> bool:
        """Whether the board has changed since the last call, within `timeout` seconds; returns as soon as it has.

        pause: sleeps at most so many seconds; one that answers true ends the wait (`threading.Event.wait`).
        """
        until = time.monotonic() + timeout
        while True:
            began = time.monotonic()
            seen = self._look()
            if seen != self._seen:
                self._seen = seen
                return True
            now = time.monotonic()
            if now >= until or pause(min(max(SHORTEST_PAUSE, 9 * (now - began)), until - now)):
                return False


SHORTEST_PAUSE = 0.1
"""Seconds between two looks at a small board."""


def require_here(moved: str) -> None:
    """Let nobody write where a board does not lie any more, or is only shown. Raises ReadOnly."""
    if moved:
        raise ReadOnly(f"the board lies at {moved}; here it is only read", next="work there: --board, TASKWALL_BOARD")


class Outdated(Unreadable):
    """A view can answer no more, and nothing was written: what it was made from is damaged. The next one can."""

    way_out = "repeat the command"


class Overtaken(Outdated):
    """What was chosen before others were kept out is not as it was, and nothing was written."""


class Txn(Overlay):
    """The board as it is under the lock, with the changes of this transaction on top."""

    def __init__(self, below: View, *, alone: bool = True) -> None:
        super().__init__(below)
        self.alone = alone
        self.log: list[dict[str, Any]] = []

    def record(self, claim: Claim) -> None:
        """Set the ledger's entry for one task. A `ttl` starts a lease of that length now."""
        self.claimed[claim.task] = claim

    def apply(self, change: Change) -> None:
        """Put every changed task, ledger entry and event of a transition, in its order."""
        for task in change.put:
            self.put(task)
        for claim in change.claims:
            self.record(claim)
        self.log += change.events

    def is_new(self, task: Task) -> bool:
        """Whether this transaction creates the task."""
        return self.below.get(task.id) is None
