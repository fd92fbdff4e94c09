"""A large file board as it is read: through the index, and of the files only those that an answer rests on."""

from __future__ import annotations

import os

from ...core.graph import natural
from ...core.light import cached_property
from ...core.model import IN_PROGRESS, Task
from ...core.view import age
from .folder import UNSEEN, place, read_file, task_of, twins
from .view import FileView

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from ...core.model import Settings
    from .disk import Disk
    from .folder import Found
    from .index import Reading
    from .ledger import Ledger
    from .tables import Written

ODD = """
SELECT EXISTS (SELECT 1 FROM twins) OR EXISTS (SELECT 1 FROM files INDEXED BY flawed WHERE flaw IS NOT NULL),
EXISTS (SELECT 1 FROM edges INDEXED BY one_sided WHERE wild)
"""
FLAWED = "SELECT name, id, subject, flaw FROM files INDEXED BY flawed WHERE flaw IS NOT NULL"
TWINS = "SELECT f.name, f.id FROM twins t CROSS JOIN files f ON f.id = t.id WHERE f.flaw IS NULL"
TASKS = """
SELECT id, name, text, settled, mtime, ctime, size, ino, open, (SELECT entry FROM entries e WHERE e.id = files.id)
FROM files WHERE flaw IS NULL AND
"""
OFFERED = "open AND NOT waits"
DONE = "SELECT name, settled, mtime, ctime, size, ino FROM files WHERE done AND id = ?"
YOUNGER = "(created, natural, id) > (?, ?, ?)"


class IndexView(FileView):
    """The board as one state of its index tells it.

    A task that is asked for by id is compared with its file. sure: it is read from there, for one who decides by it.
    """

    def __init__(
        self, reading: Reading, disk: Disk, board: str, ledger: Ledger, settings: Settings, *, sure: bool
    ) -> None:
        super().__init__(disk, board, ledger, settings)
        self._reading, self._sure = reading, sure
        self._asked: dict[str, tuple[str, Task, Task] | None] = {}  # by id: file, the task there, the task as it stands
        self._files: dict[str, Found] = {}  # by name, those that were read by one who decides by them
        self._completed: set[str] = set()  # those of which nothing else was asked
        self._children: dict[str, list[Task]] = {}
        self._dependents: dict[str, list[Task]] = {}

    def carry(self, written: Written) -> None:
        """Tell the index what was written; see `Reading.carry`."""
        self._reading.carry(written)

    def end(self) -> None:
        """Answer no more questions but those that were asked before."""
        self._reading.end()

    # One task

    def get(self, task_id: str) -> Task | None:
        """The task with exactly this id, archived or not."""
        found = self._find(task_id)
        return found[2] if found else self.archived(task_id)

    def is_completed(self, task_id: str) -> bool:
        """Whether a task with exactly this id is completed; the index knows, and the file has not changed since."""
        if task_id not in self._completed and task_id not in self._asked and not self._sure:
            row = self._reading.row(DONE, task_id)
            if row and (self._reading.looked or self._is_unchanged(os.fsdecode(row[0]), row[1:])):
                self._completed.add(task_id)
        return task_id in self._completed or super().is_completed(task_id)

    def in_file(self, task_id: str) -> tuple[str, Task]:
        """The path of a task's file, relative to the board, and the task as the file alone tells it."""
        found = self._find(task_id)
        return found[:2] if found else self.archive.in_file(task_id)

    def _find(self, task_id: str, row: tuple[Any, ...] | None = None) -> tuple[str, Task, Task] | None:
        if task_id not in self._asked:
            self._asked[task_id] = self._look(task_id, row)
        return self._asked[task_id]

    def _look(self, task_id: str, row: tuple[Any, ...] | None) -> tuple[str, Task, Task] | None:
        if odd := self._odd.get(task_id):
            return (*odd, odd[1])
        if row is None and (row := self._reading.row(f"{TASKS} id = ?", task_id)) is None:
            return None
        name, task = os.fsdecode(row[1]), None
        if row[8] and not self._sure:
            self.ledger.prime(task_id, row[9])
        if row[2] and not self._sure and (self._reading.looked or self._is_unchanged(name, row[3:8])):
            task = task_of(name, row[2])
        if task is None or self._outdated(task):
            task = self._read(name)
        return (name, task, self._complete(task)) if task and task.id == task_id else None

    def _is_unchanged(self, name: str, row: tuple[Any, ...]) -> bool:
        """Whether a file is as it was. row: its signature then, after whether that vouches for it."""
        return bool(row[0]) and self._disk.seen(f"{self._board}{os.sep}{name}") == row[1:]

    def _read(self, name: str) -> Task | None:
        try:
            found = read_file(self._disk, self._board, name, UNSEEN)
        except FileNotFoundError:
            return None
        if self._sure:
            self._files[name] = found
        return found.task

    def read(self, name: str) -> Found | None:
        """What was read of a file already, when its signature vouches for that."""
        found = self._files.get(name)
        return found if found and found.settled else None

    def _complete(self, task: Task) -> Task:
        """The task together with what its claim says, and with what only the files of its blockers say."""
        task = self.settled(task)
        return task if task.flaw or not self._has_odd[1] else self.with_one_sided(task)

    @cached_property
    def _odd(self) -> dict[str, tuple[str, Task]]:
        """Files that hold no task, and files that claim one id together: few, and nothing follows from them."""
        if not self._has_odd[0]:
            return {}
        found: dict[str, tuple[str, Task]] = {}
        names: dict[str, list[str]] = {}
        for name, task_id in sorted(self._reading.rows(TWINS)):
            names.setdefault(task_id, []).append(os.fsdecode(name))
        for task_id, claiming in names.items():
            found[task_id] = (claiming[0], twins(task_id, claiming))
        for name, task_id, subject, flaw in sorted(self._reading.rows(FLAWED)):
            broken = place(Task(task_id, subject, flaw=flaw), lambda i: i in found or self._has(i))
            found[broken.id] = (os.fsdecode(name), broken)
        return found

    def _has(self, task_id: str) -> bool:
        return self._reading.row(f"{TASKS} id = ?", task_id) is not None

    @cached_property
    def _has_odd(self) -> tuple[bool, bool]:
        """Whether there are odd files, and edges that only the blocker's own file tells: most boards have neither."""
        return next(self._reading.rows(ODD))

    # Many tasks

    def __iter__(self) -> Iterator[Task]:
        for task_id, name, text in self._reading.rows("SELECT id, name, text FROM files WHERE flaw IS NULL"):
            if task_id not in self._asked and task_id not in self._odd:
                # Whoever asks for all of them is not kept waiting until each is compared with its file.
                task = task_of(os.fsdecode(name), text) if text else self._read(os.fsdecode(name))
                if task and task.id == task_id and not self._outdated(task):
                    self._asked[task_id] = (os.fsdecode(name), task, self._complete(task))
            if task_id not in self._odd and (found := self.get(task_id)):
                yield found
        yield from (task for _, task in self._odd.values())

    def _each(self, where: str, *values: str) -> Iterator[Task]:
        return self._of(self._reading.rows(f"{TASKS} {where}", *values))

    def _of(self, rows: Iterable[tuple[Any, ...]]) -> Iterator[Task]:
        """The tasks of these rows, except the odd ones."""
        for row in rows:
            if row[0] not in self._odd and (found := self._find(row[0], row)):
                yield found[2]

    def counts(self, after: Task | None = None) -> tuple[int, int]:
        """How many tasks are open, and how many there are; only the younger ones when one is given."""
        odd = sum(after is None or age(task) > age(after) for _, task in self._odd.values())
        if after is None and not odd:
            return next(self._reading.rows("SELECT open, files FROM about"))
        younger, values = (f" AND {YOUNGER}", _place_in_age(after)) if after else ("", ())
        [(unfinished,)] = self._reading.rows(f"SELECT count(*) FROM files WHERE open{younger}", *values)
        healthy = "flaw IS NULL AND id NOT IN (SELECT id FROM twins)"
        [(total,)] = self._reading.rows(f"SELECT count(*) FROM files WHERE {healthy}{younger}", *values)
        return unfinished + odd, total + odd

    def by_age(self, after: Task | None = None, *, closed: bool = False) -> Iterator[Task]:
        """The open tasks, oldest first, from behind one of them on. closed: the finished ones, too."""
        where, place = (YOUNGER, _place_in_age(after)) if after else ("true", ())
        healthy = self._each(f"open AND {where} ORDER BY created, natural, id", *place)
        if closed:  # too many to be sorted with all that is known of them
            query = f"SELECT id FROM files WHERE flaw IS NULL AND {where} ORDER BY created, natural, id"
            ids = self._reading.rows(query, *place)
            healthy = (found[2] for (i,) in ids if i not in self._odd and (found := self._find(i)))
        odd = sorted((task for _, task in self._odd.values() if after is None or age(task) > age(after)), key=age)
        if not odd:
            return healthy
        from heapq import merge  # imported late: most boards hold nothing odd

        return merge(healthy, odd, key=age)

    def unblocked(self) -> Iterator[Task]:
        """The open tasks that wait for no other, in the order in which work is offered; those in progress come last."""
        return self._of(self._offered())

    def _offered(self) -> Iterator[tuple[Any, ...]]:
        for which in ("NOT held", "held"):
            order = "priority, rank DESC, created, natural, id"
            yield from self._reading.rows(f"{TASKS} {OFFERED} AND {which} ORDER BY {order}")

    def in_progress(self) -> Iterator[Task]:
        """The tasks that somebody holds."""
        return (task for task in self._each("held") if task.status == IN_PROGRESS)

    def subjects(self) -> Iterator[tuple[str, str]]:
        """The id and the subject of every task."""
        healthy = self._reading.rows("SELECT id, subject FROM files WHERE flaw IS NULL")
        yield from (pair for pair in healthy if pair[0] not in self._odd)
        yield from ((task.id, task.subject) for _, task in self._odd.values())

    def by_key(self, key: str) -> Task | None:
        """The task that was created with this idempotency key."""
        found = self._each("key = ? ORDER BY name", key)
        return next((task for task in found if task.key == key), None)

    def rank(self, task_id: str) -> int:
        """The length of the longest chain of open tasks that wait behind this one."""
        found = self._reading.row("SELECT rank FROM files WHERE open AND id = ?", task_id)
        return int(found[0]) if found else 0

    def blockers(self, task: Task) -> tuple[str, ...]:
        """The ids it waits for, known or not, without its children."""
        if not self._has_odd[1]:
            return tuple(dict.fromkeys(task.blocked_by))
        wild = [i for (i,) in self._reading.rows("SELECT blocker FROM edges WHERE wild AND task = ?", task.id)]
        return tuple(dict.fromkeys([*task.blocked_by, *sorted(wild, key=natural)]))

    def dependents(self, task_id: str) -> list[Task]:
        """The tasks that name this id as a blocker, oldest first."""
        if task_id not in self._dependents:
            found = self._each("id IN (SELECT task FROM edges WHERE blocker = ?)", task_id)
            self._dependents[task_id] = sorted(found, key=age)
        return self._dependents[task_id]

    def children(self, task_id: str) -> list[Task]:
        """The tasks whose parent this id is, oldest first."""
        if task_id not in self._children:  # asked again and again: it belongs to the state of a task
            found = self._each("parent = ?", task_id)
            self._children[task_id] = sorted(found, key=age)
        return self._children[task_id]


def _place_in_age(task: Task) -> tuple[str, str, str]:
    from .tables import sortable  # imported late: only a list that goes on asks

    return (task.created_at or "", sortable(task.id), task.id)
