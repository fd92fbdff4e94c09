"""Mutated files of every dialect, of our own and of the local folder, against every verb.

For every pair: a named refusal or an answer that can be printed, never anything else; not a byte of a file that cannot be
read is changed; unknown keys survive; the other tasks are none the worse.
"""

from __future__ import annotations

import copy
import json
import os
import random
import re
import subprocess
import sys

import pytest

from conftest import Clock, open_board
from taskwall import render, verbs, wording  # noqa: F401 - importing verbs registers them
from taskwall.core.errors import EXITS, Refused
from taskwall.core.model import Settings
from taskwall.envelope import dumps, envelope, refusal_envelope
from taskwall.registry import VERBS, call
from taskwall.stores.files import folder as folder_module
from taskwall.stores.files import journal as journal_module
from taskwall.stores.files.dialects import OUR_KEYS
from taskwall.stores.files.strict import encode
from taskwall.stores.files.store import FileStore

CORPUS = {
    "ours": {
        "id": "bad", "subject": "was good", "description": "表 and\nmore", "status": "pending", "owner": None,
        "blockedBy": ["done"], "priority": 1, "labels": ["a"], "parent": "top", "products": ["x.txt"],
        "checks": ["true"], "hold": "wait", "notes": [{"at": "2026-01-01T00:00:00Z", "by": "a", "text": "n"}],
        "metadata": {"k": {"deep": [1, 2.5, None]}}, "createdAt": "2026-01-01T00:00:00.000000Z", "createdBy": "a",
        "key": "k1", "attempts": 1, "colour": "red", "epoch": 3, "rev": 7,
    },
    "ours, claimed": {"id": "bad", "subject": "s", "description": "", "status": "in_progress", "owner": "agent",
                      "blockedBy": [], "startedAt": "2026-01-01T00:00:00.000000Z", "epoch": 1, "rev": 2},
    "ours, a question": {"id": "bad", "subject": "q?", "description": "", "status": "pending", "owner": "user",
                         "blockedBy": [], "question": "q?", "options": ["y", "n"], "rev": 1},
    "ours, completed": {"id": "bad", "subject": "s", "description": "", "status": "completed", "owner": "agent",
                        "blockedBy": [], "result": "r", "evidence": {"products": {"x": 1}}, "epoch": 1, "rev": 3},
    "lesson": {"id": "bad", "subject": "s", "description": "", "status": "pending", "owner": "", "blockedBy": []},
    "numbered": {"id": 7, "subject": "s", "description": "", "status": "in_progress", "blockedBy": [1, 2],
                 "blocks": [3], "owner": "", "worktree": ""},
    "claude-code": {"id": "bad", "subject": "s", "description": "d", "activeForm": "doing", "status": "pending",
                    "blocks": ["after"], "blockedBy": ["done"], "metadata": {"x": 1}},
    "research": {"id": "bad", "title": "t", "state": "blocked", "hold": "budget", "blocked_by": ["done"],
                 "created_at": 1.77e9, "tags": ["x"]},
    "arm": {"task_id": "bad", "name": "n", "status": "pending", "blocked_by": [], "assigned_arm": "left"},
    "nested": {"id": "bad", "TaskPayload": {"subject": "s", "status": "pending", "block_by": [], "blocking": ["after"]}},
}  # fmt: skip
LOCAL = {
    "claims/bad.json": {
        "claim": {"task": "bad", "epoch": 3, "actor": "agent", "session": "agent", "since": "2026", "reserved": None,
                  "ttl": 15, "open": True, "past": [["bob", "b", 2]]},
        "lease": {"until": 99999.0, "boot": "x"}, "book": {"attempts": 1, "updated_at": "2026"},
        "free": {"status": "pending", "owner": [None]}, "ended": 1,
    },
    "events.jsonl": {"at": "2026", "by": "a", "session": "s", "verb": "claim", "task": "bad", "epoch": 1},
    "serial": 3,
    "journal": None,
}  # fmt: skip
OTHERS = {
    "done": {"id": "done", "subject": "finished", "status": "completed", "owner": "a", "blockedBy": []},
    "top": {"id": "top", "subject": "parent", "status": "pending", "owner": None, "blockedBy": [], "rev": 1},
    "after": {"id": "after", "subject": "depends", "status": "pending", "owner": None, "blockedBy": ["bad", "7"]},
    "free": {"id": "free", "subject": "free", "status": "pending", "owner": None, "blockedBy": [], "rev": 1},
}

T = "the bad task"
CALLS = [
    ("agent", "create_task", {"subject": "new", "blockedBy": [T], "parent": T}),
    ("agent", "create_task", {"subject": "same id", "id": T}),
    (
        "agent",
        "create_tasks",
        {"tasks": [{"ref": "a", "subject": "a", "blockedBy": [T]}, {"ref": "b", "subject": "b"}]},
    ),
    ("agent", "list_tasks", {"everything": True, "text": "s"}),
    ("agent", "list_tasks", {"state": ["broken", "held", "in_progress"], "after": T}),
    ("agent", "get_task", {"task_id": T}),
    ("agent", "next_actionable", {}),
    ("agent", "claim_task", {}),
    ("agent", "claim_task", {"task_id": T}),
    ("robot", "claim_task", {"task_id": T, "steal": True, "reason": "r", "ttl": 3}),
    ("agent", "complete_task", {"task_id": T, "result": "r"}),
    ("agent", "complete_task", {"task_id": f"{T}#3"}),
    ("agent", "release_task", {"task_id": T, "failed": True, "reason": "r"}),
    ("agent", "release_task", {"session": "agent"}),
    ("agent", "update_task", {"task_id": T, "note": "n", "subject": "renamed", "metadata": ["k=v"], "priority": 0}),
    ("agent", "update_task", {"task_id": T, "addBlockedBy": ["free"], "labels": ["x"], "parent": "free"}),
    ("user", "update_task", {"task_id": "after", "removeBlockedBy": [T]}),
    ("agent", "ask_person", {"task_id": T, "question": "which?", "options": ["a"]}),
    ("user", "answer", {"task_id": T, "text": "y"}),
    ("user", "complete_task", {"task_id": T, "result": "y"}),
    ("agent", "hold", {"task_id": T, "reason": "r"}),
    ("user", "resume", {"task_id": T}),
    ("user", "cancel", {"task_id": T}),
    ("user", "cancel", {"task_id": T, "cascade": True}),
    ("user", "cancel", {"task_id": T, "drop_edges": True}),
    ("user", "reopen", {"task_id": T}),
    ("user", "archive", {"older_than": 9}),
    ("agent", "heartbeat", {"task_id": T, "ttl": 5}),
    ("agent", "why", {"task_id": T}),
    ("agent", "history", {"task_id": T}),
    ("agent", "graph", {}),
    ("agent", "waiting", {}),
    ("agent", "fleet", {}),
]
assert {name for _, name, _ in CALLS} == VERBS.keys(), "every verb is tried"

HUGE = [10**400, -1, 2**63, 2**200, 1e308, 0.1]
STRANGE = [
    None,
    True,
    0,
    "",
    "x",
    [],
    {},
    [[]],
    [None],
    {"a": []},
    ["bad"],
    "\x1b[2J",
    "\u202e",
    "a" * 5000,
    -3,
    "pending",
]
JUNK = [b"\0", b"\xff", b"\xed\xa0\x80", b'"', b"{", b"}", b"[", b",", b"<<<<<<< ours\n", b"\xef\xbb\xbf", b"\\ud800", b"1e999",
        b"NaN", b"-Infinity", b"9" * 5000, b"\x1b]0;x\x07", b"\xe2\x80\xae", b"[" * 2000]  # fmt: skip


def flip(chance, data):
    at = chance.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]


def part(chance, data):
    start = chance.randrange(len(data))
    return start, min(len(data), start + chance.choice([1, 2, 5, 20, 80]))


def truncate(chance, data):
    return data[: chance.randrange(len(data))]


def cut_out(chance, data):
    start, end = part(chance, data)
    return data[:start] + data[end:]


def repeat(chance, data):
    start, end = part(chance, data)
    return data[:end] + data[start:]


def insert(chance, data):
    at = chance.randrange(len(data) + 1)
    return data[:at] + chance.choice(JUNK) + data[at:]


def zero(chance, data):
    start, end = part(chance, data)
    return data[:start] + b"\0" * (end - start) + data[end:]


def twice(_, data):
    return data + data


def _in_object(change):
    """A mutation of some value inside the object of a file, where the file still holds one."""

    def mutate(chance, data):
        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            return insert(chance, data)
        holders, todo = [], [value]
        for each in todo:
            if isinstance(each, (dict, list)) and each:
                holders.append(each)
                todo += each.values() if isinstance(each, dict) else each
        if not holders:
            return insert(chance, data)
        holder = holders[0] if chance.random() < 0.7 else chance.choice(holders)
        key = chance.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
        change(chance, holder, key)
        return json.dumps(value, ensure_ascii=chance.random() < 0.5, indent=2).encode("utf-8", "surrogatepass")

    return mutate


@_in_object
def another_type(chance, holder, key):
    holder[key] = copy.deepcopy(chance.choice(STRANGE))


@_in_object
def huge_number(chance, holder, key):
    holder[key] = chance.choice(HUGE)


@_in_object
def deeper(chance, holder, key):
    for _ in range(chance.choice([5, 28, 31, 33, 60])):
        holder[key] = [holder[key]] if chance.random() < 0.5 else {"a": holder[key]}


@_in_object
def surrogate(chance, holder, key):
    holder[key] = chance.choice(["\ud800", "a\udfff", "\udc80b"])


@_in_object
def without_key(_, holder, key):
    del holder[key]


@_in_object
def swapped(chance, holder, key):
    other = chance.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
    holder[key], holder[other] = holder[other], holder[key]


def key_twice(chance, data):
    at = data.find(b"{") + 1
    keys = [b"id", b"status", b"blockedBy", b"x", b"rev"]
    return data[:at] + b'"' + chance.choice(keys) + b'": ' + chance.choice([b"1", b'"a"', b"[]"]) + b"," + data[at:]


MUTATIONS = (
    flip, truncate, cut_out, repeat, insert, zero, twice, another_type, another_type, huge_number, deeper, surrogate,
    without_key, swapped, key_twice,
)  # fmt: skip


def encoded(value):
    return (encode(value, indent="  ") + "\n").encode()


def journal_text():
    body = encode([["bad.json", encode(OTHERS["free"]), None], ["claims/x.json", "{}", None]])
    digest = journal_module._digest(body.encode())
    return f"{json.dumps({'v': 1, 'serial': 9, 'length': len(body.encode()), 'sha256': digest})}\n{body}\n".encode()


def mutants(seed, count):
    """`(kind, where it lies, its bytes)`: the corpus as it is, then mutated at one to three places."""
    chance = random.Random(seed)
    kinds = [*CORPUS, *CORPUS, *LOCAL]
    for number in range(count):
        kind = kinds[number % len(kinds)]
        local = kind in LOCAL
        data = journal_text() if kind == "journal" else encoded(LOCAL[kind] if local else CORPUS[kind])
        for _ in range(0 if number < len(CORPUS) else chance.choice([1, 1, 2, 3])):
            data = chance.choice(MUTATIONS)(chance, data) if data else b""
        yield kind, f".local/{kind}" if local else "bad.json", data


KEPT = ("lock", "lock.next", ".gitignore")
"""What lies in `.local` and may stay from call to call."""


class Place:
    """A board with one bad file, set up anew for every call."""

    def __init__(self, root, where, data):
        self.root, self.where, self.data = root, where, data
        self.path = root / ".tasks"
        self.good = {f"{name}.json": encoded(value) for name, value in OTHERS.items()}
        if where != "bad.json":
            self.good["bad.json"] = encoded(CORPUS["ours"])

        self.wanted = self.good | {where: data}
        self.reset()
        self.view = self.store().read()
        self.task_id = target(self.view)
        flawed = [name for task_id, name in self.view.names.items() if self.view.get(task_id).flaw]
        self.flawed = {name: self.wanted[name] for name in flawed}

    def reset(self):
        """Everything as it was; only what differs is written."""
        (self.path / ".local" / "claims").mkdir(parents=True, exist_ok=True)
        for folder, _, names in os.walk(self.path):
            for name in names:
                path = os.path.join(folder, name)
                if os.path.relpath(path, self.path) not in self.wanted and name not in KEPT:
                    os.unlink(path)
        for name, data in self.wanted.items():
            path = self.path / name
            if not path.exists() or path.read_bytes() != data:
                path.write_bytes(data)

    def store(self):
        return FileStore(str(self.path), Settings(durability="fast"), Clock().monotonic)

    def board(self, actor):
        return open_board(self.store(), actor, root=self.root)


def target(view):
    """By what name the task in the bad file goes."""
    known = [task for task in view if task.id not in OTHERS]
    return known[0].id if known else "bad"


def printed(act):
    """What every face makes of an answer or refusal, and the refusal."""
    try:
        answer = act()
    except Refused as refusal:
        assert refusal.code in EXITS and refusal.message and refusal.next, "a refusal names itself and a way out"
        return [render.refusal(refusal), dumps(refusal_envelope(refusal))], refusal
    return [render.text(answer), dumps(envelope(answer))], None


def pair_fault(place, actor, name, arguments):
    """What is wrong with one verb on one bad file, None when all is well."""
    place.reset()
    view, task_id = place.view, place.task_id
    try:
        asked = json.loads(json.dumps(arguments).replace(T, json.dumps(task_id)[1:-1]))
        (text, told), refusal = printed(lambda: call(place.board(actor), name, asked))
        again = place.store().read()
        json.loads(told)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if re.search(wording.UNSAFE, text + told):
        return f"a control character came through: {text!r}"
    for file, data in place.flawed.items():
        if not (place.path / file).exists() or (place.path / file).read_bytes() != data:
            return f"{file} cannot be read and was changed"
    bad = view.get(task_id)
    if refusal and refusal.code == "unreadable" and bad and bad.flaw and bad.subject not in refusal.message:
        if name not in ("claim_task",):
            return f"the refusal does not name the file: {refusal.message}"
    free = again.get("free")
    if view.get("free").flaw is None and (free is None or free.flaw or free.subject != "free"):
        return "a healthy task is gone"
    if (place.path / "done.json").read_bytes() != place.good["done.json"]:
        return "a task that the verb does not concern was written"
    return lost_keys(place, bad) if place.where == "bad.json" and bad and not bad.flaw else None


def lost_keys(place, bad):
    """Keys that are not ours and did not survive."""
    before = json.loads(place.data)
    after = json.loads((place.path / place.where).read_bytes())
    ours = OUR_KEYS[bad.dialect].keys()
    lost = [key for key in before if key not in ours and after.get(key) != before[key]]
    return f"lost {lost}" if lost else None


def faults(root, seed, files):
    """`(pairs tried, faults)`."""
    tried, bad = 0, []
    for kind, where, data in mutants(seed, files):
        try:
            place = Place(root, where, data)
        except Exception as error:
            bad.append((kind, "reading", {}, f"{type(error).__name__}: {error}", data[:2000]))
            continue
        for actor, name, arguments in CALLS:
            tried += 1
            if found := pair_fault(place, actor, name, arguments):
                bad.append((kind, name, arguments, found, data[:2000]))
    return tried, bad


def test_bad_files_quickly(tmp_path, figure):
    tried, bad = faults(tmp_path, "quick", 8)
    figure("bad files: pairs of file and verb, quick", tried=tried, bad=bad[:3], at_least=240)


@pytest.mark.slow
def test_bad_files_in_many_thousand_pairs(tmp_path, figure):
    tried, bad = faults(tmp_path, "long", 180)
    figure("bad files: pairs of file and verb", tried=tried, bad=bad[:3], at_least=5_000)


COMMANDS = (
    ["show", T], ["list", "--all"], ["next"], ["claim", T], ["claim"], ["done", T], ["release", T], ["note", T, "n"],
    ["why", T], ["graph", "--mermaid"], ["log"], ["fleet"], ["cancel", T, "--drop-edges"], ["add", "s", "-b", T], ["where"],
)  # fmt: skip


def cli_fault(place, command):
    """What is wrong with one command in a fresh process on one bad file."""
    place.reset()
    words = [word.replace(T, place.task_id) for word in command]
    done = subprocess.run(
        [sys.executable, "-m", "taskwall", "--board", str(place.path), "--as", "agent", *words],
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | {"PYTHONUTF8": "1"},
    )
    if done.returncode == 1 or "Traceback" in done.stderr or "internal error" in done.stderr:
        return f"{words}: exit {done.returncode}: {done.stderr}"
    if re.search(wording.UNSAFE, done.stdout + done.stderr):
        return f"{words}: a control character came through: {done.stdout!r} {done.stderr!r}"
    changed = [name for name, data in place.flawed.items() if (place.path / name).read_bytes() != data]
    return f"{words}: changed {changed}" if changed else None


def cli_faults(root, seed, files):
    chance = random.Random(seed)
    places = (Place(root, where, data) for _, where, data in mutants(seed, files))
    return [found for place in places if (found := cli_fault(place, chance.choice(COMMANDS)))]


def test_bad_files_on_the_command_line_quickly(tmp_path, figure):
    figure("bad files: on the command line, quick", tried=3, bad=cli_faults(tmp_path, "cli", 3), at_least=3)


@pytest.mark.slow
def test_bad_files_on_the_command_line(tmp_path, figure):
    figure("bad files: on the command line", tried=60, bad=cli_faults(tmp_path, "more", 60), at_least=60)


# The detector finds


@pytest.mark.slow
def test_that_a_lax_reader_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(folder_module, "parse", json.loads)
    _, bad = faults(tmp_path, "quick", 24)
    assert any("JSONDecodeError" in found for _, _, _, found, _ in bad)


@pytest.mark.slow
def test_that_putting_a_bad_file_aside_is_found(tmp_path, monkeypatch):
    read = folder_module.read_file

    def mends(disk, folder, name, seen):
        found = read(disk, folder, name, seen)
        if found.task.flaw and os.path.exists(os.path.join(folder, ".local", "lock")):
            os.replace(os.path.join(folder, name), os.path.join(folder, name + ".broken"))
        return found

    monkeypatch.setattr(folder_module, "read_file", mends)
    _, bad = faults(tmp_path, "quick", 24)
    assert any("was changed" in found for _, _, _, found, _ in bad)


@pytest.mark.slow
def test_that_rewriting_a_file_whole_is_found(tmp_path, monkeypatch):
    from taskwall.stores.files import writing

    ours = lambda text, changes, removed, order: encoded(
        {k: v for k, v in (json.loads(text) | changes).items() if k in order and k not in removed}
    ).decode()
    monkeypatch.setattr(writing, "patch", ours)
    _, bad = faults(tmp_path, "quick", 14)
    assert any("lost" in found for _, _, _, found, _ in bad)
