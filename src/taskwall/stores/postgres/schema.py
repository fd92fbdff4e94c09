"""The tables, made and changed by numbered SQL files, which only `migrate` applies; and which program fits which."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import resources

from ...core.errors import Invalid, Unreadable
from ...core.record import Record
from .database import WRITE, Database, Session

OLDEST = 1
"""The oldest state of the tables that this program works with, so that programs can be renewed one after the other."""
EXISTS = "SELECT to_regclass('taskwall.migrations') IS NOT NULL"
APPLIED = "SELECT coalesce(max(number), 0), coalesce(max(needs), 0) FROM taskwall.migrations"


class Migration(Record):
    """One step. needs: the number that a program must know to work with the tables once this is applied."""

    number: int
    name: str
    needs: int
    script: str


def migrations() -> list[Migration]:
    """All steps that this program knows, in order."""
    folder = resources.files(__package__) / "migrations"
    found = []
    for file in folder.iterdir():
        if match := re.fullmatch(r"(\d{4})_(\w+)\.sql", file.name):
            script = file.read_text(encoding="utf-8")
            needs = re.match(r"-- needs: (\d+)\n", script)
            assert needs, file.name
            found.append(Migration(int(match[1]), file.name, int(needs[1]), script))
    return sorted(found, key=lambda step: step.number)


def latest() -> int:
    """The newest state of the tables that this program knows."""
    return migrations()[-1].number


def role_script(name: str) -> str:
    """SQL that makes two roles: one that works on boards, and one, `NAME_read`, that only looks."""
    from psycopg import sql

    def quoted(text: str, kind: Callable[[str], sql.Composable]) -> str:
        return kind(text).as_string(None)

    script = (resources.files(__package__) / "roles.sql").read_text(encoding="utf-8")
    for mark, role in (("role", name), ("looker", f"{name}_read")):
        script = script.replace(f"{{{mark}_text}}", quoted(role, sql.Literal))
        script = script.replace(f"{{{mark}}}", quoted(role, sql.Identifier))
    return script


def state(session: Session) -> tuple[int, int]:
    """The number of the last step that was applied, 0 for none, and what a program must know for it."""
    if not session.rows(EXISTS)[0][0]:
        return 0, 0
    number, needs = session.rows(APPLIED)[0]
    return number, needs


def require_tables(session: Session) -> None:
    """Let only a program pass that fits the tables. Raises Unreadable; changes nothing."""
    number, needs = state(session)
    if number < OLDEST:
        what = "has no tables of taskwall yet" if number == 0 else f"is at step {number}, older than this program"
        raise Unreadable(f"the database {what}", next="`taskwall db migrate`, by a role that may make tables")
    if needs > latest():
        told = f"the database is at step {number}, which needs a newer taskwall (this one knows step {latest()})"
        raise Unreadable(told, next="upgrade taskwall")


def migrate(database: Database, *, dry_run: bool = False) -> list[Migration]:
    """Apply what is missing, all or nothing, one process at a time. Returns it. dry_run: only tell."""
    with database.session(f"{WRITE}; SELECT pg_advisory_xact_lock(hashtext('taskwall.migrations'))") as session:
        number, needs = state(session)
        [(encoding,)] = session.rows("SELECT current_setting('server_encoding')")
        if encoding != "UTF8":
            raise Invalid(f"the database is in {encoding}: tasks are in UTF8", next="CREATE DATABASE … ENCODING 'UTF8'")
        if needs > latest():
            raise Invalid(f"the database is already at step {number}, which this program is too old for")
        missing = [step for step in migrations() if step.number > number]
        if missing and not dry_run:
            session.script("CREATE SCHEMA IF NOT EXISTS taskwall")
            session.script(
                "CREATE TABLE IF NOT EXISTS taskwall.migrations "
                "(number integer PRIMARY KEY, needs integer NOT NULL, applied timestamptz NOT NULL DEFAULT now())"
            )
            for step in missing:
                session.script(step.script)
                session.run("INSERT INTO taskwall.migrations (number, needs) VALUES (%s, %s)", step.number, step.needs)
        return missing
