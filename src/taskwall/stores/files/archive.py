"""Finished tasks out of the way: `.tasks/archive/YYYY-MM/ID.json`. They are found by id, and count as blockers.

A task goes there by a rename, so that it is always in one place or the other; when it changes it comes back, written
anew in the folder before it leaves the archive. git follows a rename: where the other side of a merge had reopened the
task, it lies here unfinished. It is found by its id and gates as what it is, until a change or `doctor` brings it back.
"""

from __future__ import annotations

import errno
import os

from ...core.model import id_flaw
from .disk import NotPlain, read_text
from .folder import ARCHIVE, SUFFIX, task_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...core.model import Task
    from .disk import Disk

UNDATED = "undated"
_MONTH = r"[0-9]{4}-[0-9]{2}"


def folder_of(task: Task) -> str:
    """The folder of the archive, relative to the board, in which a finished task belongs."""
    import re  # imported late: no command of daily work needs it

    month = (task.completed_at or task.updated_at or "")[:7]
    return os.path.join(ARCHIVE, month if re.fullmatch(_MONTH, month) else UNDATED)


class Archive:
    """The archive of one board, as far as it is asked about. A file that cannot be read holds no task."""

    def __init__(self, disk: Disk, board: str) -> None:
        self._disk, self._board = disk, board
        self._found: dict[str, tuple[str, Task] | None] = {}
        self._months: list[str] | None = None
        self.touched: set[str] = set()

    def get(self, task_id: str) -> Task | None:
        """The archived task with this id."""
        if (found := self._find(task_id)) is None:
            return None
        name, task = found
        told = f"archived in {os.path.dirname(name)}"
        if not task.closed:
            told += ", and not finished: no list shows it there; `taskwall doctor --fix` brings it back"
        return task.replace(notices=(*task.notices, told))

    def ids(self) -> list[str]:
        """The ids of all tasks here, as the names of their files tell them."""
        ids = dict.fromkeys(os.path.basename(name).removesuffix(SUFFIX) for name in self.names())
        return [task_id for task_id in ids if self.get(task_id)]

    def names(self) -> list[str]:
        """The paths of all files here that may hold a task, relative to the board, those of the last month first."""
        folders = [os.path.join(ARCHIVE, month) for month in self._list()]
        listed = ((folder, self._disk.names(os.path.join(self._board, folder))) for folder in folders)
        return [os.path.join(folder, name) for folder, each in listed for name, _ in each if name.endswith(SUFFIX)]

    def in_file(self, task_id: str) -> tuple[str, Task]:
        """The path of an archived task's file, relative to the board, and the task. Raises KeyError."""
        found = self._find(task_id)
        if found is None:
            raise KeyError(task_id)
        return found

    def _find(self, task_id: str) -> tuple[str, Task] | None:
        if task_id not in self._found:
            self._found[task_id] = None if id_flaw(task_id) else self._look(task_id)
        return self._found[task_id]

    def _look(self, task_id: str) -> tuple[str, Task] | None:
        if self._months is None:
            self._months = self._list()
        for month in self._months:
            name = os.path.join(ARCHIVE, month, task_id + SUFFIX)
            try:
                task = task_of(name, read_text(os.path.join(self._board, name), self._disk)[0])
            except (OSError, NotPlain):
                continue
            if task.id == task_id and not task.flaw:
                return name, task
        return None

    def take(self, name: str, task: Task) -> bool:
        """Move the file of a finished task here. False when it must stay.

        It is found here by its name alone, and another task of that name is not written over.
        """
        if name != task.id + SUFFIX or not task.closed or task.flaw:
            return False
        folder = os.path.join(self._board, folder_of(task))
        for each in (os.path.dirname(folder), folder):
            self._disk.make_folder(each)
            if not self._disk.is_folder(each):
                raise OSError(errno.ENOTDIR, "not a folder of its own", each)
        if self._disk.exists(os.path.join(folder, name)) or self._look(task.id):  # another had this id once
            return False
        self._disk.rename(os.path.join(self._board, name), os.path.join(folder, name))
        self.touched.add(folder)
        return True

    def settle(self) -> None:
        """Bring what was moved to the disk: it must be here before it is gone there."""
        for folder in (*sorted(self.touched), os.path.join(self._board, ARCHIVE), self._board):
            self._disk.sync_folder(folder)

    def _list(self) -> list[str]:
        folder = os.path.join(self._board, ARCHIVE)
        if not self._disk.is_folder(folder):
            return []
        try:
            names = sorted((name for name, _ in self._disk.names(folder)), reverse=True)
        except OSError:
            return []
        return [name for name in names if self._disk.is_folder(os.path.join(folder, name))]
