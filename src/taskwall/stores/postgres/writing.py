"""What a transaction changed, as statements; and what follows from it for other rows: who waits, and ranks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...core.graph import longest_chains
from ...core.model import Task
from ...core.state import is_waiting
from ..base import Txn
from .database import Session
from .rows import claim_text, edges_of, plain, row_of
from .view import PostgresView

MOST_MENDED = 200
"""How many ranks are mended one by one before all are counted anew."""

PUT = """
INSERT INTO taskwall.tasks (
  board, id, body, open, done, held, priority, created, sort, subject, key, parent, waits, behind
) VALUES (
  %(board)s, %(id)s, %(body)s, %(open)s, %(done)s, %(held)s, %(priority)s, %(created)s, %(sort)s, %(subject)s, %(key)s,
  %(parent)s, %(waits)s, %(behind)s
) ON CONFLICT (board, id) DO UPDATE SET
  body = excluded.body, open = excluded.open, done = excluded.done, held = excluded.held, priority = excluded.priority,
  created = excluded.created, sort = excluded.sort, subject = excluded.subject, key = excluded.key,
  parent = excluded.parent, waits = excluded.waits, behind = excluded.behind, archived = false
"""
CLAIM = """
UPDATE taskwall.tasks SET claim = %s, session = %s, lapses = {now} + %s, taken = CASE WHEN %s THEN {now} ELSE taken END
WHERE board = %s AND id = %s
"""
LINKS = """
SELECT e.blocker, e.task FROM taskwall.edges e
JOIN taskwall.tasks b ON b.board = e.board AND b.id = e.blocker AND b.open
JOIN taskwall.tasks t ON t.board = e.board AND t.id = e.task AND t.open
WHERE e.board = %s
UNION ALL
SELECT c.id, c.parent FROM taskwall.tasks c
JOIN taskwall.tasks p ON p.board = c.board AND p.id = c.parent AND p.open
WHERE c.board = %s AND c.open
"""


def write(session: Session, board: int, txn: Txn, now: str) -> None:
    """Send what a transaction changed. now: the present second, as SQL."""
    view = txn.below
    assert isinstance(view, PostgresView)
    if not txn.alone:
        _require_locked(view, txn)
    view.load(txn.changed)
    old = {i: view.get(i) for i in txn.changed}
    moved = [t for i, t in txn.changed.items() if _moves(old[i], t)]
    view.expect(task.id for task in moved)
    waits, ranks = _waits(txn, moved, old), _Ranks(txn, moved, old).found
    _put(session, board, txn, waits, ranks)
    _write_edges(session, board, moved, old)
    _count(session, board, txn, old)
    for claim in txn.claimed.values():
        before = view.claim(claim.task)
        session.run(
            CLAIM.format(now=now),
            *(claim_text(claim), plain(claim.session), None if claim.ttl is None else 60 * claim.ttl),
            *(before is None or before.epoch != claim.epoch, board, plain(claim.task)),
        )


def _require_locked(view: PostgresView, txn: Txn) -> None:
    loose = (txn.changed.keys() | txn.claimed.keys()) - view.locked
    moved = [i for i, task in txn.changed.items() if _moves(view.get(i), task)]
    # Beside others, nothing may change that others rest on.
    assert not loose | {*moved}, f"changed without the board's lock: {sorted(loose)} {moved}"


def _moves(old: Task | None, new: Task) -> bool:
    """Whether a change of a task may concern others: what waits for what, or whether it is finished."""
    return (
        old is None
        or (old.status if old.closed else "open") != (new.status if new.closed else "open")
        or (old.parent, old.blocks) != (new.parent, new.blocks)
        or set(old.blocked_by) != set(new.blocked_by)
    )


def _put(session: Session, board: int, txn: Txn, waits: dict[str, bool], ranks: dict[str, int]) -> None:
    view = txn.below
    assert isinstance(view, PostgresView)
    rows = [
        row_of(task)
        | {"board": board, "id": i, "waits": waits.get(i, _waited(view, i)), "behind": -ranks.get(i, view.rank(i))}
        for i, task in txn.changed.items()
    ]
    session.run_all(PUT, rows)
    where = "WHERE board = %s AND id = %s"
    others = [(waits[i], board, i) for i in waits.keys() - txn.changed.keys()]
    session.run_all(f"UPDATE taskwall.tasks SET waits = %s {where}", others)
    moved = [(-rank, board, i) for i, rank in ranks.items() if i not in txn.changed]
    session.run_all(f"UPDATE taskwall.tasks SET behind = %s {where}", moved)


def _waited(view: PostgresView, task_id: str) -> bool:
    kept = view.kept(task_id)
    return kept is not None and kept.waits


def _write_edges(session: Session, board: int, moved: Iterable[Task], old: dict[str, Task | None]) -> None:
    gone: list[tuple[Any, ...]] = []
    new: list[tuple[Any, ...]] = []
    for task in moved:
        before = old[task.id]
        had, has = edges_of(before) if before else set(), edges_of(task)
        gone += [(board, *edge) for edge in had - has]
        new += [(board, *edge) for edge in has - had]
    where = "board = %s AND blocker = %s AND task = %s AND wild = %s"
    session.run_all(f"DELETE FROM taskwall.edges WHERE {where}", gone)
    insert = "INSERT INTO taskwall.edges (board, blocker, task, wild) VALUES (%s, %s, %s, %s)"
    session.run_all(f"{insert} ON CONFLICT DO NOTHING", new)


def _count(session: Session, board: int, txn: Txn, old: dict[str, Task | None]) -> None:
    view = txn.below
    assert isinstance(view, PostgresView)
    tasks = unfinished = 0
    for i, task in txn.changed.items():
        kept, before = view.kept(i), old[i]
        tasks += kept is None or kept.archived
        unfinished += (not task.closed) - (before is not None and not before.closed)
    if tasks or unfinished:
        statement = "UPDATE taskwall.boards SET tasks = tasks + %s, unfinished = unfinished + %s WHERE id = %s"
        session.run(statement, tasks, unfinished, board)


def _waits(txn: Txn, moved: list[Task], old: dict[str, Task | None]) -> dict[str, bool]:
    """Of the tasks that these changes concern: whether they wait now."""
    view = txn.below
    assert isinstance(view, PostgresView)
    near: dict[str, Task] = {}
    for task in moved:
        before = old[task.id]
        parents = {task.parent, before.parent if before else None} - {None}
        for other in [task, *txn.dependents(task.id), *(p for i in parents if i and (p := txn.get(i)))]:
            near[other.id] = other
    still = [txn.get(i) or task for i, task in near.items() if not task.closed]
    view.prepare([task for task in still if view.get(task.id)])
    return {task.id: is_waiting(txn, task) for task in still}


class _Ranks:
    """The ranks that are others than the database knows: `found`, by id.

    A task's rank follows from those of the open tasks that wait for it, so a change goes on from a task to what that
    waits for, as long as ranks change.
    """

    def __init__(self, txn: Txn, moved: list[Task], old: dict[str, Task | None]) -> None:
        assert isinstance(txn.below, PostgresView)
        self._txn, self._view, self.found = txn, txn.below, dict[str, int]()
        todo: list[str] = []
        for task in reversed(moved):  # what waits was mostly made later: its rank is known first
            before = old[task.id]
            todo += [task.id, *self._ahead(task), *(self._ahead(before) if before else ())]
        near = list(dict.fromkeys(todo))
        if len(moved) > MOST_MENDED or not self._mend([*near]):
            self.found = self._count_anew(near)

    def _ahead(self, task: Task) -> list[str]:
        """The tasks on which this one's end, or its place, has a bearing: its blockers and its children."""
        return [*self._txn.blockers(task), *(child.id for child in self._txn.children(task.id))]

    def _rank(self, task_id: str) -> int:
        return self.found.get(task_id, self._view.rank(task_id))

    def _mend(self, todo: list[str]) -> bool:
        """Mend one by one. False when that becomes too much."""
        most = MOST_MENDED + 4 * len(todo)
        for task_id in todo:
            task = self._txn.get(task_id)
            if task is None or task.closed or task.flaw:
                continue
            rank = max((self._rank(after.id) + 1 for after in self._txn.behind(task)), default=0)
            if rank != self._rank(task_id):
                self.found[task_id] = rank
                todo += self._ahead(task)
            if len(todo) > most:
                return False
        return True

    def _count_anew(self, near: list[str]) -> dict[str, int]:
        board, session = self._view.board, self._view.session
        query = "SELECT id, -behind FROM taskwall.tasks WHERE board = %s AND open"
        known = dict(session.rows(query, board))
        behind: dict[str, list[str]] = {i: [] for i in known if i not in self._txn.changed}
        for earlier, later in session.rows(LINKS, board, board):
            if earlier in behind and later in behind:
                behind[earlier].append(later)
        self._view.expect(near)
        for task in filter(None, map(self._txn.get, [*near, *self._txn.changed])):
            if not task.closed and not task.flaw:
                behind[task.id] = [after.id for after in self._txn.behind(task)]
        counted = longest_chains(behind)
        return {i: rank for i, rank in counted.items() if known.get(i) != rank}
