"""What an agent's run does beside its loop: one task for a worker, commands in the background, helpers, its end."""

import contextlib
import itertools
import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading

import pytest

from endpoint import Endpoint, refuse, results, told
from taskwall import config
from taskwall.agent import run
from taskwall.agent.jobs import Jobs
from taskwall.agent.models import choose
from taskwall.agent.processes import Groups
from taskwall.agent.scripted import calls, say
from taskwall.agent.shell import run_command
from taskwall.core.errors import Invalid
from taskwall.core.refusals import Blocked
from taskwall.core.model import Actor
from test_agent import is_gone, wait_until

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def surroundings(monkeypatch, tmp_path):
    """Neither a configured model, nor a client around the tests, nor a proxy; an empty board that is quick."""
    for name in list(os.environ):
        if name.startswith(("TASKWALL_", "OPENAI_", "DEEPSEEK_", "ANTHROPIC_", "CLAUDE", "CODEX_", "GEMINI_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    (tmp_path / ".tasks").mkdir()
    (tmp_path / ".tasks" / "board.toml").write_text('durability = "fast"')


def place(folder):
    return config.find_board(str(folder), {}, str(folder))


def board_of(folder, name="user", session="user", **options):
    return config.open_board(place(folder), Actor(name, session), **options)


def play(folder, *steps, wire="openai-stream", **options):
    with Endpoint(steps, wire) as model:
        given = {"goal": "go", "base_url": model.url, "model": "scripted", "yes": True, **options}
        status = run(place(folder), **given)
    assert model.flaws == []
    return status, model.requests


@contextlib.contextmanager
def process(folder, model, *options, **env):
    """The command in a process of its own; ended with the block, whatever happens."""
    words = ["--board", str(folder), "agent", "--base-url", model.url, "--model", "scripted", "--yes", *options]
    started = subprocess.Popen(
        [sys.executable, "-m", "taskwall", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **env},
    )
    try:
        yield started
    finally:
        started.kill()
        started.communicate()


def stored(folder, task_id):
    return json.loads((folder / ".tasks" / f"{task_id}.json").read_text())


def draft(folder, **fields):
    from taskwall.core.rules import Draft

    return board_of(folder).create([Draft(subject=fields.pop("subject", "paint"), **fields)]).rows[0].task.id


# The whole board


def test_a_run_without_a_goal_is_not_finished_while_there_is_work_for_it(tmp_path, capsys):
    draft(tmp_path, id="paint")
    draft(tmp_path, id="dry", subject="dry", blocked_by=("paint",))
    draft(tmp_path, id="colour", subject="red?", owner="user")
    status, requests = play(tmp_path, say("all finished"), say("really"), goal=None)
    assert status == 1 and "The board is not worked off: paint may" in told(requests[1])[-1]
    assert "before its work was done" in capsys.readouterr().err
    claim = calls(("claim_task", {}))
    status, requests = play(tmp_path, claim, say("claimed"), done(), claim, done("dry"), say("colour waits"), goal=None)
    assert status == 0 and "not worked off: paint may" in told(requests[2])[-1]
    assert play(tmp_path, say("nothing to do"), goal=None)[0] == 0, "what waits for a person is none of its work"


def test_how_to_go_on_names_what_was_given(tmp_path, capsys):
    model = Endpoint([refuse(401, "bad key")])
    with model:
        assert run(place(tmp_path), goal="go", base_url=model.url, model="a model", yes=True) == 9
    said = capsys.readouterr().err
    assert re.search(rf"Go on with: taskwall agent --resume=\S+ '--model=a model' --base-url={model.url} --yes\n", said)


# One task

WORKER = {"TASKWALL_ACTOR": "night", "TASKWALL_SESSION": "night-7"}


@pytest.fixture
def working(tmp_path, monkeypatch):
    """A task that a worker claimed in a session of its own, with the environment that it gives to its agent."""
    for name, value in WORKER.items():
        monkeypatch.setenv(name, value)
    draft(tmp_path, id="paint", description="两层, white")
    draft(tmp_path, id="other", subject="other")
    worker = board_of(tmp_path, "night", "night-7", beats=True)
    worker.claim("paint")
    return worker


def done(task_id="paint"):
    return calls(("complete_task", {"task_id": task_id, "result": "painted"}))


def test_a_run_on_one_task_is_given_it_and_ends_with_it(tmp_path, working):
    status, requests = play(tmp_path, done(), say("painted"), goal=None, task="paint")
    assert status == 0 and stored(tmp_path, "paint")["status"] == "completed"
    opening = told(requests[0])[0]
    assert "paint alone" in opening and "两层, white" in opening
    offered = [tool["function"]["name"] for tool in requests[0]["tools"]]
    assert "complete_task" in offered and not {"claim_task", "next_actionable"} & set(offered)
    assert stored(tmp_path, "other")["status"] == "pending"


def test_a_run_that_stops_with_its_task_still_held_is_told_once(tmp_path, working):
    status, requests = play(tmp_path, say("all done!"), done(), say("now"), goal=None, task="paint")
    assert status == 0 and "You still hold paint" in told(requests[1])[-1]


@pytest.mark.parametrize(
    ("steps", "options", "status"),
    [
        ((say("I am done"), say("really")), {}, 1),
        ((refuse(401, "bad key"),), {}, 9),
        ((), {"max_turns": 1}, 10),
    ],
)
def test_whatever_ends_a_run_the_claim_of_its_worker_stays(tmp_path, working, steps, options, status):
    steps = steps or (calls(("list_tasks", {})),) * 2
    assert play(tmp_path, *steps, goal=None, task="paint", **options)[0] == status
    task = stored(tmp_path, "paint")
    assert (task["status"], task["owner"], task["epoch"]) == ("in_progress", "night", 1)


@pytest.mark.slow
def test_a_stop_leaves_the_claim_to_the_worker(tmp_path, working):
    pid = tmp_path / "pid"
    sleeping = calls(("bash", {"command": "echo $$ > part; mv part pid; sleep 60"}))
    with Endpoint([sleeping]) as model, process(tmp_path, model, "--task", "paint", **WORKER) as agent:
        wait_until(pid.exists)
        agent.send_signal(signal.SIGTERM)
        _, err = agent.communicate(timeout=15)
    assert agent.returncode == 130 and "ended by SIGTERM" in err
    assert stored(tmp_path, "paint")["status"] == "in_progress"
    wait_until(lambda: is_gone(int(pid.read_text())))


def test_a_task_that_is_taken_over_stops_the_run_before_the_next_call(tmp_path, working):
    def take(_):
        board_of(tmp_path, "day", "day-1").claim("paint", steal=True, reason="urgent")
        return calls(("bash", {"command": "touch harm"}))

    assert play(tmp_path, take, goal=None, task="paint")[0] == 5
    assert not (tmp_path / "harm").exists() and stored(tmp_path, "paint")["owner"] == "day"


def test_a_run_by_hand_on_one_task_claims_it_and_gives_it_back(tmp_path):
    draft(tmp_path, id="paint")
    assert play(tmp_path, say("no"), say("no"), task="paint")[0] == 1
    task = stored(tmp_path, "paint")
    assert (task["status"], task["owner"], task["epoch"]) == ("pending", None, 1)
    draft(tmp_path, id="after", blocked_by=("paint",))
    with pytest.raises(Blocked):
        play(tmp_path, task="after")


# Commands in the background


def test_a_command_in_the_background_is_told_when_it_ends(tmp_path):
    os.mkfifo(tmp_path / "go")

    def say_to_it(line):
        with open(tmp_path / "go", "w") as file:
            file.write(line)

    def of_job_2(request):
        return [text for text in told(request) if text.startswith("Job 2 (cat go")]

    def script():
        yield calls(("bash", {"command": "read line < go; echo got $line", "background": True}), ("job", {"job": 1}))
        say_to_it("now\n")
        yield calls(("job", {"job": 1, "wait": 30}), ("bash", {"command": "cat go | tr a-z A-Z", "background": True}))
        say_to_it("later\n")
        for number in itertools.count(1):
            if of_job_2(model.requests[-1]):
                break
            yield calls(("list_tasks", {"limit": number}))
        yield calls(("next_actionable", {}))
        yield say("done")

    with Endpoint(script()) as model:
        status = run(place(tmp_path), goal="go", base_url=model.url, model="scripted", yes=True, max_turns=10_000)
    assert (status, model.flaws) == (0, [])
    first, running, waited, *_ = results(model.requests[-1])
    assert first.startswith("Job 1 runs") and "running for 0 s" in running
    assert "Job 1 (read line < go; echo got $line): exit code 0" in waited and waited.endswith("got now")
    [notice] = of_job_2(model.requests[-1])
    assert "exit code 0" in notice and notice.endswith("LATER")
    assert sum("Job 1 (" in text for text in told(model.requests[-1])) == 2  # it was seen to end, and not told again


def test_a_job_is_stopped_with_its_children_and_an_unknown_one_is_refused(tmp_path):
    groups = Groups()
    tool = Jobs(groups, str(tmp_path)).tool()
    with pytest.raises(Invalid, match="no job 7"):
        tool.run({"job": 7})
    jobs = Jobs(groups, str(tmp_path))
    jobs.start("sleep 60 & echo $! > part; mv part pid; wait", str(tmp_path), os.environ, 60)
    wait_until((tmp_path / "pid").exists)
    assert "ended by signal 9" in jobs.tool().run({"job": "1", "stop": "true"})
    wait_until(lambda: is_gone(int((tmp_path / "pid").read_text())))
    assert jobs.ended() == []  # it was told already
    assert jobs.start("true", str(tmp_path), os.environ, 60).number == 2
    groups.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_no_command_outlives_its_run(tmp_path, number):
    several = "sleep 60 & echo $$ $! > part1; mv part1 {}; wait"
    steps = [
        calls(("bash", {"command": several.format("one"), "background": True})),
        calls(("bash", {"command": "sleep 60 & echo $! $! > part2; mv part2 two"})),
        calls(("bash", {"command": "echo $$ $$ > part3; mv part3 three; sleep 60"})),
    ]
    with Endpoint(steps) as model, process(tmp_path, model, "go") as agent:
        wait_until(lambda: all((tmp_path / name).exists() for name in ("one", "two", "three")))
        agent.send_signal(number)
        agent.wait(15)
    pids = [int(pid) for name in ("one", "two", "three") for pid in (tmp_path / name).read_text().split()]
    wait_until(lambda: all(map(is_gone, pids)))


def test_a_command_that_kills_the_reaper_does_not_keep_the_next_from_running(tmp_path):
    groups = Groups()
    run_command("true", str(tmp_path), os.environ, 30, groups)
    groups._reaper.kill()
    groups._reaper.wait()
    assert run_command("echo still here", str(tmp_path), os.environ, 30, groups) == "exit code 0\nstill here"
    groups.close()


def test_a_run_killed_with_jobs_is_resumed_without_them(tmp_path):
    asked, over = threading.Event(), threading.Event()

    def think(_):
        asked.set()
        over.wait(15)
        return say("too late")

    job = calls(("bash", {"command": "echo hello; sleep 60", "background": True}))
    with Endpoint([job, think]) as model, process(tmp_path, model, "go") as agent:
        assert asked.wait(15)
        agent.kill()
        agent.wait()
        over.set()
    again = calls(("job", {"job": 1}), ("bash", {"command": "true", "background": True}))
    _, requests = play(tmp_path, again, say("done"), resume="", goal=None)
    unknown, second = results(requests[-1])[-2:]
    assert "no job 1 in this run" in unknown and second.startswith("Job 2 runs")
    assert "commands in the background and helpers ended" in told(requests[0])[-1]


# Helpers


def test_a_helper_works_with_a_context_of_its_own_and_reports(tmp_path):
    draft(tmp_path, id="paint")
    steps = [
        calls(("delegate", {"work": "Paint the wall", "turns": 5})),
        calls(("claim_task", {"task_id": "paint"}), ("delegate", {"work": "again"})),
        calls(("bash", {"command": "echo $TASKWALL_ACTOR $TASKWALL_SESSION"})),
        say("The wall is painted."),
        calls(("delegate", {"work": "Look at it"})),
        say("It is white."),
        say("done"),
    ]
    status, requests = play(tmp_path, *steps)
    assert status == 0
    helper, main = requests[1], requests[-1]
    assert "Paint the wall" in told(helper)[0] and "Goal: go" not in told(helper)[0]
    assert "delegate" not in [tool["function"]["name"] for tool in helper["tools"]]
    claimed, nested = results(requests[2])
    assert "Claimed paint" in claimed and "no tool 'delegate'" in nested
    assert re.search(r"agent/1 \d{8}-\d{6}-\w+/1", results(requests[3])[-1])
    first, second = results(main)
    assert first.startswith("The wall is painted.\nReleased paint") and second == "It is white."
    assert "agent/1" in stored(tmp_path, "paint")["notes"][-1]["text"]
    assert json.loads((next((tmp_path / ".tasks" / ".local" / "runs").glob("*.jsonl"))).read_text().splitlines()[-1])["end"]["used"].startswith("7 turns")  # fmt: skip


def test_a_helper_keeps_to_its_turns_and_to_the_budget_of_the_run(tmp_path):
    looks = [calls(("list_tasks", {"limit": n})) for n in range(1, 9)]
    _, requests = play(tmp_path, calls(("delegate", {"work": "look", "turns": 2})), *looks[:2], say("done"))
    assert "ended early: all its turns are used" in results(requests[-1])[0]
    status, requests = play(tmp_path, calls(("delegate", {"work": "look"})), *looks, max_tokens=350)
    assert (status, len(requests)) == (10, 4)


def test_a_helper_of_a_run_on_one_task_stops_when_that_is_lost(tmp_path, working):
    def take(_):
        board_of(tmp_path, "day", "day-1").claim("paint", steal=True, reason="urgent")
        return calls(("bash", {"command": "touch harm"}))

    assert play(tmp_path, calls(("delegate", {"work": "paint"})), take, goal=None, task="paint")[0] == 5
    assert not (tmp_path / "harm").exists()


@pytest.mark.slow
def test_a_stop_reaches_a_helper_and_gives_back_what_it_holds(tmp_path):
    draft(tmp_path, id="paint")
    asked, over = threading.Event(), threading.Event()

    def think(_):
        asked.set()
        over.wait(15)
        return say("too late")

    steps = [calls(("delegate", {"work": "paint"}), ("list_tasks", {})), calls(("claim_task", {})), think]
    with Endpoint(steps) as model, process(tmp_path, model, "go") as agent:
        assert asked.wait(15)
        agent.send_signal(signal.SIGTERM)
        out, err = agent.communicate(timeout=15)
        over.set()
    assert agent.returncode == 130 and "Traceback" not in err
    assert stored(tmp_path, "paint")["status"] == "pending"
    _, requests = play(tmp_path, say("done"), resume="", goal=None)
    assert results(requests[0]) == ["interrupted", "not run: ended by SIGTERM"]


# Which model


@pytest.mark.parametrize(
    ("flags", "env", "expected"),
    [
        ((None, None), {"ANTHROPIC_API_KEY": "a"}, ("anthropic", "https://api.anthropic.com", "a", "claude-sonnet-5-5")),
        (("claude-x", None), {"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "o"}, ("anthropic", "https://api.anthropic.com", "a", "claude-x")),
        (("gpt-x", None), {"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "o"}, ("openai", "https://api.openai.com/v1", "o", "gpt-x")),
        ((None, "http://h/anthropic"), {"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "o", "TASKWALL_MODEL": "m"}, ("anthropic", "http://h/anthropic", "a", "m")),
        ((None, "https://api.deepseek.com/anthropic"), {"DEEPSEEK_API_KEY": "d", "ANTHROPIC_API_KEY": "a"}, ("anthropic", "https://api.deepseek.com/anthropic", "d", "deepseek-chat")),
        (("claude-x", "http://proxy/v1"), {"ANTHROPIC_API_KEY": "a"}, ("openai", "http://proxy/v1", "none", "claude-x")),
        ((None, None), {"ANTHROPIC_API_KEY": "a", "ANTHROPIC_BASE_URL": "http://gate"}, ("anthropic", "http://gate", "a", "claude-sonnet-5-5")),
        (("qwen", None), {"DEEPSEEK_API_KEY": "d"}, ("openai", "https://api.deepseek.com", "d", "qwen")),
    ],
)  # fmt: skip
def test_the_protocol_follows_from_what_is_configured(flags, env, expected):
    chosen = choose(*flags, env)
    assert (chosen.wire, chosen.base_url, chosen.key, chosen.model) == expected


@pytest.mark.parametrize(
    ("model", "env", "why"),
    [
        (None, {"DEEPSEEK_API_KEY": "d", "OPENAI_API_KEY": "o"}, "several models are configured"),
        ("claude-x", {"OPENAI_API_KEY": "o"}, "claude-x is not reached with OPENAI_API_KEY"),
    ],
)
def test_no_model_is_asked_by_chance(model, env, why):
    with pytest.raises(Invalid, match=why):
        choose(model, None, env)


def test_only_the_key_of_the_endpoint_is_sent(tmp_path, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "secret-token")
    monkeypatch.setenv("OPENAI_API_KEY", "openai-key")
    seen = []
    with Endpoint([say("done")], "anthropic-stream") as model:
        respond = model.respond
        model.respond = lambda handler, body: (seen.append(str(handler.headers)), respond(handler, body))
        run(place(tmp_path), goal="go", base_url=model.url, model="scripted")
    assert seen and "secret-token" not in seen[0] and "openai-key" not in seen[0]


# What a person sees


def on_a_terminal(folder, model, *options, columns=40):
    """All that the command prints on a terminal of this width."""
    ours, theirs = pty.openpty()
    words = ["--board", str(folder), "agent", "go", "--base-url", model.url, "--model", "scripted", *options]
    env = {**os.environ, "COLUMNS": str(columns), "TERM": "xterm"}
    agent = subprocess.Popen(
        [sys.executable, "-m", "taskwall", *words], stdin=theirs, stdout=theirs, stderr=subprocess.STDOUT, env=env
    )
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # Linux ends a terminal so
        while chunk := os.read(ours, 4096):
            shown += chunk
    os.close(ours)
    assert agent.wait(15) == 0
    return shown.decode().replace("\r\n", "\n")


def as_seen(shown):
    """The lines that stay on the screen."""
    lines = [line.rpartition("\r\x1b[K")[2] for line in shown.split("\n")]
    return [re.sub(r"\x1b\[\d*[mK]", "", line) for line in lines]


def test_words_stream_in_broken_at_the_width_and_long_results_are_short(tmp_path):
    prose = "The quick brown fox jumps over the lazy dog and then 水电完成以后再封墙再刷漆最后装灯 " * 2
    steps = [
        {**calls(("bash", {"command": "seq 1 100"})), "content": prose},
        say("evil \x1b[2J title \u202e end\n\nlast"),
    ]
    with Endpoint(steps) as model:
        lines = as_seen(on_a_terminal(tmp_path, model, "--yes"))
    from rich.cells import cell_len

    assert max(map(cell_len, lines[1:-2])) <= 40
    text = " ".join(lines)
    assert "jumps over" in text and "> bash command=seq 1 100" in lines and "… 91 more lines" in text
    assert "evil \\x1b[2J title \\u202e end" in " ".join(lines) and "last" in lines
    assert "…" not in lines


def test_without_a_terminal_everything_is_printed_plain(tmp_path, capsys):
    play(tmp_path, calls(("bash", {"command": "seq 1 50"})), say("done"))
    out = capsys.readouterr().out
    assert "\x1b" not in out and out.endswith("49\n50\ndone\n")
