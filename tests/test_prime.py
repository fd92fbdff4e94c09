"""The digest for agents: what it says, how short it stays, how it behaves where there is little to say."""

import json
import subprocess
import threading

import pytest
from conftest import add, open_board, open_store
from mcp_process import run

from taskwall import config, lengths
from taskwall.core.model import Actor
from taskwall.core.rules import Draft
from taskwall.faces.cli.main import main
from taskwall.faces.prime import prime, within
from taskwall.stores.files.lock import lock

MOST = 700


def tokens(text):
    """3.5 bytes a token, but one a Chinese character."""
    wide = sum("\u2e80" <= c <= "\uffef" for c in text)
    return wide + sum(len(c.encode()) for c in text if not "\u2e80" <= c <= "\uffef") / 3.5


def primed(folder, actor):
    location = config.find_board(str(folder), {}, str(folder))
    return prime(location, actor, seconds=60)


@pytest.mark.slow
def test_it_says_what_is_held_what_is_next_and_who_must_act(tmp_path, clock):
    store = open_store("files", tmp_path, clock)
    mine, other = open_board(store, "me", "s", clock=clock), open_board(store, "other", clock=clock)
    for id in ("held", "taken", "n1", "n2", "n3", "n4", "n5"):
        add(mine, id)
    add(mine, "which", owner="user"), add(mine, "later", "which")
    mine.claim("held"), other.claim("taken")
    text = primed(tmp_path, Actor("me", "s"))
    assert "The board now: 5 ready, 2 in_progress, 1 waiting, 1 blocked." in text
    assert "You hold:\n- held#1: task held\nOthers hold 1." in text
    assert "Next:\n[ ] n1: task n1 [pending]\n[ ] n2: task n2 [pending]\n[ ] n3: task n3 [pending]\n… 2 more" in text
    assert "Who must act:\n- waiting on user: which\n- in progress by other: taken" in text
    commands = text.partition("Commands:\n")[2].splitlines()
    assert len(commands) == 5 and all(line.startswith("taskwall ") for line in commands)
    assert not set("`$<") & set(text.partition("Commands:")[2]), "gemini refuses $(, backticks and <("
    for line in commands:  # each is a command that there is
        assert run(tmp_path, line.split()[1], "--help").returncode == 0


def test_a_session_that_holds_nothing_and_a_board_without_tasks(tmp_path, clock):
    open_store("files", tmp_path, clock)
    assert "no tasks" in primed(tmp_path, Actor("me", "s")) and "You hold nothing." in primed(
        tmp_path, Actor("me", "s")
    )


@pytest.mark.slow
@pytest.mark.parametrize("letter", ["x", "任", "é", "🦉"])
@pytest.mark.parametrize("id_letter", ["i", "务"])
def test_it_stays_under_seven_hundred_tokens(tmp_path, clock, letter, id_letter):
    folder = tmp_path / ("深" * 30) / ("d" * 200)
    folder.mkdir(parents=True)
    store = open_store("files", folder, clock)
    board, other = open_board(store, "me", "s", clock=clock), open_board(store, "o" * 190, clock=clock)

    def name(n):
        return f"{id_letter * 60}{n:04}"

    more = {"subject": letter * 200, "labels": tuple(f"{id_letter * 100}{n}" for n in range(20)), "priority": 0}
    for n in range(60):
        add(board, name(n), **more)
    for n in range(60, 90):
        add(board, name(n), *[name(i) for i in range(20)], **more)
    for n in range(90, 110):
        add(board, name(n), **more, owner=letter * 150 if letter != "🦉" else "user")
        add(board, name(n + 100), **more)
        board.hold(name(n + 100), letter * 200)
    for n in range(20):
        board.claim(name(n)), other.claim(name(20 + n))
    text = primed(folder, Actor("me", "s"))
    assert tokens(text) <= MOST, text
    assert lengths.tokens(text) <= MOST
    for part in ("You hold:\n- " + name(0), "Next:\n[ ] " + name(40), "Who must act:", "Commands:", "more"):
        assert part in text


@pytest.mark.slow
def test_a_large_board_costs_no_more_tokens_than_a_small_one(tmp_path, clock):
    store = open_store("files", tmp_path, clock)
    board = open_board(store, "me", "s", clock=clock)
    board.create([Draft(subject=f"task number {n}") for n in range(3000)])
    text = primed(tmp_path, Actor("me", "s"))
    print(f"\nprime, 3,000 tasks: {tokens(text):.0f} tokens")
    assert "3000 ready" in text and tokens(text) < 300


def test_a_slow_board_is_left_alone_in_time(tmp_path, clock):
    board = open_board(open_store("files", tmp_path, clock), clock=clock)
    board.create([Draft(subject=f"task number {n}") for n in range(1000)])
    text = prime(config.find_board(str(tmp_path), {}, str(tmp_path)), Actor("me", "s"), seconds=0)
    assert "did not answer in time" in text and "taskwall next" in text


def test_work_is_bounded_and_its_failure_is_passed_on():
    never = threading.Event()
    assert within(0.01, never.wait) is None
    assert within(20, lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        within(20, lambda: 1 / 0)
    never.set()


def test_it_takes_no_lock_and_writes_nothing(tmp_path):
    run(tmp_path, "add", "first")
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    with lock(str(tmp_path / ".tasks/.local/lock")):
        done = run(tmp_path, "prime")
    assert done.returncode == 0 and "first" in done.stdout
    after = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.name not in ("lock", "lock.next")}
    assert after.items() <= before.items()


def test_without_a_board_it_is_one_line_and_no_error(tmp_path):
    done = run(tmp_path, "prime")
    assert (done.returncode, done.stdout.count("\n"), done.stderr) == (0, 1, "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_session_is_that_of_the_environment(tmp_path):
    run(tmp_path, "add", "first")
    claude = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "s-1"}
    run(tmp_path, "claim", "first", **claude)
    assert "#1: first" in run(tmp_path, "prime", **claude).stdout
    assert "You hold nothing." in run(tmp_path, "prime").stdout
    found = json.loads(run(tmp_path, "prime", "--json", **claude).stdout)
    assert found["ok"] and found["data"]["held"][0]["subject"] == "first"


def test_an_unreadable_file_does_not_stop_it(tmp_path):
    run(tmp_path, "add", "first")
    (tmp_path / ".tasks/broken.json").write_text("<<<<<<< HEAD")
    done = run(tmp_path, "prime")
    assert done.returncode == 0 and "1 broken" in done.stdout
    (tmp_path / ".tasks/board.toml").write_text("lease_minutes = 'soon'")
    done = run(tmp_path, "prime")
    assert done.returncode == 0 and "board.toml" in done.stdout
    subprocess.run(["git", "init", "-q", "--bare", tmp_path / "bare"], check=True)
    assert run(tmp_path / "bare", "prime").returncode == 0


def test_what_others_hold_is_one_line_a_holder(tmp_path, clock):
    board = open_board(open_store("files", tmp_path, clock), "other", clock=clock)
    for number in range(9):
        board.claim(add(board, f"t{number}"))
    assert "Who must act:\n- in progress by other: t0, t1, t2 and 6 more\nCommands:" in primed(
        tmp_path, Actor("me", "s")
    )


@pytest.mark.slow
def test_json_stays_json_without_a_board_and_on_a_slow_one(tmp_path, monkeypatch, capsys):
    done = run(tmp_path, "prime", "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["ok"] is False
    run(tmp_path, "add", "first")
    asked = []

    def digest(board):
        asked.append(board)
        threading.Event().wait(5)

    monkeypatch.setattr("taskwall.board.Board.digest", digest)
    for words in ([], ["--json"]):
        asked.clear()
        assert main(["prime", "--board", str(tmp_path), *words]) == 0
        out = capsys.readouterr().out
        assert "did not answer in time" in (json.loads(out)["error"]["next"] if words else out)
        assert len(asked) == 1, "it waits once"
