"""The tasks of a `.tasks/` folder: which file holds which task, and what is wrong with the files that hold none."""

from __future__ import annotations

import os
import time

from ...core.errors import Unreadable
from ...core.light import lru_cache
from ...core.model import Task, composed, id_flaw
from .disk import NotPlain, read_text
from .plain import NotATask, plain
from .strict import NotStrict, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

    from .disk import Disk, Signature

SUFFIX = ".json"
ARCHIVE = "archive"
RACY_NS = 2_000_000_000
"""A file changed this shortly before it was read may have changed again without a new time stamp."""

_LINE = r"\d+: "
_GUESSED_ID = r'"(?:id|task_id)"\s*:\s*(?:"([^"\\]+)"|(\d+))'


class Found:
    """One file and the task in it, or why there is none (`task.flaw`).

    settled: the file was old enough when read for its signature to vouch for it.
    """

    __slots__ = ("name", "seen", "settled", "task", "text")

    def __init__(self, name: str, task: Task, seen: Signature, text: str, *, settled: bool) -> None:
        self.name, self.task, self.seen, self.text, self.settled = name, task, seen, text, settled


class Folder:
    """Reads the files of one folder; a file whose signature is unchanged is not read again by this process."""

    def __init__(self, path: str, disk: Disk) -> None:
        self.path, self.disk = path, disk
        self._known: dict[str, Found] = {}

    def look(self) -> None:
        """Read what is new or changed."""
        self._known = {found.name: found for found in self._files()}

    def tasks(self, pending: Mapping[str, str]) -> tuple[dict[str, Task], dict[str, str]]:
        """Every task by id, and the name of its file by id. pending: texts that files will have, by their names."""
        present = self._known | {name: promised(name, text) for name, text in pending.items() if "/" not in name}
        claimed: dict[str, list[Found]] = {}
        for found in present.values():
            if not found.task.flaw:
                claimed.setdefault(found.task.id, []).append(found)
        tasks: dict[str, Task] = {}
        names: dict[str, str] = {}
        for task_id, files in claimed.items():
            tasks[task_id] = files[0].task if len(files) == 1 else twins(task_id, [f.name for f in files])
            names[task_id] = files[0].name
        for found in present.values():
            if found.task.flaw:
                task = place(found.task, tasks.__contains__)
                tasks[task.id], names[task.id] = task, found.name
        return tasks, names

    def _files(self) -> Iterator[Found]:
        try:
            entries = self.disk.names(self.path)
        except FileNotFoundError:
            return
        except OSError as error:
            told = f"the board {self.path} cannot be read: {error.strerror}"
            raise Unreadable(told, next=f"look at what {self.path} is") from None
        for name, seen in entries:
            if name.endswith(SUFFIX):
                known = self._known.get(name)
                if known and known.settled and known.seen == seen:
                    yield known
                    continue
                try:
                    yield read_file(self.disk, self.path, name, seen)
                except FileNotFoundError:  # removed since the folder was listed
                    continue

    def read_again(self, name: str) -> Task | None:
        """The task in one file as it is now, None when the file is gone."""
        try:
            found = read_file(self.disk, self.path, name)
        except FileNotFoundError:
            return None
        self._known[name] = found
        return found.task


UNSEEN = (0, 0, 0, 0)


def read_file(disk: Disk, folder: str, name: str, seen: Signature = UNSEEN) -> Found:
    """One file as it is now. seen: its signature where it was listed. Raises FileNotFoundError."""
    now, known, text = time.time_ns(), True, ""
    try:
        text, seen = read_text(f"{folder}{os.sep}{name}", disk)
        task = task_of(name, text)
    except NotPlain as flaw:
        task = _broken(name, flaw.text, str(flaw))
        known = flaw.error is None  # else it may be readable the next moment, without having changed
    return Found(name, task, seen, text, settled=known and max(seen[:2]) < now - RACY_NS)


def read_each(disk: Disk, board: str, names: Iterable[tuple[bytes, Signature | None]]) -> Iterator[tuple[bytes, Found]]:
    """What these files hold, without those that are gone; they had these signatures when they were listed."""
    for name, seen in names:
        try:
            if seen is not None:
                yield name, read_file(disk, board, os.fsdecode(name), seen)
        except FileNotFoundError:  # gone since then
            continue


def task_of(name: str, text: str) -> Task:
    """The task in the text of a file, or one that says what is wrong with it."""
    try:
        return object_of(text)[1]
    except NotStrict as flaw:
        return _broken(name, text, f"{flaw.line}: {flaw}" if flaw.line else str(flaw))
    except NotATask as flaw:
        return _broken(name, text, str(flaw))


@lru_cache(maxsize=16)
def object_of(text: str) -> tuple[dict[str, Any], Task]:
    """The object in a text, which nobody may change, and the task in that. Raises NotStrict, NotATask.

    Kept for a moment: before the lock, under it and after the write, a task is read from the same text.
    """
    raw = parse(text)
    if task := plain(raw):
        return raw, task
    from .dialects import read  # imported late: few files are another program's, or odd

    return raw, read(raw)


def promised(name: str, text: str) -> Found:
    """What a file will be once this text is in its place."""
    return Found(name, task_of(name, text), UNSEEN, text, settled=False)


def _broken(name: str, text: str, flaw: str) -> Task:
    # A file name may be no text at all, and this one is shown.
    name = name.encode("utf-8", "backslashreplace").decode()
    import re  # imported late: few files are broken

    guess = re.search(_GUESSED_ID, text)
    guessed = (guess[1] or guess[2]) if guess else ""
    task_id = guessed if guessed and not id_flaw(guessed) else _stem(name)
    where = f"{name}:{flaw}" if re.match(_LINE, flaw) else f"{name}: {flaw}"
    return Task(task_id, subject=name, flaw=where)


def _stem(name: str) -> str:
    return composed(name.removesuffix(SUFFIX))


def place(broken: Task, is_taken: Callable[[str], bool]) -> Task:
    """A broken task under an id that no readable file claims: a guess must not hide a healthy task."""
    name = broken.subject
    candidates = (broken.id, _stem(name), name)
    return broken.replace(id=next((i for i in candidates if not is_taken(i)), f"{name} (unreadable)"))


def twins(task_id: str, names: list[str]) -> Task:
    """What stands for the files that claim one id together."""
    flaw = f"{' and '.join(names)} both claim the id {task_id}; rename one of the ids"
    return Task(task_id, subject=names[0], flaw=flaw)
