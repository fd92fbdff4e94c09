"""Connections to a PostgreSQL database, and transactions of which it is certain in the end whether they were kept."""

from __future__ import annotations

import functools
import logging
import os
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Lock
from typing import Any, Self, cast

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus
from psycopg_pool import ConnectionPool, PoolTimeout

from ...core.errors import Invalid, Locked, ReadOnly, Refused, Unreadable, Unwritable
from ..base import Outdated
from .address import HOW, Address

PATIENCE = 15.0
"""Seconds to wait for a server that does not answer: a restart takes less."""
LOCKS = 0x7477
"""The class of our advisory locks; each board's number is the lock."""
LOCK_SECONDS = 10
MOST_CONNECTIONS = 16
"""Those of one process: as many threads may read and write at once."""

GONE = "SET LOCAL idle_in_transaction_session_timeout"
"""After how long a client whose machine vanished, or that sleeps, keeps nobody from the board any more."""
READ = f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {GONE} = '5min'; SELECT 1"  # that fixes the moment
WRITE = f"BEGIN ISOLATION LEVEL READ COMMITTED; {GONE} = '20s'; SET LOCAL lock_timeout = '{LOCK_SECONDS}s'"
MOVE = f"{WRITE}; {GONE} = 0"  # files are written meanwhile, which takes as long as it takes
NOTICE_CUTS = {"connect_timeout": 10, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3}
"""So that a cable that was cut is noticed in half a minute; the address of a board may say otherwise."""

LOST = (psycopg.OperationalError, psycopg.InterfaceError)
REPEATABLE = (errors.SerializationFailure, errors.DeadlockDetected, *LOST)
PASSING = (
    *("starting up", "shutting down", "recovery", "too many", "remaining connection slots", "administrator command"),
    *("Connection refused", "No such file", "timeout", "timed out", "closed the connection", "connection reset"),
    *("Network is unreachable", "No route to host", "Connection reset"),
)
"""What is said of a server that may soon let us in; any other complaint is final, be it the server's or libpq's."""


Trace = tuple[Any, ...]
"""A query and its values."""


@functools.cache
def shared(conninfo: str) -> Database:
    """The one database at an address, whose connections all its boards in this process share."""
    return Database(Address(conninfo))


class Database:
    """One database, by a pool of connections that is made when first needed."""

    def __init__(self, address: Address, *, patience: float = PATIENCE) -> None:
        self.address, self.patience = address, patience
        self._making = Lock()
        self._pool: ConnectionPool[psycopg.Connection] | None = None
        self._owner = 0
        self.failure: Exception | None = None

    def begin(self, script: str) -> Session:
        """A transaction that has begun with this script; its last statement's row is `Session.first`.

        Raises Unreadable when the server cannot be reached in time, and what the script is refused with.
        """
        until = time.monotonic() + self.patience
        while True:
            session = Session(self, self._connection(until))
            try:
                session.first = session.script(script)
            except Outdated:  # a connection that was idle may be lost, and nothing was asked over it yet
                session.close()
                if time.monotonic() > until:
                    raise
                continue
            except BaseException:
                session.close()
                raise
            return session

    @contextmanager
    def session(self, script: str) -> Iterator[Session]:
        """A transaction that is kept when the block ends without an exception."""
        session = self.begin(script)
        try:
            yield session
            session.commit()
        finally:
            session.close()

    def listen(self, channel: str) -> psycopg.Connection:
        """A connection of its own that hears of a channel. Raises psycopg.Error."""
        connection = self._connect()
        connection.execute(f"LISTEN {channel}")
        return connection

    def give_back(self, connection: psycopg.Connection) -> None:
        """Return a connection, whatever became of it."""
        if self._pool:
            with suppress(psycopg.Error, ValueError):
                self._pool.putconn(connection)

    def close(self) -> None:
        """Close what is idle."""
        if self._pool and self._owner == os.getpid():
            self._pool.close(timeout=1)
        self._pool = None

    def _connection(self, until: float) -> psycopg.Connection:
        with self._making:
            if self._pool is None or self._owner != os.getpid():  # connections do not survive a fork
                self._pool, self._owner = self._made(), os.getpid()
        while True:
            try:
                return self._pool.getconn(timeout=0.25)
            except PoolTimeout:
                late = time.monotonic() > until
                if self.failure and (late or _is_final(self.failure)):
                    raise self._unreachable(self.failure) from None
                if late:
                    raise Locked("all connections of this process are in use", next="repeat the command") from None

    def _made(self) -> ConnectionPool[psycopg.Connection]:
        database = self
        logging.getLogger("psycopg").addHandler(logging.NullHandler())  # what matters of it, our refusals tell

        class Connection(psycopg.Connection[tuple[Any, ...]]):
            """One that tells why it could not be made, which the pool keeps to itself."""

            @classmethod
            def connect(cls, *args: Any, **more: Any) -> Self:
                try:
                    made = super().connect(*args, **more)
                except psycopg.Error as error:
                    database.failure = error
                    raise
                database.failure = None
                return made

        return ConnectionPool(
            self.address.conninfo,
            kwargs=self._options,
            connection_class=cast("type[psycopg.Connection]", Connection),
            min_size=1,
            max_size=MOST_CONNECTIONS,
            num_workers=1,
            reconnect_timeout=self.patience,
            open=True,
        )

    @property
    def _options(self) -> dict[str, Any]:
        ours: dict[str, Any] = NOTICE_CUTS | {"tcp_user_timeout": 30_000}
        ours["application_name"] = f"taskwall {os.getpid()} on {socket.gethostname()}"  # for who looks at the server
        try:
            given = conninfo_to_dict(self.address.conninfo)
        except psycopg.Error as error:
            raise Invalid(f"not an address: {self.address.without_secrets(error)}", next=HOW) from None
        return {key: value for key, value in ours.items() if key not in given} | {"autocommit": True}

    def _connect(self) -> psycopg.Connection:
        return psycopg.connect(self.address.conninfo, **self._options)

    def _unreachable(self, error: Exception) -> Refused:
        told = f"{self.address.server} cannot be reached: {self.address.without_secrets(error)}"
        return Unreadable(told, next=f"see that the server runs and lets you in; {HOW}")


def _is_final(failure: Exception) -> bool:
    return not any(word in str(failure) for word in PASSING)


class Session:
    """One transaction over one connection. Whoever holds it closes it, at the latest by letting go of it."""

    first: tuple[Any, ...] | None = None

    def __init__(self, database: Database, connection: psycopg.Connection) -> None:
        self.database, self._connection = database, connection
        self._open = True

    def script(self, statements: str) -> tuple[Any, ...] | None:
        """Run statements that take no parameters, in one exchange. Returns the first row of the last."""
        with self._told():
            cursor = self._connection.execute(statements, prepare=False)
            while cursor.nextset():
                pass
            return cursor.fetchone() if cursor.description else None

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """What the server answers. Raises Outdated when the transaction was lost, and nothing was kept of it."""
        with self._told():
            return self._connection.execute(query, values).fetchall()

    def run(self, statement: str, *values: object) -> int:
        """Execute one statement. Returns how many rows it changed."""
        with self._told():
            return self._connection.execute(statement, values).rowcount

    def run_all(self, statement: str, values: Sequence[tuple[Any, ...] | dict[str, Any]]) -> None:
        """Execute one statement for each of these, in few exchanges."""
        if values:
            with self._told(), self._connection.cursor() as cursor:
                cursor.executemany(statement, values)

    def commit(self) -> None:
        """Keep everything. Raises Outdated when the server was lost, which may have kept it all the same."""
        with self._told():
            self._connection.execute("COMMIT")

    @contextmanager
    def keeping(self, transaction: str, trace: Trace | None = None, afterwards: str = "") -> Iterator[None]:
        """Send the statements of the block and keep everything, in one exchange. Raises Outdated when it was not kept.

        transaction: its number. trace: a question that is answered by rows only when it was kept; what leaves none may
        be done again. afterwards: what is said once it was.
        """
        try:
            with self._connection.pipeline():
                yield
                self._connection.execute("COMMIT")
                if afterwards:
                    self._connection.execute(afterwards)
        except psycopg.Error as error:
            if self._is_within or not self._was_kept(transaction, trace):
                raise self._refused(error) from None

    @property
    def _is_within(self) -> bool:
        """Whether the transaction has certainly not ended yet."""
        return not self._connection.closed and self._connection.info.transaction_status != TransactionStatus.IDLE

    def close(self) -> None:
        """Let go of the connection; what was not committed is undone."""
        if self._open:
            self._open = False
            with suppress(psycopg.Error):
                if not self._connection.closed and self._connection.info.transaction_status:
                    self._connection.execute("ROLLBACK")
            self.database.give_back(self._connection)

    def __del__(self) -> None:
        self.close()

    def _was_kept(self, transaction: str, trace: Trace | None) -> bool:
        """What became of a transaction whose end was sent, but not answered: once it is over, what it left tells.

        Its number does not: a server that broke down gives those again that it did not keep.
        """
        until = time.monotonic() + self.database.patience
        while time.monotonic() < until:
            with suppress(Refused, psycopg.Error):
                with self.database.session("BEGIN READ ONLY") as asking:
                    over = asking.is_over(transaction)
                if over:
                    with self.database.session("BEGIN READ ONLY") as asking:
                        return trace is not None and bool(asking.rows(*trace))
            time.sleep(0.05)  # its server process may not have noticed yet that nobody listens
        told = "the connection broke while the change was being kept, and the server does not tell whether it was"
        raise Unwritable(told, next="look at the task: `taskwall show`; then repeat the command if it is not done")

    def is_over(self, transaction: str) -> bool:
        """Whether no transaction of this number is at work. The last question of a session."""
        try:
            found = self._connection.execute("SELECT pg_xact_status(%s::xid8)", (transaction,)).fetchone()
        except errors.InvalidParameterValue:  # a number that the server, broken down since, has not given yet
            return True
        return found != ("in progress",)

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            raise self._refused(error) from None

    def _refused(self, error: psycopg.Error) -> Refused:
        if isinstance(error, errors.LockNotAvailable):
            way = "repeat the command; `taskwall db check` names who holds it"
            return Locked(f"others have kept the board busy for {LOCK_SECONDS} seconds", next=way)
        if isinstance(error, errors.InsufficientPrivilege):
            return ReadOnly(f"the database does not allow it: {self._said(error)}", next=ROLE)
        if isinstance(error, errors.ReadOnlySqlTransaction):
            return ReadOnly(f"the database is only read: {self._said(error)}", next="see why: `taskwall db check`")
        if isinstance(error, errors.UndefinedTable | errors.InvalidSchemaName | errors.UndefinedColumn):
            return Unreadable(f"the tables are not as expected: {self._said(error)}", next="`taskwall db check`")
        if isinstance(error, errors.UniqueViolation):
            return Invalid(f"somebody else just made it: {self._said(error)}", next="repeat the command")
        if isinstance(error, REPEATABLE) and not isinstance(error, errors.DiskFull):
            return self._lost(error)
        return Unwritable(f"the database refused: {self._said(error)}; nothing was changed")

    def _lost(self, error: psycopg.Error) -> Refused:
        return Outdated(f"the database gave up a transaction, and nothing was changed: {self._said(error)}")

    def _said(self, error: psycopg.Error) -> str:
        return self.database.address.without_secrets(error.diag.message_primary or error)


ROLE = "ask who keeps the database: tables are made by their owner, and `taskwall db role NAME` prints what others need"
