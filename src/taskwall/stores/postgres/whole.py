"""A whole board in the database, read or written in one transaction, as it is moved to another store or from one."""

from __future__ import annotations

import json
import os
from typing import Any

from ...core.errors import Invalid
from ...core.graph import rings
from ...core.model import Settings, Task, stored
from ...core.state import is_waiting, waits_for
from ...core.view import View
from ..files.archive import folder_of
from ..files.folder import SUFFIX
from ..files.strict import encode
from ..whole import Piece, Whole, is_archived, renewed
from .database import Session
from .rows import COLUMNS, EVENT, Kept, claim_text, edges_of, event_row, row_of, short

INSERT = """
INSERT INTO taskwall.tasks (
  board, id, body, origin, open, done, held, waits, archived, priority, behind, created, sort, subject, key, parent,
  claim, session, taken, lapses
) VALUES (
  %(board)s, %(id)s, %(body)s, %(origin)s, %(open)s, %(done)s, %(held)s, %(waits)s, %(archived)s, %(priority)s,
  %(behind)s, %(created)s, %(sort)s, %(subject)s, %(key)s, %(parent)s, %(claim)s, %(session)s, {now}, {now} + %(lease)s
)
"""
EDGE = "INSERT INTO taskwall.edges (board, blocker, task, wild) VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING"


def read_whole(session: Session, board: int, now: str) -> Whole:
    """All of a board. now: the present second, as SQL."""
    query = f"SELECT {COLUMNS.format(now=now)} FROM taskwall.tasks WHERE board = %s"
    found = {row[0]: Kept(row) for row in session.rows(query, board)}
    numeric = {task_id for task_id, kept in found.items() if kept.task.numeric}
    pieces = tuple(_piece(kept, numeric) for kept in found.values())
    events = session.rows("SELECT event FROM taskwall.events WHERE board = %s ORDER BY n", board)
    settings = session.rows("SELECT settings FROM taskwall.boards WHERE id = %s", board)[0][0]
    return Whole(pieces, tuple(json.loads(event) for (event,) in events), settings)


def _piece(kept: Kept, numeric: set[str]) -> Piece:
    task = kept.task
    name, text = _file_of(task, archived=kept.archived), _canonical(task)
    if kept.origin is not None:
        old_name, old_text = json.loads(kept.origin)
        text = renewed(old_text, task, numeric.__contains__)
        # Where it came from it may lie again, unless it was archived or brought back since.
        same_place = is_archived(old_name) == kept.archived
        name = old_name if same_place else _file_of(task, archived=kept.archived, name=os.path.basename(old_name))
    return Piece(name, text, task, kept.claim)


def _canonical(task: Task) -> str:
    return encode(stored(task), indent="  ") + "\n"


def _file_of(task: Task, *, archived: bool, name: str = "") -> str:
    name = name or task.id + SUFFIX
    return os.path.join(folder_of(task), name) if archived else name


def write_whole(session: Session, board: int, whole: Whole, now: str) -> None:
    """Take all of a board in. Raises Invalid unless there is nothing, or it was moved away from here."""
    _make_room(session, board)
    tasks = {piece.task.id: piece.task for piece in whole.pieces}
    archived = {piece.task.id: piece.task for piece in whole.pieces if piece.archived}
    view = View((task for i, task in tasks.items() if i not in archived), {}, Settings(), archived)
    rows = [_row(piece, view, board) for piece in whole.pieces]
    session.run_all(INSERT.format(now=now), rows)
    session.run_all(EDGE, [(board, *edge) for task in tasks.values() for edge in sorted(edges_of(task))])
    session.run_all(EVENT, [event_row(board, event) for event in whole.events])
    unfinished = sum(not task.closed for task in tasks.values())
    session.run(
        "UPDATE taskwall.boards SET tasks = %s, unfinished = %s, ringed = %s, settings = %s, moved = '' WHERE id = %s",
        *(len(tasks) - len(archived), unfinished, _ringed(view), whole.settings, board),
    )
    session.script("ANALYZE taskwall.tasks, taskwall.edges")


def _ringed(view: View) -> bool:
    return next(rings((task.id for task in view), lambda i: waits_for(view, i)), None) is not None


def _make_room(session: Session, board: int) -> None:
    known = session.rows("SELECT moved FROM taskwall.boards WHERE id = %s", board)[0][0]
    if not known and session.rows("SELECT 1 FROM taskwall.tasks WHERE board = %s LIMIT 1", board):
        raise Invalid("that board of the database holds tasks already", next="name a new one: ?board=NAME")
    for table in ("tasks", "edges", "events"):
        session.run(f"DELETE FROM taskwall.{table} WHERE board = %s", board)


def _row(piece: Piece, view: View, board: int) -> dict[str, Any]:
    task, claim = piece.task, piece.claim
    told = piece.name == _file_of(task, archived=piece.archived) and piece.text == _canonical(task)
    return row_of(task) | {
        "board": board,
        "id": task.id,
        "origin": None if told and task.gated else encode([piece.name, piece.text]),
        "waits": not task.closed and is_waiting(view, task),
        "behind": -view.rank(task.id) if not task.closed else 0,
        "archived": piece.archived,
        "claim": claim and claim_text(claim),
        "session": claim and short(claim.session),
        "lease": claim and claim.ttl and 60 * claim.ttl,
    }
