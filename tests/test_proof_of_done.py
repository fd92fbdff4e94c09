"""Proof of done: products and checks at the end of a task, with real commands, real boards and a real terminal."""

import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from boardfiles import Files
from conftest import add, ids, open_board
from worker_process import until
from mcp_process import McpServer, told
from test_cli import CLEAN

from taskwall import registry, render, verbs  # noqa: F401
from taskwall.core import errors, refusals
from taskwall.core.errors import Refused
from taskwall.core.model import Settings
from taskwall.core.rules import Edit
from taskwall.proof import TOLD, Beat, head_commit, run_check
from taskwall.signals import deferred
from taskwall.trust import Trust

NO_LEASE = Beat(lambda: None, None)
TW = f"{sys.executable} -m taskwall"


@pytest.fixture
def files(tmp_path):
    return Files(tmp_path)


@pytest.fixture
def agent(files):
    """An agent's board on which every command is trusted."""
    return trusting(files)


def trusting(files, name="agent"):
    board = files.board(name)
    board.trusts = lambda _: True
    return board


def refused(code, call, *arguments, **more):
    with pytest.raises(Refused) as found:
        call(*arguments, **more)
    assert found.value.code == code, found.value
    return found.value


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


# Checks


def test_nothing_is_unblocked_before_every_check_has_passed(agent, files):
    add(agent, "t", checks=("test -e ready", "echo all is well"))
    add(agent, "after", "t")
    agent.claim("t")
    files.diff()
    error = refused("check_failed", agent.complete, "t", result="done")
    assert ("test -e ready: exit code 1" in error.message, error.by) == (True, ("test -e ready",))
    assert files.diff() == {}
    (files.folder / "ready").touch()
    done = agent.complete("t", result="done")
    assert ids(done.unblocked) == ["after"]
    first, second = done.row.task.evidence["checks"]
    assert (first["exit"], second["output"], second["command"]) == (0, "all is well", "echo all is well")
    assert first["seconds"] >= 0
    assert agent.complete("t").already


def test_a_person_answers_a_decision_only_when_its_checks_pass(files):
    user = trusting(files, "user")
    add(user, "q", owner="user", checks=("test -e signed",))
    refused("check_failed", user.answer, "q", "yes")
    refused("check_failed", user.complete, "q", result="yes")
    (files.folder / "signed").touch()
    assert user.answer("q", "yes").row.task.evidence["checks"][0]["exit"] == 0


def test_what_a_refusal_would_refuse_anyway_runs_no_check(agent, files):
    add(agent, "first")
    add(agent, "t", checks=("touch ran",))
    for code in ("not_claimed", "blocked"):
        refused(code, agent.complete, "t")
        agent.claim("t") if code == "not_claimed" else None
        files.board("bob").update("t", Edit(add_blocked_by=("first",)))
    refused("not_owner", trusting(files, "bob").complete, "t")
    assert not (files.folder / "ran").exists()


def test_a_check_sees_the_worktree_no_input_and_the_environment_of_the_holder(agent, files, monkeypatch):
    monkeypatch.setenv("TASKWALL_TASK", "t")
    add(agent, "t", checks=("cat", 'test "$TASKWALL_TASK" = t', f'test "$PWD" = "{files.folder}"'))
    agent.claim("t")
    agent.complete("t")


def test_the_end_of_a_long_output_is_told_without_what_steers_a_terminal(agent):
    noisy = r"yes 0123456789 | head -c 9000000; printf '\n\033[31mred\033[0m \033]0;t\007\nspin 1\rspin 2\n%0999d\n' 7; exit 3"
    add(agent, "t", checks=(noisy,))
    agent.claim("t")
    error = refused("check_failed", agent.complete, "t")
    lines = error.message.split("\n")
    assert len(lines) == TOLD + 1
    assert lines[-2:] == ["  spin 2", "  " + "0" * 200]
    assert lines[-3].startswith("  red ")
    assert "\x1b" not in render.refusal(error)


def test_a_check_that_cannot_be_run_or_is_killed_is_a_failed_one(agent, files, tmp_path):
    add(agent, "t", checks=("kill -9 $$",))
    agent.claim("t")
    assert "ended by signal 9" in refused("check_failed", agent.complete, "t").message
    agent.root = str(tmp_path / "gone")
    assert "could not be run" in refused("check_failed", agent.complete, "t").message


def test_a_check_that_takes_too_long_is_ended_with_its_children(tmp_path):
    files = Files(tmp_path, check_minutes=0.01)
    agent = trusting(files)
    add(agent, "t", checks=("sleep 600 & echo $! > pid; echo begun; wait",))
    agent.claim("t")
    error = refused("check_failed", agent.complete, "t")
    assert "longer than 0.01 minutes" in error.message
    assert error.message.endswith("\n  begun")
    until(lambda: not is_running(int((tmp_path / "pid").read_text())))


def test_what_a_check_leaves_running_ends_with_it_and_keeps_nobody(tmp_path):
    ran = run_check("sleep 600 & echo $! > pid", str(tmp_path), 1, NO_LEASE)
    assert (ran.code, ran.seconds < 30) == (0, True)
    until(lambda: not is_running(int((tmp_path / "pid").read_text())))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_done_ends_its_check_and_changes_nothing(files, tmp_path, number):
    user = files.board("user")
    add(user, "t", checks=("sleep 600 & echo $! > pid; wait",))
    user.claim("t")
    env = {**CLEAN, "XDG_STATE_HOME": str(tmp_path / "state")}
    assert subprocess.run([*TW.split(), "trust", "--yes"], cwd=tmp_path, env=env).returncode == 0
    files.diff()
    done = subprocess.Popen([*TW.split(), "done", "t"], cwd=tmp_path, env=env, stderr=subprocess.DEVNULL)
    pid = int(until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text()))
    done.send_signal(number)
    assert done.wait(20) == 130
    until(lambda: not is_running(pid))
    assert files.diff() == {}


# Between the two looks at the board


def test_the_board_is_free_while_a_check_runs(agent, files):
    add(agent, "t", checks=(f"{TW} note t 'said by the check' --as somebody",))
    agent.claim("t")
    done = agent.complete("t").row.task
    assert (done.status, done.notes[-1]["text"]) == ("completed", "said by the check")


def test_promises_that_change_while_checks_run_are_proved_again(agent, files):
    change = f"test -e again || {{ touch again; {TW} edit t --check 'echo checked' --as user; }}"
    add(agent, "t", checks=(change,))
    agent.claim("t")
    done = agent.complete("t").row.task
    assert [check["command"] for check in done.evidence["checks"]] == ["echo checked"]


def test_who_is_superseded_while_checks_run_completes_nothing(agent, files):
    add(agent, "t", checks=(f"{TW} claim t --steal --reason mine --as bob",))
    agent.claim("t")
    assert refused("superseded", agent.complete, "t").by == ("bob",)
    assert agent.get("t").row.task.status == "in_progress"


def test_a_lease_is_renewed_when_a_check_begins_and_while_it_runs(agent, files, tmp_path):
    add(agent, "t", checks=("false",))
    agent.claim("t", ttl=15)
    files.clock.sleep(minutes=14)
    refused("check_failed", agent.complete, "t")
    assert agent.get("t").claim["left"] == pytest.approx(15)
    beats = []

    def renew():
        beats.append(1)
        if len(beats) == 3:
            (tmp_path / "enough").touch()
        raise errors.Locked("busy")

    check = "until test -e enough; do sleep 0.01; done"
    assert run_check(check, str(tmp_path), 1, Beat(renew, 0.1 / 60)).code == 0


def test_a_check_is_ended_when_the_claim_is_taken_over(tmp_path):
    def renew():
        if (tmp_path / "pid").exists() and (tmp_path / "pid").read_text():
            raise refusals.Superseded("gone")

    with pytest.raises(refusals.Superseded):
        run_check("sleep 600 & echo $! > pid; wait", str(tmp_path), 1, Beat(renew, 0.1 / 60))
    until(lambda: not is_running(int((tmp_path / "pid").read_text())))


# Products


def test_products_must_exist_after_the_checks_too(agent, files):
    (files.folder / "out.txt").write_text("four")
    add(agent, "t", products=("out.txt", "more/*"), checks=("rm out.txt",))
    agent.claim("t")
    refused("products_missing", agent.complete, "t")
    assert (files.folder / "out.txt").exists()
    (files.folder / "more").mkdir()
    (files.folder / "more/a").touch()
    assert refused("products_missing", agent.complete, "t").by == ("out.txt",)


def test_the_evidence_names_the_commit_that_was_checked_out(agent, files, tmp_path):
    def git(*words, cwd=tmp_path):
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        done = subprocess.run(["git", *who, *words], cwd=cwd, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    assert head_commit(str(tmp_path)) == ""
    git("init", "-q")
    assert head_commit(str(tmp_path)) == ""
    git("commit", "-q", "--allow-empty", "-m", "first")
    first = git("rev-parse", "HEAD")
    (tmp_path / "below").mkdir()
    assert head_commit(str(tmp_path / "below")) == first
    git("pack-refs", "--all")
    git("worktree", "add", "-q", "-b", "side", "linked")
    git("commit", "-q", "--allow-empty", "-m", "second", cwd=tmp_path / "linked")
    assert head_commit(str(tmp_path)) == first
    assert head_commit(str(tmp_path / "linked")) == git("rev-parse", "side")
    git("checkout", "-q", "--detach")
    assert head_commit(str(tmp_path)) == first
    (tmp_path / "out.txt").write_text("four")
    add(agent, "t", products=("out.txt",))
    agent.claim("t")
    assert agent.complete("t").row.task.evidence == {"products": {"out.txt": 4}, "commit": first}


# Trust


@pytest.fixture
def tw(tmp_path):
    """`taskwall` as a process in `tmp_path/board` or another folder, with a state folder of this test's own."""
    state = {**CLEAN, "XDG_STATE_HOME": str(tmp_path / "state")}
    (tmp_path / "board").mkdir()

    def tw(*words, cwd=tmp_path / "board", **env):
        return subprocess.run([*TW.split(), *words], cwd=cwd, env=state | env, capture_output=True, text=True, input="")

    tw.env = state
    return tw


def test_a_check_runs_once_a_person_has_trusted_it(tw, tmp_path):
    added = tw("add", "s", "--id", "t", "--check", "touch ran", "--as", "agent")
    assert "taskwall trust t" in added.stdout
    assert "checks: touch ran" in tw("claim", "t", "--as", "agent").stdout
    done = tw("done", "t", "--as", "agent")
    assert (done.returncode, "- touch ran" in done.stderr, "taskwall trust t" in done.stderr) == (4, True, True)
    asked = tw("trust", "t")
    assert (asked.returncode, "- touch ran" in asked.stderr) == (4, True)
    assert tw("done", "t", "--as", "agent").returncode == 4
    assert not (tmp_path / "board/ran").exists()
    assert tw("trust", "t", "--yes").stdout == "Trusted, on this board alone:\n- touch ran\n"
    assert tw("trust", "--list").stdout == "Trusted on this board:\n- touch ran\n"
    assert json.loads(tw("trust", "--list", "--json").stdout)["data"]["commands"] == ["touch ran"]
    assert tw("trust").stdout == "There is nothing new to trust.\n"
    assert tw("done", "t", "--as", "agent").returncode == 0
    assert (tmp_path / "board/ran").exists()


@pytest.mark.slow
def test_trust_is_of_one_board_one_command_and_one_user(tw, tmp_path):
    tw("add", "s", "--id", "t", "--check", "touch ran")
    tw("trust", "--yes")
    state = tmp_path / "state/taskwall/trust.json"
    assert (state.stat().st_mode & 0o777, state.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    tw("claim", "t")
    tw("edit", "t", "--check", "touch ran ")  # the same once it is stored
    shutil.copytree(tmp_path / "board", tmp_path / "copy")
    assert tw("done", "t", cwd=tmp_path / "copy").returncode == 4
    assert tw("done", "t", XDG_STATE_HOME=str(tmp_path / "other")).returncode == 4
    tw("edit", "t", "--check", "touch ran2")
    assert tw("done", "t").returncode == 4
    tw("edit", "t", "--check", "touch ran")
    (tmp_path / "board").rename(tmp_path / "moved")
    assert tw("done", "t", cwd=tmp_path / "moved").returncode == 4
    # Another repository in its place, whatever of the first one it brings but for its random number.
    (tmp_path / "copy/.tasks/.local").rename(tmp_path / "local")
    (tmp_path / "copy").rename(tmp_path / "board")
    assert tw("done", "t").returncode == 4
    assert not list(tmp_path.glob("*/ran*"))


def test_trusting_again_never_takes_up_a_number_that_came_with_a_repository(tw, tmp_path):
    tw("add", "s", "--id", "t", "--check", "true")
    marks = tmp_path / "board/.tasks/.local"
    mark = marks / f"identity-{os.getuid()}"
    mark.write_text("0" * 32)
    tw("trust", "--yes")
    number = mark.read_text()
    assert number.strip() != "0" * 32
    tw("add", "s", "--check", "echo")
    tw("trust", "--yes")
    assert mark.read_text() == number


def test_trust_can_be_taken_back(tw):
    for name, check in (("a", "true"), ("b", "echo b"), ("c", "echo c")):
        tw("add", "s", "--id", name, "--check", check)
    tw("trust", "--yes")
    assert tw("trust", "--revoke", "b").stdout == "Trusted no longer:\n- echo b\n"
    assert tw("trust", "--list").stdout.splitlines()[1:] == ["- true", "- echo c"]
    tw("trust", "--revoke")
    assert tw("trust", "--list").stdout == "No command of this board is trusted.\n"
    tw("claim", "a")
    assert tw("done", "a").returncode == 4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "env"),
    [
        (["--as", "claude"], {}),
        (["--as", "user"], {"CLAUDECODE": "1"}),
        (["--as", "user"], {"TASKWALL_ACTOR": "agent"}),
        (["--as", "user"], {"GEMINI_CLI": "1", "TASKWALL_ACTOR": "user"}),
        (["--as", "ann"], {"CLAUDECODE": "1", "TASKWALL_ACTOR": "ann"}),
        (["--as", "ann"], {"TASKWALL_ACTOR": "ann", "TASKWALL_SESSION": "run-1"}),
    ],
)
def test_an_agent_grants_no_trust_under_whatever_name(tw, tmp_path, words, env):
    tw("add", "s", "--check", "true")
    (tmp_path / "board/.tasks/board.toml").write_text('people = ["ann"]')
    assert "--yes" in tw("trust", "--as", "ann").stderr
    granted = tw("trust", "--yes", *words, **env)
    assert (granted.returncode, "ask a person" in granted.stderr) == (4, True)
    assert tw("trust", "--list").stdout == "No command of this board is trusted.\n"


def test_what_does_not_show_is_never_trusted(tw, tmp_path):
    for hidden in ("echo \u202egnp.sh", "echo \u200b", "echo \\\\n\\nrm -rf x"):
        text = f'{{"id": "t", "subject": "s", "description": "", "status": "pending", "owner": null, "blockedBy": [], "checks": ["{hidden}"], "rev": 1}}'
        (tmp_path / "board/.tasks").mkdir(exist_ok=True)
        (tmp_path / "board/.tasks/t.json").write_text(text)
        granted = tw("trust", "--yes")
        assert (granted.returncode, "do not show" in granted.stderr) == (2, True)
        assert "\u202e" not in granted.stderr


@pytest.mark.parametrize(("reply", "status"), [("y", 0), ("n", 4), ("", 4)])
def test_at_a_terminal_a_person_is_shown_the_commands_and_asked(tw, tmp_path, reply, status):
    tw("add", "s", "--id", "t", "--check", "make test")
    keyboard, terminal = pty.openpty()
    process = subprocess.Popen(
        [*TW.split(), "trust"], cwd=tmp_path / "board", env=tw.env, stdin=terminal, stdout=terminal, stderr=terminal
    )
    os.close(terminal)
    shown = b""
    while b"[y/N]" not in shown:
        shown += os.read(keyboard, 1000)
    assert b"- make test\r\n" in shown
    os.write(keyboard, f"{reply}\n".encode())
    assert process.wait(20) == status
    os.close(keyboard)


@pytest.mark.slow
def test_two_who_trust_at_once_lose_nothing(tw, tmp_path):
    boards = [tmp_path / f"board{n}" for n in range(6)]
    for n, board in enumerate(boards):
        board.mkdir()
        tw("add", "s", "--check", f"echo {n}", cwd=board)
    running = [subprocess.Popen([*TW.split(), "trust", "--yes"], cwd=board, env=tw.env) for board in boards]
    assert [process.wait(60) for process in running] == [0] * 6
    trusts = [Trust(str(board / ".tasks"), tw.env) for board in boards]
    assert [trust.commands() for trust in trusts] == [[f"echo {n}"] for n in range(6)]
    assert not trusts[0].allows("echo 1")


@pytest.mark.slow
@pytest.mark.parametrize("text", ["", "{", "[]", '{"boards": {"x": 1}}', '{"boards": {"x": {"commands": []}}}'])
def test_a_damaged_list_of_trusted_commands_trusts_nothing_and_is_not_written_over(tw, tmp_path, text):
    tw("add", "s", "--id", "t", "--check", "true")
    tw("trust", "--yes")
    state = tmp_path / "state/taskwall/trust.json"
    state.write_text(text)
    tw("claim", "t")
    assert tw("done", "t").returncode == 4
    assert "cannot be read" in tw("trust", "--yes").stderr
    assert state.read_text() == text


def test_every_face_asks_for_the_same_proof(files):
    board = open_board(files.store, "agent", clock=files.clock, root=files.folder)
    add(board, "t", checks=("touch ran",))
    registry.call(board, "claim_task", {"task_id": "t"})
    refused("untrusted", registry.call, board, "complete_task", {"task_id": "t"})
    refused("reserved", registry.call, board, "update_task", {"task_id": "t", "checks": []})
    assert not (files.folder / "ran").exists()


@pytest.mark.slow
def test_a_server_answers_others_while_a_check_runs_and_ends_it_with_itself(tw, tmp_path):
    board = tmp_path / "board"
    tw("add", "s", "--id", "t", "--check", "echo $$ > pid; until test -e go; do sleep 0.01; done; test -e pass")
    tw("trust", "--yes")
    with McpServer(board, hello="opencode", XDG_STATE_HOME=tmp_path / "state") as server:
        server.call("claim_task", task_id="t")
        asked = server.begin("tools/call", name="complete_task", arguments={"task_id": "t"})
        until(lambda: (board / "pid").exists())
        assert "[in_progress]" in server.call("list_tasks")[0]
        (board / "go").touch()
        text, failed = told(server.answer(asked))
        assert ("exit code 1" in text, failed) == (True, True)
        for name in ("go", "pid"):
            (board / name).unlink()
        server.begin("tools/call", name="complete_task", arguments={"task_id": "t"})
        pid = int(until(lambda: (board / "pid").exists() and (board / "pid").read_text()))
        assert server.end(signal.SIGTERM)[0] == 0
    until(lambda: not is_running(pid))


def test_the_time_limit_of_checks_is_half_an_hour_unless_set():
    assert Settings().check_minutes == 30


def test_a_check_can_be_interrupted_where_other_calls_wait_to_be(tmp_path):
    with pytest.raises(KeyboardInterrupt), deferred():
        run_check(f"kill -INT {os.getpid()}; sleep 600", str(tmp_path), 1, NO_LEASE)
