"""PostgreSQL as people and their programs meet it: addresses, tables, roles, lost connections, faces and workers."""

import json
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import psycopg
import pytest
from conftest import add, ids, open_board
from worker_process import until
from postgres import board_url, database_url, new_database, open_postgres, own_server

from taskwall import config
from taskwall.core.errors import Refused
from taskwall.core.model import Actor
from taskwall.stores.postgres import schema
from taskwall.stores.postgres.address import Address
from taskwall.stores.postgres.check import check
from taskwall.stores.postgres.database import Database
from taskwall.stores.postgres.store import PostgresStore

TASKWALL = str(Path(sys.executable).parent / "taskwall")
NUMBERS = iter(range(10**9))


def refused(code, call, *arguments, **more):
    with pytest.raises(Refused) as found:
        call(*arguments, **more)
    assert found.value.code == code, found.value
    return found.value


@pytest.fixture
def url():
    """The address of a board that is not there yet, in a database with tables."""
    return board_url(f"b{os.getpid()}_{next(NUMBERS)}")


@pytest.fixture
def empty():
    """The address of a database without tables."""
    from postgres import GIVEN

    made = new_database(GIVEN or own_server().uri, f"empty_{os.getpid()}_{next(NUMBERS)}")
    return board_url("main", made)


def environment(home, url, **more):
    return {"PATH": os.environ["PATH"], "HOME": str(home), "TASKWALL_BOARD": url, "LC_ALL": "C.UTF-8", **more}


@pytest.fixture
def tw(tmp_path, url):
    """`tw("add", …)`: the shipped command on the board at `url`."""

    def run(*words, status=0, board=url, stdin="", **more):
        env = environment(tmp_path, board, **more)
        done = subprocess.run([TASKWALL, *words], env=env, cwd=tmp_path, capture_output=True, text=True, input=stdin)
        assert done.returncode == status, done.stderr + done.stdout
        return done.stdout + done.stderr

    return run


# Addresses


@pytest.mark.parametrize(
    ("text", "board", "conninfo", "shown"),
    [
        ("postgresql://h/d", "main", "postgresql://h/d", "postgresql://h/d?board=main"),
        ("postgres://u:p%40ss@h:1/d?board=b", "b", "postgres://u:p%40ss@h:1/d", "postgres://u@h:1/d?board=b"),
        (
            "postgresql:///d?host=/run/pg&board=a%20b&sslmode=require&password=x",
            "a b",
            "postgresql:///d?host=%2Frun%2Fpg&sslmode=require&password=x",
            "postgresql:///d?host=%2Frun%2Fpg&sslmode=require&board=a%20b",
        ),
    ],
)
def test_an_address_names_the_board_and_shows_no_secret(text, board, conninfo, shown):
    address = Address(text)
    assert (address.board, address.conninfo, address.shown) == (board, conninfo, shown)
    assert Address(address.of("other")).board == "other"
    assert Address(address.of("other")).conninfo == conninfo


@pytest.mark.parametrize(
    "secret", ["postgresql://u:geheim@127.0.0.1:1/d", "postgresql://u@127.0.0.1:1/d?password=geheim"]
)
def test_no_message_tells_the_password(secret, monkeypatch):
    monkeypatch.setattr("taskwall.stores.postgres.database.PATIENCE", 0.1)
    store = PostgresStore(Database(Address(secret), patience=0.1))
    error = refused("unreadable", store.read)
    assert "cannot be reached" in error.message
    assert "geheim" not in error.message + error.next
    assert "geheim" not in Address(secret).without_secrets("password geheim is wrong")


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://owner:geheim/x@127.0.0.1/d",
        "postgresql://owner:geheim#x@127.0.0.1/d",
        "postgresql://owner:gehe@im@h:1x/d",
        "postgresql:/owner:geheim@127.0.0.1/d",
        "host=127.0.0.1 password=geheim dbname=d",
        "postgresql://h/d?board=a&board=b",
        "postgresql://h/d?board=a%0Ab",
        f"postgresql://h/d?board={'x' * 300}",
    ],
)
def test_an_address_that_cannot_be_read_is_refused_and_not_repeated(text):
    error = refused("invalid", config.find_board, text, {}, "/")
    assert "geheim" not in error.message + error.next
    assert "postgresql://USER@HOST/DATABASE?board=NAME" in error.next


@pytest.mark.parametrize(
    "text",
    ["postgresql://no.such.host.example/d", "postgresql://127.0.0.1/d?sslmode=banana", "postgresql:///d?service=none"],
)
def test_what_can_never_work_is_told_at_once(text):
    began = time.monotonic()
    refused("unreadable", PostgresStore(Database(Address(text))).read)
    assert time.monotonic() - began < 8


def test_what_is_no_address_is_refused_with_the_way_out(tmp_path):
    for text in ("mysql://h/d", "http://h"):
        assert "postgresql://USER@HOST/DATABASE?board=NAME" in refused("invalid", config.find_board, text, {}, "/").next
    refused("invalid", config.find_board, "postgresql://h/d?board", {}, "/")
    odd = config.find_board("postgresql://h/d?nosuchoption=1", {}, "/")
    assert "nosuchoption" in refused("invalid", config.open_board, odd, Actor("a", "a")).message


@pytest.mark.slow
def test_a_database_that_is_not_there_is_told_at_once(url):
    gone = re.sub(r"/taskwall_\w+\?", "/no_such_database?", url)
    began = time.monotonic()
    assert "does not exist" in refused("unreadable", PostgresStore(Database(Address(gone))).read).message
    assert time.monotonic() - began < 5


def test_without_the_driver_it_says_what_to_install(tmp_path, url):
    code = "import sys\nsys.modules['psycopg'] = None\nfrom taskwall.faces.cli.main import main\nsys.exit(main(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", code, "list"], env=environment(tmp_path, url), capture_output=True, text=True
    )
    assert (done.returncode, "pip install 'taskwall[postgres]'" in done.stderr) == (2, True), done.stderr


# The command line


@pytest.mark.slow
def test_every_verb_goes_over_an_address(tw, url):
    assert "does not exist yet" in tw("where")
    assert "has no board" in tw("list", status=2)
    assert "Created wiring: 走水电" in tw("add", "走水电", "--id", "wiring")
    tw("plan", "-", stdin="walls: 封墙 <- wiring\npaint: 刷漆 <- walls\n")
    assert "does not exist" not in tw("where")
    assert "token: wiring#1" in tw("claim", "--as", "bob", "--ttl", "5")
    assert "封墙" in tw("done", "wiring#1", "--as", "bob", "-m", "fertig")
    told = json.loads(tw("list", "--all", "--json"))["data"]
    assert [(task["subject"], task["state"]) for task in told["tasks"]] == [
        ("走水电", "completed"),
        ("封墙", "ready"),
        ("刷漆", "blocked"),
    ]
    assert "claim wiring" in tw("log")
    tw("archive")
    assert "completed" in tw("show", "wiring")
    assert "has no board" in tw("next", board=url + "x", status=2)


@pytest.mark.slow
def test_what_is_about_files_says_so(tw):
    for words in (("doctor",), ("diff",), ("log", "x", "--git"), ("setup", "git"), ("selftest",), ("init", "--git")):
        assert "is no board of files" in tw(*words, status=2), words
    assert "is no database" in tw("db", "check", board="/tmp", status=2)


@pytest.mark.slow
def test_settings_lie_in_the_database(tw, tmp_path):
    tw("init")
    assert "no settings" in tw("db", "settings")
    (tmp_path / "board.toml").write_text('people = ["安"]\nmax_attempts = 1\n')
    tw("db", "settings", "board.toml")
    assert 'people = ["安"]' in tw("db", "settings")
    tw("add", "decide", "--id", "d", "--for", "安")
    assert "waiting" in tw("show", "d")
    assert "max_attempts" in tw("db", "settings", "-", stdin="max_attempts = 0", status=2)
    for wrong in ("lease_minute = 3\n", 'moved = "x"\n'):
        assert "is no setting" in tw("db", "settings", "-", stdin=wrong, status=2)
    assert "max_attempts = 1" in tw("db", "settings")


@pytest.mark.slow
def test_check_tells_how_the_database_stands(tw, url):
    tw("add", "one", "--id", "one")
    name = Address(url).board
    assert re.search(rf"board {name}: 1 open of 1\n", tw("db", "check", status=4))  # fsync is off on test servers
    with psycopg.connect(Address(url).conninfo, autocommit=True) as connection:
        connection.execute("UPDATE taskwall.boards SET tasks = 7 WHERE name = %s", (name,))
        assert f"the counts of board {name} are wrong" in tw("db", "check", status=4)
        connection.execute("UPDATE taskwall.boards SET tasks = 1 WHERE name = %s", (name,))
    assert f"the counts of board {name} are wrong" not in tw("db", "check", status=4)


def damaged(url, statement, *values):
    with psycopg.connect(Address(url).conninfo, autocommit=True) as connection:
        connection.execute(statement, values)


@pytest.mark.slow
def test_rows_that_somebody_spoiled_are_told_and_stop_nothing_else(tw, url):
    name = Address(url).board
    tw("plan", "-", stdin="a: a\nb: b\nc: c\n")
    first, second, third = (t["id"] for t in json.loads(tw("list", "--json"))["data"]["tasks"])
    damaged(url, "UPDATE taskwall.tasks SET body = 'no task' WHERE id = %s", first)
    damaged(url, "UPDATE taskwall.tasks SET claim = 'no claim' WHERE id = %s", second)
    assert f"Claimed {second}" in tw("claim")
    assert f"Claimed {third}" in tw("claim")
    assert "unreadable" in tw("show", first)
    assert f"task {first} of board {name} cannot be read" in tw("db", "check", status=4)
    damaged(url, "UPDATE taskwall.boards SET settings = 'people = 3' WHERE name = %s", name)
    assert "people" in tw("db", "check", status=4)
    assert "taskwall db settings" in tw("list", status=2)


def test_a_board_that_was_removed_is_told_by_whoever_had_it_open(url, alone):
    board = open_board(alone, "bob")
    add(board, "a")
    damaged(url, "DELETE FROM taskwall.boards WHERE name = %s", alone.name)
    for call in (board.list, board.claim, board.next, board.fleet, alone.events, alone.settings_text):
        assert "no board" in refused("invalid", call).message
    assert "no board" in refused("invalid", add, board, "b").message


@pytest.mark.slow
def test_check_names_who_keeps_a_lock_and_says_when_nothing_can_be_written(tw, url, alone):
    with alone.write():
        assert "keeps the lock of a board" in tw("db", "check", status=4)
    assert "keeps the lock" not in tw("db", "check", status=4)
    option = "&options=-c%20default_transaction_read_only%3Don"
    assert "nothing can be written" in tw("db", "check", board=url + option, status=4)
    tw("init")
    assert "only read" in tw("add", "x", board=url + option, status=4)


@pytest.mark.slow
def test_a_database_in_another_encoding_is_refused(tw):
    from postgres import GIVEN

    made = new_database(GIVEN or own_server().uri, f"latin_{os.getpid()}", encoding="LATIN1")
    assert "UTF8" in tw("db", "migrate", board=board_url("main", made), status=2)
    assert "LATIN1" in tw("db", "check", board=board_url("main", made), status=4)


# Tables


@pytest.mark.slow
def test_only_migrate_makes_tables(tw, empty):
    for words in (("list",), ("add", "x"), ("init",), ("where",)):
        assert "taskwall db migrate" in tw(*words, board=empty, status=8), words
    assert "1 step to apply" in tw("db", "check", board=empty, status=4)
    assert "Would apply 0001_boards.sql" in tw("db", "migrate", "--dry-run", board=empty)
    assert "1 step to apply" in tw("db", "check", board=empty, status=4)
    assert "Applied 0001_boards.sql" in tw("db", "migrate", board=empty)
    assert "up to date" in tw("db", "migrate", board=empty)
    tw("add", "x", board=empty)


def test_many_may_migrate_at_once(empty):
    done = []

    def migrate():
        database = Database(Address(empty))
        done.append([step.number for step in schema.migrate(database)])
        database.close()

    threads = [threading.Thread(target=migrate) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done) == [[]] * 5 + [[step.number for step in schema.migrations()]]


def test_a_migration_that_fails_leaves_nothing(empty, monkeypatch):
    broken = schema.Migration(99, "0099_broken.sql", 1, "CREATE TABLE taskwall.half (n int); SELECT nonsense")
    monkeypatch.setattr(schema, "migrations", lambda known=schema.migrations(): [*known, broken])
    database = Database(Address(empty))
    with pytest.raises(Refused):
        schema.migrate(database)
    assert check(database).step == 0
    with database.session("BEGIN") as session:
        assert session.rows("SELECT to_regclass('taskwall.half'), to_regclass('taskwall.tasks')") == [(None, None)]


@pytest.mark.parametrize(("needs", "fits"), [(1, True), (2, False)])
def test_an_older_program_goes_on_unless_a_newer_step_forbids_it(empty, monkeypatch, needs, fits):
    database = Database(Address(empty))
    schema.migrate(database)
    board = open_board(open_postgres(database=database), "old")
    add(board, "before")
    newer = schema.Migration(2, "0002_more.sql", needs, "ALTER TABLE taskwall.tasks ADD COLUMN more text DEFAULT 'x'")
    with monkeypatch.context() as patch:
        patch.setattr(schema, "migrations", lambda known=schema.migrations(): [*known, newer])
        assert [step.number for step in schema.migrate(database)] == [2]
        add(open_board(open_postgres(database=database, name="newer"), "new"), "theirs")
    add(board, "still")  # a program that runs goes on until it ends
    opened = PostgresStore(Database(Address(empty)), name="newer")
    if fits:
        add(open_board(opened, "old"), "mine")
        assert ids(opened.read()) == ["mine", "theirs"]
    else:
        assert "newer taskwall" in refused("unreadable", opened.read).message
        assert "upgrade" in refused("unreadable", opened.make).next
        refused("invalid", schema.migrate, database)


# Roles


@pytest.mark.slow
@pytest.mark.skipif("TASKWALL_TEST_POSTGRES" in os.environ, reason="roles belong to the whole server")
def test_a_role_may_do_what_it_must_and_no_more(tw, url, tmp_path):
    name = f"crew_{os.getpid()}_{next(NUMBERS)}"
    with psycopg.connect(Address(url).conninfo, autocommit=True) as owner:
        script = tw("db", "role", name).replace("\\set ON_ERROR_STOP on", "")  # that is for psql
        owner.execute(script)
        owner.execute(script)  # again does no harm
    crew, looker = (url.replace("//postgres:", f"//{who}:") for who in (name, f"{name}_read"))
    for words in (
        *(
            ("add", "x", "--id", "x"),
            ("add", "y", "-b", "x"),
            ("claim", "x", "--as", "bob"),
            ("done", "x", "--as", "bob"),
        ),
        *(("reopen", "x"), ("list",), ("archive",), ("log",), ("watch", "--help")),
    ):
        tw(*words, board=crew)
    assert "1 open" not in tw("list", board=looker)
    assert "does not allow" in tw("add", "z", board=looker, status=4)
    assert "does not allow" in tw("work", "--", "true", board=looker, status=4)
    (tmp_path / "board.toml").write_text('people = ["codex"]\n')
    assert "does not allow" in tw("db", "settings", "board.toml", board=crew, status=4)
    assert "does not allow" in tw("move", "out", board=crew, status=4)
    assert "this role may write" in tw("db", "check", board=crew, status=4)
    assert "this role may read" in tw("db", "check", board=looker, status=4)
    with psycopg.connect(Address(crew).conninfo, autocommit=True) as connection:
        for statement in (
            "DROP TABLE taskwall.tasks",
            "CREATE TABLE taskwall.mine (n int)",
            "DELETE FROM taskwall.tasks",
            "DELETE FROM taskwall.events",
            "UPDATE taskwall.events SET event = ''",
            "INSERT INTO taskwall.migrations VALUES (9, 9)",
            "UPDATE taskwall.boards SET settings = 'people = [\"codex\"]'",
            "UPDATE taskwall.boards SET moved = 'elsewhere'",
            "DELETE FROM taskwall.boards",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)


def test_a_role_name_is_no_way_into_the_script():
    script = schema.role_script("a\"; DROP TABLE x; --'")
    assert '"a""; DROP TABLE x; --\'"' in script
    assert "'a\"; DROP TABLE x; --'''" in script


# Connections


def cut_all(url):
    """End every connection to a database but the one that asks."""
    with psycopg.connect(Address(url).conninfo, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


@pytest.fixture
def alone(url):
    """A board over connections of its own."""
    database = Database(Address(url))
    yield open_postgres(database=database)
    database.close()


def test_connections_that_were_cut_while_idle_are_not_noticed(alone, url):
    board = open_board(alone, "bob")
    add(board, "a")
    for number in range(3):
        alone.read()
        cut_all(url)
        assert add(board, f"b{number}") == f"b{number}"
        cut_all(url)
        assert "a" in ids(board.list().rows)


def test_a_view_whose_connection_was_cut_says_so_and_the_next_answers(alone, url):
    add(open_board(alone, "bob"), "a")
    view = alone.read()
    cut_all(url)
    with pytest.raises(Refused, match="gave up"):
        view.get("a")
    assert alone.read().get("a")


def test_a_transaction_whose_connection_was_cut_changed_nothing(alone, url):
    board = open_board(alone, "bob")
    add(board, "a")
    with pytest.raises(Refused, match="nothing was changed"), alone.write() as txn:
        txn.put(txn.get("a").replace(subject="changed", rev=2))
        cut_all(url)
    assert board.get("a").row.task.subject == "task a"
    with alone.write() as txn:
        txn.put(txn.get("a").replace(subject="changed", rev=2))
    assert board.get("a").row.task.subject == "changed"


def test_a_client_that_hangs_with_the_lock_is_put_out(alone, monkeypatch):
    from taskwall.stores.postgres import store

    monkeypatch.setattr(store, "WRITE", store.WRITE.replace("'20s'", "'100ms'"))
    with pytest.raises(Refused, match="nothing was changed"), alone.write() as txn:
        add(open_board(alone, "other"), "meanwhile")  # waits until the one that hangs has lost the lock
        txn.get("a")
    assert alone.read().get("meanwhile")


def test_who_waits_too_long_for_the_lock_is_told(alone, monkeypatch):
    from taskwall.stores.postgres import store

    monkeypatch.setattr(store, "WRITE", store.WRITE.replace("lock_timeout = '10s'", "lock_timeout = '50ms'"))
    with alone.write():
        assert "db check" in refused("locked", add, open_board(alone, "other"), "x").next
    add(open_board(alone, "other"), "x")


def test_a_pool_survives_a_fork(alone):
    board = open_board(alone, "bob")
    add(board, "a")
    if (child := os.fork()) == 0:
        try:
            add(board, "child")
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    add(board, "parent")
    assert sorted(ids(board.list().rows)) == ["a", "child", "parent"]


# Waking


def test_a_watch_hears_of_a_change_at_once_and_of_other_boards_never(alone):
    other = PostgresStore(alone.database, name=f"{alone.name}other")
    other.make()
    watch = alone.watch()
    assert not watch.wait(0)
    add(open_board(other, "bob"), "theirs")
    assert not watch.wait(0.3)
    timer = threading.Timer(0.2, lambda: add(open_board(alone, "bob"), "ours"))
    timer.start()
    began = time.monotonic()
    assert watch.wait(20)
    assert time.monotonic() - began < 5
    timer.join()


@pytest.mark.slow
def test_a_watch_whose_connection_was_cut_looks_again(alone, url):
    watch = alone.watch()
    cut_all(url)
    assert watch.wait(5)
    add(open_board(alone, "bob"), "a")
    assert watch.wait(5)


# Faces and workers


@pytest.mark.slow
def test_a_worker_and_agents_of_any_kind_work_the_board_off(tw, url, tmp_path):
    tw("plan", "-", stdin="".join(f"t{n}: task {n}{' <- t' + str(n // 2) if n else ''}\n" for n in range(12)))
    agent = f'"{TASKWALL}" done "$TASKWALL_TASK" -m "by $TASKWALL_ACTOR"'
    told = tw("work", "--agents", "3", "--as", "crew", "--", "sh", "-c", agent)
    assert "12" in told
    listed = json.loads(tw("list", "--all", "--json"))["data"]["tasks"]
    assert {(task["status"], task["result"], task["epoch"]) for task in listed} == {("completed", "by crew", 1)}
    assert not (tmp_path / ".tasks").exists()


@pytest.mark.slow
def test_an_mcp_server_and_the_page_serve_it(tw, url, tmp_path):
    tw("add", "走水电", "--id", "wiring")
    assert "走水电" in tw("prime")
    call = {"name": "claim_task", "arguments": {"task_id": "wiring"}}
    lines = [
        {"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": call},
    ]  # fmt: skip
    said = tw("mcp", stdin="".join(json.dumps({"jsonrpc": "2.0", **line}) + "\n" for line in lines))
    assert "wiring#1" in said
    assert json.loads(tw("show", "wiring", "--json"))["data"]["task"]["owner"].startswith("x")
    assert "走水电" in tw("export", "html")


def test_a_watch_goes_on_when_the_server_was_away(alone, url, monkeypatch):
    from taskwall.core.errors import Unreadable
    from taskwall.faces.watch import events

    board = open_board(alone, "bob")
    told = events(board)

    def hears():
        """What the watch tells next, while tasks are added."""
        heard = []
        thread = threading.Thread(target=lambda: heard.append(next(told)), daemon=True)
        thread.start()
        until(lambda: not thread.is_alive() or add(board, f"x{next(NUMBERS)}") is None)
        return heard[0]["verb"]

    assert hears() == "create"
    away, read = [Unreadable("the server is away")], alone.read

    def read_later(**more):
        if away:
            raise away.pop()
        return read(**more)

    monkeypatch.setattr(alone, "read", read_later)
    cut_all(url)
    until(lambda: hears() and not away)  # it had more to tell of what came before
    assert hears()


@pytest.mark.slow
def test_trust_and_runs_lie_in_the_home_of_who_works(tw, tmp_path):
    tw("add", "x", "--id", "x", "--check", "true")
    tw("claim", "x")
    assert "trust" in tw("done", "x", status=4)
    tw("trust", "--yes")
    assert "Completed x" in tw("done", "x")
    assert [path.name for path in tmp_path.iterdir()] == [".local"]


def test_database_of_this_process_is_not_that_of_another():
    assert str(os.getpid()) in database_url()
