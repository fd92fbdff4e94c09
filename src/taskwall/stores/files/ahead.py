"""A claim of whatever is best, made before the board's lock is taken, so that several processes get on at once.

To choose, to decide and to write the new texts beside their places takes twice as long as the commit. Only that is done
under the lock, once what the choice rests on is seen to stand: the files that were read, its own and those of its
blockers, the entry in the ledger, and that it waits for nothing as far as the index knows, which speaks for the folder
then. Where anything is otherwise, nothing is written, and who chose does so again under the lock.

So that not all choose the same, the file of a task that is chosen is held. Nothing but speed rests on that.
"""

from __future__ import annotations

import os

from .disk import NotPlain, is_same
from .indexed import OFFERED, TASKS, IndexView

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ...core.model import Task

SEATS, SEATS_AT_A_DISK = 2, 4
"""How many choose at a time: a commit is a third of a claim, and the disk brings many to safety as fast as one."""
PATIENCE = 3.0
"""Seconds to wait for a seat before the task is claimed under the lock: who has it may be stopped."""
IS_OFFERED = f"{TASKS} {OFFERED} AND id = ?"


class Choosing(IndexView):
    """The board for one who claims what it offers, and holds the task that was offered last until this ends."""

    _held: int | None = None

    def unblocked(self) -> Iterator[Task]:
        """The open tasks that wait for no other, without those that others are about to claim."""
        return self._of(row for row in self._offered() if self._hold(os.fsdecode(row[1])))

    def _hold(self, name: str) -> bool:
        self.let_go()
        try:
            self._held = self._disk.hold(f"{self._board}{os.sep}{name}")
        except (OSError, NotPlain):  # it is read next, and says so itself
            return True
        return self._held is not None

    def let_go(self) -> None:
        """Hold nothing more."""
        if self._held is not None:
            self._disk.let_go(self._held)
        self._held = None

    def stands(self, task_ids: Iterable[str]) -> bool:
        """Whether these are offered as they were, and every file that was read is the same, asked under the lock."""
        return (
            all(is_same(found.seen, self._disk.seen(f"{self._board}{os.sep}{n}")) for n, found in self._files.items())
            and self._reading.renew()
            and all(self._reading.row(IS_OFFERED, i) and self.ledger.is_as_read(i) for i in task_ids)
        )
