"""Boards that other people's programs wrote, as they lie beside this checkout: opened, asked, and touched in copies."""

from __future__ import annotations

import json

import pytest

from boardfiles import SAMPLES, Files, needs_samples
from taskwall.core.errors import Refused
from taskwall.core.rules import Edit
from taskwall.stores.files.plain import BOOKKEEPING

pytestmark = needs_samples

BOARDS = sorted(path.name for path in SAMPLES.iterdir() if path.is_dir()) if SAMPLES.is_dir() else []
each_board = pytest.mark.parametrize("name", BOARDS)

LARGE = ("Qcode", "haystack", "URrobot-agent")

EXPECTED = {
    "Qcode": (44, "numbered"),
    "haystack": (11, "claude-code"),
    "URrobot-agent": (10, "arm"),
    "float-epoch": (1, "numbered"),
    "go-pilot": (5, "numbered"),
    "hx": (1, "lesson"),
    "lesson-s07": (2, "numbered"),
    "lesson-s12": (2, "lesson"),
    "lesson-s13_2026-08": (2, "lesson"),
    "nested": (1, "nested"),
    "research": (6, "research"),
}


def copied(tmp_path, name):
    return Files(tmp_path, {path.name: path.read_bytes() for path in (SAMPLES / name).iterdir() if path.is_file()})


@pytest.mark.parametrize(("name", "count", "dialect"), [(name, *rest) for name, rest in EXPECTED.items()])
def test_every_task_is_read_in_its_dialect(tmp_path, name, count, dialect):
    tasks = list(copied(tmp_path, name).store.read())
    assert [task.flaw for task in tasks if task.flaw] == []
    assert (len(tasks), {task.dialect for task in tasks}) == (count, {dialect})


def test_what_is_no_task_is_named(tmp_path):
    (task,) = copied(tmp_path, "foreign").store.read()
    assert task.flaw == "0.json: not a task: it has no id and subject"


@each_board
def test_every_anomaly_is_named(tmp_path, name):
    files = copied(tmp_path, name)
    view = files.store.read()
    for task in view:
        raw = json.loads((files.path / view.names[task.id]).read_text())
        if raw.get("status") == "in_progress" and not raw.get("owner") and task.dialect != "arm":
            assert "in progress without an owner" in task.notices
        row = files.board().get(task.id).row
        missing = {i for i in view.blockers(task) if i not in view}
        if not task.closed and not task.flaw and row.state == "blocked":
            assert missing <= {reason.subject for reason in row.reasons}


@each_board
def test_every_question_about_every_task_is_answered_and_nothing_is_written(tmp_path, name):
    files = copied(tmp_path, name)
    for actor in ("agent", "user"):
        board = files.board(actor)
        listing = board.list(everything=True)
        assert listing.total == len(list(files.store.read())) == len(listing.rows)
        board.next(limit=9)
        board.graph()
        board.history()
        for row in listing.rows:
            assert board.get(row.task.id).row.state == row.state
            assert board.why(row.task.id).steps[0].row.task.id == row.task.id
            board.history(row.task.id)
    assert files.diff() == {}
    assert not (files.path / ".local").exists()


def attempts(files, task_id):
    """Every verb that changes something, with an actor who may."""
    agent, user = files.board("agent"), files.board("user")
    owner = files.reread().get(task_id).owner
    holder = files.board(owner or "agent")
    yield "note", lambda: agent.update(task_id, Edit(note="看过"))
    yield "complete", lambda: holder.complete(task_id, result="r")
    yield "reopen", lambda: user.reopen(task_id)
    yield "claim", lambda: holder.claim(task_id)
    yield "heartbeat", lambda: holder.heartbeat(task_id, ttl=5)
    yield "release", lambda: holder.release(task_id, failed=True)
    yield "edit", lambda: agent.update(task_id, Edit(subject="s2", description="d2"))
    yield "edges", lambda: agent.update(task_id, Edit(remove_blocked_by=files.reread().get(task_id).blocked_by))
    yield "hold", lambda: user.hold(task_id, "r")
    yield "resume", lambda: user.resume(task_id)
    yield "reserve", lambda: agent.update(task_id, Edit(owner="user"))
    yield "answer", lambda: user.answer(task_id, "a")
    yield "cancel", lambda: user.cancel(task_id, drop_edges=True)


MAY_CHANGE = {
    "note": {"notes"},
    "complete": {"status", "owner", "result", "answer"},
    "reopen": {"status", "owner", "result", "answer"},
    "claim": {"status", "owner"},
    "heartbeat": set(),
    "release": {"status", "owner"},
    "edit": {"subject", "description"},
    "edges": {"blockedBy", "blocks"},
    "hold": {"status", "owner", "hold"},
    "resume": {"status", "hold"},
    "reserve": {"owner"},
    "answer": {"status", "owner", "answer", "hold"},
    "cancel": {"status", "blockedBy", "blocks"},
}
RESEARCH = {"title": "subject", "state": "status", "blocked_by": "blockedBy"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "step"), [(name, 6 if name in LARGE else 1) for name in BOARDS]
    + [pytest.param(name, 1, marks=pytest.mark.slow) for name in BOARDS if name in LARGE],
)  # fmt: skip
def test_touching_one_task_leaves_every_other_file_and_untouched_key_as_it_was(tmp_path, name, step):
    names = [task.id for task in copied(tmp_path / "names", name).store.read()]
    for number, task_id in enumerate(names[::step]):
        files = copied(tmp_path / str(number), name)
        own = files.store.read().names[task_id]
        for verb, attempt in list(attempts(files, task_id)):
            before = files.texts()
            try:
                attempt()
            except Refused:
                assert files.texts() == before
                continue
            after = files.texts()
            changed = {n for n in before if before[n] != after[n]}
            assert set(after) == set(before)
            if verb not in ("cancel", "edges"):  # these may take the edge out of the file that names it
                assert changed <= {own}
            for each in changed:
                compare(before[each].decode(), after[each].decode(), verb)


def compare(old, new, verb):
    """Only lines of keys that the verb may change differ, and no bookkeeping comes in."""
    was, now = json.loads(old), json.loads(new)
    touched = {key for key in {*was, *now} if was.get(key) != now.get(key) or (key in was) != (key in now)}
    assert {RESEARCH.get(key, key) for key in touched} <= MAY_CHANGE[verb], (verb, touched)
    assert not (set(now) - set(was)) & BOOKKEEPING
    for key in set(was) - touched:
        assert chunk(old, key) == chunk(new, key)


def chunk(text, key):
    """The key and its value exactly as they are written."""
    start = text.index(json.dumps(key))
    value = text.index(":", start) + 1
    while text[value] in " \t\r\n":
        value += 1
    return text[start : json.JSONDecoder().raw_decode(text, value)[1]]


@each_board
def test_claim_and_release_restore_every_file_byte_for_byte(tmp_path, name):
    files = copied(tmp_path, name)
    before = files.texts()
    for task in list(files.store.read()):
        board = files.board(task.owner or "agent")
        if task.status != "pending":
            continue
        try:
            board.claim(task.id)
        except Refused:
            continue
        assert files.texts() != before
        board.release(task.id)
        assert files.texts() == before
