"""The command line as people and agents use it: real processes on real boards."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from taskwall.faces.cli import main as cli

CLEAN = {
    k: v for k, v in os.environ.items() if not re.match(r"TASKWALL|CLAUDE|CODEX|GEMINI|NO_COLOR|COLUMNS|FORCE_COLOR", k)
}


@pytest.fixture
def tw(tmp_path, monkeypatch, capsys):
    """Run a command line in this process, in an empty folder: `.out`, `.err`, `.status`; `tw.json(…)` the envelope."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name not in CLEAN]:
        monkeypatch.delenv(name)

    class Run:
        def __init__(self, *words):
            self.status = cli.main(list(map(str, words)))
            self.out, self.err = capsys.readouterr()

    def run(*words):
        return Run(*words)

    run.json = lambda *words: json.loads(Run("--json", *words).out)
    run.tasks = tmp_path / ".tasks"
    return run


def spawn(*words, cwd, stdin=None, **env):
    command = [sys.executable, "-m", "taskwall", *words]
    return subprocess.run(command, cwd=cwd, input=stdin, capture_output=True, text=True, env=CLEAN | env, timeout=60)


def test_the_overview_says_each_command_in_one_short_line(tw):
    assert max(map(len, tw("--help").out.splitlines())) <= 80


def test_a_folder_that_is_gone_is_a_refusal_and_no_error_of_ours(tw, tmp_path):
    (tmp_path / "worktree").mkdir()
    os.chdir(tmp_path / "worktree")
    (tmp_path / "worktree").rmdir()
    refused = tw("--board", tmp_path, "list")
    assert refused.status == 2 and "the folder that this was called in is gone" in refused.err


def test_a_session_by_hand(tw):
    assert tw("init").out.startswith("Made ")
    schema = tw.json("add", "set up schema", "--id", "schema", "-p", 1, "-l", "db")["data"]["task"]
    assert (schema["id"], schema["state"], schema["rev"]) == ("schema", "ready", 1)
    tw("add", "create API endpoints", "--id", "api-1", "-b", "schema")
    blocked = tw("claim", "api-1")
    assert (blocked.status, blocked.out) == (4, "")
    assert blocked.err.startswith("Blocked by: schema\n")
    assert tw("claim").out.startswith("Claimed schema (set up schema)\ntoken: schema#1\n")
    done = tw("done", "schema#1", "-m", "five tables")
    assert done.out == "Completed schema (set up schema)\nUnblocked:\n- api-1: create API endpoints\n"
    assert tw("next").out == "[ ] api-1: create API endpoints [pending]\n"
    assert json.loads((tw.tasks / "schema.json").read_text())["result"] == "five tables"


EXITS = [
    (["list"], 0),
    (["show", "no-such-task"], 3),
    (["show", "twin"], 3),  # ambiguous
    (["claim", "after"], 4),
    (["claim", "done-1"], 4),
    (["done", "ready-1"], 4),
    (["block", "before", "after"], 4),
    (["cancel", "before"], 4),
    (["done", "taken"], 5),
    (["claim", "taken"], 5),
    (["frobnicate"], 2),
    (["add"], 2),
    (["add", "x", "-p", "9"], 2),
    (["list", "no-such-state"], 2),
    (["--board", "/no/such/folder", "list"], 2),
    (["hold", "done-1"], 4),
    (["answer", "ready-1", "yes"], 2),
    (["claim", "--steal", "taken"], 2),
    (["release", "--session", "x", "taken"], 2),
    ([], 0),
    (["--help"], 0),
    (["--version"], 0),
]


@pytest.mark.parametrize(("words", "status"), EXITS, ids=lambda w: " ".join(w) if isinstance(w, list) else "")
def test_exit_statuses_tell_what_happened(tw, words, status):
    for task_id, *more in (
        ["before"],
        ["after", "-b", "before"],
        ["ready-1"],
        ["done-1"],
        ["taken"],
        ["twin-a"],
        ["twin-b"],
    ):
        tw("add", f"task {task_id}", "--id", task_id, *more)
    tw("claim", "done-1"), tw("done", "done-1"), tw("claim", "taken", "--as", "bob")
    run = tw(*words)
    assert run.status == status
    assert (run.out == "") == (status != 0)
    if status:
        assert "\nNext: " in run.err
    if words and not words[0].startswith("--") and words[0] != "--board":
        as_json = tw("--json", *words)
        assert as_json.status == status
        envelope = json.loads(as_json.out)
        assert (envelope["v"], envelope["ok"]) == (1, status == 0)
        assert envelope["ok"] or set(envelope["error"]) == {"code", "message", "task", "by", "next"}


def test_a_move_to_nowhere_is_refused_before_anything_is_made(tw, tmp_path):
    tw("add", "one")
    before = sorted(tmp_path.rglob("*"))
    for nowhere in ("", " "):
        refused = tw("move", nowhere)
        assert refused.status == 2 and "where the board is to go has no name" in refused.err
    assert sorted(tmp_path.rglob("*")) == before


def test_next_says_who_must_act_and_exits_so(tw):
    tw("add", "decide", "--id", "decide", "--for", "user")
    tw("add", "build", "--id", "build", "-b", "decide")
    waiting = tw("next", "--as", "builder")
    assert (waiting.status, waiting.out) == (7, "Nothing is actionable.\nwaiting on user: decide\n")
    assert tw("claim", "--as", "builder").status == 7
    assert tw.json("next", "--as", "builder")["ok"] is True
    assert tw("answer", "decide", "the", "red", "one").out == "Answered decide (decide)\nUnblocked:\n- build: build\n"
    tw("claim", "build", "--as", "other")
    assert tw("next", "--as", "builder").status == 6
    tw("done", "build", "--as", "other")
    assert tw("next").status == 0
    assert tw("next").out == "Everything is finished (2 tasks).\n"
    assert "nothing of ours is there" in tw("uninstall", "--yes").out
    assert tw("claim").status == 6
    (tw.tasks / "bad.json").write_text('{"id": "bad"')
    tw("add", "after bad", "--id", "late")
    tw("block", "late", "bad")
    broken = tw("next")
    assert broken.status == 8
    assert "bad.json:1" in broken.out


def test_every_command_of_the_synopsis_reaches_its_verb(tw):
    steps = [
        "plan -",
        "list ready --label x --owner o --id 't*' --text t --limit 3 --all",
        "waiting",
        "show s1",
        "next -n 2",
        "claim s1 --ttl 5",
        "beat s1 --ttl 9",
        "release s1 --reason later --failed",
        "edit s1 -s new -d text -p 0 -l a b --for user --parent p1 --product out.txt --check true --meta k=v --note n",
        "note s1 some words",
        "block s1 s2",
        "unblock s1 s2",
        "edit s1 --check '' --product '' --for ''",
        "claim s1 --as z",
        "claim s1 --steal --reason gone",
        "ask s1 which one --option a --option b",
        "hold s2 not now",
        "resume s2",
        "why s1",
        "log s1",
        "log",
        "graph",
        "graph --mermaid",
        "fleet",
        "cancel s2 --cascade",
        "reopen s2",
        "release --session nobody",
        "cancel p1 --drop-edges",
        "where",
    ]
    import shlex

    for name in ("p1", "s1", "s2"):
        tw("add", f"subject {name}", "--id", name)
    for step in steps[1:]:
        run = tw(*shlex.split(step))
        assert run.status == 0, (step, run.err)
    stored = json.loads((tw.tasks / "s1.json").read_text())
    assert (stored["subject"], stored["priority"], stored["labels"], stored["parent"]) == ("new", 0, ["a", "b"], "p1")
    assert (stored["metadata"], stored["attempts"]) == ({"k": "v"}, 1)
    assert [note["text"] for note in stored["notes"]] == ["released: later", "n", "some words"]
    assert not {"checks", "products"} & set(stored)


def test_a_plan_comes_as_lines_or_json_from_a_file_or_standard_input(tmp_path):
    lines = "schema: 建表\n    三张表\n    两个索引\napi: 写接口 <- schema\n\nthe colon: is no ref <- api, schema\n"
    made = spawn("plan", "-", cwd=tmp_path, stdin=lines)
    assert made.returncode == 0, made.stderr
    assert made.stdout.count("Created task_") == 3
    tasks = {t["subject"]: t for p in (tmp_path / ".tasks").glob("*.json") for t in [json.loads(p.read_text())]}
    assert tasks["建表"]["description"] == "三张表\n两个索引"
    assert tasks["写接口"]["blockedBy"] == [tasks["建表"]["id"]]
    assert len(tasks["the colon: is no ref"]["blockedBy"]) == 2
    plan = tmp_path / "plan.json"
    plan.write_text(
        json.dumps({"tasks": [{"ref": "a", "subject": "A"}, {"subject": "B", "depends_on": "a", "parent": "写接口"}]})
    )
    assert spawn("plan", str(plan), cwd=tmp_path).returncode == 0
    for bad in (
        "  indented first",
        "[1, 2]",
        "{",
        '{"no": 1}',
        "a: x <- b\nb: y <- a",
        "a: x <- nowhere",
        '[{"subject": ""}]',
        "",
    ):
        before = sorted((tmp_path / ".tasks").glob("*.json"))
        refused = spawn("plan", "-", cwd=tmp_path, stdin=bad)
        assert refused.returncode in (2, 3, 4), bad
        assert "Traceback" not in refused.stderr and "Next: " in refused.stderr
        assert sorted((tmp_path / ".tasks").glob("*.json")) == before


def test_a_dash_reads_text_from_standard_input(tmp_path):
    assert spawn("add", "x", "--id", "t-1", "-d", "-", cwd=tmp_path, stdin="line 1\nline 2\n").returncode == 0
    assert spawn("note", "t-1", "-", cwd=tmp_path, stdin="a note\n").returncode == 0
    stored = json.loads((tmp_path / ".tasks/t-1.json").read_text())
    assert (stored["description"], stored["notes"][0]["text"]) == ("line 1\nline 2", "a note")


def test_who_acts_is_bound_by_flag_environment_and_client(tw, monkeypatch):
    assert tw.json("where")["data"]["actor"] == "user"
    monkeypatch.setenv("CLAUDECODE", "1")
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", "abc")
    assert [tw.json("where")["data"][k] for k in ("actor", "session")] == ["claude", "abc"]
    monkeypatch.setenv("TASKWALL_ACTOR", "alice")
    monkeypatch.setenv("TASKWALL_SESSION", "run-7")
    assert [tw.json("where")["data"][k] for k in ("actor", "session")] == ["alice", "run-7"]
    assert tw.json("where", "--as", "bob")["data"]["actor"] == "bob"


def test_global_options_stand_before_or_after_the_command(tw, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    assert tw("--board", other, "add", "x").status == 0
    assert len(tw.json("list", "--board", other)["data"]["tasks"]) == 1
    assert tw("--as", "bob", "claim", "--board", other, "--json").status == 0
    assert tw.json("--board", other, "list")["data"]["tasks"][0]["owner"] == "bob"


def test_init_makes_the_folder_and_touches_nothing_else(tmp_path):
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    before = sorted(p for p in tmp_path.rglob("*") if ".tasks" not in p.parts)
    assert spawn("init", cwd=tmp_path).returncode == 0
    again = spawn("init", cwd=tmp_path)
    assert (again.returncode, again.stdout.startswith("board: ")) == (0, True)
    assert sorted(p for p in tmp_path.rglob("*") if ".tasks" not in p.parts) == before
    assert list((tmp_path / ".tasks").iterdir()) == []


def test_reading_writes_nothing(tw):
    tw("init")
    for words in ("list", "next", "waiting", "log", "graph", "fleet", "where"):
        assert tw(words).status == 0
    assert list(tw.tasks.iterdir()) == []


def test_local_files_ignore_themselves_in_git(tmp_path):
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    spawn("add", "x", "--id", "t-1", cwd=tmp_path)
    spawn("claim", "t-1", cwd=tmp_path)
    status = subprocess.run(["git", "status", "--porcelain", "-uall"], cwd=tmp_path, capture_output=True, text=True)
    assert status.stdout == "?? .tasks/t-1.json\n"


HOSTILE = "\x1b[31mred\x1b[0m \x07 \x9b31m \u202eright to left\u202c <script>alert(1)</script> \x00 é 中文"


def test_no_raw_control_or_direction_mark_reaches_any_output(tw):
    tw("init")
    raw = {"id": "h-1", "title": HOSTILE, "state": "pending", "owner": HOSTILE, "note": HOSTILE, HOSTILE: HOSTILE}
    raw |= {
        "notes": [{"at": HOSTILE, "by": HOSTILE, "text": HOSTILE}],
        "hold": HOSTILE,
        "blocked_by": ["gone"],
        "labels": [HOSTILE],
    }
    (tw.tasks / "h-1.json").write_text(json.dumps(raw))
    (tw.tasks / "h-2.json").write_text(json.dumps({"id": "h-2", "title": HOSTILE, "state": HOSTILE, "owner": HOSTILE}))
    (tw.tasks / f"bad {HOSTILE[:4]}.json").write_text("{")
    tw("note", "h-2", HOSTILE.replace("\x00", ""))
    unsafe = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
    seen = 0
    for words in (
        ["list"],
        ["show", "h-1"],
        ["show", "h-2"],
        ["why", "h-1"],
        ["next"],
        ["graph"],
        ["graph", "--mermaid"],
        ["log"],
        ["waiting"],
        ["claim", "h-1"],
        ["fleet"],
        ["claim", HOSTILE],
    ):
        for mode in ([], ["--json"]):
            run = tw(*mode, *words)
            assert not unsafe.search(run.out + run.err), (words, mode)
            seen += "中文" in run.out + run.err
    assert seen > 10


def terminal(words, cwd, columns=80, **env):
    """What a command prints on a terminal of this width, without colours."""
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(cwd)
        os.execve(
            sys.executable,
            [sys.executable, "-m", "taskwall", *words],
            CLEAN | {"COLUMNS": str(columns), "TERM": "xterm"} | env,
        )
    out = b""
    try:
        while part := os.read(fd, 65536):
            out += part
    except OSError:
        pass
    os.waitpid(pid, 0)
    os.close(fd)
    return out.decode()


def test_a_table_aligns_chinese_at_80_columns_and_stays_inside(tmp_path):
    from rich.cells import cell_len

    for n, subject in enumerate(["走水电", "封墙" * 40, "paint the walls", "装灯：" + "lamp " * 20]):
        spawn("add", subject, "--id", f"site-{n}", *(["-b", f"site-{n - 1}"] if n else []), cwd=tmp_path)
    coloured = terminal(["list"], tmp_path)
    assert "\x1b[3" in coloured
    plain = terminal(["list"], tmp_path, NO_COLOR="1")
    assert "\x1b[3" not in plain and "\x1b[9" not in plain
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in plain.splitlines()]
    assert all(cell_len(line) <= 80 for line in lines)
    starts = {cell_len(line[: line.index("site-")]) for line in lines[1:]}
    waits = {cell_len(line[: line.rindex("site-")]) for line in lines[2:]}
    assert (len(starts), len(waits)) == (1, 1)
    assert "ready" in lines[1] and "blocked" in lines[2]
    assert all("site-" in line for line in lines[1:])


def test_off_a_terminal_lists_are_the_lines_of_the_lessons(tmp_path):
    spawn("add", "create API endpoints", "--id", "api-1", "-b", cwd=tmp_path)
    spawn("add", "set up schema", "--id", "schema", cwd=tmp_path)
    spawn("add", "create API endpoints", "--id", "api-1", "-b", "schema", cwd=tmp_path)
    listed = spawn("list", cwd=tmp_path).stdout
    assert listed == "[ ] schema: set up schema [pending]\n[ ] api-1: create API endpoints [pending] blockedBy=schema\n"


def test_lists_are_capped_with_a_cursor(tw):
    tw("init")
    for n in range(120):
        task = {"id": f"t-{n:03}", "subject": "x", "status": "pending", "blockedBy": [], "owner": None}
        (tw.tasks / f"t-{n:03}.json").write_text(json.dumps(task))
    seen = []
    after = []
    while True:
        page = tw.json("list", *after)["data"]
        seen += [task["id"] for task in page["tasks"]]
        if not page["more"]:
            break
        after = ["--after", seen[-1]]
    assert seen == [f"t-{n:03}" for n in range(120)]
    assert tw("list").out.endswith("… 70 more: list --after t-049 (with the same filters)\n")
    assert tw("next").out.endswith("… 9+ more: taskwall next -n 50\n")
    assert tw("next", "-n", 50).out.endswith("… 9+ more: taskwall list ready\n"), "no more are ever shown"


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_completions_name_every_command(tw, shell):
    script = tw("completion", shell).out
    assert all(name in script for name in ("claim", "waiting", "completion"))
    assert tw("completion", "cmd.exe").status == 2


def test_help_of_each_command_is_in_the_words_of_its_verb(tmp_path):
    shown = spawn("claim", "--help", cwd=tmp_path)
    assert shown.returncode == 0
    assert "Claim a task before you work on it" in shown.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_board_that_cannot_be_written_can_be_read(tmp_path):
    spawn("add", "x", "--id", "t-1", cwd=tmp_path)
    board = tmp_path / ".tasks"
    local = board / ".local"
    subprocess.run(["rm", "-rf", str(local)], check=True)
    local.write_text("in the way, as a read-only folder would be for those who are not root")
    refused = spawn("claim", "t-1", cwd=tmp_path)
    assert (refused.returncode, str(board) in refused.stderr) == (4, True)
    assert spawn("list", cwd=tmp_path).returncode == 0


def test_a_closed_pipe_and_an_interrupt_end_quietly(tmp_path):
    for n in range(3):
        spawn("add", "x" * 150, cwd=tmp_path)
    piped = subprocess.run(
        f"{sys.executable} -m taskwall list --all | true",
        shell=True,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=CLEAN,
    )
    assert piped.stderr == ""
    waiting = subprocess.Popen(
        [sys.executable, "-m", "taskwall", "note", "x", "-"],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=CLEAN,
    )
    while "taskwall" not in Path(f"/proc/{waiting.pid}/cmdline").read_text() or not blocked_on_read(waiting.pid):
        time.sleep(0.01)
    waiting.send_signal(signal.SIGINT)
    _, err = waiting.communicate(timeout=10)
    assert (waiting.returncode, b"Traceback" in err) == (130, False)


def blocked_on_read(pid):
    return "pipe" in Path(f"/proc/{pid}/wchan").read_text() or Path(f"/proc/{pid}/syscall").read_text().startswith(
        "0 0x0"
    )


def test_argument_text_that_is_not_utf8_is_refused(tmp_path):
    refused = subprocess.run(
        [sys.executable, "-m", "taskwall", "add", b"caf\xe9"], cwd=tmp_path, capture_output=True, env=CLEAN
    )
    assert (refused.returncode, b"UTF-8" in refused.stderr) == (2, True)


def test_a_list_on_a_terminal_ends_with_the_same_hint(tmp_path):
    spawn("plan", "-", cwd=tmp_path, stdin="".join(f"t{n}: task {n}\n" for n in range(6)))
    assert terminal(["next", "-n", "2"], tmp_path).endswith("… 4 more: taskwall next -n 6\r\n")
    assert "(with the same filters)" in terminal(["list", "-n", "2"], tmp_path)


def test_nothing_that_waits_is_said_in_the_words_of_the_command(tw):
    tw("add", "an open task", "--id", "t-1")
    assert tw("waiting").out == "Nothing waits for a person.\n"
    assert tw.json("waiting")["data"]["tasks"] == []
    tw("add", "which one?", "--id", "t-2", "--for", "user")
    assert tw("waiting").out.startswith("[ ] t-2: ")


def test_a_claim_is_shown_with_what_is_left_of_it(tw):
    for task_id, *more in (["leased", "--ttl", 15], ["manual"]):
        tw("add", task_id, "--id", task_id), tw("claim", task_id, *more)
    assert re.search(r"^claim: .*, lease live, (15.0|14.9) minutes left$", tw("show", "leased").out, re.MULTILINE)
    assert re.search(r"^claim: .*, by hand, never lapses$", tw("show", "manual").out, re.MULTILINE)


def test_a_person_who_claims_a_decision_is_told_to_answer_it(tw):
    tw("add", "build", "--id", "build"), tw("add", "which?", "--id", "which", "--for", "user")
    assert tw("claim", "which").out.endswith("Next: taskwall answer which TEXT\n")
    assert tw("claim", "build").out.endswith("Next: do it, then complete_task (taskwall done build)\n")


def test_the_tree_does_not_repeat_who_stands_above(tw):
    tw("add", "A", "--id", "a-1"), tw("add", "B", "--id", "b-1")
    tw("add", "C", "--id", "c-1", "-b", "a-1"), tw("add", "D", "--id", "d-1", "-b", "c-1", "b-1")
    assert tw("graph").out.splitlines() == [
        "[ ] a-1: A [pending]",
        "  [ ] c-1: C [pending]",
        "    [ ] d-1: D [pending] blockedBy=b-1",
        "[ ] b-1: B [pending]",
        "  [ ] d-1: D (see above)",
    ]


def test_trees_and_the_log_stay_inside_a_terminal(tmp_path):
    from rich.cells import cell_len

    spawn("add", "封墙" * 60, "--id", "t-1", cwd=tmp_path)
    spawn("add", "x" * 180, "--id", "t-2", "-b", "t-1", cwd=tmp_path)
    for words in (["graph"], ["why", "t-2"], ["log"]):
        lines = terminal(words, tmp_path, columns=60).splitlines()
        assert max(map(cell_len, lines)) in (59, 60) and any(line.endswith("…") for line in lines), words
    assert "x" * 180 in spawn("graph", cwd=tmp_path).stdout


def test_the_log_tells_times_without_microseconds_and_how_to_see_more(tw):
    for number in range(4):
        tw("add", f"task {number}", "--id", f"t-{number}")
    first, *lines = tw("log", "-n", 2).out.splitlines()
    assert first == "… 2 earlier: taskwall log -n 4"
    assert all(re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ user create t-", line) for line in lines)
    assert re.search(r"\.\d{6}Z$", tw.json("log")["data"]["events"][0]["at"])
    tw("note", "t-0", "n")
    assert tw("log", "t-0", "-n", 1).out.startswith("… 1 earlier: taskwall log t-0 -n 2\n")


def test_a_plans_blockers_may_be_separated_in_chinese(tw, tmp_path):
    (tmp_path / "plan").write_text("a: A\nb: B\nc: C <- a，b\nd: D <- a、b, c\n")
    made = tw.json("plan", tmp_path / "plan")["data"]["tasks"]
    assert [len(task["blockedBy"]) for task in made] == [0, 0, 2, 3]


def test_waiting_gives_a_person_all_that_a_decision_takes(tw):
    tw("add", "pay", "--id", "pay", "--as", "codex")
    for n in range(7):
        tw("add", f"after {n}", "--id", f"t-{n}")
    question = "用 Stripe 还是 Adyen？\nfees: docs/fees.md"
    asked = tw.json("ask", "pay", question, "--option", "Stripe", "Adyen", "--as", "codex")["data"]["also"][0]["id"]
    for n in range(7):
        tw("block", f"t-{n}", asked)
    tw("add", "sign it", "--id", "sign", "--for", "user", "-d", "A costs 5,\nB costs 7")
    tw("add", "launch", "--id", "launch")
    tw("hold", "launch", "not yet", "--as", "codex")
    first, *lines = tw("waiting").out.splitlines()
    assert first == f"[ ] {asked}: 用 Stripe 还是 Adyen？ [pending] waiting on user"
    assert re.fullmatch(r"  asked by codex at \d{4}-\d\d-\d\dT\d\d:\d\dZ", lines.pop(4))
    assert lines[:5] == [
        f"  taskwall answer {asked} TEXT",
        "  question: 用 Stripe 还是 Adyen？",
        "    fees: docs/fees.md",
        "  options: Stripe; Adyen",
        "  waiting for it: pay,t-0,t-1,t-2,t-3,+3",
    ]
    assert lines[6:8] == ["  taskwall answer sign TEXT", "  about it: A costs 5,"]
    assert lines[8] == "    B costs 7" and lines[9].startswith("  made by user at ")
    assert lines[-2:] == [
        "[ ] launch: launch [pending] held: not yet",
        "  taskwall resume launch",
    ]
    assert tw("waiting", "-n", 2).out.splitlines()[-1] == "… 1 more: waiting --after sign"
    assert tw("waiting", "--after", "sign").out.startswith("[ ] launch")
    tasks = tw.json("waiting")["data"]["tasks"]
    assert [(task["id"], len(task["dependents"])) for task in tasks] == [(asked, 8), ("sign", 0), ("launch", 0)]
    tw("answer", asked, "Adyen"), tw("answer", "sign", "done"), tw("resume", "launch")
    assert tw("waiting").out == "Nothing waits for a person.\n"


def test_what_is_archived_is_listed_when_asked_for(tw):
    for task_id in ("old", "new"):
        tw("add", f"the {task_id} one", "--id", task_id)
    tw("claim", "old"), tw("done", "old"), tw("archive")
    assert tw("list", "archived").out == "[x] old: the old one [completed] owner=user\n"
    assert tw("list", "archived", "--text", "new").out == "No task matches.\n"
    tw("add", "the last one", "--id", "last"), tw("claim", "new"), tw("done", "new"), tw("archive")
    tw("add", "the very last one", "--id", "very-last")
    page = tw("list", "archived", "ready", "-n", 2).out.splitlines()
    assert [line[4:7] for line in page[:2]] == ["old", "new"] and page[2].startswith("… 2 more: list --after new")
    assert [line[4:8] for line in tw("list", "archived", "ready", "--after", "new").out.splitlines()] == [
        "last",
        "very",
    ]
    assert tw("list", "completed").out == "No task matches.\n"


@pytest.mark.parametrize(
    ("word", "state"), [("Done", "completed"), ("open", "pending"), ("In-Progress", "in_progress"), ("READY", "ready")]
)
def test_states_are_taken_in_the_words_of_others(tw, word, state):
    tw("add", "a", "--id", "a-1"), tw("add", "b", "--id", "b-1"), tw("claim", "b-1")
    tw("add", "c", "--id", "c-1"), tw("cancel", "c-1"), tw("add", "d", "--id", "d-1"), tw("claim", "d-1")
    tw("done", "d-1")
    assert tw("list", word).out == tw("list", state).out != ""


def test_an_age_that_is_none_archives_nothing(tw):
    tw("add", "a", "--id", "a-1"), tw("claim", "a-1"), tw("done", "a-1")
    for days in ("-1", "nan", "1e300"):
        assert tw("archive", "--older-than", days).status == 2
    assert "a-1" in tw("list", "--all").out


def test_words_too_many_or_too_few_are_answered_with_those_there_are(tw):
    assert "it takes ID, REASON; see" in tw("hold", "x", "--reason", "y").err
    assert "it takes ID, --message, --product; see" in tw("done", "x", "text").err
    assert "it takes nothing more; see" in tw("fleet", "x").err
    assert "put it before -b, -l, --product, --check" in tw("add", "-l", "ui", "Fix login").err


def test_the_log_tells_for_whom_a_task_was_and_what_it_waited_for(tw):
    for task_id in ("a-1", "b-1"):
        tw("add", task_id, "--id", task_id)
    tw("edit", "a-1", "--for", "codex"), tw("block", "a-1", "b-1"), tw("edit", "a-1", "--for", "-")
    tw("unblock", "a-1", "b-1")
    told = [line.partition("] ")[2] for line in tw("log", "a-1").out.splitlines()[1:]]
    assert told == ["owner=- → codex", "blocked_by=+b-1", "owner=codex → -", "blocked_by=-b-1"]


def test_a_person_who_is_named_is_told_how_to_say_so(tw):
    (tw.tasks).mkdir()
    (tw.tasks / "board.toml").write_text('people = ["李娜"]')
    tw("add", "选型", "--id", "db", "--for", "李娜"), tw("add", "review", "--id", "review", "--for", "李那")
    assert tw("waiting").out.splitlines()[1] == "  taskwall answer db TEXT --as 李娜"
    assert "if that is you, say so: --as 李娜" in tw("answer", "db", "TiDB").err
    assert 'name persons in board.toml: people = ["李那"]' in tw("answer", "review", "ok", "--as", "李那").err
    assert tw("answer", "db", "TiDB", "--as", "李娜").status == 0


def test_what_a_tree_leaves_out_is_counted_in_tasks(tw, tmp_path):
    (tmp_path / "plan").write_text(
        "root: root\n"
        + "".join(f"a{n}: A{n} <- root\n" for n in range(130))
        + "".join(f"b{n}: B{n} <- a{n}, a{n + 1}\n" for n in range(129))
    )
    tw("plan", tmp_path / "plan")
    lines = tw("graph").out.splitlines()
    shown = {line.split(": ")[-1].split(" [")[0].split(" (see")[0] for line in lines[:-1]}
    assert lines[-1] == f"… {260 - len(shown)} more: taskwall list"
    picture = tw("graph", "--mermaid").out
    assert f'more["… {260 - picture.count("<br/>")} more tasks"]' in picture


def test_a_markdown_list_is_no_plan(tw, tmp_path):
    (tmp_path / "plan").write_text("# 计划\n- 设计: 设计表\n  - 子任务 <- 设计\n")
    wrong = tw("plan", tmp_path / "plan")
    assert (wrong.status, wrong.out) == (2, "") and "line 2 is of a Markdown list" in wrong.err


def test_what_is_cut_for_its_length_leads_on(tw):
    for n in range(60):
        tw("add", f"{'很长的任务名' * 30} {n}", "--id", f"t-{n:02}")
    tw("add", "all", "--id", "all", "-b", *(f"t-{n:02}" for n in range(60)))
    assert tw("why", "all").out.count("taskwall show all --json") == 1
    assert tw("next", "-n", 50).out.splitlines()[-1].endswith("more: taskwall list ready")
    checks = [f"test -e {'x' * 180}{n}" for n in range(100)]
    tw("add", "checked", "--id", "checked", "--check", *checks), tw("claim", "checked")
    refused = tw("done", "checked")
    assert refused.status == 4 and 7_000 < len(refused.err.encode()) < 8_500 and "Next: a person looks" in refused.err


def test_what_was_unblocked_beyond_what_is_told_can_be_looked_up(tw, tmp_path):
    (tmp_path / "plan").write_text("root: root\n" + "".join(f"a{n}: A{n} <- root\n" for n in range(30)))
    root = re.search(r"Created (\S+): root", tw("plan", tmp_path / "plan").out)[1]
    tw("claim", root)
    assert tw("done", root).out.splitlines()[-1] == f"… 10 more (taskwall show {root} --json)"
    assert len(tw.json("show", root)["data"]["dependents"]) == 30
