"""What can be wrong with a database of boards, and with how it is kept."""

from __future__ import annotations

from ...core.record import Record
from .database import READ, Database, Session
from .schema import OLDEST, latest, state

COUNTED = """
SELECT b.name, b.tasks, b.unfinished, b.moved,
  count(t.id) FILTER (WHERE NOT t.archived), count(t.id) FILTER (WHERE t.open)
FROM taskwall.boards b LEFT JOIN taskwall.tasks t ON t.board = b.id GROUP BY b.id ORDER BY b.name
"""
BROKEN_INDEXES = """
SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'taskwall' AND NOT i.indisvalid
"""
HOLDERS = """
SELECT a.application_name, a.client_addr::text, extract(epoch FROM now() - a.xact_start)::integer
FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'advisory' AND l.classid = 29815 AND l.granted AND a.xact_start < now() - interval '5 seconds'
"""
ALLOWED = """
SELECT has_table_privilege('taskwall.tasks', 'SELECT'), has_table_privilege('taskwall.tasks', 'UPDATE'),
  has_schema_privilege('taskwall', 'CREATE')
"""


class Held(Record):
    """One board of a database. moved: where it lies instead."""

    name: str
    tasks: int
    unfinished: int
    moved: str


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
        version, encrypted = session.rows(
            "SELECT current_setting('server_version'), "
            "coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false)"
        )[0]
        step, needs = state(session)
        found = State(version, encrypted, "nothing", step, latest())
        problems = list(_about_steps(step, needs))
        if step < OLDEST:
            return found.replace(problems=tuple(problems))
        reads, writes, makes = session.rows(ALLOWED)[0]
        may = "migrate" if makes else "write" if writes else "read" if reads else "nothing"
        if not reads:
            return found.replace(may=may, problems=(*problems, "this role may not read the tables: `taskwall db role`"))
        boards = session.rows(COUNTED)
        problems += [f"the counts of board {name} are wrong" for name, *n in boards if (n[0], n[1]) != (n[3], n[4])]
        problems += _about_server(session)
        return found.replace(may=may, boards=tuple(Held(*row[:4]) for row in boards), problems=tuple(problems))


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
    for name, host, seconds in session.rows(HOLDERS):
        found.append(f"{name} ({host or 'this machine'}) has held a board's lock for {seconds} s")
    return found
