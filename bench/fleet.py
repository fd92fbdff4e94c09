"""Claims per second on one PostgreSQL, of many clients: of our board, of queues made for it, and of the bare statements.

How each takes one piece of work and keeps that; `claims.py` runs them. The server syncs what it acknowledges.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import subprocess
import sys
import uuid
from datetime import timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))  # there stands how a server is found

OURS, BARE = "taskwall in PostgreSQL", "SELECT FOR UPDATE SKIP LOCKED, UPDATE"
CROWDS = (1, 8, 32)


class Absent(Exception):
    """There is no PostgreSQL here; the message says why."""


def new_server():
    """A server of the bench's own, as `database(name)`: a URL of a new, empty database."""
    from _pytest.outcomes import Skipped

    try:
        import postgres

        uri = postgres.GIVEN or postgres.own_server("bench").uri
    except (ImportError, Skipped) as why:
        raise Absent(str(why)) from None
    return lambda name: postgres.new_database(uri, f"bench_{name}_{os.getpid()}", durable=True)


def claimer(url, name):
    from taskwall.board import Board
    from taskwall.core.model import Actor
    from taskwall.core.refusals import NothingActionable
    from taskwall.stores.postgres.database import Address, Database
    from taskwall.stores.postgres.store import PostgresStore

    board = Board(PostgresStore(Database(Address(url))), Actor(name, name))
    board.next()

    def claim():
        try:
            return board.claim(ttl=15).row.task.id
        except NothingActionable:
            return None

    return claim


def bare(url, name):
    import psycopg

    connection = psycopg.connect(url)

    def take():
        query = "SELECT id FROM work WHERE status = 'pending' ORDER BY priority, id LIMIT 1 FOR UPDATE SKIP LOCKED"
        found = connection.execute(query).fetchone()
        if found:
            connection.execute("UPDATE work SET status = 'taken', owner = %s WHERE id = %s", (name, found[0]))
        connection.commit()
        return found and found[0]

    return take


def procrastinate(url, name):
    import procrastinate as theirs

    app = theirs.App(connector=theirs.PsycopgConnector(conninfo=url, min_size=1, max_size=1))
    run = asyncio.new_event_loop().run_until_complete
    run(app.open_async())
    atexit.register(lambda: run(app.close_async()))
    worker = run(app.job_manager.register_worker())

    def take():
        job = run(app.job_manager.fetch_job(None, worker))
        return job and job.id

    return take


def pgqueuer(url, name):
    import psycopg
    from pgqueuer.adapters.drivers.psycopg import PsycopgDriver
    from pgqueuer.ports.repository import EntrypointExecutionParameter
    from pgqueuer.queries import Queries

    run = asyncio.new_event_loop().run_until_complete
    queries = Queries(PsycopgDriver(run(psycopg.AsyncConnection.connect(url, autocommit=True))))
    wanted = {"work": EntrypointExecutionParameter(0)}

    def take():
        return next((job.id for job in run(queries.dequeue(1, wanted, uuid.uuid4(), None, timedelta(minutes=15)))), None)

    return take


RIVALS = ("procrastinate", "pgqueuer")
TAKERS = {OURS: claimer, BARE: bare, "procrastinate": procrastinate, "pgqueuer": pgqueuer}


# Filling


def fill(kind, url, tasks):
    """Put so many pieces of work into an empty database, that anybody may take."""
    {OURS: fill_ours, BARE: fill_bare, "procrastinate": fill_procrastinate, "pgqueuer": fill_pgqueuer}[kind](url, tasks)
    run(url, "ANALYZE")


def fill_ours(url, tasks):
    from taskwall.board import Board
    from taskwall.core.model import Actor
    from taskwall.core.rules import Draft
    from taskwall.stores.postgres import schema
    from taskwall.stores.postgres.database import Address, Database
    from taskwall.stores.postgres.store import PostgresStore

    store = PostgresStore(Database(Address(url)))
    schema.migrate(store.database)
    store.make()
    Board(store, Actor("maker", "maker")).create([Draft(f"task number {n}") for n in range(tasks)])


def fill_bare(url, tasks):
    run(
        url,
        "CREATE TABLE work (id integer PRIMARY KEY, priority integer, status text, owner text)",
        "CREATE INDEX offered ON work (priority, id) WHERE status = 'pending'",
        f"INSERT INTO work SELECT n, 2, 'pending' FROM generate_series(1, {tasks}) n",
    )


def fill_procrastinate(url, tasks):
    import procrastinate as theirs

    app = theirs.App(connector=theirs.SyncPsycopgConnector(conninfo=url))
    app.open()
    app.schema_manager.apply_schema()
    app.close()
    jobs = f"SELECT 'q', 't', '{{}}' FROM generate_series(1, {tasks})"
    run(url, f"INSERT INTO procrastinate_jobs (queue_name, task_name, args) {jobs}")


def fill_pgqueuer(url, tasks):
    import psycopg
    from pgqueuer.adapters.drivers.psycopg import PsycopgDriver
    from pgqueuer.queries import Queries

    async def put():
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
            queries = Queries(PsycopgDriver(connection))
            await queries.install()
            await queries.enqueue(["work"] * tasks, [None] * tasks, [0] * tasks)

    asyncio.run(put())


def run(url, *statements):
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


def place(database, kind, crowd, tasks, python):
    """The URL of a new database with so much work in it."""
    url = database(f"{kind.split()[0].lower()}_{crowd}")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run([python, __file__, kind, url, str(tasks)], check=True, **quiet)
    return url


if __name__ == "__main__":
    kind, url, tasks = sys.argv[1:]
    fill(kind, url, int(tasks))
