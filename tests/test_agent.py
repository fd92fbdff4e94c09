"""The agent: the real loop, tools and log against a scripted model over real HTTP."""

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading
import time

import pytest

from taskwall import config, registry
from taskwall.agent import run
from taskwall.agent.files import Workspace, file_tools
from taskwall.agent.messages import Call
from taskwall.agent.models import choose
from taskwall.agent.runs import RunLog
from taskwall.agent.screen import call_line
from taskwall.agent.scripted import ScriptedModel, calls, fail, say, task_id
from taskwall.agent.processes import Groups
from taskwall.agent.shell import Consent, run_command
from taskwall.agent.todo import read, rendered
from taskwall.agent.tools import Toolbox
from taskwall.core.errors import Invalid
from taskwall.core.model import Actor
from taskwall.lengths import cut
from taskwall.signals import deferred

SCHEMA, API = "setup database schema", "create API endpoints"
PLAN_GOAL = "创建四个有依赖关系的任务：数据库表结构、API 接口、测试、文档。测试和文档依赖 API，API 依赖表结构。"
CLAIM_GOAL = "尝试认领 API 任务"
FINISH_GOAL = "认领并完成 schema 任务，列出解锁了什么"


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch):
    """Neither a configured model, nor a client around the tests, nor a proxy."""
    for name in list(os.environ):
        if name.startswith(("TASKWALL_", "OPENAI_", "DEEPSEEK_", "ANTHROPIC_", "CLAUDE", "CODEX_", "GEMINI_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def place(folder):
    return config.find_board(str(folder), {}, str(folder))


def board_of(folder):
    return config.open_board(place(folder), Actor("user", "user"), make=True)


def play(folder, *steps, **options):
    """Run the agent in this folder on these steps: its exit status and the requests that the model saw."""
    with ScriptedModel(steps) as model:
        status = run(place(folder), **{"goal": "go", "base_url": model.url, "model": "scripted", **options})
    return status, model.requests


def results(request):
    return [m["content"] for m in request["messages"] if m["role"] == "tool"]


def result(folder, name, arguments, **options):
    """The answer to one tool call, as the model is shown it."""
    _, requests = play(folder, calls((name, arguments)), say("done"), **options)
    return results(requests[-1])[0]


def assert_answered(messages):
    """Every call has exactly one tool message, directly after its message, in order."""
    expected = []
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] == expected.pop(0)
            assert message["content"].strip()
        else:
            assert not expected
            expected = [call["id"] for call in message.get("tool_calls") or ()]
    assert not expected
    ids = [call["id"] for m in messages for call in m.get("tool_calls") or ()]
    assert len(ids) == len(set(ids))


def log_of(folder):
    """The messages of the only run, as saved."""
    [path] = (folder / ".tasks" / ".local" / "runs").glob("*.jsonl")
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    return [entry["message"] for entry in entries if "message" in entry]


def wait_until(condition):
    deadline = time.monotonic() + 15
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        threading.Event().wait(0.005)


# Lesson 12

FOUR_CALLS = (
    calls(("create_task", {"subject": SCHEMA})),
    lambda seen: calls(("create_task", {"subject": API, "blockedBy": [task_id(seen, SCHEMA)]})),
    lambda seen: calls(
        ("create_task", {"subject": "write tests", "blockedBy": [task_id(seen, API)]}),
        ("create_task", {"subject": "write docs", "blockedBy": [task_id(seen, API)]}),
    ),
    say("四个任务已创建。"),
)
ONE_CALL = (
    calls(
        (
            "create_tasks",
            {
                "tasks": [
                    {"ref": "schema", "subject": SCHEMA},
                    {"ref": "api", "subject": API, "blockedBy": ["schema"]},
                    {"ref": "tests", "subject": "write tests", "blockedBy": ["api"]},
                    {"ref": "docs", "subject": "write docs", "blockedBy": ["api"]},
                ]
            },
        )
    ),
    say("四个任务已创建。"),
)


@pytest.mark.slow
@pytest.mark.parametrize("script", [FOUR_CALLS, ONE_CALL], ids=["four calls", "one call"])
def test_the_three_prompts_of_lesson_12(tmp_path, capsys, script):
    assert play(tmp_path, *script, goal=PLAN_GOAL)[0] == 0
    made = capsys.readouterr().out
    if script is FOUR_CALLS:
        assert f"> create_task subject={SCHEMA}\n" in made
        assert re.search(rf"^> create_task subject={API} blockedBy=task_\w{{10}}$", made, re.M)
    else:
        assert "> create_tasks tasks=4\n" in made
    assert re.search(rf"^Created task_\w{{10}}: {SCHEMA}$", made, re.M)
    tasks = {row.task.subject: row.task for row in board_of(tmp_path).list().rows}
    assert tasks[API].blocked_by == (tasks[SCHEMA].id,)
    assert tasks["write docs"].blocked_by == tasks["write tests"].blocked_by == (tasks[API].id,)

    claim = (
        calls(("list_tasks", {})),
        lambda seen: calls(("claim_task", {"task_id": task_id(seen, API)})),
        say("API 任务被阻塞了。"),
    )
    assert play(tmp_path, *claim, goal=CLAIM_GOAL)[0] == 0
    refused = capsys.readouterr().out
    assert f"[ ] {tasks[API].id}: {API} [pending] blockedBy={tasks[SCHEMA].id}\n" in refused
    assert f"> claim_task task_id={tasks[API].id}\nBlocked by: {tasks[SCHEMA].id}" in refused

    finish = (
        lambda seen: calls(("claim_task", {"task_id": task_id(seen, SCHEMA)})),
        lambda seen: calls(("complete_task", {"task_id": task_id(seen, SCHEMA)})),
        say("解锁了 API 任务。"),
    )
    assert play(tmp_path, *finish, goal=FINISH_GOAL)[0] == 0
    done = capsys.readouterr().out
    assert f"Claimed {tasks[SCHEMA].id}" in done
    assert f"Completed {tasks[SCHEMA].id}" in done
    assert f"Unblocked:\n- {tasks[API].id}: {API}\n" in done
    assert "解锁了 API 任务。\n" in done


def test_create_task_answers_with_the_stored_task(tmp_path):
    head, line = result(tmp_path, "create_task", {"subject": "刷漆"}).split("\n")
    stored = json.loads(line)
    assert head == f"Created {stored['id']}: 刷漆"
    assert (stored["subject"], stored["status"], stored["owner"], stored["blockedBy"]) == ("刷漆", "pending", None, [])


# Every call gets one answer


def test_every_call_is_answered_exactly_once_whatever_goes_wrong(tmp_path):
    (tmp_path / "file").write_text("x")
    status, requests = play(
        tmp_path,
        calls(
            ("createTask", {"subject": "x"}),
            ("frobnicate", {}),
            ("create_task", '{"subject": "cut o'),
            ("claim_task", {"task_id": "task_nowhere"}),
            ("create_task", {"colour": "red"}),
            ("bash", {"command": "echo hello"}),
            ("write_file", {"path": "file/below", "content": "x"}),  # an exception, not a refusal
            ("", None),
            ("list_tasks", "[" * 100_000),
        ),
        say("done"),
    )
    assert status == 0
    assert_answered(requests[-1]["messages"])
    answers = results(requests[-1])
    assert "did you mean create_task?" in answers[0]
    assert "there are bash, job, read_file" in answers[1]
    assert "not JSON" in answers[2]
    assert "task_nowhere" in answers[3]
    assert "does not take 'colour'" in answers[4]
    assert answers[5].startswith("bash was refused") and "--yes" in answers[5]
    assert answers[6].startswith("write_file failed: ")
    assert board_of(tmp_path).list().total == 0


def test_missing_and_repeated_call_ids_are_made_unique(tmp_path):
    twice = calls(("list_tasks", {}), ("list_tasks", {}), ("list_tasks", {}))
    for call, call_id in zip(twice["tool_calls"], ("same", "same", None), strict=True):
        call["id"] = call_id
    status, requests = play(tmp_path, twice, twice, say("done"))
    assert status == 0
    assert_answered(requests[-1]["messages"])
    assert len(results(requests[-1])) == 6


@pytest.mark.parametrize(
    "arguments", ['{"subject": "x"}', json.dumps('{"subject": "x"}'), json.dumps({"title": "x", "blockedBy": None})]
)
def test_arguments_are_taken_kindly(tmp_path, arguments):
    assert result(tmp_path, "create_task", arguments).startswith("Created task_")


@pytest.mark.parametrize("arguments", ["", "null", "{}", '""', "  "])
def test_no_arguments_are_written_in_many_ways(tmp_path, arguments):
    assert result(tmp_path, "list_tasks", arguments).startswith("No tasks.")


def test_arguments_that_come_as_an_object_are_taken(tmp_path):
    answer = calls(("create_task", {}))
    answer["tool_calls"][0]["function"]["arguments"] = {"subject": "x"}
    _, requests = play(tmp_path, answer, say("done"))
    assert results(requests[-1])[0].startswith("Created task_")


def test_unknown_fields_of_an_answer_are_sent_back_as_they_came(tmp_path):
    answer = calls(("list_tasks", {}), reasoning_content="", refusal=None, signature={"thought": [1]})
    answer["tool_calls"][0]["extra_content"] = {"google": {"thought_signature": "abc"}}
    _, requests = play(tmp_path, answer, say("done"))
    assert requests[1]["messages"][2] == answer


def test_an_empty_list_of_calls_is_an_answer_in_words(tmp_path, capsys):
    assert play(tmp_path, say("All done.", tool_calls=[]))[0] == 0
    assert capsys.readouterr().out == "All done.\n"


def test_an_empty_answer_is_nudged_once(tmp_path, capsys):
    status, requests = play(tmp_path, say(""), say("done"))
    assert (status, requests[1]["messages"][-1]["role"]) == (0, "user")
    assert play(tmp_path, say(None), say("  "), say("not asked"))[0] == 1
    captured = capsys.readouterr()
    assert "nothing, twice" in captured.err and "not asked" not in captured.out


def test_the_prefix_is_the_same_in_every_run(tmp_path):
    first = play(tmp_path, calls(("create_task", {"subject": SCHEMA})), say("done"), goal="one")[1]
    later = play(tmp_path, say("done"), goal=None)[1]
    assert first[0]["messages"][0] == later[0]["messages"][0]
    assert first[0]["tools"] == later[0]["tools"] and first[0]["tool_choice"] == "auto"
    opening = later[0]["messages"][1]["content"]
    assert "Work the board off" in opening and "1 ready" in opening and SCHEMA in opening


# Endings: what is held is given back


def claimed(*steps):
    return (
        calls(("create_task", {"subject": SCHEMA})),
        lambda seen: calls(("claim_task", {"task_id": task_id(seen, SCHEMA)})),
        *steps,
    )


def assert_released(folder, why):
    [row] = board_of(folder).list().rows
    assert (row.task.status, row.task.owner, row.task.epoch) == ("pending", None, 1)
    assert why in row.task.notes[-1]["text"]


@pytest.mark.parametrize(
    ("steps", "options", "status", "why"),
    [
        ((say("I give up."),), {}, 0, "finished"),
        ((), {"max_turns": 2}, 10, "--max-turns"),
        ((fail(401, "key expired"),), {}, 9, "answered 401: key expired"),
    ],
    ids=["finished", "max turns", "401"],
)
def test_whatever_ends_a_run_what_it_holds_is_released(tmp_path, capsys, steps, options, status, why):
    assert play(tmp_path, *claimed(*steps), **options)[0] == status
    assert_released(tmp_path, why)
    assert ("Stopped: " in capsys.readouterr().err) == bool(status)
    assert_answered(log_of(tmp_path))


def test_a_model_that_cannot_be_reached_ends_the_run(tmp_path, capsys):
    assert run(place(tmp_path), goal="go", base_url="http://127.0.0.1:9/v1", model="none", max_seconds=0.6) == 9
    assert "cannot be reached" in capsys.readouterr().err


def test_what_others_hold_stays_theirs(tmp_path):
    other = board_of(tmp_path)
    play(tmp_path, calls(("create_task", {"subject": SCHEMA}), ("create_task", {"subject": API})), say("done"))
    other.claim(SCHEMA)
    play(tmp_path, calls(("claim_task", {})), say("done"))
    assert {row.task.subject: row.task.status for row in other.list().rows} == {SCHEMA: "in_progress", API: "pending"}


@contextlib.contextmanager
def process(folder, model, *options):
    """The command in a process of its own; ended with the block, whatever happens."""
    words = ["--board", str(folder), "agent", "go", "--base-url", model.url, "--model", "scripted", "--yes", *options]
    started = subprocess.Popen(
        [sys.executable, "-m", "taskwall", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield started
    finally:
        started.kill()
        started.communicate()


@pytest.mark.slow
@pytest.mark.parametrize(("number", "why"), [(signal.SIGINT, "interrupted"), (signal.SIGTERM, "ended by SIGTERM")])
def test_a_signal_while_the_model_thinks(tmp_path, number, why):
    thinking, over = threading.Event(), threading.Event()

    def think(_):
        thinking.set()
        over.wait(15)
        return say("too late")

    with ScriptedModel(claimed(think)) as model, process(tmp_path, model) as agent:
        assert thinking.wait(15)
        agent.send_signal(number)
        out, err = agent.communicate(timeout=15)
        over.set()
    assert (agent.returncode, "Traceback" in err) == (130, False)
    assert f"Stopped: {why}" in err and "Released task_" in out
    assert_released(tmp_path, why)
    assert_answered(log_of(tmp_path))


@pytest.mark.slow
def test_a_signal_during_a_command_ends_it_and_answers_every_call(tmp_path):
    pid = tmp_path / "pid"
    sleeping = calls(("bash", {"command": "echo $$ > part; mv part pid; sleep 60"}), ("list_tasks", {}))
    with ScriptedModel(claimed(sleeping)) as model, process(tmp_path, model) as agent:
        wait_until(pid.exists)
        agent.send_signal(signal.SIGINT)
        agent.communicate(timeout=15)
    assert agent.returncode == 130
    wait_until(lambda: is_gone(int(pid.read_text())))
    assert_released(tmp_path, "interrupted")
    assert_answered(log_of(tmp_path))
    assert [m["content"] for m in log_of(tmp_path)][-2:] == ["interrupted", "not run: interrupted"]


def test_a_signal_during_a_change_of_the_board_waits_for_its_end():
    done = []
    with pytest.raises(KeyboardInterrupt), deferred():
        signal.raise_signal(signal.SIGINT)
        done.append("change")
    assert done == ["change"]


def is_gone(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


# Runs go on


@pytest.mark.slow
def test_a_run_killed_in_a_call_is_resumed_without_repeating_it(tmp_path):
    pid = tmp_path / "pid"
    once = calls(
        ("bash", {"command": "echo x >> times; echo $$ > part; mv part pid; exec sleep 60"}), ("list_tasks", "")
    )
    with ScriptedModel(claimed(once)) as model, process(tmp_path, model) as agent:
        wait_until(pid.exists)
        agent.kill()
        agent.wait()
    os.killpg(int(pid.read_text()), signal.SIGKILL)
    [row] = board_of(tmp_path).list().rows
    assert row.task.status == "in_progress"

    seen = []

    def look(messages):
        seen.extend(messages)
        return calls(("complete_task", {"task_id": task_id(messages, SCHEMA)}))

    assert play(tmp_path, look, say("done"), goal=None, resume="")[0] == 0
    assert_answered(seen)
    during, before, _ = [m["content"] for m in seen[-3:]]
    assert "interrupted during this call" in during and "unknown" in during and "it was not run" in before
    assert f"You hold:\n- {row.task.id}" in seen[-1]["content"]
    assert (tmp_path / "times").read_text() == "x\n"
    assert board_of(tmp_path).get(row.task.id).row.task.status == "completed"


def test_resume_takes_the_run_that_is_named_and_tolerates_a_torn_line(tmp_path, capsys):
    play(tmp_path, say("first"), goal="goal one")
    runs = tmp_path / ".tasks" / ".local" / "runs"
    [first] = runs.glob("*.jsonl")
    play(tmp_path, say("second"), goal="goal two")
    with first.open("ab") as file:
        file.write('{"message": {"role": "assistant", "content": "刷'.encode()[:-1])
    _, requests = play(tmp_path, say("third"), resume=first.stem, goal="and more")
    told = [m["content"] for m in requests[0]["messages"]]
    assert "goal one" in told[1] and told[2] == "first" and "Goal: and more" in told[3]
    _, requests = play(tmp_path, say("fourth"), resume="", goal=None)
    assert [m["content"] for m in requests[0]["messages"]][:5] == [*told, "third"]
    with pytest.raises(Invalid, match="no run nothing"):
        play(tmp_path, resume="nothing")


def test_a_run_that_is_going_on_is_not_resumed(tmp_path):
    log = RunLog.start(str(tmp_path), "run", {})
    with log.locked(), pytest.raises(Invalid, match="still going on"), RunLog.resume(str(tmp_path), "").locked():
        pass


def test_resume_without_a_run_says_so(tmp_path):
    with pytest.raises(Invalid, match="no run to resume"):
        play(tmp_path, resume="")


# bash


def test_bash_shows_exit_code_and_output_and_knows_the_board(tmp_path):
    told = result(tmp_path, "bash", {"cmd": "echo out; echo err >&2; env | grep ^TASKWALL_ | sort; exit 3"}, yes=True)
    lines = told.split("\n")
    assert lines[:3] == ["exit code 3", "out", "err"]
    assert lines[3:5] == ["TASKWALL_ACTOR=agent", f"TASKWALL_BOARD={tmp_path / '.tasks'}"]
    assert re.fullmatch(r"TASKWALL_SESSION=\d{8}-\d{6}-[0-9a-f]{6}", lines[5])
    assert (
        result(tmp_path, "bash", {"command": "printf 'a\\377b'; pwd"}, yes=True) == f"exit code 0\na\ufffdb{tmp_path}"
    )
    assert result(tmp_path, "bash", {"command": "true"}, yes=True) == "exit code 0\n(no output)"


def test_long_output_is_cut_in_the_middle_and_kept_in_a_file(tmp_path, capsys):
    told = result(tmp_path, "bash", {"command": "seq 1 20000"}, yes=True)
    assert len(told) <= 8_000
    assert told.startswith("exit code 0\n1\n2\n") and told.endswith("19999\n20000")
    path = re.search(r"are in (\S+) ", told)[1]
    assert "/.tasks/.local/runs/" in path
    with open(path) as file:
        assert file.read() == "exit code 0\n" + "".join(f"{n}\n" for n in range(1, 20_001)).rstrip("\n")


def test_a_command_out_of_time_is_ended_with_its_children(tmp_path):
    told = run_command("sleep 60 & echo $! > pid; wait", str(tmp_path), os.environ, 0.3, Groups())
    assert told.startswith("timed out after 0.3 seconds")
    wait_until(lambda: is_gone(int((tmp_path / "pid").read_text())))


@pytest.mark.slow
def test_a_timeout_is_answered_and_the_run_goes_on(tmp_path):
    status, requests = play(
        tmp_path, calls(("bash", {"command": "sleep 60", "timeout": 1}), ("list_tasks", {})), say("done"), yes=True
    )
    assert status == 0
    assert_answered(requests[-1]["messages"])
    assert results(requests[-1])[0].startswith("timed out after 1 seconds")


def test_what_a_command_leaves_running_does_not_keep_it(tmp_path):
    groups = Groups()
    told = run_command("sleep 60 & echo $! > pid", str(tmp_path), os.environ, 30, groups)
    assert told == "exit code 0\n(no output)"
    left = int((tmp_path / "pid").read_text())
    assert not is_gone(left)
    groups.close()
    wait_until(lambda: is_gone(left))


def test_a_person_is_asked_until_always():
    replies = iter(["", "n", "y", "a"])
    asked = []

    def ask(question):
        asked.append(question)
        return next(replies)

    consent = Consent(always=False, ask=ask)
    for _ in range(2):
        with pytest.raises(Invalid, match="refused this command"):
            consent.require("make")
    for _ in range(4):
        consent.require("make")
    assert len(asked) == 4 and asked[0].startswith("make\n")


@pytest.mark.slow
def test_on_a_terminal_the_whole_command_is_shown_before_it_runs(tmp_path):
    command = f"echo {'long ' * 30}; touch made"
    script = calls(("bash", {"command": command})), calls(("bash", {"command": "touch more"})), say("done")
    ours, theirs = pty.openpty()
    with ScriptedModel(script) as model:
        words = ["--board", str(tmp_path), "agent", "go", "--base-url", model.url, "--model", "scripted"]
        agent = subprocess.Popen(
            [sys.executable, "-m", "taskwall", *words], stdin=theirs, stdout=theirs, stderr=subprocess.STDOUT
        )
        os.close(theirs)
        shown, asked = b"", 0
        with contextlib.suppress(OSError):  # Linux ends a terminal so
            while chunk := os.read(ours, 4096):
                shown += chunk
                if shown.count(b"[y/N") > asked:
                    asked += 1
                    os.write(ours, b"y\n" if asked == 1 else b"\n")
        os.close(ours)
        assert agent.wait(15) == 0
    lines = re.sub(r"\x1b\[\w+", "", shown.decode().replace("\r\n", "\n")).split("\n")
    at = next(at for at, line in enumerate(lines) if "> bash" in line)
    assert lines[at].endswith("…") and lines[at + 1] == command
    assert (tmp_path / "made").exists() and not (tmp_path / "more").exists()
    assert "  the person at the terminal refused this command" in lines


# Files


@pytest.fixture
def files(tmp_path):
    """The file tools by name in `tmp_path/work`, beside `tmp_path/secret`."""
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "work" / ".tasks").mkdir(parents=True)
    os.symlink(tmp_path, tmp_path / "work" / "up")
    os.symlink(tmp_path / "new", tmp_path / "work" / "dangling")

    def files(**options):
        work = str(tmp_path / "work")
        tools = file_tools(Workspace(work, f"{work}/.tasks", f"{work}/.tasks/.local", **options))
        return {tool.name: tool.run for tool in tools}

    return files


@pytest.mark.parametrize("path", ["../secret", "up/secret", "dangling", "/etc/passwd", "~/x", "a/../../secret"])
def test_paths_that_leave_the_workspace_are_refused(files, tmp_path, path):
    tools = files()
    for name, more in (("read_file", {}), ("write_file", {"content": "x"}), ("edit_file", {"old": "s", "new": "x"})):
        with pytest.raises(Invalid, match="outside the workspace"):
            tools[name]({"path": path, **more})
    assert (tmp_path / "secret").read_text() == "secret" and not (tmp_path / "new").exists()


def test_outside_is_allowed_when_the_run_was_told_so_but_never_the_board(files):
    tools = files(outside=True)
    assert tools["read_file"]({"path": "../secret"}) == "secret"
    with pytest.raises(Invalid, match="belongs to the board"):
        tools["write_file"]({"path": ".tasks/t.json", "content": "{}"})


def test_a_path_outside_is_refused_to_the_model(tmp_path):
    (tmp_path / "work").mkdir()
    assert "outside the workspace" in result(tmp_path / "work", "read_file", {"path": "../x"})
    assert not (tmp_path / "x").exists()


def test_edit_file_replaces_what_occurs_exactly_once(files, tmp_path):
    tools = files()
    assert tools["write_file"]({"file_path": "a/b.txt", "content": "one\r\ntwo\r\ntwo\r\n"}).startswith("Wrote a/b.txt")
    for old, told in (("two", "2 times"), ("three", "0 times"), ("", "old is empty")):
        with pytest.raises(Invalid, match=told):
            tools["edit_file"]({"path": "a/b.txt", "old": old, "new": "x"})
    assert (
        tools["edit_file"]({"path": "a/b.txt", "old_string": "one\r\n", "new_string": ""}) == "Edited a/b.txt at line 1"
    )
    assert (tmp_path / "work" / "a" / "b.txt").read_bytes() == b"two\r\ntwo\r\n"
    with pytest.raises(Invalid, match="needs content"):
        tools["write_file"]({"path": "a/b.txt"})
    tools["write_file"]({"path": "a/b.txt", "content": ""})
    assert tools["read_file"]({"path": "a/b.txt"}) == "(the file is empty)"


def test_read_file_goes_page_by_page(files, tmp_path):
    (tmp_path / "work" / "long").write_text("".join(f"{n}\n" for n in range(1, 1001)))
    tools = files()
    assert (
        tools["read_file"]({"path": "long", "offset": 3, "limit": "2"}) == "3\n4\n… lines 3 to 4; go on with offset=5"
    )
    assert tools["read_file"]({"path": "long"}).endswith("500\n… lines 1 to 500; go on with offset=501")
    assert tools["read_file"]({"path": "long", "offset": 999}) == "999\n1000\n"
    for path, told in (("missing", "does not exist"), (".", "no plain file")):
        with pytest.raises(Invalid, match=told):
            tools["read_file"]({"path": path})


# todo_write


def test_todo_write_renders_the_list_and_the_count():
    todos = [
        {"content": "walk", "status": "completed"},
        {"content": "run", "status": "in_progress", "activeForm": "running"},
        {"content": "rest", "status": "pending"},
    ]
    told = "[x] walk\n[>] running\n[ ] rest\n(1/3 completed)"
    for given in ({"todos": todos}, {"todos": json.dumps(todos)}, todos):
        assert rendered(read(given)) == told
    assert rendered(read({"todos": []})) == "(0/0 completed)"
    assert rendered(read({"todos": ["walk"]})) == "[ ] walk\n(0/1 completed)"


@pytest.mark.parametrize(
    ("todos", "told"),
    [
        ([{"content": "a", "status": "in_progress"}, {"content": "b", "status": "in_progress"}], "more than one"),
        ([{"content": " ", "status": "pending"}], "must have content"),
        ([{"content": "a", "status": "later"}], "status is 'later'"),
        ([{"content": "a", "status": ["x"]}], "status is"),
        ([7], "must have content"),
        (None, "whole list"),
    ],
)
def test_todo_write_refuses(todos, told):
    with pytest.raises(Invalid, match=told):
        read({"todos": todos})


# Words, schemas, models


def test_a_call_is_echoed_with_its_task_first_and_never_cut_here():
    long = "x" * 500
    call = Call("1", "create_task", {"blockedBy": ["a", "b"], "description": f"{long}\n", "subject": "刷漆"})
    assert call_line(call) == f"> create_task subject=刷漆 blockedBy=a,b description={long}\\n"
    assert call_line(Call("1", "create_tasks", {"tasks": [{}, {}, {}, {}]})) == "> create_tasks tasks=4"
    assert call_line(Call("1", "next_actionable")) == "> next_actionable"
    assert call_line(Call("1", "bash", "\x1b[2J{", flaw="x")) == "> bash \\x1b[2J{"
    assert (
        cut("> 刷漆刷漆", 10) == "> 刷漆刷漆" and cut("> 刷漆刷漆", 9) == "> 刷漆刷…" and len(cut("x" * 99, 80)) == 80
    )


def test_schemas_keep_to_the_dialect_that_every_client_accepts(tmp_path):
    board = board_of(tmp_path)
    workspace = Workspace(str(tmp_path), str(tmp_path), str(tmp_path))
    offered = Toolbox(
        board, workspace, Consent(always=True, ask=None), RunLog.start(str(tmp_path), "run", {})
    ).schemas()
    own = ["bash", "job", "read_file", "write_file", "edit_file", "todo_write"]
    assert [t["name"] for t in offered] == [*own, *(t["name"] for t in registry.tools())]
    for tool in offered:
        assert set(tool) == {"name", "description", "parameters"} and len(tool["description"]) < 1_000
        assert_safe(tool["parameters"])
    assert offered[0]["parameters"]["required"] == ["command"]


def assert_safe(schema):
    assert set(schema) == {"type", "properties", "required", "additionalProperties"}
    assert (schema["type"], schema["additionalProperties"]) == ("object", False)
    for shape in schema["properties"].values():
        assert shape["description"] and set(shape) <= {"type", "description", "items", "enum"}
        assert shape["type"] in ("string", "integer", "boolean", "array")
        if shape["type"] == "array" and shape["items"] != {"type": "string"}:
            assert_safe(shape["items"])


@pytest.mark.parametrize(
    ("flags", "env", "expected"),
    [
        ((None, None), {"DEEPSEEK_API_KEY": "d"}, ("https://api.deepseek.com", "d", "deepseek-chat")),
        ((None, None), {"OPENAI_API_KEY": "o"}, ("https://api.openai.com/v1", "o", "gpt-5-mini")),
        (("gpt-x", None), {"OPENAI_API_KEY": "o", "DEEPSEEK_API_KEY": "d"}, ("https://api.openai.com/v1", "o", "gpt-x")),
        ((None, "http://h/v1"), {"TASKWALL_MODEL": "m", "DEEPSEEK_API_KEY": "d"}, ("http://h/v1", "none", "m")),
        ((None, None), {"OPENAI_BASE_URL": "http://h/v1", "OPENAI_API_KEY": "o", "TASKWALL_MODEL": "m"}, ("http://h/v1", "o", "m")),
        (("n", "http://f/v1"), {"OPENAI_BASE_URL": "http://h/v1", "TASKWALL_MODEL": "m"}, ("http://f/v1", "none", "n")),
    ],
)  # fmt: skip
def test_flags_and_environment_choose_the_model(flags, env, expected):
    chosen = choose(*flags, env)
    assert (chosen.base_url, chosen.key, chosen.model) == expected


def test_without_a_model_the_refusal_says_what_to_set(tmp_path):
    with pytest.raises(Invalid, match="no model is configured") as refused:
        run(place(tmp_path), goal="go")
    assert "DEEPSEEK_API_KEY" in refused.value.next and "--base-url" in refused.value.next
    with pytest.raises(Invalid, match="no address of a model"):
        choose("m", "127.0.0.1:11434/v1", {})
    with pytest.raises(Invalid, match="not for which model"):
        choose(None, "http://127.0.0.1:11434/v1", {})
    assert list(tmp_path.iterdir()) == []


def test_importing_the_agent_does_not_import_the_sdk():
    code = "import sys, taskwall.agent; sys.exit('openai' in sys.modules or 'httpx2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


# The demo


@pytest.mark.slow
def test_the_demo_shows_all_of_it_and_leaves_a_board_to_go_on_with(tmp_path):
    shown = subprocess.run([sys.executable, "-m", "taskwall.demo", str(tmp_path)], capture_output=True, text=True)
    assert shown.returncode == 0, shown.stderr
    for line in (
        "a script plays the model",
        "> create_tasks tasks=4",
        "Blocked by: task_",
        "Completed task_",
        "Unblocked:",
    ):
        assert line in shown.stdout
    assert f"taskwall --board {tmp_path} list" in shown.stdout
    assert board_of(tmp_path).next().rows[0].task.subject == API
