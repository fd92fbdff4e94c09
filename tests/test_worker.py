"""`taskwall work` over real boards and processes, with shell scripts as agents: the board judges, and nothing is kept."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections import Counter

import pytest

from taskwall.agent.scripted import ScriptedModel, fail
from worker_process import DONE, runs, site, until  # noqa: F401 - a fixture

HANG = 'echo $$ > "pid-$TASKWALL_TASK"\nexec sleep 600\n'


def hanging(site, task_id="a"):
    """The pid of the agent on this task, once it hangs."""
    path = site.folder / f"pid-{task_id}"
    return int(until(lambda: path.exists() and path.read_text().strip(), of=site.started[-1]))


# What becomes of a claim


def test_a_worker_does_the_whole_plan_in_its_order_and_ends_with_0(site):
    site.add("wire")
    site.add("close", "-b", "wire")
    site.add("paint", "-b", "close")
    said = site.work("--agents", 2, "--as", "night")
    assert [event["task"] for event in site.events("complete")] == ["wire", "close", "paint"]
    assert {event["by"] for event in site.events("claim", "complete")} == {"night"}
    assert "3 completed, 0 failed" in said and "Everything is finished (3 tasks)." in said


@pytest.mark.slow
def test_each_claim_is_a_session_of_its_own_that_the_agent_acts_in(site):
    for name in "abc":
        site.add(name)
    site.work("--agents", 2)
    sessions = {event["task"]: event["session"] for event in site.events("claim")}
    assert len(set(sessions.values())) == 3
    assert {event["task"]: event["session"] for event in site.events("complete")} == sessions
    assert {name: site.task(name)["result"] for name in "abc"} == {n: f"done by {s}" for n, s in sessions.items()}


@pytest.mark.parametrize(
    "lie", ["exit 0", *(pytest.param(way, marks=pytest.mark.slow) for way in ("exit 3", "kill -9 $$"))]
)
def test_an_agent_that_ends_without_completing_has_failed_an_attempt(site, lie):
    site.set("max_attempts = 1")
    site.add("a")
    said = site.work(status=7, agent=f"echo trying\n{lie}\n")
    task = site.task("a")
    assert (task["status"], task["attempts"], task["owner"]) == ("pending", 1, None)
    status = {"exit 3": 3, "kill -9 $$": 137}.get(lie, 0)
    told, _, log = task["notes"][0]["text"].partition("; log: ")
    ended = f"its agent ended with exit status {status} without completing it"
    assert told == f"released: {ended}, after 0 s; its last words: trying"
    assert "trying" in (site.folder / log).read_text()
    assert f"{ended}; its last words: trying" in said
    assert "held until a person resumes it: a" in said


@pytest.mark.slow
def test_a_task_that_fails_is_tried_three_times_and_then_left_to_a_person(site):
    site.add("a")
    assert "0 completed, 3 failed" in site.work(status=7, agent="exit 1\n")
    assert [site.task("a")[key] for key in ("status", "attempts", "epoch")] == ["pending", 3, 3]


@pytest.mark.slow
def test_completing_without_the_product_is_refused_and_counts_as_failed(site):
    site.set("max_attempts = 1")
    site.add("a", "--product", "out/report.md")
    site.work(status=7, agent=DONE)
    assert site.task("a")["attempts"] == 1
    assert "promised what does not exist: out/report.md" in site.log()


def test_no_agent_is_spent_on_a_task_whose_checks_may_not_run_here(site, tmp_path):
    site.env["XDG_STATE_HOME"] = str(tmp_path / "state")
    site.add("a", "--check", "true", "--priority", 0)
    site.add("b")
    said = site.work(status=7)
    assert [event["task"] for event in site.events("claim")] == ["b"] and "attempts" not in site.task("a")
    assert "waiting on user to read their checks (`taskwall trust`): a" in said
    site.run("trust", "--yes")
    assert "Everything is finished" in site.work()


@pytest.mark.slow
def test_a_check_ends_with_the_agent_that_waits_for_it(site, tmp_path):
    site.env["XDG_STATE_HOME"] = str(tmp_path / "state")
    site.add("a", "--check", f"echo $$ > {site.folder}/pid-a; exec sleep 600")
    site.run("trust", "--yes")
    worker = site.start(agent=DONE)
    pid = hanging(site)
    worker.send_signal(signal.SIGTERM)
    worker.communicate(timeout=20)
    assert not runs(pid) and site.task("a")["status"] == "pending"


@pytest.mark.slow
def test_what_an_agent_gives_back_or_asks_is_no_failure(site):
    site.add("a")
    said = site.work(status=7, agent='taskwall ask "$TASKWALL_TASK" "red or blue?" --option red --option blue\n')
    assert re.search(r"a released after 0:\d\d; .*red or blue\?", said) and "waiting on user" in said
    site.run("answer", site.task("a")["blockedBy"][0], "red")
    once = f'[ -e once ] && exec {DONE}touch once\ntaskwall release "$TASKWALL_TASK" --reason later\n'
    said = site.work(agent=once)
    assert "1 completed, 0 failed, 1 released" in said and re.search("a released after 0:.*released: later", said)
    assert "attempts" not in site.task("a")


@pytest.mark.slow
def test_tasks_that_are_given_back_again_and_again_keep_no_other_waiting(site):
    for name in "abcdef":
        site.add(name)
    back = f'case $TASKWALL_TASK in a|b|c) exec taskwall release "$TASKWALL_TASK" --reason later ;; esac\n{DONE}'
    worker = site.start("--agents", 1, agent=back)
    until(lambda: all(site.task(name)["status"] == "completed" for name in "def"), of=worker)
    worker.send_signal(signal.SIGTERM)
    assert Counter(event["task"] for event in site.events("claim")).most_common(1)[0][1] <= 4


@pytest.mark.slow
def test_an_agent_that_takes_too_long_is_ended_with_all_that_it_started(site):
    site.add("a")
    body = 'trap "" TERM\nsleep 600 &\necho $! > child\n' + HANG  # what is ignored stays so in all children
    worker = site.start("--timeout", 0.005, agent=body)
    pid = hanging(site)
    until(lambda: "attempts" in site.task("a"))
    child = int((site.folder / "child").read_text())
    assert not runs(pid) and not runs(child)
    assert "its agent was ended after 0.005 minutes" in site.task("a")["notes"][0]["text"]
    worker.terminate()
    worker.wait(20)


def test_a_claim_that_was_taken_over_stops_its_agent_at_once_and_is_left_alone(site):
    site.add("a")
    worker = site.start(agent=HANG)
    pid = hanging(site)
    site.board("thief").claim("a", steal=True, reason="mine")
    until(lambda: not runs(pid))
    site.board("thief").complete("a")
    out, _ = worker.communicate(timeout=20)
    assert worker.returncode == 0 and "a superseded after" in out
    assert "notes" not in site.task("a") and site.task("a")["owner"] == "thief"


@pytest.mark.slow
def test_an_agent_that_was_superseded_cannot_complete(site):
    site.add("a")
    stubborn = "trap '' TERM\n" + HANG.replace("exec sleep 600", f"while [ ! -e go ]; do sleep 0.1; done\n{DONE}")
    worker = site.start(agent=stubborn)
    hanging(site)
    site.board("thief").claim("a", steal=True, reason="mine")
    (site.folder / "go").touch()
    until(lambda: "Your claim" in site.log() or "taken over" in site.log(), of=worker)
    assert site.task("a")["status"] == "in_progress"
    site.board("thief").complete("a", result="by the thief")
    worker.wait(20)
    assert site.task("a")["result"] == "by the thief"


@pytest.mark.slow
def test_what_an_agent_claimed_besides_is_given_back_with_its_end(site):
    site.add("a")
    site.add("b", "--for", "night")
    site.run("edit", "b", "-p", "4")
    site.work("--as", "night", agent=f"[ $TASKWALL_TASK = a ] && taskwall claim b\n{DONE}")
    assert [(e["task"], e["epoch"]) for e in site.events("claim")] == [("a", 1), ("b", 1), ("b", 2)]
    assert site.task("b")["status"] == "completed" and "attempts" not in site.task("b")


@pytest.mark.slow
def test_the_hooks_of_a_client_that_a_worker_started_leave_its_claim_to_the_worker(site):
    site.set("max_attempts = 1")
    site.add("a")
    call = 'echo \'{"session_id": "s", "task_id": "1", "task_subject": "a todo"}\' | taskwall hook'
    said = site.work(status=7, agent=f"{call} TaskCreated\n{call} SessionEnd\n")
    assert "0 completed, 1 failed" in said  # a claim that the hook had given back would count as released
    assert [path.stem for path in site.board_path.glob("*.json")] == ["a"]


@pytest.mark.slow
def test_a_worker_whose_output_nobody_reads_any_more_gives_everything_back(site):
    site.add("a")
    worker = site.start("--agents", 2, agent=HANG)
    site.hear(worker, "a#1 started")
    pid = hanging(site)
    worker.stdout.close()
    site.add("b")  # taking it, the worker finds out
    worker.wait(20)
    assert not runs(pid)
    assert [(t["status"], t["epoch"], t.get("attempts")) for t in map(site.task, "ab")] == [("pending", 1, None)] * 2


# Which tasks


def test_a_reservation_for_the_worker_is_taken_and_one_for_others_is_not(site):
    site.add("mine", "--for", "night")
    site.add("theirs", "--for", "main")
    said = site.work("--as", "night", status=6)
    assert [event["task"] for event in site.events("claim")] == ["mine"]
    assert "reserved for main: theirs" in said


@pytest.mark.slow
def test_a_failing_task_is_not_taken_again_before_others_that_are_ready(site):
    site.add("bad", "-p", "0")
    for name in "abc":
        site.add(name)
    site.work(status=7, agent=f"[ $TASKWALL_TASK = bad ] && exit 1\n{DONE}")
    taken = [event["task"] for event in site.events("claim")]
    assert taken[0] == "bad" and taken.index("bad", 1) > 1 and taken.count("bad") == 3


@pytest.mark.slow
def test_people_do_not_lend_their_name_to_a_worker(site):
    site.add("a")
    for words in (["--as", "user"], ["--as", "human"]):
        assert "is a person" in site.work(*words, status=2)


# What an agent is told


def test_the_prompt_is_one_argument_and_no_shell_reads_it(site):
    site.add("a", "-d", "$(touch broken) `touch broken` ; touch broken\n\"'{task} \x1b[31m走水电")
    show = ["sh", "-c", f'printf "%s|" "$#" "$2"; printf "%s" "$1"; {DONE}', "sh", "{prompt}", "id={task}"]
    site.work(agent=show)
    log = site.log()
    assert log.startswith("2|id=a|You are an agent working on one task")
    assert "\n  $(touch broken) `touch broken` ; touch broken\n  \"'{task} \\x1b[31m走水电" in log
    assert not (site.folder / "broken").exists() and "\x1b" not in log


@pytest.mark.slow
def test_without_a_placeholder_the_prompt_comes_on_standard_input(site):
    site.add("a", "-d", "x" * 60_000)
    site.work(agent=f"cat\n{DONE}")
    assert "`taskwall show a` has all of it" in site.log()


@pytest.mark.slow
def test_the_prompt_tells_of_blockers_notes_attempts_and_how_to_end(site):
    site.add("wire", "--product", "plan.svg")
    (site.folder / "plan.svg").touch()
    site.run("done", "wire", "--as", "x", status=4)
    site.run("claim", "wire")
    site.run("done", "wire", "-m", "三条回路")
    site.add("close", "-b", "wire")
    site.run("note", "close", "mind the\nleft wall")
    board = site.board()
    board.claim("close")
    board.release("close", reason="no plaster", failed=True)
    site.work(agent=["sh", "-c", f'printf %s "$1"; {DONE}', "sh", "{prompt}"])
    log = site.log()
    for told in (
        "TASK close\ntask close\n",
        "- wire: task wire\n  result: 三条回路\n  products: plan.svg",
        "ATTEMPTS BEFORE that failed: 1",
        "mind the\n  left wall",
        "released: no plaster",
        "taskwall done close -m",
        "taskwall release close --reason",
        "taskwall ask close",
    ):
        assert told in log


@pytest.mark.slow
def test_the_environment_names_board_actor_session_and_task(site):
    site.add("a")
    site.work("--as", "night", agent=f"env | grep ^TASKWALL_ | sort; pwd\n{DONE}")
    session = site.events("claim")[0]["session"]
    assert site.log().splitlines()[:5] == [
        "TASKWALL_ACTOR=night",
        f"TASKWALL_BOARD={site.board_path}",
        f"TASKWALL_SESSION={session}",
        "TASKWALL_TASK=a",
        str(site.folder),
    ]


def test_nothing_that_a_task_or_an_agent_says_steers_the_terminal(site):
    text = json.dumps({"id": "a", "subject": "red \x1b[31m\u202e", "status": "pending", "owner": None, "blockedBy": []})
    (site.board_path / "a.json").write_text(text)
    said = site.work(agent="""printf '\\033]0;title\\007'\ntaskwall done a -m "$(printf 'bell \\007 \\033[2J')"\n""")
    assert "a completed" in said and "bell \\x07 \\x1b[2J" in said and "red \\x1b[31m\\u202e" in said
    assert not set(said) & set("\x1b\x07\u202e")


# Waiting and ending


@pytest.mark.slow
def test_it_waits_for_what_others_hold_and_goes_on_when_that_is_done(site):
    site.add("a")
    site.add("b", "-b", "a")
    site.board().claim("a")
    worker = site.start()
    site.hear(worker, "idle: in progress by other: a")
    site.board().complete("a")
    worker.communicate(timeout=20)
    assert worker.returncode == 0 and site.task("b")["status"] == "completed"


@pytest.mark.slow
def test_it_does_not_wait_for_a_person(site):
    site.add("a", "--for", "user")
    site.add("b", "-b", "a")
    site.board("user").claim("a")
    assert "waiting on user: a" in site.work(status=7)


@pytest.mark.slow
def test_a_lease_that_lapses_while_it_waits_is_taken_when_it_does(site):
    site.add("a")
    site.board().claim("a", ttl=0.02)
    site.work()
    assert site.task("a")["attempts"] == 1 and site.task("a")["status"] == "completed"


def test_forever_waits_for_new_work_and_is_woken_by_it(site):
    worker = site.start("--forever")
    site.hear(worker, "idle: nothing is open")
    site.add("a")
    until(lambda: site.task("a")["status"] == "completed", of=worker)
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(20) == 130


@pytest.mark.slow
def test_forever_says_who_must_act_and_waits(site):
    site.add("a", "--for", "user")
    worker = site.start("--forever")
    site.hear(worker, "idle: waiting on user: a")
    worker.terminate()
    assert worker.wait(20) == 130


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_a_signal_gives_everything_back_and_that_is_no_attempt(site, number):
    for name in "abc":
        site.add(name)
    worker = site.start("--agents", 2, agent=HANG)
    pids = [hanging(site, name) for name in "ab"]
    worker.send_signal(number)
    out, _ = worker.communicate(timeout=20)
    assert worker.returncode == 130 and "everything was given back" in out
    assert not any(map(runs, pids))
    for name in "abc":
        task = site.task(name)
        assert (task["status"], task["owner"], task.get("attempts")) == ("pending", None, None)
    assert "the worker was asked to end" in site.task("a")["notes"][0]["text"]


@pytest.mark.slow
def test_a_second_signal_does_not_wait_for_agents_that_ignore_the_first(site):
    site.add("a")
    worker = site.start(agent="trap '' TERM\n" + HANG.replace("exec sleep 600", "while :; do sleep 1; done"))
    pid = hanging(site)
    worker.send_signal(signal.SIGTERM)
    with pytest.raises(subprocess.TimeoutExpired):
        worker.wait(1)
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(3) == 130 and not runs(pid)
    assert site.task("a")["status"] == "pending"


def test_a_worker_killed_dead_takes_its_agents_along_and_the_next_one_goes_on(site):
    site.add("a")
    worker = site.start(agent='trap "" HUP\nsleep 600 &\necho $! > child\n' + HANG)
    pid = hanging(site)
    worker.kill()
    worker.wait(10)
    until(lambda: not runs(pid) and not runs(int((site.folder / "child").read_text())))
    assert site.task("a")["status"] == "in_progress"
    site.work()
    assert (site.task("a")["status"], site.task("a")["epoch"], site.task("a")["attempts"]) == ("completed", 2, 1)


@pytest.mark.slow
def test_the_lease_is_beaten_for_as_long_as_the_agent_works(site):
    site.set("lease_minutes = 0.02")
    site.add("a")
    worker = site.start(agent=f"sleep 2.5\n{DONE}")
    site.hear(worker, "a#1 started")
    while worker.poll() is None:
        claim = site.board().store.read().claim("a")
        assert claim.lease == "live" or not claim.open
    assert (site.task("a")["epoch"], site.task("a").get("attempts")) == (1, None)


# What it refuses


@pytest.mark.slow
@pytest.mark.parametrize(
    "words, agent, told",
    [
        (["--agents", 0], DONE, "0 agents are not possible"),
        (["--timeout", 0], DONE, "a limit of 0 minutes"),
        (["--timeout", "nan"], DONE, "a limit of nan minutes"),
        (["--forever", "--until-empty"], DONE, "exclude each other"),
        (["--merge"], DONE, "add --worktree"),
        ([], ["no-such-program"], "there is no program 'no-such-program'"),
        ([], ["sh", "-c", "claude -p '{prompt}'"], "has {prompt} inside a text"),
        (["--worktree"], DONE, "is in no git repository"),
    ],
)
def test_what_cannot_begin_is_refused_before_anything_is_claimed(site, words, agent, told):
    site.add("a")
    assert told in site.work(*words, agent=agent, status=2)
    assert site.task("a")["status"] == "pending" and not site.events("claim")


@pytest.mark.slow
def test_without_a_model_for_our_own_agent_nothing_begins(site):
    site.add("a")
    keys = {
        name: "" for name in os.environ if name.endswith("_API_KEY") or name in ("OPENAI_BASE_URL", "TASKWALL_MODEL")
    }
    worker = site.start(agent=[], env=keys)
    said = worker.communicate(timeout=20)[0]
    assert "no model is configured" in said and "taskwall work -- claude -p {prompt}" in said and worker.returncode == 2
    assert site.task("a")["status"] == "pending"


@pytest.mark.slow
def test_a_model_that_does_not_answer_is_no_fault_of_the_task(site):
    site.add("a")
    with ScriptedModel([fail(401, "wrong key")] * 9) as model:
        keys = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "k", "TASKWALL_MODEL": "m"}
        worker = site.start(agent=[], env=keys)
        assert "wrong key" in site.hear(worker, "no model answered")
        worker.send_signal(signal.SIGTERM)
        worker.communicate(timeout=20)
    assert "attempts" not in site.task("a")


@pytest.mark.slow
def test_no_board_is_made_for_a_worker(site, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert "there is no board" in site.work("--board", elsewhere, status=2)
    assert list(elsewhere.iterdir()) == []


@pytest.mark.slow
def test_a_board_that_cannot_be_written_is_said_at_the_start(site):
    site.add("a")
    (site.board_path / ".local" / "lock").unlink()
    (site.board_path / ".local" / "lock").mkdir()
    assert "cannot be written" in site.work(status=4)


@pytest.mark.slow
def test_json_tells_what_became_of_each_claim(site):
    site.add("a")
    site.add("b", "--for", "user")
    worker = site.start("--json")
    last = worker.communicate(timeout=20)[0].splitlines()[-1]
    data = json.loads(last)["data"]
    assert [(o["kind"], o["task"]) for o in data["outcomes"]] == [("completed", "a")]
    assert data["offer"]["waiting"]["decisions"] == [["user", "b"]]
    assert worker.returncode == 7
