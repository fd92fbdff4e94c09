"""A board in PostgreSQL, shared by the agents of many machines.

Two kinds of transactions write. Whoever changes what waits for what, or what is finished, holds the board's advisory
lock alone: no two of them close a cycle together, and each says exactly what it unblocked. Whoever only claims, beats
or gives back a task shares that lock and locks the task's row, so that these go on side by side.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import psycopg

from ...core.errors import Invalid
from ...core.model import Settings
from ..base import Txn, Watch, require_here
from ..whole import Whole
from .address import Address
from .database import LOCKS, MOVE, READ, WRITE, Database, Session, Trace
from .rows import EVENT, event_row
from .schema import require_tables
from .view import PostgresView
from .whole import read_whole, write_whole
from .writing import count_waits, write

WILD = "EXISTS (SELECT FROM taskwall.edges WHERE board = boards.id AND wild)"
SERVER_CLOCK = "extract(epoch FROM clock_timestamp())"
BATCH = 5000


class PostgresStore:
    """One board of a database: that which its address names, unless `name` does.

    now: the present second by which leases lapse, as SQL, for tests.
    """

    def __init__(
        self,
        database: Database,
        settings: Settings | None = None,
        *,
        name: str = "",
        now: Callable[[], str] = lambda: SERVER_CLOCK,
    ) -> None:
        self.database, self.name = database, name or database.address.board
        self.address = database.address.of(self.name)
        self.place = Address(self.address).anybody
        self.settings = settings or Settings()
        self.notices: list[str] = []
        self._now = now
        self._number: int | None = None

    # The board itself

    @property
    def number(self) -> int:
        """The board's number in the database. Raises Invalid when there is no such board, Unreadable without tables."""
        if self._number is None:
            self._number = int(self._told("id"))
        return self._number

    def _told(self, column: str) -> Any:
        """What the database says of the board. Raises as `number` does."""
        with self.database.session(READ) as session:
            require_tables(session)
            found = session.rows(f"SELECT {column} FROM taskwall.boards WHERE name = %s", self.name)
        if not found:
            raise self._gone()
        return found[0][0]

    def _gone(self) -> Invalid:
        self._number = None
        return Invalid(f"the database has no board {self.name!r}", next=MAKE)

    def exists(self) -> bool:
        """Whether the database has this board. Raises Unreadable without tables."""
        with self.database.session(READ) as session:
            require_tables(session)
            return bool(session.rows("SELECT 1 FROM taskwall.boards WHERE name = %s", self.name))

    def settings_text(self) -> str:
        """What a `board.toml` would say. Raises Invalid when there is no such board, Unreadable without tables."""
        return str(self._told("settings"))

    def set_settings(self, text: str) -> None:
        """Replace what a `board.toml` would say. Others see it when they open the board."""
        with self.database.session(WRITE) as session:
            session.run("UPDATE taskwall.boards SET settings = %s WHERE id = %s", text, self.number)

    def make(self) -> bool:
        """Make the board; False when it was there. Raises Unreadable without tables."""
        with self.database.session(WRITE) as session:
            require_tables(session)
            if session.rows("SELECT 1 FROM taskwall.boards WHERE name = %s", self.name):
                return False
            query = "INSERT INTO taskwall.boards (name) VALUES (%s) ON CONFLICT (name) DO NOTHING"
            return session.run(query, self.name) > 0

    def is_empty(self) -> bool:
        """Whether the board holds no task, not even an archived one."""
        with self.database.session(READ) as session:
            return not session.rows("SELECT 1 FROM taskwall.tasks WHERE board = %s LIMIT 1", self.number)

    def unmake(self) -> None:
        """Take back a board that was made in vain, and is empty."""
        with self.database.session(WRITE) as session:
            session.run("DELETE FROM taskwall.boards WHERE name = %s", self.name)
        self._number = None

    # The contract of a store

    def read(self, *, anew: bool = False) -> PostgresView:  # noqa: ARG002 - nothing is ever late here
        """A view of one moment, in a transaction that ends with it."""
        number = self.number
        session = self.database.begin(f"{READ}; SELECT {WILD}, ringed FROM taskwall.boards WHERE id = {number}")
        if not session.first:
            raise self._gone()
        wild, ringed = session.first
        return PostgresView(session, number, self.settings, self._now, wild=wild, ringed=ringed)

    @contextmanager
    def write(self, *, alone: bool = True, choosing: bool = False) -> Iterator[Txn]:  # noqa: ARG002 - rows are locked
        """A transaction. Raises Locked, Unwritable, ReadOnly, Invalid, and Outdated when the server gave it up."""
        session, number = self.database.begin(self._locked(WRITE, alone=alone)), self.number
        try:
            if not session.first:
                raise self._gone()
            transaction, moved, wild, ringed = session.first
            require_here(moved)
            view = PostgresView(session, number, self.settings, self._now, wild=wild, ringed=ringed, locking=not alone)
            txn = Txn(view, alone=alone)
            yield txn
            # Told after the commit, for commits that tell wait for each other, and sent with it, so that no death comes
            # between. Leases that are renewed are no news.
            news = f"NOTIFY {self._channel}" if txn.changed or txn.log else ""
            with session.keeping(transaction, self._trace(txn.log), news):
                write(session, number, txn, self._now())
                self._log(session, txn.log)
        finally:
            session.close()

    def _locked(self, begin: str, *, alone: bool) -> str:
        lock = "pg_advisory_xact_lock" if alone else "pg_advisory_xact_lock_shared"
        # Asked after the lock is ours: a board may be moved away while we wait.
        about = (
            f"SELECT pg_current_xact_id()::text, moved, {WILD}, ringed FROM taskwall.boards WHERE id = {self.number}"
        )
        return f"{begin}; SELECT {lock}({LOCKS}, {self.number}); {about}"

    def _trace(self, events: list[dict[str, Any]]) -> Trace | None:
        """Asks for the first event of a change, by which that is known; what is not logged may be done again."""
        if not events:
            return None
        board, at, _, event = event_row(self.number, events[0])
        return "SELECT 1 FROM taskwall.events WHERE board = %s AND at = %s AND event = %s", board, at, event

    def _log(self, session: Session, events: list[dict[str, Any]]) -> None:
        session.run_all(EVENT, [event_row(self.number, event) for event in events])

    def events(self, task_id: str | None = None, since: str | None = None) -> list[dict[str, Any]]:
        """What happened, oldest first."""
        query = "SELECT event FROM taskwall.events WHERE board = %s"
        values: list[object] = [self.number]
        for column, bound in (("task =", task_id), ("at >=", since)):
            if bound is not None:
                query += f" AND {column} %s"
                values.append(bound)
        with self.database.session(READ) as session:
            return [json.loads(event) for (event,) in session.rows(f"{query} ORDER BY n", *values)]

    def archive(self, ids: Sequence[str]) -> tuple[list[str], list[str]]:
        """Mark finished tasks as archived, in batches between which others may write."""
        gone: list[str] = []
        for start in range(0, max(len(ids), 1), BATCH):
            gone += self._archive(list(ids[start : start + BATCH]))
        return gone, [task_id for task_id in ids if task_id not in {*gone}]

    def _archive(self, ids: list[str]) -> list[str]:
        query = (
            "UPDATE taskwall.tasks SET archived = true "
            "WHERE board = %s AND id = ANY(%s) AND NOT open AND NOT archived RETURNING id"
        )
        with self.write() as txn:
            assert isinstance(txn.below, PostgresView)
            session = txn.below.session
            gone = {i for (i,) in session.rows(query, self.number, ids)}
            if txn.below.wild:  # what an archived task alone says of others counts no longer
                count_waits(txn.below)
            session.run(f"NOTIFY {self._channel}")
            session.run(
                "UPDATE taskwall.boards SET tasks = tasks - %s, tidied = now() WHERE id = %s", len(gone), self.number
            )
        return [i for i in ids if i in gone]

    def is_tidy(self) -> bool:
        """Whether tasks were archived within the last hour."""
        query = "SELECT coalesce(tidied > now() - interval '1 hour', false) FROM taskwall.boards WHERE id = %s"
        with self.database.session(READ) as session:
            return bool(session.rows(query, self.number)[0][0])

    def watch(self) -> Watch:
        """Notices changes from now on: the database tells of them."""
        return Watch(_Ear(self.database, self._channel))

    # The whole of it

    def read_whole(self) -> Whole:
        """All of the board at one moment."""
        with self.database.session(READ) as session:
            return read_whole(session, self.number, self._now())

    @contextmanager
    def taking_in(self, whole: Whole) -> Iterator[Whole]:
        """Take a board in: what was kept of it, which counts when the block ends without an exception.

        Raises Invalid unless there is nothing here, or the board was moved away; Outdated when it was not kept.
        """
        kept = ("SELECT 1 FROM taskwall.tasks WHERE board = %s LIMIT 1", self.number)
        with self._moving(kept) as (session, _):
            write_whole(session, self.number, whole, self._now())
            yield read_whole(session, self.number, self._now())

    @contextmanager
    def giving_away(self, target: str) -> Iterator[Whole]:
        """All of the board, which is only read here when the block has ended without an exception."""
        kept = ("SELECT 1 FROM taskwall.boards WHERE id = %s AND moved = %s", self.number, target)
        with self._moving(kept) as (session, moved):
            if moved != target:  # a move there that was broken off can be made again
                require_here(moved)
            yield read_whole(session, self.number, self._now())
            session.run("UPDATE taskwall.boards SET moved = %s WHERE id = %s", target, self.number)

    @contextmanager
    def _moving(self, trace: Trace) -> Iterator[tuple[Session, str]]:
        """A transaction alone that may take its time, and where the board lies now. trace: see `Session.keeping`."""
        session = self.database.begin(self._locked(MOVE, alone=True))
        try:
            if not session.first:
                raise self._gone()
            transaction, moved, *_ = session.first
            yield session, moved
            with session.keeping(transaction, trace, f"NOTIFY {self._channel}"):
                pass
        finally:
            session.close()

    @property
    def _channel(self) -> str:
        return f"taskwall_{self.number}"


MAKE = "make it with `taskwall init`, or by adding a task (create_task), or name another: --board URL"


PAUSE = 1.0
"""Seconds between two attempts to listen to a server that is not there."""


class _Ear:
    """Counts what the database tells of a board; a lost connection counts too, for something may have been missed."""

    def __init__(self, database: Database, channel: str) -> None:
        self._database, self._channel = database, channel
        self._connection: psycopg.Connection | None = None
        self._heard, self._again = 0, 0.0

    def __call__(self) -> int:
        try:
            if self._connection is None and time.monotonic() >= self._again:
                self._again = time.monotonic() + PAUSE
                self._connection = self._database.listen(self._channel)
                self._heard += 1
            if self._connection:
                self._heard += sum(1 for _ in self._connection.notifies(timeout=0))
        except psycopg.Error:
            self._heard += self._connection is not None  # once: whoever looks then is told of the trouble
            self._close()
        return self._heard

    def _close(self) -> None:
        if self._connection:
            with suppress(psycopg.Error):
                self._connection.close()
            self._connection = None

    def __del__(self) -> None:
        self._close()
