"""The parts of a worker: how it slows down, what it tells an agent, how an agent's command is made, and the leash."""

from __future__ import annotations

import ctypes
import io
import os
import re
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
from rich.cells import cell_len
from rich.console import Console

from conftest import Clock, add, open_board, open_store
from taskwall.board import Board
from taskwall.core.errors import Invalid, Unwritable
from taskwall.core.refusals import NothingActionable
from taskwall.core.model import Actor, Task
from taskwall.core.rules import Edit
from taskwall.heartbeat import Heartbeat
from taskwall.worker.attempt import Attempt
from taskwall.worker.child import Child
from taskwall.worker.command import OURS, checked_command, environment, filled
from taskwall.worker.display import _shown
from taskwall.worker.leash import LAST
from taskwall.worker.pace import FIRST, LONGEST, Pace, wait_after
from taskwall.worker.prompt import MAX_PROMPT, prompt_for
from worker_process import runs, until

pytestmark = pytest.mark.slow


def test_a_claim_without_an_id_leaves_out_what_it_is_told_to(board_for):
    board = board_for()
    for name in "abc":
        add(board, name)
    assert board.claim(but={"a", "b"}).row.task.id == "c"
    with pytest.raises(NothingActionable):
        board_for("other").claim(but={"a", "b", "c"})


# How it slows down


@pytest.fixture
def pace_for(clock):
    return lambda agents: Pace(agents, clock.monotonic)


def test_the_first_wait_is_under_a_second_and_each_is_twice_the_one_before_up_to_the_longest():
    waits = [wait_after(n) for n in range(1, 2000)]
    assert waits[0] <= 1 and waits[1] == 2 * waits[0] and max(waits) == waits[-1] == LONGEST
    assert waits == sorted(waits)


def test_a_task_that_failed_cools_down_for_longer_each_time(pace_for, clock):
    pace = pace_for(8)
    for wait in (FIRST, 2 * FIRST, 4 * FIRST):
        pace.failed("a")
        assert pace.cooling() == {"a"} and pace.due() == [pytest.approx(wait)]
        clock.sleep(seconds=wait - 0.01)
        assert pace.cooling() == {"a"}
        clock.sleep(seconds=0.02)
        assert pace.cooling() == set() and pace.due() == []


def test_a_worker_slows_down_only_when_all_of_its_agents_fail_in_a_row(pace_for, clock):
    pace = pace_for(3)
    for name in "abc":
        pace.failed(name)
        assert not pace.pausing()
    pace.failed("d")
    assert pace.pausing()
    clock.sleep(seconds=FIRST)
    assert not pace.pausing()
    pace.failed("e")
    pace.succeeded()
    assert not pace.pausing()


def test_what_an_agent_gives_back_cools_down_and_slows_nobody(pace_for, clock):
    pace = pace_for(1)
    for name in "abcdef":
        pace.given_back(name)
    assert not pace.pausing() and pace.cooling() == set("abcdef")
    clock.sleep(seconds=FIRST + 0.01)
    assert pace.cooling() == set()


def test_nothing_cools_while_the_worker_takes_nothing_so_that_others_go_first(pace_for, clock):
    pace = pace_for(1)
    for name in "abc":
        pace.failed(name)
        while pace.pausing():
            clock.sleep(seconds=FIRST / 50)
    assert pace.cooling() == set("abc")
    clock.sleep(seconds=FIRST + 0.01)
    assert pace.cooling() == set()


# The command


def test_our_own_agent_is_the_command_when_none_is_given():
    assert checked_command((), os.environ) == OURS
    assert filled(OURS, "goal", "t1")[1:] == ["-P", "-m", "taskwall", "agent", "--task=t1", "--yes", "goal"]


def test_a_program_named_by_a_path_is_found_from_any_folder(tmp_path, monkeypatch):
    (tmp_path / "agent").write_text("#!/bin/sh\n")
    (tmp_path / "agent").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    assert checked_command(["./agent", "x"], os.environ) == (str(tmp_path / "agent"), "x")
    assert checked_command(["sh"], os.environ) == ("sh",)


@pytest.mark.parametrize("argument", ["echo {prompt}", "'{prompt}'", "a={prompt}", "{prompt}{prompt}", "x{prompt}"])
def test_a_prompt_inside_another_text_is_refused(argument):
    with pytest.raises(Invalid, match="has {prompt} inside a text"):
        checked_command(["sh", "-c", argument], os.environ)


def test_placeholders_are_filled_once_and_never_in_what_fills_them():
    command = checked_command(["sh", "{prompt}", "--prompt={prompt}", "--log=out/{task}.txt", "{}"], os.environ)
    assert filled(command, "{task} {prompt} $x", "走水电") == [
        "sh", "{task} {prompt} $x", "--prompt={task} {prompt} $x", "--log=out/走水电.txt", "{}",
    ]  # fmt: skip


def test_an_agent_finds_taskwall_even_where_the_path_does_not_lead_to_it():
    env = environment({"PATH": "/nowhere"}, "board", "a", "s", "t")
    assert env["PATH"] == f"/nowhere:{os.path.dirname(sys.executable)}"


# The prompt


def test_a_prompt_fits_into_one_argument_whatever_the_board_holds(tmp_path):
    board = open_board(open_store("memory", tmp_path, Clock()), root=tmp_path)
    blockers = [add(board, f"b{n}", products=tuple(f"{n}-{m}-{'长' * 60}" for m in range(9))) for n in range(50)]
    for name in blockers:
        board.update(name, Edit(products=(), note="字" * 20_000))
        board.claim(name)
        board.complete(name, result="果" * 20_000)
    add(board, "a", *blockers, description="描" * 20_000, products=tuple(f"{n}-{'品' * 60}" for n in range(100)))
    board.update("a", Edit(note="注" * 20_000))
    prompt = prompt_for(board.claim("a"), "agent")
    assert len(prompt.encode()) < 128 * 1024 and len(prompt) <= MAX_PROMPT + 1
    assert prompt.startswith("You are an agent working on one task") and "taskwall ask a " in prompt
    assert subprocess.run(["true", prompt]).returncode == 0


def test_an_id_of_other_letters_is_quoted_for_a_shell(tmp_path):
    board = open_board(open_store("memory", tmp_path, Clock()), root=tmp_path)
    add(board, "走水电")
    assert "taskwall done '走水电' -m" in prompt_for(board.claim("走水电"), "agent")


# An attempt


@pytest.fixture
def attempt(tmp_path, child):
    """`attempt(script)`: an agent at work on the claim of a task."""

    def begin(script):
        store, beating = (open_store("files", tmp_path, Clock()) for _ in range(2))
        agent = Actor("agent", "session")
        board = Board(store, agent, root=str(tmp_path), lease=5)
        task = board.claim(add(board, "a")).row.task
        heartbeat = Heartbeat(Board(beating, agent, lease=5))
        return Attempt(board, task, child(script), heartbeat, log=str(tmp_path / "log"), limit=600)

    return begin


def ended(attempt):
    until(lambda: attempt.tend(attempt.board.store.read()) is not None)
    return attempt.close(0, None)


def test_an_agent_that_stays_after_its_task_is_completed_is_ended_and_has_not_failed(attempt, monkeypatch):
    monkeypatch.setattr("taskwall.worker.attempt.LINGER", 0.1)
    stays = attempt("sleep 600")
    stays.board.complete("a", result="装好了")
    outcome = ended(stays)
    assert (outcome.kind, outcome.told) == ("completed", "装好了")


def test_an_agent_that_writes_without_end_is_ended_and_has_failed(attempt, monkeypatch):
    monkeypatch.setattr("taskwall.worker.attempt.MAX_LOG", 1000)
    outcome = ended(attempt("while :; do echo 0123456789; done"))
    assert (outcome.kind, outcome.told) == ("failed", "its agent was ended: it wrote more than 1000 bytes")


def test_a_task_whose_file_is_gone_ends_its_agent(attempt, tmp_path, monkeypatch):
    monkeypatch.setattr("taskwall.worker.attempt.LINGER", 0.1)
    lost = attempt("sleep 600")
    (tmp_path / ".tasks" / "a.json").unlink()
    assert ended(lost).kind == "gone"


def test_a_task_whose_file_is_away_for_a_moment_keeps_its_agent_and_its_time(attempt, tmp_path):
    kept, file = attempt("sleep 600"), tmp_path / ".tasks" / "a.json"
    file.rename(tmp_path / "stashed")
    assert kept.tend(kept.board.store.read()) is None and kept.left < 100
    (tmp_path / "stashed").rename(file)
    assert kept.tend(kept.board.store.read()) is None and kept.left > 500
    kept.stop("stopped", "over", hurry=True)
    assert ended(kept).kind == "stopped"


def test_a_claim_that_cannot_be_given_back_now_is_kept_until_it_can(attempt, tmp_path):
    crashed, local = attempt("exit 3"), tmp_path / ".tasks" / ".local"
    until(lambda: crashed.tend(None) is not None)
    local.rename(tmp_path / "away")
    local.write_text("")
    with pytest.raises(Unwritable):
        crashed.close(3, None)
    assert crashed.left > 1e9  # nobody is woken for an agent that has ended
    local.unlink()
    (tmp_path / "away").rename(local)
    assert crashed.close(3, None).kind == "failed"
    task = crashed.board.store.read().get("a")
    assert (task.status, task.attempts) == ("pending", 1)


def test_a_board_that_can_never_be_written_again_does_not_keep_the_worker_from_ending(attempt, tmp_path):
    crashed, local = attempt("exit 3"), tmp_path / ".tasks" / ".local"
    until(lambda: crashed.tend(None) is not None)
    local.rename(tmp_path / "away")
    local.write_text("")
    outcome = crashed.close(3, None, final=True)
    assert outcome.kind == "gone" and "cannot be written" in outcome.told


def test_a_task_that_a_person_cancels_ends_its_agent(attempt, tmp_path):
    vain = attempt("sleep 600")
    open_board(open_store("files", tmp_path, Clock()), "user").cancel("a")
    assert ended(vain).kind == "cancelled"


# The display


def test_each_agent_has_a_line_that_fits_a_terminal_of_80_columns(tmp_path):
    (tmp_path / "log").write_text("first\n10 %\r\x1b[31m\a第三条回路的绝缘电阻已经测过了，读数正常\n\n")
    long = Task("task_0123456789", "走水电，三条回路，厨房单独一路，卫生间单独一路，客厅和卧室合用一路")
    short = Task("走水电" * 21, "x\x1b[2J" * 30)
    attempts = {
        number: SimpleNamespace(task=task, seconds=seconds, log=str(tmp_path / log))
        for number, task, seconds, log in [(1, long, 63, "log"), (12, short, 7384, "missing")]
    }
    out = io.StringIO()
    Console(file=out, width=80).print(_shown(attempts, "2 at work; 0 completed, 0 failed"))
    first, second, counts = out.getvalue().splitlines()
    assert all(cell_len(line) <= 80 for line in (first, second, counts)) and "\x1b" not in out.getvalue()
    assert re.match(r"1   task_0123456789 +1:03  走水电，三条回路.*…  \\x07第三条.*…", first)
    assert re.match(r"12  走水电.*…  2:03:04  x\\x1b\[2Jx", second)
    assert counts.rstrip() == "2 at work; 0 completed, 0 failed"


# The leash


@pytest.fixture
def child(tmp_path):
    """`child(script)`: a process on a leash that runs this in a shell; its output lies in `tmp_path/log`."""
    made = []

    def start(script, said=None):
        with open(tmp_path / "log", "wb") as log:
            command = ["sh", "-c", script]
            made.append(Child(command, folder=str(tmp_path), env=dict(os.environ), log=log.fileno(), said=said))
        return made[-1]

    yield start
    for each in made:
        for _ in range(2):
            if each.exit() is None:
                each.stop()
        until(lambda: each.exit() is not None)


def written(path):
    return path.exists() and path.read_text().strip()


@pytest.mark.parametrize("script, status", [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137), ("kill -TERM $$", 143)])
def test_a_leash_ends_as_its_command_did(child, script, status):
    ended = child(script)
    assert until(lambda: ended.exit() is not None) and ended.exit() == status


def test_what_the_command_leaves_running_is_ended_with_it(child, tmp_path):
    ended = child("sleep 600 & echo $! > pid")
    until(lambda: ended.exit() is not None)
    until(lambda: not runs(int((tmp_path / "pid").read_text())))


@pytest.mark.parametrize("end", ["exec sleep 600", "until [ -e stopped ]; do sleep 0.01; done"])
def test_what_it_leaves_running_may_tidy_up_first(child, tmp_path, end):
    tidy = '(trap "sleep 0.3; touch tidied; exit" TERM; touch ready; while :; do sleep 0.01; done) &'
    asked = child(f"{tidy}\n{end}")
    until((tmp_path / "ready").exists)
    (tmp_path / "stopped").touch() if "stopped" in end else asked.stop()
    until(lambda: asked.exit() is not None)
    assert (tmp_path / "tidied").exists()


def test_what_it_leaves_running_is_not_waited_for_without_end(child, tmp_path):
    ended = child('(trap "" TERM; echo 1 > ready; exec sleep 600) & echo $! > pid; until [ -e ready ]; do :; done')
    until(lambda: ended.exit() is not None)
    until(lambda: not runs(int((tmp_path / "pid").read_text())))


@pytest.mark.skipif(sys.platform != "linux", reason="only there may a process be the one that reaps orphans")
def test_what_has_ended_and_nobody_reaps_is_not_waited_for(child, tmp_path):
    libc, adopts = ctypes.CDLL(None), 36
    libc.prctl(adopts, 1, 0, 0, 0)
    try:
        ended = child("(sleep 0.05 & echo $! > pid)")
        began = time.monotonic()
        until(lambda: ended.exit() is not None)
        assert time.monotonic() - began < LAST / 2
        os.waitpid(int((tmp_path / "pid").read_text()), 0)
    finally:
        libc.prctl(adopts, 0, 0, 0, 0)


def test_the_command_has_a_group_of_its_own_no_terminal_and_ordinary_signals(child, tmp_path):
    ended = child("[ $(cut -d' ' -f5 /proc/$$/stat) = $$ ] && ! cat /dev/tty && grep SigIgn /proc/$$/status")
    until(lambda: ended.exit() is not None)
    ignored = int((tmp_path / "log").read_text().rpartition("SigIgn:")[2], 16)
    assert ignored & 0x7FFFFFFF == 0  # the two above are the C library's own


def test_it_may_tidy_up_when_it_is_asked_to_end(child, tmp_path):
    asked = child("trap 'echo tidy > tidied; exit 5' TERM; touch ready; while :; do sleep 0.05; done")
    until((tmp_path / "ready").exists)
    asked.stop()
    until(lambda: asked.exit() is not None)
    assert asked.exit() == 5 and (tmp_path / "tidied").exists()


def test_asked_twice_it_is_ended_at_once_whatever_it_ignores(child, tmp_path):
    stubborn = child("trap '' TERM INT HUP; touch ready; while :; do sleep 0.05; done")
    until((tmp_path / "ready").exists)
    began = time.monotonic()
    stubborn.stop()
    stubborn.stop()
    until(lambda: stubborn.exit() is not None)
    assert stubborn.exit() == 137 and time.monotonic() - began < 3


def test_a_program_that_cannot_be_run_is_said_in_the_log(tmp_path):
    with open(tmp_path / "log", "wb") as log:
        made = Child(["no-such-program"], folder=str(tmp_path), env=dict(os.environ), log=log.fileno(), said=None)
    until(lambda: made.exit() is not None)
    assert made.exit() == 127 and "no-such-program: No such file" in (tmp_path / "log").read_text()


def test_no_descriptor_of_the_worker_reaches_an_agent(child, tmp_path):
    ended = child("ls -l /proc/self/fd")
    until(lambda: ended.exit() is not None)
    assert "pipe:" not in (tmp_path / "log").read_text()


def test_an_agent_that_fails_while_the_board_is_out_of_reach_has_made_no_attempt(attempt):
    excused = attempt("exit 8")
    excused.excused = "the board could not be reached meanwhile"
    outcome = ended(excused)
    assert outcome.kind == "released" and "could not be reached" in outcome.told
    task = excused.board.store.read().get("a")
    assert (task.status, task.attempts, "could not be reached" in task.notes[-1]["text"]) == ("pending", 0, True)


def test_a_worker_excuses_its_agents_when_the_board_cannot_be_read(tmp_path, monkeypatch):
    from types import SimpleNamespace

    from taskwall.core.errors import Unreadable
    from taskwall.worker import loop

    def away():
        raise Unreadable("the server is away")

    worker = object.__new__(loop.Worker)
    worker.attempts, worker.trouble = {1: SimpleNamespace(excused="")}, ""
    worker.board = SimpleNamespace(store=SimpleNamespace(read=away))
    worker.display = SimpleNamespace(say=lambda line: None)
    assert worker._look() is None
    assert "could not be reached" in worker.attempts[1].excused
    worker.attempts[1].excused = ""
    worker.board = SimpleNamespace(store=SimpleNamespace(read=lambda: "a view"))
    assert worker._look() == "a view" and not worker.attempts[1].excused
    monkeypatch.setattr(loop, "SLOW", -1.0)
    worker._look()
    assert worker.attempts[1].excused
