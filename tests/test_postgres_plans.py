"""At a million tasks, of which most are finished: what a verb asks for is found through an index, and little is read."""

from __future__ import annotations

import re
from itertools import count

import pytest
from conftest import open_board
from postgres import board_url, new_database, open_postgres, own_server
from psycopg import sql

from taskwall.core.model import Settings
from taskwall.core.rules import Draft
from taskwall.stores.postgres.database import Address, Database, Session

pytestmark = pytest.mark.slow

TASKS, FINISHED, HELD = 1_000_000, 950_000, 200
FILL = f"""
ALTER TABLE taskwall.tasks SET (autovacuum_enabled = false);
ALTER TABLE taskwall.edges SET (autovacuum_enabled = false);
ALTER TABLE taskwall.edges SET UNLOGGED;
ALTER TABLE taskwall.tasks SET UNLOGGED;
INSERT INTO taskwall.tasks (
  board, id, body, open, done, held, waits, priority, behind, created, sort, subject, key, parent, claim, session, lapses
)
SELECT 1, id, '{{"id":"' || id || '","subject":"' || id || '","status":"'
    || CASE WHEN finished THEN 'completed' WHEN held THEN 'in_progress' ELSE 'pending' END
    || '","owner":' || CASE WHEN held THEN '"h"' ELSE 'null' END || ',"blockedBy":'
    || CASE WHEN blocked THEN '["t' || n - 1 || '"]' ELSE '[]' END || ',"createdAt":"' || created
    || '","epoch":' || held::int || ',"rev":1}}',
  NOT finished, finished, held, blocked OR NOT finished AND n % 10 = 5, n % 5, 0, created, id, id, CASE WHEN n % 100 = 0 THEN 'k' || n END,
  CASE WHEN n % 10 = 0 THEN 't' || n - 5 END,
  CASE WHEN held THEN '{{"actor":"h","session":"s' || n || '","since":"2026-01-01T00:00:00Z","epoch":1,"open":true}}' END,
  CASE WHEN held THEN 's' || n END, CASE WHEN held THEN 1e10 END
FROM (
  SELECT n, 't' || n AS id, n <= {FINISHED} AS finished, n > {TASKS - HELD} AS held,
    n > {FINISHED} AND n <= {TASKS - HELD} AND n % 2 = 0 AS blocked,
    to_char(timestamp '2026-01-01' + n * interval '1 second', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS created
  FROM generate_series(1, {TASKS}) n
) made;
INSERT INTO taskwall.edges (board, blocker, task, wild)
SELECT 1, 't' || n - 1, 't' || n, false FROM generate_series({FINISHED // 2}, {TASKS - HELD}) n WHERE n % 2 = 0;
UPDATE taskwall.boards SET tasks = {TASKS}, unfinished = {TASKS - FINISHED};
"""


@pytest.fixture(scope="module")
def store():
    url = new_database(own_server().uri, "taskwall_plans", migrated=True)
    store = open_postgres(settings=Settings(), database=Database(Address(board_url("main", url))), name="main")
    assert store.number == 1
    with store.database.session("BEGIN") as session:
        made = session.rows(
            "SELECT indexname, indexdef FROM pg_indexes WHERE tablename IN ('tasks', 'edges') AND indexname NOT LIKE '%%_pkey'"
        )
        session.script("; ".join(f"DROP INDEX taskwall.{name}" for name, _ in made))
        session.script(FILL)
        session.script("; ".join(definition for _, definition in made))
    yield store
    store.database.close()


@pytest.fixture
def asked(monkeypatch):
    """What the store has sent, with its values."""
    sent = []
    for name in ("rows", "run"):
        monkeypatch.setattr(Session, name, _noting(getattr(Session, name), sent))
    script, many = Session.script, Session.run_all

    def last_of(self, statements):
        if (last := statements.rpartition("; ")[2]).startswith("SELECT"):
            sent.append((last, ()))
        return script(self, statements)

    monkeypatch.setattr(Session, "script", last_of)

    def run_all(self, statement, values):
        sent.extend((statement, each) for each in values[:1])
        many(self, statement, values)

    monkeypatch.setattr(Session, "run_all", run_all)
    return sent


def _noting(method, sent):
    def noted(self, query, *values):
        sent.append((query, values))
        return method(self, query, *values)

    return noted


FREE = count(FINISHED + 3, 10)
"""Tasks that wait for nothing."""


def verbs(board):
    """What agents do all day, and what a person looks at."""
    mine = f"t{next(FREE)}"
    board.next()
    best = board.claim(ttl=15).row.task
    board.heartbeat(best.token, ttl=15)
    board.beat([best.token], ttl=15)
    board.get("t960000")  # it waits, and has a child
    board.list()
    board.list(after="t950010", limit=5)
    board.claim(mine)
    board.complete(mine)
    board.release(best.token)
    board.store.read().by_key("k950100")
    board.store.read().by_subject("t7")
    board.store.read().children("t955")
    board.store.read().dependents("t959999")
    board.store.read().held_by(board.actor)
    board.create([Draft("new", blocked_by=("t960001",), key=f"for {mine}")])


WHOLE = re.compile(r"count\(\*\) FILTER")
"""What a page of a list counts behind itself grows with what lies there."""


def plan_of(session, query, values):
    """How the server carries a statement out, as one that is prepared."""
    number = count(1)
    text = re.sub("%s", lambda _: f"${next(number)}", re.sub(r"%\((\w+)\)s", "%s", query))
    values = [values[k] for k in re.findall(r"%\((\w+)\)s", query)] if isinstance(values, dict) else values
    session.script("DEALLOCATE ALL")
    session.script(f"PREPARE q AS {text}")
    given = sql.SQL("(") + sql.SQL(", ").join(map(sql.Literal, values)) + sql.SQL(")") if values else sql.SQL("")
    explain = sql.SQL("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE q") + given
    return session.rows(explain.as_string(session._connection))[0][0][0]["Plan"]


def nodes(plan):
    yield plan
    for below in plan.get("Plans", ()):
        yield from nodes(below)


def costly(plan, query):
    """What a plan does that grows with the board."""
    touched = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
    found = [f"{touched} buffers"] if touched > 400 else []
    for node in nodes(plan):
        rows = node["Actual Loops"] * (node["Actual Rows"] + node.get("Rows Removed by Filter", 0))
        if node["Node Type"] == "Seq Scan" and node["Relation Name"] != "boards":
            found.append(f"Seq Scan on {node['Relation Name']}")
        if rows > 300:
            found.append(f"{rows} rows in {node['Node Type']}")
    return [f"{fault}: {query}" for fault in found]


def faults(store, asked):
    bad, seen = [], {}
    verbs(open_board(store, "agent"))
    for query, values in asked:
        seen.setdefault(re.sub(r"\d+\.\d+", "", query), (query, values))
    for query, values in list(seen.values()):
        if WHOLE.search(query) or "pg_notify" in query:
            continue
        for mode in ("force_custom_plan", "force_generic_plan"):
            session = store.database.begin(f"BEGIN; SET LOCAL plan_cache_mode = {mode}; SELECT 1")
            bad += costly(plan_of(session, query, values), f"{mode}: {query} {values}")
            session.close()
    return len(seen), bad


def test_nothing_grows_with_what_is_finished_not_even_right_after_a_bulk_load(store, asked):
    tried, bad = faults(store, asked)
    assert (tried > 15, bad) == (True, [])


def test_nothing_grows_with_what_is_finished_once_the_server_knows_the_tables(store, asked):
    with store.database.session("BEGIN") as session:
        session.script("ANALYZE taskwall.tasks, taskwall.edges")
    tried, bad = faults(store, asked)
    assert (tried > 15, bad) == (True, [])


@pytest.mark.parametrize("index", ["offered", "by_parent", "wild_edges", "open_by_age", "by_key", "by_subject"])
def test_without_its_index_a_query_is_found(store, asked, index):
    with store.database.session("BEGIN") as session:
        session.script(f"UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'taskwall.{index}'::regclass")
    try:
        assert faults(store, asked)[1], "the detector sees nothing"
    finally:
        with store.database.session("BEGIN") as session:
            session.script(f"UPDATE pg_index SET indisvalid = true WHERE indexrelid = 'taskwall.{index}'::regclass")
