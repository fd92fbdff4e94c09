"""Everything that the checks look at, read once, from a board that may be broken in any way."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cached_property

from ... import config
from ...config import Location
from ...core.errors import Invalid, Refused
from ...core.model import Settings, Task
from ...core.record import Record
from ...core.view import View
from ...stores.files.archive import Archive
from ...stores.files.disk import DISK, NotPlain
from ...stores.files.folder import SUFFIX, Folder
from ...stores.files.store import LOCAL, FileStore
from ...stores.files.view import FileView
from ..git import Git, GitFailed, task_in


class File(Record):
    """One `.json` file of the board's folder: its bytes, None when they cannot be read, and the task in them."""

    name: str
    path: str
    data: bytes | None
    task: Task


class Sight:
    """A board as doctor sees it. now: seconds since 1970."""

    def __init__(self, location: Location, now: float) -> None:
        self.location, self.path, self.now = location, location.path, now
        self.local = os.path.join(location.path, LOCAL)
        self.settings, self.settings_flaw = self._settings()

    def _settings(self) -> tuple[Settings, Invalid | None]:
        try:
            return config.read_settings(self.path), None
        except Invalid as flaw:
            return Settings(), flaw

    @cached_property
    def files(self) -> list[File]:
        """The task files, readable or not, without the archive."""
        return [self.load(name) for name, _ in DISK.names(self.path) if name.endswith(SUFFIX)]

    def archived(self) -> Iterator[File]:
        """The files of the archive."""
        yield from (self.load(name.replace(os.sep, "/")) for name in Archive(DISK, self.path).names())

    def load(self, name: str) -> File:
        """The file of this name below the board."""
        path = os.path.join(self.path, *name.split("/"))
        try:
            data = DISK.read(path)[0]
        except (OSError, NotPlain) as flaw:
            return File(name, path, None, Task(name.removesuffix(SUFFIX), name, flaw=str(flaw)))
        return File(name, path, data, task_in(name, data))

    @cached_property
    def flaw(self) -> Refused | None:
        """Why the board cannot be read as a whole, None when it can."""
        return self._read[1]

    @cached_property
    def view(self) -> View:
        """The board as every verb sees it; where that is refused, its files alone."""
        return self._read[0]

    @cached_property
    def _read(self) -> tuple[View, Refused | None]:
        try:
            return FileStore(self.path, self.settings).read(), None
        except Refused as refusal:
            folder = Folder(self.path, DISK)
            folder.look()
            return View(folder.tasks({})[0].values(), {}, self.settings), refusal

    def file_of(self, task: Task) -> str | None:
        """The file of a task, as a person would name it."""
        view = self.view
        return self.shown(view.name_of(task.id) if isinstance(view, FileView) else task.id + SUFFIX)

    def shown(self, name: str) -> str:
        """A file of the board, named from the folder that holds it."""
        return f"{os.path.basename(self.path)}/{name}"

    @cached_property
    def git(self) -> Git | None:
        """The repository, None when there is none, git is not installed, or it has no file of the board."""
        found = Git.around(self.path)
        try:
            return found if found and found.knows_board() else None
        except GitFailed:
            return None

    @cached_property
    def stages(self) -> dict[str, dict[int, str]]:
        """The stages of the files that git could not merge, by their names in the board's folder."""
        if self.git is None:
            return {}
        prefix = self.git.path("")
        return {path.removeprefix(prefix): stages for path, stages in self.git.stages().items()}
