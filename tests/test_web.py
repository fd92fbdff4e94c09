"""The wall over HTTP: the verbs as everywhere else, and live events of what changed alone."""

import json
import os
import subprocess
import sys

import pytest
from mcp_process import run
from wall_process import Wall, rows_of

from boardfiles import Files
from conftest import add, open_board
from taskwall import verbs  # noqa: F401 - importing verbs registers them
from taskwall.board import utc_now
from taskwall.core.model import Settings
from taskwall.core.state import state
from taskwall.faces.web.lanes import lanes
from taskwall.faces.web.rows import Look, look
from taskwall.registry import VERBS
from taskwall.stores.files.store import FileStore

pytestmark = pytest.mark.slow


def cli(folder, *words):
    return json.loads(run(folder, "--board", str(folder), *words, "--json").stdout)


@pytest.fixture
def files(tmp_path):
    """A board on which `b` waits for `a`, and `c` for nobody."""
    files = Files(tmp_path)
    add(files.board(), "a", description="the first")
    add(files.board(), "b", "a", labels=("x",))
    add(files.board(), "c")
    return files


@pytest.fixture
def wall(files):
    with Wall(files.folder) as wall:
        yield wall


def agent(files, name):
    """The board as another process has it, whose leases the server judges by the same clock."""
    return open_board(FileStore(str(files.path), Settings(durability="fast")), name)


SAME = [
    ("get_task", {"task_id": "a"}, ["show", "a"]),
    ("list_tasks", {"everything": True}, ["list", "--all"]),
    ("next_actionable", {}, ["next", "-n", "3"]),
    ("why", {"task_id": "b"}, ["why", "b"]),
    ("graph", {}, ["graph"]),
    ("history", {}, ["log"]),
    ("fleet", {}, ["fleet"]),
    ("get_task", {"task_id": "nothing"}, ["show", "nothing"]),
    ("claim_task", {"task_id": "b"}, ["claim", "b"]),
    ("complete_task", {"task_id": "a"}, ["done", "a"]),
    ("create_task", {"subject": "x", "blockedBy": ["a", "nix"]}, ["add", "x", "-b", "a", "nix"]),
    ("update_task", {"task_id": "a", "addBlockedBy": "b"}, ["block", "a", "b"]),
]


@pytest.mark.slow
def test_every_answer_and_refusal_is_that_of_the_command_line(wall, files):
    for verb, arguments, words in SAME:
        assert wall.ask(verb, **arguments).json() == cli(files.folder, *words), verb


def test_a_change_over_http_is_one_by_the_servers_actor(wall, files):
    assert wall.ask("claim_task", task_id="a").json()["data"]["task"]["owner"] == "user"
    done = wall.ask("complete_task", task_id="a", result="好").json()["data"]
    assert [task["id"] for task in done["unblocked"]] == ["b"]
    assert json.loads((files.path / "a.json").read_text())["result"] == "好"


def test_a_refusal_has_a_status_of_its_kind(wall):
    assert wall.ask("claim_task", task_id="nothing").status_code == 404
    assert wall.ask("claim_task", task_id="b").status_code == 409
    assert wall.ask("claim_task", nonsense=1).status_code == 400
    assert wall.ask("no_such_verb").status_code == 400


def test_the_description_names_every_verb_with_all_that_it_takes(wall):
    told = wall.client.get("/api/openapi.json").json()
    assert told["openapi"].startswith("3.1")
    assert set(told["paths"]) == {f"/api/verbs/{name}" for name in VERBS}
    for name, verb in VERBS.items():
        body = told["paths"][f"/api/verbs/{name}"]["post"]["requestBody"]["content"]["application/json"]["schema"]
        assert set(body["properties"]) == {param.public for param in verb.params}
        assert body["required"] == [param.public for param in verb.params if param.required]


def test_actions_are_those_of_the_servers_actor(wall, files):
    assert "claim" in wall.get("actions", task="a")["actions"]
    assert "claim" not in wall.get("actions", task="b")["actions"]
    files.board("ann").claim("a")
    assert {"steal", "cancel"} <= set(wall.get("actions", task="a")["actions"])


@pytest.mark.slow
def test_who_acts_is_as_the_server_was_told(files):
    with Wall(files.folder, "--as", "ann", TASKWALL_ACTOR="bob", CLAUDECODE="1") as wall:
        assert wall.ask("claim_task", task_id="a").json()["data"]["task"]["owner"] == "ann"
    with Wall(files.folder, TASKWALL_ACTOR="bob", CLAUDECODE="1") as wall:
        assert wall.served["actor"] == "user", "the person at the browser is no agent, whoever started the server"


@pytest.mark.slow
def test_nothing_is_changed_by_a_page_for_reading(files):
    with Wall(files.folder, "--read-only") as wall:
        before = files.texts()
        for name, verb in VERBS.items():
            refused = wall.ask(name, task_id="a", subject="s", tasks=[], question="?", text="t").json()
            if verb.writes:
                assert refused["error"]["code"] == "read_only", name
        assert wall.ask("get_task", task_id="a").json()["ok"]
        assert wall.get("actions", task="a")["actions"] == []
        assert files.texts() == before


# Live


def test_a_stream_begins_with_the_whole_board_and_goes_on_with_what_changed(wall, files):
    with wall.stream() as events:
        name, told, _ = next(events)
        rows = rows_of(told)
        assert name == "board" and set(rows) == {"a", "b", "c"}
        assert (rows["a"]["state"], rows["a"]["frees"], rows["b"]["waits"]) == ("ready", 1, ["a"])
        assert told["about"]["actor"] == "user" and told["about"]["person"] and told["about"]["writable"]
        agent(files, "ann").claim("a", ttl=15)
        name, told, _ = next(events)
        assert name == "change" and set(rows_of(told)) == {"a"}
        claim = rows_of(told)["a"]["claim"]
        assert claim["lease"] == "live" and 0 < claim["until"] - told["now"] <= 15 * 60_000
        wall.ask("update_task", task_id="c", subject="another")
        assert rows_of(next(events)[1])["c"]["subject"] == "another"


def test_a_file_saved_by_an_editor_is_a_change_and_a_removed_one_is_gone(wall, files):
    with wall.stream() as events:
        next(events)
        path = files.path / "c.json"
        path.write_text(path.read_text().replace("task c", "任务丙"))
        assert rows_of(next(events)[1])["c"]["subject"] == "任务丙"
        path.unlink()
        assert next(events)[1]["gone"] == ["c"]
        path.write_text('{"id": "c", "subject": ')
        assert rows_of(next(events)[1])["c"]["state"] == "broken"


def test_time_that_passes_is_no_change_and_a_renewed_lease_is_one(board_for, clock):
    board = board_for("ann")
    add(board, "a")
    board.claim("a", ttl=15)
    seen = look(board.store.read(), board.actor, 1_000_000, Look())
    clock.sleep(seconds=30)
    later = look(board.store.read(), board.actor, 1_030_400, seen)
    assert later.rows == seen.rows
    board.heartbeat("a")
    renewed = look(board.store.read(), board.actor, 1_030_500, later)
    assert renewed.rows["a"]["claim"]["until"] == 1_030_500 + 15 * 60_000


def test_a_lease_that_runs_out_is_told_though_no_file_changes(wall, files):
    with wall.stream() as events:
        next(events)
        agent(files, "ann").claim("a", ttl=1 / 60)
        states = []
        for _, told, _ in events:
            states += [row["state"] for row in told["tasks"] if row["id"] == "a"]
            if states[-1] == "stale":
                break
        assert states == ["in_progress", "stale"]


@pytest.mark.slow
def test_what_waits_for_the_person_at_the_page_is_marked(files):
    board = files.board("ann")
    board.ask("a", "red or blue?", ("red", "blue"))
    board.hold("c", "later")
    (files.path / "d.json").write_text("{")
    with Wall(files.folder) as wall, wall.stream() as events:
        rows = rows_of(next(events)[1])
        assert {row["state"] for row in rows.values() if row.get("you")} == {"waiting", "held", "broken"}
        question = next(row for row in rows.values() if row.get("question"))
        assert question["options"] == ["red", "blue"]
    with Wall(files.folder, "--as", "ann") as wall, wall.stream() as events:
        assert not [row for row in rows_of(next(events)[1]).values() if row.get("you")]


def test_a_board_that_cannot_be_read_is_said_and_comes_back(wall, files):
    away = files.path.with_name("away")
    with wall.stream() as events:
        next(events)
        files.path.rename(away)
        files.path.write_text("no folder")
        seen = []
        for name, told, _ in events:
            seen.append(name)
            if name == "trouble":
                assert told["error"]["code"] == "unreadable"
                files.path.unlink(missing_ok=True)
                if away.exists():
                    away.rename(files.path)
            elif "trouble" in seen:
                break
        assert wall.ask("get_task", task_id="a").json()["ok"]


def test_all_pages_share_one_thread(wall, files):
    def threads():
        return len(os.listdir(f"/proc/{wall.process.pid}/task"))

    with wall.stream() as first:
        next(first)
        before = threads()
        with wall.stream() as second, wall.stream() as third:
            assert rows_of(next(second)[1]) == rows_of(next(third)[1])
            assert threads() == before
            files.board("ann").claim("c")
            assert next(second)[1]["tasks"] == next(third)[1]["tasks"]


@pytest.mark.slow
def test_a_page_ends_up_with_the_board_as_it_is_whatever_a_crowd_does_to_it(wall, files):
    script = """if True:
        import sys
        from taskwall.config import find_actor, find_board, open_board
        from taskwall.core.errors import Refused
        from taskwall.core.rules import Draft
        name, folder = sys.argv[1:]
        board = open_board(find_board(folder, {}, folder), find_actor(name, {}))
        for n in range(25):
            board.create([Draft(subject=f"{name} {n}", ref="x"), Draft(subject="after", blocked_by=("x",))])
            try:
                task = board.claim().row.task
                (board.release if n % 5 == 0 else board.complete)(task.token)
            except Refused:
                pass
    """
    with wall.stream() as events:
        shown = rows_of(next(events)[1])
        command = [sys.executable, "-c", script]
        agents = [subprocess.Popen([*command, f"agent{n}", str(files.folder)]) for n in range(3)]
        assert [process.wait() for process in agents] == [0, 0, 0]
        wall.ask("update_task", task_id="a", note="the last")
        last = files.reread().get("a").rev
        for _, told, _ in events:
            shown |= rows_of(told)
            if shown["a"]["rev"] == last:
                break
    view = files.reread()
    assert {i: row["state"] for i, row in shown.items()} == {task.id: state(view, task).name for task in view}
    assert len(shown) == 3 + 3 * 25 * 2


def test_a_page_that_comes_back_sees_what_it_missed(wall, files):
    with wall.stream() as events:
        next(events)
    files.board("ann").claim("c")
    with wall.stream() as events:
        states = {}
        for _, told, _ in events:
            states |= {i: row["state"] for i, row in rows_of(told).items()}
            if states["c"] == "in_progress":
                break


def test_lanes_tell_who_worked_when_and_how_it_ended(wall, files):
    ann, bob, cat = (open_board(files.store, name, clock=utc_now) for name in ("ann", "bob", "cat"))
    ann.claim("a", ttl=15)
    ann.complete("a")
    ann.claim("c", ttl=1 / 600)
    files.clock.sleep(minutes=1)
    bob.claim("c")
    cat.claim("c", steal=True, reason="bob sleeps")
    told = {lane["actor"]: lane["spans"] for lane in wall.get("lanes")["lanes"]}
    assert [(s["task"], s["end"]) for s in told["ann"]] == [("a", "done"), ("c", "expired")]
    assert [(s["task"], s["end"]) for s in told["bob"]] == [("c", "stolen")]
    assert [(s["task"], s["end"], "to" in s) for s in told["cat"]] == [("c", "open", False)]


def test_lanes_of_a_week_have_what_is_held_for_longer(board_for, clock):
    ann, bob = board_for("ann"), board_for("bob", "s2")
    for id in ("a", "b", "c"):
        add(ann, id)
    ann.claim("a"), ann.complete("a"), bob.claim("b")
    clock.sleep(minutes=8 * 24 * 60)
    ann.claim("c")
    one, other = lanes(ann.lately(7), ann.store.read())
    assert (one["actor"], [(s["task"], s["end"]) for s in one["spans"]]) == ("ann", [("c", "open")])
    assert (other["session"], [(s["task"], s["end"], s["subject"]) for s in other["spans"]]) == (
        "s2",
        [("b", "open", "task b")],
    )
    assert other["spans"][0]["from"] == ann.get("b").claim["since"]


def test_the_log_of_a_run_is_found_by_its_session(wall, files):
    runs = files.path / ".local" / "runs"
    runs.mkdir(parents=True)
    lines = [
        {"run": "r1", "actor": "ann", "session": "s-9"},
        {"message": {"role": "assistant", "content": "I look", "tool_calls": [{"function": {"name": "bash", "arguments": "{}"}}]}},
        {"end": {"exit": 0, "why": "finished"}},
    ]  # fmt: skip
    (runs / "r1.jsonl").write_text("\n".join(map(json.dumps, lines)) + '\n{"torn')
    os.symlink("/etc/passwd", runs / "r2.jsonl")
    told = wall.get("log", session="s-9")["lines"]
    assert [line["who"] for line in told] == ["assistant", "call", "end"]
    assert wall.get("log", session="unknown")["lines"] == []
    (runs / "s-10.log").write_text("one\ntwo\x1b[31m\n")
    assert [line["text"] for line in wall.get("log", session="s-10")["lines"]] == ["one", "two\x1b[31m"]


@pytest.mark.slow
def test_a_change_of_a_board_of_five_thousand_is_told_in_a_few_bytes(tmp_path):
    files = Files(tmp_path, {f"t{n}.json": crowd(n) for n in range(5000)})
    with Wall(tmp_path) as wall, wall.stream() as events:
        _, told, whole = next(events)
        assert len(told["tasks"]) == 5000 and whole < 2_000_000
        path = files.path / "t4999.json"
        path.write_text(path.read_text().replace("number 4999", "the last"))
        _, told, size = next(events)
        assert set(rows_of(told)) == {"t4999"} and size < 1000


def crowd(n):
    """The file of a task among thousands, which waits for a few before it."""
    waits = sorted({f"t{n - 1 - (n * 7 + k * 13) % 40}" for k in range(n % 3) if n > 40})
    return json.dumps(
        {
            "id": f"t{n}",
            "subject": f"task number {n}",
            "description": "",
            "status": "completed" if n < 1500 else "pending",
            "owner": None,
            "blockedBy": waits,
            "createdAt": f"2026-01-01T00:00:00.{n:06d}Z",
            "rev": 1,
        }
    )


def test_a_port_in_use_is_refused_and_without_one_the_next_free_is_taken(wall, files):
    taken = run(files.folder, "--board", str(files.folder), "web", "--port", str(wall.port))
    assert taken.returncode == 2 and "--port" in taken.stderr
    with Wall(files.folder, port=()) as one, Wall(files.folder, port=()) as two:
        assert 7420 <= one.port < two.port


def test_a_server_ends_at_once_on_a_signal_though_pages_are_open(wall):
    with wall.stream() as events:
        next(events)
        wall.process.terminate()
        assert wall.process.wait(10) in (0, -15)
