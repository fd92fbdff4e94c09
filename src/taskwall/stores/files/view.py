"""A file board as it is read: the tasks of the folder, each together with its entry in the claim ledger."""

from __future__ import annotations

import os

from ...core.claims import settle
from ...core.light import cached_property
from ...core.model import IN_PROGRESS
from ...core.view import View
from .folder import SUFFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...core.model import Claim, Settings, Task
    from .archive import Archive
    from .disk import Disk
    from .folder import Folder, Found
    from .ledger import Ledger
    from .tables import Written


class FileView(View):
    """What every view of a folder has: each task is read together with its ledger entry."""

    def __init__(self, disk: Disk, board: str, ledger: Ledger, settings: Settings) -> None:
        self._disk, self._board, self.ledger, self.settings = disk, board, ledger, settings

    @cached_property
    def archive(self) -> Archive:
        """What is found there of those that are not in the folder."""
        from .archive import Archive  # imported late: most tasks that are asked for are here

        return Archive(self._disk, self._board)

    def archived(self, task_id: str) -> Task | None:
        """The archived task with this id as it stands: one that a merge left unfinished there may be claimed."""
        task = self.archive.get(task_id)
        return task if task is None or task.closed else self.settled(task)

    def archived_ids(self) -> list[str]:
        """The ids of all archived tasks, in no order: seldom asked."""
        return [task_id for task_id in self.archive.ids() if os.sep in self.name_of(task_id)]

    def in_file(self, task_id: str) -> tuple[str, Task]:
        """The path of a task's file, relative to the board, and the task as the file alone tells it."""
        raise NotImplementedError

    def read(self, name: str) -> Found | None:  # noqa: ARG002 - a view that keeps it tells
        """What was read of a file already, when its signature vouches for that."""
        return None

    def carry(self, written: Written) -> None:
        """Tell the index what was written; see `Reading.carry`."""

    def end(self) -> None:
        """Answer no more questions but those that were asked before."""

    def name_of(self, task_id: str) -> str:
        """The path of a task's file, relative to the board; where it would be made when there is none."""
        try:
            return self.in_file(task_id)[0]
        except KeyError:
            return task_id + SUFFIX

    def claim(self, task_id: str) -> Claim | None:
        """The latest claim on this task, whether it still stands or not."""
        return self.ledger.get(task_id)

    def settled(self, task: Task) -> Task:
        """A task as it stands, given what its file says."""
        if task.flaw or (task.gated and task.closed):  # finished in the file wins, and history taxes no read
            return task
        booked = task if task.gated else self.ledger.book(task)
        return settle(booked, self.ledger.get(task.id), self.ledger.ended(task.id))

    def with_one_sided(self, task: Task) -> Task:
        """The task with a notice of each of its blockers that only that one's own file tells."""
        wild = self.blockers(task)[len(dict.fromkeys(task.blocked_by)) :]
        told = tuple(f"waits for {blocker}, which only the `blocks` of that task's file says" for blocker in wild)
        return task.replace(notices=(*task.notices, *told)) if told else task

    def _outdated(self, task: Task) -> bool:
        """Whether a file whose claim has moved on may have been written since it was read; no reader takes a lock."""
        entry = None if task.closed or task.flaw else self.ledger.get(task.id)
        return entry is not None and (entry.epoch > task.epoch or (task.status == IN_PROGRESS and not entry.open))


class Scan(FileView):
    """All files of the folder, read at once."""

    def __init__(
        self, folder: Folder, disk: Disk, ledger: Ledger, settings: Settings, pending: Mapping[str, str]
    ) -> None:
        super().__init__(disk, folder.path, ledger, settings)
        self.in_files, self.names = folder.tasks(pending)
        self._read_again(folder, pending)
        View.__init__(self, (self.settled(task) for task in self.in_files.values()), {}, settings)
        if any(task.blocks for task in self.in_files.values()):
            self._tasks |= {task.id: self.with_one_sided(task) for task in self}

    def get(self, task_id: str) -> Task | None:
        """The task with exactly this id, archived or not."""
        return self._tasks.get(task_id) or self.archived(task_id)

    def in_file(self, task_id: str) -> tuple[str, Task]:
        """The path of a task's file, relative to the board, and the task as the file alone tells it."""
        task = self.in_files.get(task_id)
        return (self.names[task_id], task) if task else self.archive.in_file(task_id)

    def _read_again(self, folder: Folder, pending: Mapping[str, str]) -> None:
        """A file whose claim has moved on may have been written since the scan, for a reader takes no lock.

        Not one that a committed journal speaks for: task and claim both come from there.
        """
        for task_id in self.ledger.known() & self.in_files.keys():
            if self.names[task_id] not in pending and self._outdated(self.in_files[task_id]):
                now = folder.read_again(self.names[task_id])
                if now and now.id == task_id:
                    self.in_files[task_id] = now
