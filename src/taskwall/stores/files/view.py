"""A file board as it is read: every task of the folder, each together with its entry in the claim ledger."""

from __future__ import annotations

from ...core.claims import settle
from ...core.model import IN_PROGRESS
from ...core.view import View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...core.model import Claim, Settings, Task
    from .folder import Folder
    from .ledger import Ledger


class FileView(View):
    """A scan of the folder, each task read together with its ledger entry."""

    def __init__(self, folder: Folder, ledger: Ledger, settings: Settings, pending: Mapping[str, str]) -> None:
        self.in_files, self.names = folder.tasks(pending)
        self.ledger = ledger
        self._read_again(folder, pending)
        super().__init__((self._settled(task) for task in self.in_files.values()), {}, settings)
        if any(task.blocks for task in self.in_files.values()):
            self._report_one_sided()

    def claim(self, task_id: str) -> Claim | None:
        """The latest claim on this task, whether it still stands or not."""
        return self.ledger.get(task_id)

    def _read_again(self, folder: Folder, pending: Mapping[str, str]) -> None:
        """A file whose claim has moved on may have been written since the scan, for a reader takes no lock.

        Not one that a committed journal speaks for: task and claim both come from there.
        """
        for task_id in self.ledger.known & self.in_files.keys():
            task = self.in_files[task_id]
            entry = None if task.closed or task.flaw else self.ledger.get(task_id)
            if self.names[task_id] in pending:
                continue
            if entry and (entry.epoch > task.epoch or (task.status == IN_PROGRESS and not entry.open)):
                now = folder.read_again(self.names[task_id])
                if now and now.id == task_id:
                    self.in_files[task_id] = now

    def _report_one_sided(self) -> None:
        for task in list(self):
            for blocker in self.blockers(task)[len(dict.fromkeys(task.blocked_by)) :]:
                notice = f"waits for {blocker}, which only the `blocks` of that task's file says"
                known = self._tasks[task.id]
                self._tasks[task.id] = known.replace(notices=(*known.notices, notice))

    def _settled(self, task: Task) -> Task:
        if task.flaw or (task.gated and task.closed):  # finished in the file wins, and history taxes no read
            return task
        booked = task if task.gated else self.ledger.book(task)
        return settle(booked, self.ledger.get(task.id), self.ledger.ended(task.id))
