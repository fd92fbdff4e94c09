"""Escapes, direction marks, markup, line breaks and lone surrogates in every field, on their way to every output.

And names that would lead out of the board (I14), at every entrance.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import pty
import re
import subprocess
import sys
import unicodedata

import pytest

from conftest import NOON
from taskwall import accounts, render, wording
from taskwall.agent import runs as run_logs
from taskwall.agent.messages import Call
from taskwall.agent.screen import Screen, call_line
from taskwall.core.errors import Refused
from taskwall.core.model import KEYS, Actor, id_flaw
from taskwall.faces.cli import main as cli
from taskwall.lengths import cut
from taskwall.registry import VERBS, call
from taskwall.stores.files import journal as journal_module
from taskwall.stores.files.ledger import boot_id

EVIL = (
    "\x1b[2J\x1b]0;owned\x07\x08\x7f\r\x9b31m\x85\u202edrow\u2066\u2069\u200e\u200f\u061c\ufeff\u2028\u2029"
    "\ud83d<script>alert(1)</script>\"'`]\t"
)
LINES = EVIL + "\nFORGED: `taskwall cancel x`"
LONG = LINES + "界" * 3000
DIRECTION = set("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")

SEVERAL_LINES = ("description", "result", "answer", "question", "notes")
"""Fields whose line breaks are theirs to make."""


def raw(text):
    """The characters of an output that could steer a terminal or reorder a line. Written without `render`."""
    return {
        c for c in text if c in DIRECTION or (unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") and c not in "\n\t")
    }


def forged(text):
    return [line for line in text.split("\n") if line.lstrip(" -").startswith("FORGED")]


# A board on which one field of each task is hostile

TYPES = {
    **dict.fromkeys(("labels", "products", "checks", "options", "blockedBy"), lambda evil: [evil, "x"]),
    **dict.fromkeys(("metadata", "evidence"), lambda evil: {evil: {"deep": [evil]}}),
    "notes": lambda evil: [{"at": "2026-01-01", "by": "a", "text": evil}],
    "note's author": lambda evil: [{"at": evil, "by": evil, "text": "t"}],
}
FIELDS = [key for key in KEYS if key not in ("id", "priority", "attempts", "epoch", "rev")]
SHAPES = {
    "pending": {},
    "in_progress": {"status": "in_progress", "owner": "agent", "epoch": 1},
    "completed": {"status": "completed", "owner": "agent", "epoch": 1, "result": "r"},
}


def hostile_task(task_id, field, evil, shape):
    base = {"id": task_id, "subject": "plain", "description": "", "status": "pending", "owner": None, "blockedBy": []}
    base |= SHAPES[shape]
    if field == "unknown key":
        base |= {evil: evil, "x": {evil: [evil]}}
    elif field == "note's author":
        base["notes"] = TYPES[field](evil)
    elif field != "claim":
        base[field] = TYPES.get(field, lambda text: text)(evil)
    return base | {"rev": 1}


def entry(task_id, evil):
    claim = {
        "task": task_id, "epoch": 1, "actor": evil, "session": evil, "since": evil, "reserved": evil, "ttl": 15,
        "open": True, "past": [[evil, evil, 0]],
    }  # fmt: skip
    return {"claim": claim, "lease": {"until": 1e12, "boot": boot_id()}, "book": {"started_at": evil}}


class Evil:
    """A board under a hostile path: `tasks` are `{id: field}`."""

    def __init__(self, root, fields, shapes=tuple(SHAPES), evil=LINES):
        self.home = root / "bo\x1b[31mard\u202e\n"
        self.path = self.home / ".tasks"
        (self.path / ".local" / "claims").mkdir(parents=True)
        self.tasks, self.evil = {}, evil
        for number, field in enumerate(fields):
            for shape in shapes:
                task_id = f"h{number}-{shape}"
                self.tasks[task_id] = field
                self.write(f"{task_id}.json", hostile_task(task_id, field, evil, shape))
                if field == "claim":
                    self.write(f".local/claims/{task_id}.json", entry(task_id, evil))
        self.write("lesson.json", {"id": "lesson", "subject": evil, "status": evil, "blockedBy": [evil, "h0-pending"]})
        self.write("research.json", {"id": "res", "title": evil, "state": "blocked", "hold": evil, evil: evil})
        self.write("arm.json", {"task_id": "arm", "name": evil, "status": "pending", "blocked_by": [], "x": evil})
        for name in (b"\x1b[2J\n.json", b"\xff\xfe.json", "\u202e.json".encode()):
            with open(os.fsencode(self.path) + b"/" + name, "wb") as file:
                file.write(b"{")
        event = {key: evil for key in ("at", "by", "session", "verb", "reason", evil)} | {"task": "h0-pending"}
        (self.path / ".local" / "events.jsonl").write_text(json.dumps(event) + "\n")
        (self.path / "board.toml").write_text('people = ["\\u001b[2J\\u202e", "ann"]\n')

    def write(self, name, value):
        (self.path / name).write_text(json.dumps(value))

    def run(self, *words, actor="agent"):
        """What a command prints on both streams."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            cli.main(["--board", str(self.path), "--as", actor, *words])
        return out.getvalue(), err.getvalue()


EVERYWHERE = (
    ["list", "--all"], ["list", "broken"], ["list", "--limit", "2"], ["waiting"], ["next"], ["next", "-n", "50"], ["log"],
    ["graph"], ["graph", "--mermaid"], ["fleet"], ["where"], ["claim"], ["release", "--session", LINES], ["list", "--text", LINES],
    ["list", "--after", "\x1b[2J\n"], ["show", "\x1b[2J\n"], ["why", "\x1b[2J\n"], ["log", "h0-pending"], ["show", "lesson"],
    ["why", "lesson"], ["show", "res"], ["claim", "arm"], ["done", "lesson"],
)  # fmt: skip
OF_A_TASK = (
    ["show", "T"], ["why", "T"], ["claim", "T"], ["claim", "T", "--steal", "--reason", "r"], ["note", "T", "n"], ["done", "T"],
    ["edit", "T", "-p", "0"], ["block", "T", "lesson"], ["unblock", "T", "x"], ["beat", "T"], ["release", "T"],
    ["hold", "T", "r"], ["resume", "T"], ["ask", "T", "q?"], ["answer", "T", "y"], ["cancel", "T"],
    ["cancel", "T", "--cascade"], ["reopen", "T"], ["log", "T"], ["add", "s", "-b", "T", "--parent", "T"],
)  # fmt: skip


def output_fault(board, words, *, forging=True):
    """What is wrong with what a command printed, as text and as JSON."""
    for as_json in ([], ["--json"]):
        try:
            out, err = board.run(*as_json, *words)
            if as_json and "--mermaid" not in words:
                json.loads(out)
        except Exception as error:
            return f"{words} {as_json}: {error!r}"
        if found := raw(out + err):
            return f"{words} {as_json}: {sorted(map(ascii, found))}"
        if forging and not as_json and (lines := forged(out + err)):
            return f"{words}: {lines}"
        if "--mermaid" in words and not as_json and "<script" in out:
            return f"{words}: markup"
    return None


def field_faults(root, fields):
    """`(outputs looked at, faults)`."""
    # By threes, for a small board is read quickly.
    if len(fields) > 3:
        parts = [field_faults(root / str(n), fields[n : n + 3]) for n in range(0, len(fields), 3)]
        return sum(tried for tried, _ in parts), [fault for _, bad in parts for fault in bad]
    board, tried, bad = Evil(root, fields), 0, []
    asked = [(words, "") for words in EVERYWHERE]
    asked += [
        ([w.replace("T", i) if w == "T" else w for w in words], f)
        for i, f in board.tasks.items()
        for words in OF_A_TASK
    ]
    asked += [(words, "") for words in EVERYWHERE]
    for words, field in asked:
        tried += 2
        # These two repeat texts of several lines, of the task and of what it waits for.
        told_whole = words[0] in ("show", "claim") and not {field, *fields}.isdisjoint(SEVERAL_LINES)
        if found := output_fault(board, words, forging=not told_whole):
            bad.append((field, found))
    return tried, bad


ALL_FIELDS = [*FIELDS, "note's author", "unknown key", "claim"]


def test_hostile_fields_quickly(tmp_path, figure):
    tried, bad = field_faults(tmp_path, ["subject", "claim"])
    figure("hostile text: outputs of hostile fields, quick", tried=tried, bad=bad[:5], at_least=250)


@pytest.mark.slow
def test_hostile_text_in_every_field_reaches_no_output(tmp_path, figure):
    tried, bad = field_faults(tmp_path, ALL_FIELDS)
    figure("hostile text: outputs of hostile fields", tried=tried, bad=bad[:5], at_least=3_000)


# What is given on the command line and to tools

TYPED = EVIL.replace("\ud83d", "\udcff")
"""What a shell can give: bytes that are no text arrive as low surrogates."""

GIVEN = (
    ["show", TYPED], ["add", TYPED], ["add", "s", "-b", TYPED], ["add", "s", "-d", TYPED], ["add", "s", "--id", TYPED],
    ["add", "s", "--for", TYPED], ["add", "s", "-l", TYPED], ["add", "s", "--parent", TYPED], ["add", "s", "--product", TYPED],
    ["add", "s", "--check", TYPED], ["add", "s", "--key", TYPED], ["add", "\u202eevil\u2066"], ["add", "s", "-p", TYPED],
    ["note", "h0-pending", TYPED], ["note", "h0-pending", "\u202e\x1b[2J"], ["edit", "h0-pending", "-s", TYPED],
    ["edit", "h0-pending", "--meta", TYPED], ["edit", "h0-pending", "--meta", "\x1b\u202e=\x1b"], ["claim", TYPED],
    ["claim", f"h0-pending#{TYPED}"], ["claim", "h0-pending", "--ttl", TYPED], ["hold", "h0-pending", TYPED],
    ["ask", "h0-pending", TYPED, "--option", TYPED], ["ask", "h0-pending", "\u202ewhy\x1b[2J?"], ["answer", TYPED, TYPED],
    ["cancel", TYPED], ["log", TYPED], ["graph", TYPED], ["list", TYPED], ["list", "--id", TYPED], ["list", "--after", TYPED],
    ["plan", TYPED], ["plan", "/dev/null\x1b[2J"], [TYPED], [f"--{TYPED}"], ["list", f"--{TYPED}"], ["completion", TYPED],
    ["--board", TYPED, "list"], ["--board", f"{TYPED}://x", "list"], ["--as", TYPED, "where"], ["--as", "\u202eagent", "where"],
    ["--as", "\u202eagent", "claim", "h0-pending"], ["agent", "--resume=" + TYPED], ["show"], ["help", TYPED],
)  # fmt: skip


def given_faults(root):
    board = Evil(root, ["subject"], ["pending"])
    (root / "plan").write_text("\u202ea: \x1b[2J <- \x9b\nb: \u2066 <- nowhere\n")
    asked = [*GIVEN, ["plan", str(root / "plan")]]
    return 2 * len(asked), [found for words in asked if (found := output_fault(board, words, forging=False))]


def test_hostile_arguments_reach_no_output(tmp_path, figure, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.chdir(tmp_path)
    tried, bad = given_faults(tmp_path)
    figure("hostile text: outputs of hostile arguments", tried=tried, bad=bad, at_least=80)


def test_hostile_actors_sessions_and_warnings(tmp_path, figure, monkeypatch):
    board = Evil(tmp_path, ["claim", "owner"])
    bad = []
    for name, value in (
        ("TASKWALL_ACTOR", EVIL),
        ("TASKWALL_SESSION", EVIL),
        ("TASKWALL_SESSION", "\u202es"),
        ("TASKWALL_BOARD", EVIL),
    ):
        with monkeypatch.context() as patched:
            patched.setenv(name, value.replace("\0", "").encode("utf-8", "replace").decode())
            bad += [found for words in (["where"], ["claim"], ["list"]) if (found := output_fault(board, words))]
    main, linked = tmp_path / "m\x1b[2Jain", tmp_path / "l\x1b\u202einked"
    for args in (["init", "-q", str(main)], ["-C", str(main), "commit", "-q", "--allow-empty", "-m", "x"],
                 ["-C", str(main), "worktree", "add", "-q", "-b", "side", str(linked)]):  # fmt: skip
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", *args], check=True, capture_output=True)
    (linked / ".tasks").mkdir()
    monkeypatch.chdir(linked)
    for words in (["add", "s"], ["list"], ["where"], ["init"]):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            cli.main(words)
        assert "copy in a linked worktree" in err.getvalue()
        bad += sorted(map(ascii, raw(out.getvalue() + err.getvalue())))
    figure("hostile text: actors, sessions, paths, warnings", tried=16, bad=bad)


CSI = re.compile("\x1b\\[[0-9;?]*[a-zA-Z]")


def on_a_terminal(*words):
    """What a fresh process writes to a terminal, without the sequences that colour a table."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execve(
            sys.executable,
            [sys.executable, "-m", "taskwall", *words],
            os.environ | {"PYTHONUTF8": "1", "TERM": "xterm", "COLUMNS": "100"},
        )
    data = b""
    with contextlib.suppress(OSError):
        while part := os.read(fd, 65536):
            data += part
    os.waitpid(pid, 0)
    os.close(fd)
    return data.decode("utf-8", "replace").replace("\r\n", "\n")


def colours_alone(text):
    """A terminal's text without colours; other sequences stay and are found."""
    return CSI.sub(lambda match: "" if match[0].endswith("m") else match[0], text)


def test_tables_on_a_terminal(tmp_path, figure):
    board = Evil(tmp_path, ["subject", "owner", "hold", "blockedBy", "status", "labels"], evil=LONG)
    asked = (["list", "--all"], ["list", "broken", "-n", "1"], ["next", "-n", "9"], ["waiting"])
    bad = []
    for words in asked:
        text = colours_alone(on_a_terminal("--board", str(board.path), *words))
        assert ("taskwall resume" if words == ["waiting"] else "subject") in text or "title" in text
        bad += [(words, sorted(map(ascii, found))) for found in [raw(text)] if found]
    figure("hostile text: tables on a terminal", tried=len(asked), bad=bad)


def test_what_a_run_shows_of_models_and_tools(capsys, figure):
    calls = [
        Call("1", EVIL, {EVIL: EVIL, "subject": LINES, "b": [EVIL]}),
        Call("2", "bash", {"command": LINES}),
        Call("3", EVIL, EVIL),
    ]
    screen, bad = Screen(), []
    for each in calls:
        screen.echo(each)
        bad += forged(call_line(each)) + forged(cut(call_line(each), 40))
    screen.say(LINES)
    screen.complain(LINES)
    out, err = capsys.readouterr()
    figure("hostile text: what a run shows", tried=5, bad=bad + sorted(map(ascii, raw(out + err))))


# The detector finds


def test_that_an_output_which_escapes_nothing_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(wording, "UNSAFE", "(?!)")
    assert field_faults(tmp_path, ["subject"])[1]


def test_that_line_breaks_let_through_are_found(tmp_path, monkeypatch):
    safe = wording.safe
    for room in (wording, render, accounts):
        monkeypatch.setattr(room, "safe", lambda text, lines=False: safe(text, lines=True))
    assert any("FORGED" in found for _, found in field_faults(tmp_path, ["subject"])[1])


# I14: no name leads out of the board

NAMES = [
    "../secret", "../../secret", "/etc/passwd", "a/../../secret", "..", ".", "..\\secret", "C:\\x", "con", "NUL.json", "a\0b",
    "%2e%2e%2fsecret", "~/secret", ".local/lock", "claims/x", "secret/", "\ud800", "e\u0301", "x" * 300, "-", "#1", "../secret#1",
    "file:///etc/passwd", "${HOME}", "`id`", "\n", " ", "🏴", "١", "a b",
]  # fmt: skip


def everything(folder):
    """Every file below a folder with its content, and where links point."""
    found = {}
    for path in sorted(folder.rglob("*")):
        found[str(path)] = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
    return found


T_JSON = '{"id": "t", "subject": "t", "status": "pending", "blockedBy": [], "rev": 1}'


class Trap:
    """A board with something around it that must neither be read into it nor written."""

    def __init__(self, root):
        self.root = root
        self.home = root / "in" / "work"
        self.path = self.home / ".tasks"
        (self.path / ".local" / "claims").mkdir(parents=True)
        self.outside = [root / "in" / "secret.json", root / "in" / "work" / "secret.json", root / "secret.json"]
        for path in self.outside:
            path.write_text('{"id": "secret", "subject": "TOPSECRET", "status": "completed", "rev": 1}')
        (self.path / "t.json").write_text(T_JSON)

    def reset(self):
        for folder in (self.path, self.path / ".local" / "claims"):
            for path in folder.glob("*.json"):
                path.unlink()
        for name in ("journal", "serial"):
            (self.path / ".local" / name).unlink(missing_ok=True)
        (self.path / "t.json").write_text(T_JSON)

    def around(self):
        return {
            name: data for name, data in everything(self.root).items() if not name.startswith(str(self.path) + os.sep)
        }

    def board(self, name="agent"):
        from taskwall.config import Location, open_board

        return open_board(Location(str(self.path), "a test", str(self.home), exists=True), Actor(name, name))

    def strays(self):
        """Files in the board whose name is no id."""
        names = [name for name in os.listdir(self.path) if name not in (".local", "board.toml")]
        claims = self.path / ".local" / "claims"
        names += os.listdir(claims) if claims.is_dir() and not claims.is_symlink() else []
        return [n for n in names if not n.endswith(".json") or id_flaw(n.removesuffix(".json"))]


def arguments_of(verb, name):
    """Every parameter of a verb that takes a name, given this one."""
    base = {"subject": "s", "task_id": "t", "question": "q", "text": "x", "tasks": [{"ref": "a", "subject": "s"}]}
    needed = {p.public: base[p.name] for p in verb.params if p.required}
    for param in verb.params:
        if param.kind in ("str", "Ids", "list[str]"):
            yield needed | {param.public: [name] if param.kind != "str" else name}
    if verb.name == "create_tasks":
        for key in ("ref", "id", "parent", "blockedBy"):
            yield {"tasks": [{"ref": "a", "subject": "s", key: name}]}


def trespasses(trap, act):
    """What an action let in or out."""
    before = trap.around()
    told = ""
    try:
        answer = act()
        told = answer if isinstance(answer, str) else render.text(answer)
    except Refused as refusal:
        told = render.refusal(refusal)
    except Exception as error:
        return f"{error!r}"
    if trap.around() != before:
        return "something outside was written"
    return "something outside was read" if "TOPSECRET" in told else f"strays {trap.strays()}" if trap.strays() else None


def parameter_faults(root, verbs, names):
    trap, tried, bad = Trap(root), 0, []
    for verb in verbs:
        for name in names:
            for arguments in arguments_of(verb, name):
                tried += 1
                if found := trespasses(trap, lambda a=arguments, v=verb: call(trap.board(), v.name, a)):
                    bad.append((verb.name, arguments, found))
                if len(os.listdir(trap.path)) > 20:
                    trap.reset()
    return tried, bad


def test_names_at_parameters_quickly(tmp_path, figure):
    verbs = [VERBS[name] for name in ("create_task", "create_tasks", "claim_task", "release_task")]
    tried, bad = parameter_faults(tmp_path, verbs, NAMES[:6])
    figure("names that lead out: parameters of verbs, quick", tried=tried, bad=bad[:5], at_least=90)


@pytest.mark.slow
def test_names_at_every_parameter_of_every_verb(tmp_path, figure):
    tried, bad = parameter_faults(tmp_path, VERBS.values(), NAMES)
    figure("names that lead out: parameters of verbs", tried=tried, bad=bad[:5], at_least=900)


def planted(trap, names):
    """Names that came with a repository: `(kind, what was planted)`, planted one after the other."""
    local = trap.path / ".local"
    for name in names:
        text = json.dumps({"id": name, "subject": "s", "status": "pending", "rev": 1})
        yield "an id in a file", [(trap.path / "evil.json", text)]
        text = json.dumps(
            {"id": "e", "subject": "s", "status": "pending", "blockedBy": [name], "parent": name, "rev": 1}
        )
        yield "an edge in a file", [(trap.path / "evil.json", text)]
        text = json.dumps(
            {"id": "e", "subject": "s", "status": "in_progress", "products": [name], "owner": "agent", "rev": 1}
        )
        yield "a product in a file", [(trap.path / "evil.json", text)]
        yield (
            "an entry of the ledger",
            [(local / "claims" / "t.json", json.dumps({"claim": entry(name, "a")["claim"]}))],
        )
        yield (
            "a name in a journal",
            [(local / "journal", journal_of([name + ".json", "TOPSECRET", None], ["t.json", "{}", None]))],
        )
        for form in (".local/claims/" + name + ".json", name):
            yield "a whole name in a journal", [(local / "journal", journal_of([form, "TOPSECRET", None]))]


def journal_of(*entries):
    body = json.dumps(entries)
    header = {"v": 1, "serial": NOON, "length": len(body), "sha256": hashlib.sha256(body.encode()).hexdigest()}
    return f"{json.dumps(header)}\n{body}\n"


def use(board):
    """A few verbs that read and write everything there is; what they say."""
    told = []
    for name, arguments in (
        ("list_tasks", {"everything": True}), ("claim_task", {"task_id": "t"}), ("complete_task", {"task_id": "e"}), ("claim_task", {"task_id": "e"}),
        ("create_tasks", {"tasks": [{"ref": "a", "subject": "a"}, {"ref": "b", "subject": "b"}]}),
        ("complete_task", {"task_id": "t"}), ("history", {}),
    ):  # fmt: skip
        try:
            told.append(render.text(call(board, name, arguments)))
        except Refused as refusal:
            told.append(render.refusal(refusal))
    return "\n".join(told)


def planted_faults(root, names):
    trap, tried, bad = Trap(root), 0, []
    for kind, files in planted(trap, names):
        for path, text in files:
            path.write_bytes(text.encode("utf-8", "backslashreplace"))
        tried += 1
        if found := trespasses(trap, lambda: use(trap.board())):
            bad.append((kind, files, found))
        trap.reset()
    return tried, bad


def test_names_in_planted_files_quickly(tmp_path, figure):
    tried, bad = planted_faults(tmp_path, ["../secret"])
    figure("names that lead out: planted files, quick", tried=tried, bad=bad[:5], at_least=7)


@pytest.mark.slow
def test_names_in_planted_files(tmp_path, figure):
    tried, bad = planted_faults(tmp_path, NAMES)
    figure("names that lead out: planted files", tried=tried, bad=bad[:5], at_least=150)


LINKS = ["x.json", "t.json", ".local", ".local/lock", ".local/lock.next", ".local/claims", ".local/claims/t.json", ".local/events.jsonl",
         ".local/journal", ".local/serial", ".local/conflicts", ".local/.gitignore", ".local/part-0.tmp", ".local/runs",
         ".local/runs/r.jsonl", ".local/runs/r", "board.toml"]  # fmt: skip


def a_run(trap):
    """What opens the log of a run, goes on with it and keeps something long."""
    folder = str(trap.path / ".local" / "runs")
    try:
        with trap.board().store.write():
            pass
        log = (
            run_logs.RunLog.resume(folder, "r")
            if os.path.lexists(os.path.join(folder, "r.jsonl"))
            else run_logs.RunLog.start(folder, "r", {})
        )
        with log.locked():
            log.add({"role": "user", "content": "hello"})
            log.spill("long")
        return json.dumps(log.messages) + json.dumps(log.header)
    except (Refused, OSError) as error:
        return str(error)


def link_faults(root, links):
    tried, bad = 0, []
    for link in links:
        for target in ("a file", "a folder", "nothing"):
            trap = Trap(root / f"{tried}")
            place = plant_link(trap, link, target)
            assert place.is_symlink()
            for act in (lambda t=trap: use(t.board()), lambda t=trap: a_run(t)):
                tried += 1
                if found := trespasses(trap, act):
                    bad.append((link, target, found))
    return tried, bad


def plant_link(trap, link, target):
    """A link to something outside in the place of something of the board."""
    to = {"a file": trap.outside[0], "a folder": trap.root / "in", "nothing": trap.root / "made"}[target]
    if link == ".local/runs/r.jsonl" and target == "a file":
        to.write_text(json.dumps({"message": {"role": "user", "content": "TOPSECRET"}}) + "\n")
    place = trap.path / link
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.is_dir():
        os.rename(place, trap.root / "was")
    place.unlink(missing_ok=True)
    place.symlink_to(to)
    return place


def test_links_quickly(tmp_path, figure):
    tried, bad = link_faults(tmp_path, ["x.json", ".local/claims", ".local/runs", ".local/runs/r.jsonl"])
    figure("names that lead out: links, quick", tried=tried, bad=bad, at_least=24)


@pytest.mark.slow
def test_links_that_lead_out(tmp_path, figure):
    tried, bad = link_faults(tmp_path, LINKS)
    figure("names that lead out: links", tried=tried, bad=bad, at_least=90)


@pytest.mark.parametrize("run", ["../../../secret", "/etc/passwd", "..", "", "\x1b[2J", "r/../../x"])
def test_the_name_of_a_run_leads_nowhere(tmp_path, run):
    trap = Trap(tmp_path)
    (trap.path / ".local" / "runs").mkdir()
    (trap.path / "secret.jsonl").write_text('{"run": "TOPSECRET"}\n')
    with pytest.raises(Refused):
        run_logs.RunLog.resume(str(trap.path / ".local" / "runs"), run)


def test_that_following_links_is_found(tmp_path, monkeypatch):
    from taskwall.stores.files import disk

    for name in ("_READ", "_WRITE", "_APPEND"):
        monkeypatch.setattr(disk, name, getattr(disk, name) & ~os.O_NOFOLLOW)
    trap = Trap(tmp_path)
    (trap.path / "x.json").symlink_to(trap.outside[0])
    assert trespasses(trap, lambda: use(trap.board()))


def test_that_any_name_in_a_journal_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(journal_module, "_NAME", re.compile(r".*", re.DOTALL))
    trap = Trap(tmp_path)
    (trap.path / ".local" / "journal").write_text(journal_of(["../stray.json", "{}", None]))
    assert trespasses(trap, lambda: use(trap.board()))


def test_that_ids_without_a_rule_are_found(tmp_path, monkeypatch):
    from taskwall.core import model
    from taskwall.core.rules import making

    monkeypatch.setattr(model, "id_flaw", lambda _: None)
    monkeypatch.setattr(making, "checked_id", lambda text: text)
    trap = Trap(tmp_path)
    assert trespasses(trap, lambda: call(trap.board(), "create_task", {"subject": "s", "id": "../stray"}))
