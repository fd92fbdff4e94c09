"""Hooks of coding agents: real processes with a client's JSON on standard input."""

import json
import subprocess
import sys
import threading
import time

import pytest
from mcp_process import McpServer, clean_env, run

from taskwall.faces import hook as faces_hook
from taskwall.stores.files.lock import lock

SESSION = "1c3b-session"
CLAUDE = {"session_id": SESSION, "transcript_path": "/home/x/.claude/projects/p/1.jsonl"}
EVENTS = ["SessionStart", "SessionEnd", "SubagentStop", "PostToolUse", "TaskCreated", "TaskCompleted", "Stop"]


def hook(folder, event, *words, body=None, **more):
    """A hook's exit status and what it printed, as JSON when it is any."""
    sent = json.dumps(CLAUDE | {"hook_event_name": event, "cwd": str(folder)} | (body or {}))
    done = run(folder, "hook", event, *words, input=sent, **more)
    return done.returncode, json.loads(done.stdout) if done.stdout else None, done.stderr


def claim(folder, id, session=SESSION):
    done = run(folder, "claim", id, TASKWALL_ACTOR="claude", TASKWALL_SESSION=session)
    assert done.returncode == 0, done.stderr


def statuses(folder):
    found = json.loads(run(folder, "list", "--all", "--json").stdout)["data"]["tasks"]
    return {task["subject"]: task["status"] for task in found}


@pytest.fixture
def board(tmp_path):
    for id in ("a", "b", "c"):
        run(tmp_path, "add", f"task {id}", "--id", id, TASKWALL_ACTOR="user")
    return tmp_path


@pytest.mark.parametrize("source", ["startup", "resume", "clear", "compact"])
def test_session_start_tells_the_digest_in_the_clients_own_json(board, source):
    claim(board, "a")
    status, said, _ = hook(board, "SessionStart", body={"source": source})
    told = said["hookSpecificOutput"]
    assert (status, told["hookEventName"], list(said)) == (0, "SessionStart", ["hookSpecificOutput"])
    assert "You hold:\n- a#1: task a" in told["additionalContext"] and "Commands:" in told["additionalContext"]


def test_other_clients_are_known_by_their_transcripts_or_their_environment(board):
    run(board, "claim", "a", TASKWALL_ACTOR="codex", TASKWALL_SESSION="t-1")
    for body, env in [
        ({"transcript_path": "/root/.codex/sessions/x.jsonl", "session_id": "t-1"}, {}),
        ({"transcript_path": None, "session_id": "t-1"}, {"CODEX_THREAD_ID": "old"}),
        ({"transcript_path": None, "session_id": "other"}, {"TASKWALL_SESSION": "t-1", "TASKWALL_ACTOR": "codex"}),
    ]:
        said = hook(board, "SessionStart", body=body, **env)[1]
        assert "- a#1" in said["hookSpecificOutput"]["additionalContext"]
    said = hook(board, "sessionStart", body={"cursor_version": "2", "conversation_id": "x"})[1]
    assert "Commands:" in said["additional_context"]


def test_session_end_gives_back_what_that_session_and_its_sub_agents_hold(board):
    claim(board, "a"), claim(board, "b", f"{SESSION}/agent-1"), claim(board, "c", f"{SESSION}-other")
    assert hook(board, "SessionEnd", body={"reason": "clear"})[:2] == (0, None)
    assert statuses(board) == {"task a": "pending", "task b": "pending", "task c": "in_progress"}
    assert "the session ended (clear)" in run(board, "show", "a").stdout


def test_a_sub_agents_claim_is_recorded_and_its_end_gives_back_only_that(board):
    with McpServer(board, hello="claude-code", CLAUDECODE="1", CLAUDE_CODE_SESSION_ID=SESSION) as server:
        server.call("claim_task", task_id="a")
        text, _ = server.call("claim_task", task_id="b")
        used = {
            "agent_id": "agent-1",
            "tool_name": "mcp__taskwall__claim_task",
            "tool_input": {"task_id": "b"},
            "tool_response": [{"type": "text", "text": text}],
        }
        assert hook(board, "PostToolUse", body=used)[:2] == (0, None)
        entry = json.loads((board / ".tasks/.local/claims/b.json").read_text())
        assert entry["claim"]["session"] == f"{SESSION}/agent-1" and entry["lease"]
        assert hook(board, "SubagentStop", body={"agent_id": "agent-2"})[0] == 0
        assert hook(board, "SubagentStop")[0] == 0  # without an agent id nothing
        assert statuses(board)["task b"] == "in_progress"
        text, failed = server.call("update_task", task_id="b", note="still mine")
        assert not failed
        assert "already yours" in server.call("claim_task", task_id="b")[0]
        assert hook(board, "SubagentStop", body={"agent_id": "agent-1"})[0] == 0
        assert statuses(board) == {"task a": "in_progress", "task b": "pending", "task c": "pending"}
        server.call("claim_task", task_id="c")
        assert not server.call("complete_task", task_id="c")[1]


@pytest.mark.slow
def test_a_claim_of_somebody_else_is_not_recorded_as_a_sub_agents(board):
    run(board, "claim", "a", TASKWALL_ACTOR="other")
    used = {"agent_id": "x", "tool_name": "claim_task", "tool_response": "Claimed\ntoken: a#1\n"}
    assert hook(board, "PostToolUse", body=used)[0] == 0
    assert json.loads((board / ".tasks/.local/claims/a.json").read_text())["claim"]["session"] == "other"
    for strange in (None, 7, {"content": []}, "token: nothing#1", "token: a#99"):
        assert hook(board, "PostToolUse", body=used | {"tool_response": strange})[0] == 0


@pytest.mark.slow
def test_native_tasks_are_mirrored_once_and_completed(board):
    made = {"task_id": "1", "task_subject": "建\n表", "task_description": "five tables"}
    for _ in range(2):
        assert hook(board, "TaskCreated", body=made)[:2] == (0, None)
    assert statuses(board)["建 表"] == "pending" and len(statuses(board)) == 4
    assert hook(board, "TaskCreated", body=made | {"session_id": "other", "task_subject": "other"})[0] == 0
    assert len(statuses(board)) == 5, "another session's task 1 is another task"
    for _ in range(2):
        assert hook(board, "TaskCompleted", body=made)[:2] == (0, None)
    found = json.loads(run(board, "list", "completed", "--json").stdout)["data"]["tasks"]
    assert [(task["subject"], task["owner"], task["key"]) for task in found] == [("建 表", "claude", f"{SESSION}:1")]
    assert hook(board, "TaskCreated", body=made | {"task_id": "3", "task_subject": "mine"})[0] == 0
    refused = run(board, "claim", "mine", TASKWALL_ACTOR="stranger")
    assert refused.returncode == 4 and "claude" in refused.stderr
    assert hook(board, "TaskCompleted", body={"task_id": "never seen"})[0] == 0
    assert hook(board, "TaskCreated", body={"task_id": "2"})[0] == 0


def test_the_client_is_refused_only_when_asked(board):
    made = {"task_id": "1", "task_subject": "native"}
    hook(board, "TaskCreated", body=made)
    run(board, "block", "native", "a", TASKWALL_ACTOR="user")
    status, said, complaint = hook(board, "TaskCompleted", body=made)
    assert (status, said) == (0, None) and "Blocked by: a" in complaint
    status, said, complaint = hook(board, "TaskCompleted", "--strict", body=made)
    assert (status, said) == (2, None) and "Blocked by: a" in complaint
    assert statuses(board)["native"] == "pending"


def test_stop_reminds_once_of_what_is_held(board):
    assert hook(board, "Stop")[:2] == (0, None)
    claim(board, "a")
    status, said, _ = hook(board, "Stop", body={"stop_hook_active": False})
    assert (status, said["decision"]) == (0, "block") and "a#1 (task a)" in said["reason"]
    assert hook(board, "Stop", body={"stop_hook_active": True})[:2] == (0, None)


@pytest.mark.parametrize("event", EVENTS)
def test_without_a_board_it_does_nothing(tmp_path, event):
    body = {
        "task_id": "1",
        "task_subject": "s",
        "agent_id": "x",
        "tool_name": "claim_task",
        "tool_response": "token: a#1",
    }
    assert hook(tmp_path, event, body=body) == (0, None, "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("sent", ["", "not json", "[1]", "{", "[" * 100_000, '{"session_id": {"a": 1}, "cwd": 7}'])
def test_bad_input_is_tolerated(board, sent):
    for event in EVENTS:
        assert run(board, "hook", event, input=sent).returncode == 0
    assert statuses(board) == {f"task {id}": "pending" for id in "abc"}


def test_a_slip_in_the_settings_is_no_veto(board):
    for words in (["Nonsense"], ["SessionStart", "--bogus"], ["SessionStart", "x", "y"], ["Stop", "--as", "a\nb"], []):
        done = run(board, "hook", *words, input="{}")
        assert (done.returncode, done.stdout) == (0, ""), words
        assert done.stderr
    assert run(board, "--board", "/no/such/folder", "hook", "SessionStart", input="{}").returncode == 0
    assert run(board, "prime", "--bogus").returncode == 0


def test_the_event_may_come_with_the_input(board):
    done = run(board, "hook", input=json.dumps(CLAUDE | {"hook_event_name": "SessionStart", "cwd": str(board)}))
    assert "Commands:" in json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"]


@pytest.mark.slow
def test_a_locked_board_or_an_open_input_is_given_up_in_time(board):
    claim(board, "a")
    with lock(str(board / ".tasks/.local/lock")):
        start = time.monotonic()
        assert hook(board, "SessionEnd")[0] == 0
        assert time.monotonic() - start < 2.5
    assert statuses(board)["task a"] == "in_progress"
    command = [sys.executable, "-m", "taskwall", "hook", "SessionStart"]
    with subprocess.Popen(command, cwd=board, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=clean_env()) as child:
        start = time.monotonic()
        assert child.wait(10) == 0
        assert time.monotonic() - start < 2.5


@pytest.mark.slow
def test_the_start_of_a_session_on_a_slow_board_says_that_it_is_slow(board, monkeypatch, capsys):
    monkeypatch.setattr("taskwall.board.Board.digest", lambda board: threading.Event().wait(5))
    monkeypatch.setattr(faces_hook, "_input", dict)
    start = time.monotonic()
    assert faces_hook.run("SessionStart", given=str(board)) == 0
    assert time.monotonic() - start < 2
    told = json.loads(capsys.readouterr().out)["hookSpecificOutput"]["additionalContext"]
    assert "did not answer in time" in told


def test_a_closed_input_is_none(board):
    command = f"{sys.executable} -m taskwall hook SessionStart <&-"
    done = subprocess.run(command, shell=True, cwd=board, capture_output=True, text=True, env=clean_env())
    assert (done.returncode, done.stderr) == (0, "") and "Commands:" in done.stdout


def test_the_end_of_a_session_without_a_name_gives_nothing_of_a_person_back(board):
    run(board, "add", "mine", "--id", "mine")
    run(board, "claim", "mine")
    for body in (b"garbage", b'{"reason": "x"}', b'{"session_id": ""}'):
        subprocess.run(
            [sys.executable, "-m", "taskwall", "hook", "SessionEnd"], cwd=board, input=body, env=clean_env(), check=True
        )
        assert json.loads((board / ".tasks/mine.json").read_text())["status"] == "in_progress"
