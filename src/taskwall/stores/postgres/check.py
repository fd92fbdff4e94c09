"""What can be wrong with a database of boards, and with how it is kept."""

from __future__ import annotations

import time

from ...core.record import Record
from .database import LOCKS, READ, Database, Session
from .rows import task_from
from .schema import OLDEST, latest, state

COUNTED = """
SELECT b.name, b.tasks, b.unfinished, b.moved, b.settings,
  count(t.id) FILTER (WHERE NOT t.archived), count(t.id) FILTER (WHERE t.open)
FROM taskwall.boards b LEFT JOIN taskwall.tasks t ON t.board = b.id GROUP BY b.id ORDER BY b.name
"""
BROKEN_INDEXES = """
SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'taskwall' AND NOT i.indisvalid
"""
HOLDERS = f"""
SELECT l.pid, l.virtualtransaction, coalesce(nullif(a.application_name, ''), a.usename, '')
FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'advisory' AND l.classid = {LOCKS} AND l.granted
AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
LOOKS_APART = 1.0
"""Seconds between two looks at locks: who is in both has kept others waiting; times of other roles are not shown."""
ABOUT = """
SELECT current_setting('server_version'),
  coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false),
  current_setting('default_transaction_read_only') = 'on' OR pg_is_in_recovery(), current_setting('server_encoding')
"""
ALLOWED = """
SELECT has_table_privilege('taskwall.tasks', 'SELECT'), has_table_privilege('taskwall.tasks', 'UPDATE'),
  has_schema_privilege('taskwall', 'CREATE')
"""


PAGE = """
SELECT board, id, body, origin FROM taskwall.tasks WHERE (board, id) > (%s, %s) ORDER BY board, id LIMIT 1000
"""
MOST_TOLD = 20


class Held(Record):
    """One board of a database. moved: where it lies instead."""

    name: str
    tasks: int
    unfinished: int
    moved: str
    settings: str


class State(Record):
    """How a database stands. step: of the tables; latest: the newest that this program knows. problems: in words."""

    server: str
    encrypted: bool
    may: str  # nothing, read, write or migrate
    step: int
    latest: int
    boards: tuple[Held, ...] = ()
    problems: tuple[str, ...] = ()


def check(database: Database) -> State:
    """Look at everything; changes nothing. Raises Unreadable when the server cannot be reached."""
    with database.session(READ) as session:
        version, encrypted, only_reads, encoding = session.rows(ABOUT)[0]
        step, needs = state(session)
        found = State(version, encrypted, "nothing", step, latest())
        problems = list(_about_steps(step, needs))
        if encoding != "UTF8":
            problems.append(f"the database is in {encoding}: boards need one in UTF8")
        if only_reads:
            problems.append("nothing can be written: a standby, or default_transaction_read_only is on for this role")
        if step < OLDEST:
            return found.replace(problems=tuple(problems))
        reads, writes, makes = session.rows(ALLOWED)[0]
        writes, makes = writes and not only_reads, makes and not only_reads
        may = "migrate" if makes else "write" if writes else "read" if reads else "do nothing"
        if not reads:
            return found.replace(may=may, problems=(*problems, "this role may not read the tables: `taskwall db role`"))
        boards = session.rows(COUNTED)
        problems += [f"the counts of board {name} are wrong" for name, *n in boards if (n[0], n[1]) != (n[4], n[5])]
        problems += _about_server(session)
        problems += _about_tasks(session, dict(session.rows("SELECT id, name FROM taskwall.boards")))
        return found.replace(may=may, boards=tuple(Held(*row[:5]) for row in boards), problems=tuple(problems))


def _about_steps(step: int, needs: int) -> list[str]:
    if needs > latest():
        return [f"the tables are at step {step} and need a newer taskwall than this one"]
    missing = latest() - step
    return [f"{missing} step{'s' * (missing != 1)} to apply: `taskwall db migrate`"] if missing > 0 else []


def _about_server(session: Session) -> list[str]:
    found = [f"the index {name} is broken: `REINDEX INDEX taskwall.{name}`" for (name,) in session.rows(BROKEN_INDEXES)]
    [(durable,)] = session.rows(
        "SELECT current_setting('fsync') = 'on' AND current_setting('synchronous_commit') <> 'off'"
    )
    if not durable:
        found.append("fsync or synchronous_commit is off: what was acknowledged may be lost in a power cut")
    if first := session.rows(HOLDERS):
        time.sleep(LOOKS_APART)
        for pid, _, name in sorted(set(first) & set(session.rows(HOLDERS))):
            found.append(f"{name or 'somebody'} (server process {pid}) keeps the lock of a board")
    return found


def _about_tasks(session: Session, names: dict[int, str]) -> list[str]:
    """Rows that hold no task, as somebody may have written by hand."""
    found, last = [], (0, "")
    while page := session.rows(PAGE, *last):
        for board, task_id, body, origin in page:
            if flaw := task_from(task_id, body, origin).flaw:
                found.append(f"task {task_id} of board {names[board]} cannot be read: {flaw}")
        last = page[-1][:2]
    return found[:MOST_TOLD]
