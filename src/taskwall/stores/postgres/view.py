"""A board in PostgreSQL as it is read: what is asked for, in one exchange a question, however large the rest is."""

from __future__ import annotations

from ...core.graph import natural
from ...core.view import View, age
from .rows import COLUMNS, Kept, plain, row_of, short

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from ...core.model import Actor, Claim, Settings, Task
    from .database import Session

ORDER = "held, priority, behind, created, sort, id"
BY_AGE = "created, sort, id"
PAGE, MOST = 16, 1000
"""How many rows the first exchange of a long answer brings, and how many a later one at most."""
CHILDREN = "SELECT parent, id FROM taskwall.tasks WHERE board = %s AND parent = ANY(%s) AND NOT archived"
DEPENDENTS = """
SELECT DISTINCT e.blocker, e.task FROM taskwall.edges e
JOIN taskwall.tasks t ON t.board = e.board AND t.id = e.task AND NOT t.archived
WHERE e.board = %s AND e.blocker = ANY(%s)
"""
OFFERED = "open AND NOT waits"


class PostgresView(View):
    """The board as one transaction sees it, for as long as this lives.

    A row is fetched once, however often it is asked for. wild: some edges are named by their blocker only. ringed: open
    tasks wait for each other, which no verb brings about. locking: what is offered or held by somebody is locked before
    it is looked at, and what another transaction has locked is not offered.
    """

    def __init__(
        self,
        session: Session,
        board: int,
        settings: Settings,
        now: Callable[[], str],
        *,
        wild: bool,
        ringed: bool = False,
        locking: bool = False,
    ) -> None:
        self.settings, self.session, self.locking = settings, session, locking
        self.board, self.now, self.wild, self.ringed = board, now, wild, ringed
        self._known: dict[str, Kept | None] = {}
        self._edges: dict[str, list[str]] = {}  # by id: its dependents
        self._below: dict[str, list[str]] = {}  # by id: its children
        self.locked: set[str] = set()

    # One task

    def get(self, task_id: str) -> Task | None:
        """The task with exactly this id, archived or not."""
        kept = self.kept(task_id)
        return kept.task if kept else None

    def kept(self, task_id: str) -> Kept | None:
        """The row of a task."""
        if task_id not in self._known:
            self.load([task_id])
        return self._known[task_id]

    def lock(self, task_id: str) -> Task | None:
        """The task as it is now; until the transaction ends, nobody else changes it."""
        if self.locking and task_id not in self.locked:
            self._known.pop(task_id, None)
            self._fetch("id = %s", short(task_id), lock="FOR UPDATE")
        return self.get(task_id)

    def claim(self, task_id: str) -> Claim | None:
        """The latest claim on this task, whether it still stands or not."""
        kept = self.kept(task_id)
        return kept.claim if kept else None

    def load(self, ids: Iterable[str]) -> None:
        """Fetch these at once, unless they are known."""
        wanted = [i for i in dict.fromkeys(ids) if i not in self._known]
        if wanted:
            self._fetch("id = ANY(%s)", [short(i) for i in wanted])
            self._known |= {i: None for i in wanted if i not in self._known}

    def prepare(self, tasks: list[Task]) -> None:
        """Fetch at once what the states of several tasks follow from: their blockers and children."""
        ids = {task.id for task in tasks if task.id not in self._below}
        if not ids:
            return
        blockers = [i for i in dict.fromkeys(b for t in tasks for b in self._blockers(t)) if i not in self._known]
        where = "(id = ANY(%s) OR parent = ANY(%s) AND NOT archived)"
        found = self._fetch(where, [*map(short, blockers)], [*map(short, ids)])
        self._known |= {i: None for i in blockers if i not in self._known}
        self._below |= {i: [] for i in ids}
        for task in found:
            if task.parent in ids and not self._is_archived(task.id):
                self._below[task.parent].append(task.id)

    def _is_archived(self, task_id: str) -> bool:
        kept = self._known[task_id]
        return kept is not None and kept.archived

    def expect(self, ids: Iterable[str]) -> None:
        """Fetch several tasks at once, and what waits for them, whether they exist or not."""
        wanted = list(ids)
        self.load(wanted)
        for query, known in ((CHILDREN, self._below), (DEPENDENTS, self._edges)):
            self._fetch_links(query, [i for i in wanted if i not in known], known)
        self.load([other for i in wanted for other in (*self._below[i], *self._edges[i])])

    def _fetch_links(self, query: str, ids: list[str], known: dict[str, list[str]]) -> None:
        known |= {i: [] for i in ids}
        for before, after in self.session.rows(query, self.board, [short(i) for i in ids]) if ids else ():
            known[before].append(after)

    def _fetch(
        self, where: str, *values: object, order: str = "", most: int | None = None, lock: str = ""
    ) -> list[Task]:
        """The tasks of these rows. A task that is known already is as it was, unless it is locked only now."""
        query = f"SELECT {COLUMNS.format(now=self.now())} FROM taskwall.tasks WHERE board = %s AND {where}"
        query += (f" ORDER BY {order}" if order else "") + (f" LIMIT {most}" if most else "") + f" {lock}"
        found = []
        for row in self.session.rows(query, self.board, *values):
            if lock:
                self.locked.add(row[0])
            if lock or row[0] not in self._known:
                self._known[row[0]] = Kept(row)
            kept = self._known[row[0]]
            assert kept
            found.append(kept.task)
        return found

    # Many tasks

    def __iter__(self) -> Iterator[Task]:
        return self._pages("NOT archived", "id", lambda row: (row["id"],))

    def _pages(
        self, where: str, order: str, place: Callable[[dict[str, Any]], tuple[object, ...]], after: Task | None = None
    ) -> Iterator[Task]:
        """The tasks of these rows in order, some at a time."""
        size, last = PAGE, after
        while True:
            bound = place(_placed(last)) if last else ()
            marks = ", ".join(["%s"] * len(bound))
            further = f" AND ({order}) > ({marks})" if last else ""
            page = self._fetch(where + further, *bound, order=order, most=size)
            self.prepare([task for task in page if not task.closed])
            yield from page
            if len(page) < size:
                return
            size, last = min(4 * size, MOST), page[-1]

    def by_age(self, after: Task | None = None, *, closed: bool = False) -> Iterator[Task]:
        """The open tasks, oldest first, from behind one of them on. closed: the finished ones, too."""
        where = "NOT archived" if closed else "open"
        return self._pages(where, BY_AGE, lambda row: (row["created"], row["sort"], row["id"]), after)

    def counts(self, after: Task | None = None) -> tuple[int, int]:
        """How many tasks are open, and how many there are; only the younger ones when one is given."""
        if after is None:
            rows = self.session.rows("SELECT unfinished, tasks FROM taskwall.boards WHERE id = %s", self.board)
        else:
            row = _placed(after)
            query = (
                "SELECT count(*) FILTER (WHERE open), count(*) FROM taskwall.tasks "
                f"WHERE board = %s AND NOT archived AND ({BY_AGE}) > (%s, %s, %s)"
            )
            rows = self.session.rows(query, self.board, row["created"], row["sort"], row["id"])
        return rows[0][0], rows[0][1]

    def unblocked(self) -> Iterator[Task]:
        """The open tasks that wait for no other, in the order in which work is offered; those in progress come last.

        When locking, a task is locked as it is offered, one that another transaction has locked is passed over, and so
        are those in progress: whoever finds nothing looks again alone.
        """
        size, seen = (1 if self.locking else PAGE), set[str]()
        offered = OFFERED + (" AND NOT held" if self.locking else "")
        bound: tuple[object, ...] = ()
        while True:
            marks = ", ".join(["%s"] * len(bound))
            where = offered + (f" AND ({ORDER}) > ({marks})" if bound else "")
            lock = "FOR UPDATE SKIP LOCKED" if self.locking else ""
            page = self._fetch(where, *bound, order=ORDER, most=size, lock=lock)
            self.prepare(page)
            for task in page:
                if task.id not in seen:  # it may have gone further behind since the last exchange
                    seen.add(task.id)
                    yield task
            if len(page) < size:
                return
            kept, last = self.kept(page[-1].id), _placed(page[-1])
            assert kept
            bound = (last["held"], last["priority"], -kept.rank, last["created"], last["sort"], last["id"])
            size = min(4 * size, MOST)

    def in_progress(self) -> Iterator[Task]:
        """The tasks that somebody holds."""
        return iter(self._fetch("held"))

    def held_by(self, actor: Actor) -> list[Task]:
        """The tasks in progress that this actor holds in this session, oldest first."""
        session = short(actor.session)
        where = "held AND (session = %s OR starts_with(session, %s))"
        lock = "FOR UPDATE" if self.locking else ""
        found = self._fetch(where, session, f"{session}/", order=BY_AGE, lock=lock)
        return sorted((task for task in found if actor.holds(self.standing(task))), key=age)

    def subjects(self) -> Iterator[tuple[str, str]]:
        """The id and the subject of every task."""
        rows = self.session.rows("SELECT id, subject FROM taskwall.tasks WHERE board = %s AND NOT archived", self.board)
        return ((task_id, subject) for task_id, subject in rows)

    def archived_ids(self) -> list[str]:
        """The ids of all archived tasks, in no order: seldom asked."""
        rows = self.session.rows("SELECT id FROM taskwall.tasks WHERE board = %s AND archived", self.board)
        return [task_id for (task_id,) in rows]

    def by_subject(self, subject: str) -> list[str]:
        """The ids of at most two tasks with this subject."""
        where = '"left"(subject, 64) = "left"(%s, 64) AND subject = %s AND NOT archived'
        return [task.id for task in self._fetch(where, plain(subject), plain(subject), most=2)]

    def by_key(self, key: str) -> Task | None:
        """The task that was created with this idempotency key, the oldest where one came back from the archive."""
        found = self._fetch("key = %s AND NOT archived", short(key), order=BY_AGE)
        return next((task for task in found if task.key == key), None)

    def rank(self, task_id: str) -> int:
        """The length of the longest chain of open tasks that wait behind this one."""
        kept = self.kept(task_id)
        return kept.rank if kept and not kept.task.closed else 0

    def blockers(self, task: Task) -> tuple[str, ...]:
        """The ids it waits for, known or not, without its children."""
        self.prepare([task])  # whoever asks for blockers asks for children next
        found = self._blockers(task)
        self.load(found)
        return found

    def _blockers(self, task: Task) -> tuple[str, ...]:
        own = tuple(dict.fromkeys(task.blocked_by))
        if not self.wild:
            return own
        query = (
            "SELECT e.blocker FROM taskwall.edges e "
            "JOIN taskwall.tasks b ON b.board = e.board AND b.id = e.blocker AND NOT b.archived "
            "WHERE e.board = %s AND e.task = %s AND e.wild"
        )
        wild = [blocker for (blocker,) in self.session.rows(query, self.board, task.id)]
        return tuple(dict.fromkeys([*own, *sorted(wild, key=natural)]))

    def dependents(self, task_id: str) -> list[Task]:
        """The tasks that name this id as a blocker, oldest first."""
        if task_id not in self._edges:
            query = "NOT archived AND id IN (SELECT task FROM taskwall.edges WHERE board = %s AND blocker = %s)"
            found = self._fetch(query, self.board, short(task_id))
            self._edges[task_id] = [task.id for task in found]
            self.prepare([task for task in found if not task.closed])
        return sorted((t for i in self._edges[task_id] if (t := self.get(i))), key=age)

    def children(self, task_id: str) -> list[Task]:
        """The tasks whose parent this id is, oldest first."""
        if task_id not in self._below:
            found = self._fetch("parent = %s AND NOT archived", short(task_id))
            self._below[task_id] = [task.id for task in found]
        return sorted((t for i in self._below[task_id] if (t := self.get(i))), key=age)


def _placed(task: Task) -> dict[str, Any]:
    """Where a task stands in every order."""
    return row_of(task) | {"id": task.id}
