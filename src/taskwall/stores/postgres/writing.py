"""What a transaction changed, as statements; and what follows from it for other rows: who waits, and ranks."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from ...core.graph import longest_chains, rings
from ...core.model import Claim, Task
from ...core.state import is_waiting
from ..base import Txn
from ..files.patch import patch
from ..files.strict import encode
from .database import Session
from .rows import Kept, claim_text, edges_of, row_of, short
from .view import PostgresView

MOST_MENDED = 200
"""How many ranks are mended one by one before all are counted anew."""

PUT = """
INSERT INTO taskwall.tasks (
  board, id, body, open, done, held, priority, created, sort, subject, key, parent, waits, behind,
  claim, session, lapses, taken
) VALUES (
  %(board)s, %(id)s, %(body)s, %(open)s, %(done)s, %(held)s, %(priority)s, %(created)s, %(sort)s, %(subject)s, %(key)s,
  %(parent)s, %(waits)s, %(behind)s, %(claim)s, %(session)s, {now} + %(lease)s, CASE WHEN %(granted)s THEN {now} END
) ON CONFLICT (board, id) DO UPDATE SET
  body = excluded.body, open = excluded.open, done = excluded.done, held = excluded.held, priority = excluded.priority,
  created = excluded.created, sort = excluded.sort, subject = excluded.subject, key = excluded.key,
  parent = excluded.parent, waits = excluded.waits, behind = excluded.behind, archived = false,
  claim = coalesce(excluded.claim, tasks.claim), session = coalesce(excluded.session, tasks.session),
  lapses = CASE WHEN excluded.claim IS NULL THEN tasks.lapses ELSE excluded.lapses END,
  taken = coalesce(excluded.taken, tasks.taken)
"""
CLAIM = """
UPDATE taskwall.tasks SET claim = %(claim)s, session = %(session)s, lapses = {now} + %(lease)s,
  taken = CASE WHEN %(granted)s THEN {now} ELSE taken END
WHERE board = %(board)s AND id = %(id)s
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
    waits, ranks = _waits(txn, moved, old), _Ranks(txn, moved, old)
    _put(session, txn, waits, ranks.found, now)
    wild = _write_edges(session, board, moved, old) or any(_comes_back_wild(view, task) for task in moved)
    _count(session, board, txn, old)
    if wild:
        count_waits(view)
    if wild or ranks.many:
        _count_ranks(session, board)
    alone = [_entry(view, claim) for i, claim in txn.claimed.items() if i not in txn.changed]
    session.run_all(CLAIM.format(now=now), alone)


def _entry(view: PostgresView, claim: Claim) -> dict[str, Any]:
    """The columns of a claim. lease: in seconds; granted: it begins now."""
    before = view.claim(claim.task)
    return {
        "board": view.board,
        "id": short(claim.task),
        "claim": claim_text(claim),
        "session": short(claim.session),
        "lease": None if claim.ttl is None else 60 * claim.ttl,
        "granted": before is None or before.epoch != claim.epoch,
    }


UNCLAIMED = {"claim": None, "session": None, "lease": None, "granted": False}


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


def _put(session: Session, txn: Txn, waits: dict[str, bool], ranks: dict[str, int], now: str) -> None:
    view = txn.below
    assert isinstance(view, PostgresView)
    board = view.board
    rows = [
        row_of(task)
        | (_entry(view, txn.claimed[i]) if i in txn.claimed else UNCLAIMED)
        | {"board": board, "id": i, "waits": waits.get(i, _waited(view, i)), "behind": -ranks.get(i, view.rank(i))}
        for i, task in txn.changed.items()
    ]
    session.run_all(PUT.format(now=now), rows)
    unlinked = [(origin, board, i) for i, task in txn.changed.items() if (origin := _unlinked(view.kept(i), task))]
    session.run_all("UPDATE taskwall.tasks SET origin = %s WHERE board = %s AND id = %s", unlinked)
    where = "WHERE board = %s AND id = %s"
    others = [(waits[i], board, i) for i in waits.keys() - txn.changed.keys()]
    session.run_all(f"UPDATE taskwall.tasks SET waits = %s {where}", others)
    moved = [(-rank, board, i) for i, rank in ranks.items() if i not in txn.changed]
    session.run_all(f"UPDATE taskwall.tasks SET behind = %s {where}", moved)


def _unlinked(kept: Kept | None, task: Task) -> str | None:
    """What is kept of the file of a task that names no longer what it blocks; None where that is as it was."""
    if kept is None or kept.origin is None or kept.task.blocks == task.blocks:
        return None
    name, text = json.loads(kept.origin)
    return encode([name, patch(text, {"blocks": list(task.blocks)}, (), [])])


def _comes_back_wild(view: PostgresView, task: Task) -> bool:
    kept = view.kept(task.id)
    return kept is not None and kept.archived and bool(task.blocks)


def _waited(view: PostgresView, task_id: str) -> bool:
    kept = view.kept(task_id)
    return kept is not None and kept.waits


def _write_edges(session: Session, board: int, moved: Iterable[Task], old: dict[str, Task | None]) -> bool:
    """Write the edges that changed. Returns whether one of them is named by its blocker only."""
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
    return any(edge[-1] for edge in gone + new)


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
    """The ranks that are others than the database knows: `found`, by id. many: too many to mend them one by one.

    A task's rank follows from those of the open tasks that wait for it, so a change goes on from a task to what that
    waits for, as long as ranks change. In a ring that never ends; then, too, all are to be counted.
    """

    def __init__(self, txn: Txn, moved: list[Task], old: dict[str, Task | None]) -> None:
        assert isinstance(txn.below, PostgresView)
        self._txn, self._view, self.found = txn, txn.below, dict[str, int]()
        todo: list[str] = []
        for task in reversed(moved):  # what waits was mostly made later: its rank is known first
            before = old[task.id]
            todo += [task.id, *self._ahead(task), *(self._ahead(before) if before else ())]
        self.many = bool(moved) and (
            self._view.ringed or len(moved) > MOST_MENDED or not self._mend(list(dict.fromkeys(todo)))
        )
        if self.many:
            self.found.clear()

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


def count_waits(view: PostgresView) -> None:
    """Ask of every open task whether it waits, after what only blockers say of their dependents has changed."""
    now = PostgresView(view.session, view.board, view.settings, view.now, wild=True)
    waits = {task.id: is_waiting(now, task) for task in now.by_age()}
    statement = "UPDATE taskwall.tasks t SET waits = n.waits FROM unnest(%s::text[], %s::boolean[]) n (id, waits)"
    where = "WHERE t.board = %s AND t.id = n.id AND t.waits <> n.waits"
    view.session.run(f"{statement} {where}", [*waits], [*waits.values()], view.board)


def _count_ranks(session: Session, board: int) -> None:
    """Count all ranks anew, as the database has the tasks by now."""
    known = dict(session.rows("SELECT id, -behind FROM taskwall.tasks WHERE board = %s AND open", board))
    behind: dict[str, list[str]] = {i: [] for i in known}
    for earlier, later in session.rows(LINKS, board, board):
        behind[earlier].append(later)
    counted = {i: rank for i, rank in longest_chains(behind).items() if known[i] != rank}
    statement = "UPDATE taskwall.tasks t SET behind = -n.rank FROM unnest(%s::text[], %s::integer[]) n (id, rank)"
    session.run(f"{statement} WHERE t.board = %s AND t.id = n.id", [*counted], [*counted.values()], board)
    ringed = next(rings(behind, behind.__getitem__), None) is not None
    session.run("UPDATE taskwall.boards SET ringed = %s WHERE id = %s AND ringed <> %s", ringed, board, ringed)
