"""The MCP server: real processes over real pipes."""

import json
import os
import signal
import statistics
import subprocess
import sys
import threading
import time

import pytest
from mcp_process import McpServer, clean_env, run

from taskwall import registry, verbs  # noqa: F401 - registers the verbs
from taskwall.config import announced_name
from taskwall.registry import VERBS
from taskwall.stores.files.lock import lock

STATELESS = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


@pytest.fixture
def project(tmp_path):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    return tmp_path


@pytest.fixture
def board(project):
    """A project with three tasks that a command line made."""
    run(project, "plan", "-", input="a: first\nb: second <- a\nc: third\n", TASKWALL_ACTOR="user")
    return project


def entry(folder, subject):
    """The ledger's entry of a task, its lease with it."""
    for path in (folder / ".tasks").glob("*.json"):
        task = json.loads(path.read_text())
        if task["subject"] == subject:
            return json.loads((folder / ".tasks/.local/claims" / path.name).read_text())


def state(folder, subject):
    return json.loads(run(folder, "show", subject, "--json").stdout)["data"]["task"]["state"]


def until(condition, seconds=20):
    """Wait for a condition; what it found."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := condition():
            return found
        threading.Event().wait(0.02)
    raise AssertionError("it never came")


# Protocol


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"])
def test_versions_are_negotiated(project, version):
    with McpServer(project, version=version) as server:
        found = server.hello["result"]
        assert found["protocolVersion"] == version
        assert found["serverInfo"]["name"] == "taskwall"
        assert "tools" in found["capabilities"]
        assert "claim_task" in found["instructions"] and len(found["instructions"]) < 1500
        assert len(server.ask("tools/list")["result"]["tools"]) == 10


@pytest.mark.parametrize(
    ("asked", "given"),
    [("2023-01-01", "2024-11-05"), ("2025-05-01", "2025-03-26"), ("2031-01-01", "2025-11-25"), (None, "2025-11-25")],
)
def test_an_unknown_version_is_answered_with_one_that_is_known(project, asked, given):
    with McpServer(project, version=asked) as server:
        assert server.hello["result"]["protocolVersion"] == given


def test_a_stateless_request_needs_no_handshake(board):
    with McpServer(board, hello=None) as server:
        found = server.ask("server/discover", _meta=STATELESS)["result"]
        assert found["supportedVersions"][0] == "2026-07-28" and found["resultType"] == "complete"
        assert {"ttlMs", "cacheScope"} <= found.keys()
        who = STATELESS | {"io.modelcontextprotocol/clientInfo": {"name": "New Client", "version": "1"}}
        result = server.ask("tools/call", name="claim_task", arguments={}, _meta=who)["result"]
        assert result["resultType"] == "complete" and "Claimed" in result["content"][0]["text"]
        assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "taskwall"
        assert entry(board, "first")["claim"]["actor"].startswith("new-client/")
        error = server.ask("tools/list", _meta=STATELESS | {"io.modelcontextprotocol/protocolVersion": "2099-01-01"})
        assert (error["error"]["code"], error["error"]["data"]["requested"]) == (-32022, "2099-01-01")
        assert "2026-07-28" in error["error"]["data"]["supported"]


def test_the_ten_tools_come_with_what_a_client_may_assume(project):
    with McpServer(project) as server:
        tools = {tool["name"]: tool for tool in server.ask("tools/list")["result"]["tools"]}
    bare = [{k: v for k, v in tool.items() if k != "annotations"} for tool in tools.values()]
    assert bare == registry.tools()
    assert len(json.dumps(bare).encode()) <= 4608
    hints = {name: tool["annotations"] for name, tool in tools.items()}
    assert {n for n, h in hints.items() if h["readOnlyHint"]} == {"list_tasks", "get_task", "next_actionable"}
    assert {n for n, h in hints.items() if h["idempotentHint"]} == {
        "list_tasks", "get_task", "next_actionable", "complete_task", "release_task",
    }  # fmt: skip
    assert not any(h["destructiveHint"] or h["openWorldHint"] for h in hints.values())
    assert {v.name for v in VERBS.values() if v.destroys} == {"cancel"}


def test_tools_may_be_more_or_fewer(board):
    with McpServer(board, "--tools", "next_actionable, why") as server:
        assert [tool["name"] for tool in server.ask("tools/list")["result"]["tools"]] == ["next_actionable", "why"]
        assert "is blocked" in server.call("why", task_id="second")[0]
        text, failed = server.call("claim_task", task_id="first")
        assert failed and "there are next_actionable, why" in text
        assert "did you mean next_actionable?" in server.call("next_actionables")[0]
    wrong = run(board, "mcp", "--tools", "wrong")
    assert wrong.returncode == 2 and "claim_task" in wrong.stderr and not wrong.stdout


def test_malformed_input_is_answered_and_survived(board):
    with McpServer(board) as server:
        for sent, code in [
            (b"nonsense", -32700),
            (b'{"jsonrpc": "2.0", "id": 7, "method": "ping"', -32700),
            (b"\xff\xfe", -32700),
            (b"[" * 100_000, -32700),
            (b"[]", -32600),
            (b'[{"jsonrpc": "2.0", "id": 7, "method": "ping"}]', -32600),
            (b"7", -32600),
            (b'{"id": 7}', -32600),
            (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', -32600),
            (b'{"jsonrpc": "2.0", "id": {}, "method": "ping"}', -32600),
            (b'{"jsonrpc": "2.0", "id": 7, "method": "resources/list"}', -32601),
            (b'{"jsonrpc": "2.0", "id": 7, "method": "ping", "params": [1]}', -32602),
            (b'{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": 7}}', -32602),
            (b'{"jsonrpc": "2.0", "id": 7, "method": "tools/call"}', -32602),
            (b'{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": [1]}', -32602),
        ]:
            server.send(sent)
            found = server.line()
            assert found["error"]["code"] == code, sent
            assert found["id"] == (7 if b'"id": 7' in sent and code in (-32601, -32602) else found["id"])
        for ignored in (
            b"",
            b"  ",
            b'{"jsonrpc": "2.0", "id": 3, "result": {}}',
            b'{"method": "no/such/notification"}',
        ):
            server.send(ignored)
        server.tell("notifications/cancelled", requestId=1, reason="late")
        assert server.ask("ping")["result"] == {}
        for strange in ("not json", 7, [1], {"task_id": {"a": 1}}, {"colour": "red"}):
            result = server.ask("tools/call", name="get_task", arguments=strange)["result"]
            assert result["isError"] and "Next: " in result["content"][0]["text"]
        assert server.end() == (0, b"")


def test_batches_belong_to_the_version_that_has_them(board):
    batch = [
        {"jsonrpc": "2.0", "id": 50, "method": "ping"},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 51, "method": "tools/call", "params": {"name": "create_task", "arguments": {"subject": "x"}}},
        7,
    ]  # fmt: skip
    with McpServer(board, version="2025-03-26") as server:
        server.send(batch)
        found = server.line()
        assert [answer["id"] for answer in found] == [50, 51, None]
        assert "Created" in found[1]["result"]["content"][0]["text"]


def test_shutdown_ends_it(board):
    with McpServer(board) as server:
        assert server.ask("shutdown")["result"] == {}
        assert server.process.wait(10) == 0


@pytest.mark.slow
def test_it_starts_light(board):
    """What is loaded, not how long it takes; the ratio to a bare start is printed."""
    hello = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}})
    code = "import sys\nfrom taskwall.faces.cli.main import main\nmain(['mcp'])\nprint('LOADED', *sys.modules, file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], input=hello, capture_output=True, text=True, cwd=board,
        env=clean_env(PYTHONPATH=os.path.dirname(os.path.dirname(registry.__file__))),
    )  # fmt: skip
    assert json.loads(done.stdout)["result"]["protocolVersion"] == "2025-06-18"
    loaded = set(done.stderr.rpartition("LOADED ")[2].split())
    from test_architecture import HEAVY

    needed = {
        "argparse", "collections", "contextlib", "enum", "functools", "gettext", "json", "locale", "operator", "re",
        "shutil", "types",
    }  # fmt: skip # by argparse and by JSON-RPC
    assert not loaded & HEAVY - needed and "taskwall.agent" not in loaded and "threading" in loaded

    def seconds(*words):
        start = time.perf_counter()
        subprocess.run([sys.executable, *words], input=hello, capture_output=True, text=True, cwd=board)
        return time.perf_counter() - start

    bare = statistics.median(seconds("-c", "pass") for _ in range(5))
    answered = statistics.median(seconds("-m", "taskwall", "mcp") for _ in range(5))
    print(f"\nstart, initialize and end: {answered / bare:.1f} x a bare start of {1000 * bare:.0f} ms")


# Tools


def test_a_plan_is_worked_off(board):
    with McpServer(board) as server:
        text, _ = server.call("list_tasks")
        assert text.startswith("3 tasks\n[ ] ")
        assert server.call("claim_task", task_id="second")[1]
        text, failed = server.call("claim_task")
        assert not failed and "token: " in text
        again, failed = server.call("claim_task", task_id="first")
        assert not failed and "already yours" in again
        text, failed = server.call("complete_task", task_id="first", result="done")
        assert "Unblocked:" in text and "second" in text
        text, failed = server.call("claim_task", task_id="first")
        assert failed and "already completed" in text and "Next: " in text
        assert server.call("list_tasks")[0].startswith("2 tasks, 1 finished\n")


def test_reading_tools_say_that_there_is_no_board_and_creating_ones_make_it(project):
    with McpServer(project) as server:
        for tool in ("list_tasks", "next_actionable", "claim_task"):
            text, failed = server.call(tool)
            assert failed and "no board" in text and "create_task" in text
        assert not (project / ".tasks").exists()
        text, failed = server.call("create_task", subject="first")
        assert not failed and "made the board" in text and "Created" in text
        assert "made the board" not in server.call("list_tasks")[0]
        assert not server.call("claim_task")[1]
        assert entry(project, "first")["lease"]


def test_results_stay_under_eight_thousand_characters_and_their_cursor_leads_on(project):
    lines = "\n".join(f"t{n}: {'很长' * 90} {n}" for n in range(120))
    run(project, "plan", "-", input=lines)
    run(project, "add", "large", "--id", "large", "-d", "x" * 60_000)
    with McpServer(project) as server:
        seen, after = [], {}
        while True:
            head, *rows = server.call("list_tasks", **after)[0].split("\n")
            seen += [row.split("] ")[1].split(":")[0] for row in rows]
            if "after=" not in head:
                break
            assert head.startswith(f"{len(rows)} of ")
            after = {"after": head.rpartition("after=")[2]}
        assert len(seen) == len(set(seen)) == 121
        text, failed = server.call("get_task", task_id="large")
        assert not failed and "bytes more (--json tells all)" in text and len(text) > 6000
        assert len(server.call("claim_task", task_id="large")[0]) < 8000


def test_concurrent_calls_are_all_answered_and_no_read_waits_for_a_write(board):
    with McpServer(board) as server:
        server.call("list_tasks")
        with lock(str(board / ".tasks/.local/lock")):
            write = server.begin("tools/call", name="create_task", arguments={"subject": "waits for the lock"})
            assert server.call("list_tasks")[0].startswith("3 tasks")
            assert write not in server.answers
        assert "Created" in server.answer(write)["result"]["content"][0]["text"]
        made = [
            server.begin("tools/call", name="create_task", arguments={"subject": f"n{i}", "key": f"k{i % 20}"})
            for i in range(40)
        ]
        read = [server.begin("tools/call", name="list_tasks") for _ in range(20)]
        assert not any(server.answer(number)["result"]["isError"] for number in made + read)
        assert server.call("list_tasks")[0].startswith("24 tasks")


# Sessions, leases and ends


@pytest.mark.parametrize(
    ("announced", "name"),
    [
        ("claude-code", "claude"), ("codex-mcp-client", "codex"), ("gemini-cli-mcp-client", "gemini"),
        ("opencode", "opencode"), ("Visual Studio Code", "visual-studio-code"), ("", "agent"), ("user", "agent"),
        ("claudette", "claudette"), ("a/1\x1b[0m", "a-1-0m"), ("x" * 99, "x" * 40),
    ],
)  # fmt: skip
def test_the_announced_name_is_cleaned_and_never_a_persons(announced, name):
    assert announced_name(announced) == name


def test_who_acts_and_in_which_session(board):
    claude = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "s-1"}
    with McpServer(board, hello="claude-code", **claude) as server:
        server.call("claim_task")
        claim = entry(board, "first")["claim"]
        assert (claim["actor"], claim["session"]) == ("claude", "s-1")
        done = run(board, "done", "first", **claude)  # the shell of the same session holds it too
        assert done.returncode == 0, done.stderr
    with McpServer(board, "--as", "robust", TASKWALL_SESSION="night") as server:
        server.call("claim_task", task_id="second")
        claim = entry(board, "second")["claim"]
        assert (claim["actor"], claim["session"]) == ("robust", "night")
    with McpServer(board, hello="codex-mcp-client") as server:
        server.ask("tools/call", name="claim_task", arguments={"task_id": "third"}, _meta={"threadId": "thread-9"})
        claim = entry(board, "third")["claim"]
        assert (claim["actor"], claim["session"]) == ("codex", "thread-9")
    assert run(board, "mcp", "--as", "two\nlines").returncode == 2


def test_two_servers_without_a_session_are_two_sessions(board):
    with McpServer(board) as one, McpServer(board) as two:
        assert not one.call("claim_task", task_id="first")[1]
        text, failed = two.call("claim_task", task_id="first")
        assert failed and "already claimed by opencode" in text
        assert two.call("complete_task", task_id="first")[1]


def test_two_worktrees_share_one_board(board):
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org"]
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], cwd=board, check=True)
    for name in ("one", "two"):
        subprocess.run(["git", "worktree", "add", "-q", board / "trees" / name, "-b", name], cwd=board, check=True)
    with McpServer(board / "trees/one") as one, McpServer(board / "trees/two") as two:
        one.call("create_task", subject="seen by both")
        assert "seen by both" in two.call("list_tasks")[0]
        got = {server.call("claim_task")[0].split()[1] for server in (one, two)}
        assert len(got) == 2
    assert not (board / "trees/one/.tasks").exists()


@pytest.mark.parametrize("number", [None, signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_whatever_ends_it_leaves_two_minutes_to_the_session(board, number):
    with McpServer(board, CLAUDE_CODE_SESSION_ID="s-1", CLAUDECODE="1", hello="claude-code") as server:
        server.call("claim_task", task_id="first")
        assert entry(board, "first")["lease"]["until"] > time.monotonic() + 600
        start = time.monotonic()
        assert server.end(number) == (0, b"")
        assert time.monotonic() - start < 2
    found = entry(board, "first")
    left = found["lease"]["until"] - time.monotonic()
    assert 100 < left <= 120 and found["claim"]["open"] and not found["claim"]["process"]
    assert state(board, "first") == "in_progress"
    with McpServer(board, CLAUDE_CODE_SESSION_ID="s-1", CLAUDECODE="1", hello="claude-code"):
        until(lambda: entry(board, "first")["lease"]["until"] > time.monotonic() + 600)


def test_an_old_server_that_ends_takes_nothing_from_the_new_one(board):
    with McpServer(board, TASKWALL_SESSION="s") as old:
        old.call("claim_task", task_id="first")
        before = entry(board, "first")["claim"]["process"]
        with McpServer(board, TASKWALL_SESSION="s"):
            until(lambda: entry(board, "first")["claim"]["process"] != before)
            assert old.end(signal.SIGTERM)[0] == 0
            found = entry(board, "first")
            assert found["claim"]["process"] and found["lease"]["until"] > time.monotonic() + 600


@pytest.mark.slow
def test_it_ends_in_time_while_the_board_is_locked(board):
    with McpServer(board) as server:
        server.call("claim_task")
        with lock(str(board / ".tasks/.local/lock")):
            server.begin("tools/call", name="create_task", arguments={"subject": "never"})
            start = time.monotonic()
            assert server.end(signal.SIGTERM)[0] == 0
            assert time.monotonic() - start < 2.5


def test_what_was_asked_before_the_end_of_input_is_answered(board):
    calls = [
        {"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": {"name": "create_task", "arguments": {"subject": f"n{n}"}}}
        for n in range(5)
    ]  # fmt: skip
    done = run(board, "mcp", input="\n".join(map(json.dumps, calls)))
    assert sorted(json.loads(line)["id"] for line in done.stdout.splitlines()) == list(range(5))
    assert done.returncode == 0


def test_a_killed_server_leaves_its_claim_stale_at_once(board):
    with McpServer(board) as server:
        server.call("claim_task", task_id="first")
        assert state(board, "first") == "in_progress"
        server.process.kill()
        server.process.wait()
        assert state(board, "first") == "stale"
        taken = run(board, "claim", "first", TASKWALL_ACTOR="next")
        assert taken.returncode == 0 and "lease ran out" in taken.stdout


@pytest.mark.slow
def test_claims_live_as_long_as_the_server_those_of_the_command_line_too(board):
    (board / ".tasks/board.toml").write_text("lease_minutes = 0.02\n")  # 1.2 seconds
    with McpServer(board, hello="claude-code", TASKWALL_SESSION="s") as server:
        server.call("claim_task", task_id="first")
        run(board, "claim", "third", TASKWALL_ACTOR="claude", TASKWALL_SESSION="s")
        first = entry(board, "first")["lease"]["until"]
        until(lambda: entry(board, "first")["lease"]["until"] > first + 2)
        assert entry(board, "third")["lease"]["until"] > first
        assert state(board, "first") == "in_progress"


@pytest.mark.slow
def test_a_lost_claim_is_told_with_the_next_result(board):
    (board / ".tasks/board.toml").write_text("lease_minutes = 0.05\n")
    with McpServer(board) as server:
        server.call("claim_task", task_id="first")
        first = entry(board, "first")["lease"]["until"]
        until(lambda: entry(board, "first")["lease"]["until"] > first)  # the heart knows of it
        assert run(board, "claim", "first", "--steal", "--reason", "slow", TASKWALL_ACTOR="thief").returncode == 0
        text = until(lambda: (found := server.call("list_tasks")[0]) and "taken over" in found and found)
        assert "thief" in text.split("\n")[0]
        assert "taken over" not in server.call("list_tasks")[0]


def test_a_board_that_another_process_makes_later_is_found(project):
    with McpServer(project) as server:
        assert server.call("list_tasks")[1]
        run(project, "add", "made elsewhere")
        assert "made elsewhere" in server.call("list_tasks")[0]
