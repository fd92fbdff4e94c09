"""Files that other programs wrote: read with all their traps, written in place in their own words, a line a change."""

from __future__ import annotations

import json

import pytest

from boardfiles import Files
from conftest import add, ids
from taskwall.core.errors import Invalid, ReadOnly, Refused
from taskwall.core.refusals import NotOwner, Superseded
from taskwall.core.model import KEYS
from taskwall.core.rules import Edit
from taskwall.core.state import state
from taskwall.stores.files.plain import BOOKKEEPING

LESSON = """{
  "id": "task_1796044583_1706",
  "subject": "create API",
  "description": "\\u8868\\u7ed3\\u6784",
  "status": "pending",
  "owner": null,
  "blockedBy": [],
  "worktree": null,
  "created_at": 1.77E9
}"""
NUMBERED = """{
  "id" : 1,
  "subject" : "Setup project",
  "description" : "",
  "status" : "pending",
  "blockedBy" : [ ],
  "owner" : "",
  "requiredRole" : "backend",
  "createdAt" : "2026-04-05T09:37:08.007145+00:00",
  "updatedAt" : 1.776309421719E9
}"""
RESEARCH = """{
  "id": "phase2-do7",
  "title": "do7：PSM",
  "state": "pending",
  "products": [
    "table{1..5}_*.rtf",
    "main_panel.dta (26441 obs)"
  ],
  "note": "见 checkpoint.md"
}
"""
CLAUDE = """{
  "id": "3",
  "subject": "Write the parser",
  "description": "d",
  "activeForm": "Writing the parser",
  "status": "pending",
  "blocks": [],
  "blockedBy": [],
  "metadata": {"a": 1.50}
}"""
ARM = """{
  "task_id": "5",
  "name": "抓取螺丝刀",
  "description": "",
  "priority": "normal",
  "status": "pending",
  "assigned_arm": null,
  "result": null,
  "blocked_by": [],
  "blocks": [6]
}"""
NESTED = """{
  "id": 9,
  "TaskPayload": {"subject": "s", "status": "pending", "block_by": [], "blocking": [], "owner": ""}
}"""

DIALECTS = {
    "lesson": ("task_1796044583_1706", "task_1796044583_1706.json", LESSON),
    "numbered": ("1", "task_1.json", NUMBERED),
    "research": ("phase2-do7", "phase2-do7.json", RESEARCH),
    "claude-code": ("3", "3.json", CLAUDE),
}
writable = pytest.mark.parametrize("dialect", DIALECTS)


def opened(tmp_path, dialect, **also):
    task_id, name, text = DIALECTS[dialect]
    return Files(tmp_path, {name: text, **also}), task_id, name


def one(tmp_path, text, name="t.json"):
    """The only task of a board with this one file."""
    (task,) = Files(tmp_path, {name: text if isinstance(text, str) else json.dumps(text)}).store.read()
    return task


# Reading


@pytest.mark.parametrize(
    ("text", "dialect", "task_id", "subject"),
    [
        (LESSON, "lesson", "task_1796044583_1706", "create API"),
        (NUMBERED, "numbered", "1", "Setup project"),
        (RESEARCH, "research", "phase2-do7", "do7：PSM"),
        (CLAUDE, "claude-code", "3", "Write the parser"),
        (ARM, "arm", "5", "抓取螺丝刀"),
        (NESTED, "nested", "9", "s"),
        ('{"id": "a", "subject": "ours", "status": "pending", "rev": 4}', "taskwall", "a", "ours"),
    ],
)
def test_each_dialect_is_recognised_by_its_keys(tmp_path, text, dialect, task_id, subject):
    task = one(tmp_path, text)
    assert (task.dialect, task.id, task.subject, task.status, task.owner) == (
        dialect,
        task_id,
        subject,
        "pending",
        None,
    )
    assert task.flaw is None


def test_foreign_keys_are_kept_for_display_and_times_are_understood(tmp_path):
    task = one(tmp_path, NUMBERED)
    assert task.extra == {"requiredRole": "backend"} and task.created_at == "2026-04-05T09:37:08.007145Z"
    assert one(tmp_path, LESSON).created_at == "2026-01-21T08:26:40.000000Z".replace(
        "2026-01-21T08:26:40", _epoch(1.77e9)
    )


def _epoch(seconds):
    import time

    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))


@pytest.mark.parametrize("odd", [0, "", "yesterday", 1e300, -5, True, {}, "0001-01-01T00:00:00+23:59"])
def test_a_time_that_is_none_is_unknown(tmp_path, odd):
    assert one(tmp_path, {"id": 1, "subject": "s", "status": "pending", "createdAt": odd}).created_at is None


def test_ids_compare_as_strings_whatever_their_type(tmp_path):
    files = Files(
        tmp_path,
        {
            "task_1.json": '{"id": 1, "subject": "a", "status": "completed", "blockedBy": []}',
            "task_2.json": '{"id": "2", "subject": "b", "status": "pending", "blockedBy": ["1"]}',
            "task_3.json": '{"id": 3, "subject": "c", "status": "pending", "blockedBy": [1, 2, "2"]}',
        },
    )
    view = files.store.read()
    assert {t.id: state(view, t).name for t in view} == {"1": "completed", "2": "ready", "3": "blocked"}
    assert view.blockers(view.get("3")) == ("1", "2")


def test_in_progress_without_an_owner_is_held_and_named(tmp_path):
    files = Files(tmp_path, {"1.json": '{"id": 1, "subject": "a", "status": "in_progress", "owner": ""}'})
    row = files.board().get("1").row
    assert row.state == "in_progress" and row.task.notices == ("in progress without an owner",)
    with pytest.raises(Refused, match="somebody unnamed"):
        files.board().claim("1")


def test_done_with_an_open_blocker_stays_done(tmp_path):
    files = Files(
        tmp_path,
        {
            "a.json": '{"id": "a", "subject": "a", "status": "pending", "owner": null, "blockedBy": []}',
            "b.json": '{"id": "b", "subject": "b", "status": "completed", "owner": "x", "blockedBy": ["a"]}',
            "c.json": '{"id": "c", "subject": "c", "status": "in_progress", "owner": "x", "blockedBy": ["a"]}',
            "d.json": '{"id": "d", "subject": "d", "status": "pending", "owner": null, "blockedBy": ["b", "c"]}',
        },
    )
    view = files.store.read()
    assert {t.id: state(view, t).name for t in view} == {
        "a": "ready",
        "b": "completed",
        "c": "in_progress",
        "d": "blocked",
    }


def test_a_blocker_without_a_file_blocks_and_is_named(tmp_path):
    files = Files(tmp_path, {"1.json": '{"id": 1, "subject": "a", "status": "pending", "blockedBy": [77]}'})
    row = files.board().get("1").row
    assert row.state == "blocked" and row.reasons[0].text == "77 does not exist"
    offer = files.board().next()
    assert offer.exit == 6 and offer.waiting.missing == (("77", "1"),)


def test_blocks_at_a_missing_task_is_no_harm(tmp_path):
    view = Files(
        tmp_path, {"1.json": '{"id": "1", "subject": "a", "status": "pending", "blocks": ["77"]}'}
    ).store.read()
    assert [state(view, t).name for t in view] == ["ready"]


def test_an_edge_that_only_blocks_names_gates_and_is_reported(tmp_path):
    files = Files(
        tmp_path,
        {
            "1.json": '{"id": "1", "subject": "a", "status": "pending", "blocks": ["2"], "blockedBy": []}',
            "2.json": '{"id": "2", "subject": "b", "status": "pending", "blocks": [], "blockedBy": []}',
        },
    )
    shown = files.board().get("2")
    assert shown.row.state == "blocked" and shown.row.waits == ("1",) and ids(shown.blockers) == ["1"]
    assert any("blocks" in notice for notice in shown.row.task.notices), shown.row.task.notices
    files.board().claim("1")
    assert ids(files.board().complete("1").unblocked) == ["2"]


def test_removing_an_edge_that_only_blocks_names_writes_the_file_that_names_it(tmp_path):
    files = Files(
        tmp_path,
        {
            "1.json": '{\n  "id": "1",\n  "subject": "a",\n  "status": "pending",\n  "blocks": [\n    "2"\n  ]\n}',
            "2.json": '{\n  "id": "2",\n  "subject": "b",\n  "status": "pending",\n  "blocks": []\n}',
        },
    )
    assert ids(files.board().update("2", Edit(remove_blocked_by=("1",))).unblocked) == ["2"]
    assert files.diff() == {"1.json": ['-  "blocks": [', '-    "2"', "-  ]", '+  "blocks": []']}


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("foreign.json", '{"tid": "task_Biv1", "prompt": "a woman in a dress"}', "no id and subject"),
        ("tasks.json", '{"next_id": 3, "tasks": {"1": {"id": 1}}}', "a whole board in one file"),
        ("all.json", '{"version": 1, "tasks": [{"id": 1, "subject": "x"}]}', "a whole board in one file"),
        ("list.json", "[]", "not a JSON object"),
        ("float.json", '{"id": 1.5, "subject": "x", "status": "pending"}', "its id is no text or number"),
        ("bool.json", '{"id": true, "subject": "x", "status": "pending"}', "its id is no text or number"),
        ("null.json", '{"id": null, "subject": "x", "status": "pending"}', "its id is no text or number"),
        ("number.json", '{"id": 1, "subject": 5, "status": "pending"}', "its subject is not text"),
        ("edges.json", '{"id": 1, "subject": "x", "status": "pending", "blockedBy": "23"}', "not a list of ids"),
        ("deep.json", '{"id": 1, "subject": "x", "blockedBy": [[2]]}', "not a list of ids"),
        ("half.json", '{"id": 1, "subject": "x", "blockedBy": [2.5]}', "not a list of ids"),
        ("object.json", '{"id": 1, "subject": "x", "blocks": {"2": true}}', "not a list of ids"),
        ("payload.json", '{"id": 1, "TaskPayload": []}', "TaskPayload is not an object"),
        ("none.json", '{"id": 1, "TaskPayload": null}', "TaskPayload is not an object"),
        ("empty.json", '{"id": 1, "TaskPayload": {}}', "its subject is not text"),
        ("up.json", '{"id": "../x", "subject": "x", "status": "pending"}', "its id cannot be used"),
    ],
)
def test_what_is_no_task_is_named_and_hides_nothing(tmp_path, name, text, why):
    files = Files(tmp_path, {name: text, "good.json": LESSON})
    view = files.store.read()
    (flawed,) = [t for t in view if t.flaw]
    assert why in flawed.flaw and flawed.flaw.startswith(f"{name}:")
    assert state(view, view.get("task_1796044583_1706")).name == "ready"


def test_other_files_beside_the_tasks_are_no_tasks(tmp_path):
    files = Files(
        tmp_path,
        {".lock": "", ".highwatermark": "7", "LOG.jsonl": "{}\n", "README.md": "#", "1.json.bak": "{", "x": ""},
    )
    assert list(files.store.read()) == []


@pytest.mark.parametrize("status", ["paused", "", None, 3, ["done"], "PENDING"])
def test_an_unknown_status_holds_with_the_value_as_reason(tmp_path, status):
    files = Files(tmp_path, {"1.json": json.dumps({"id": 1, "subject": "s", "status": status})})
    row = files.board().get("1").row
    assert row.state == "held" and repr(status) in row.reasons[0].text
    assert row.task.notices == (f"unknown status {status!r}",)


def test_a_person_resumes_an_unknown_status_to_pending(tmp_path):
    files = Files(tmp_path, {"1.json": '{\n "id": 1,\n "subject": "s",\n "status": "paused"\n}'})
    files.board("user").resume("1")
    assert files.diff() == {"1.json": ['- "status": "paused"', '+ "status": "pending"']}


def test_deleted_is_cancelled_and_done_is_completed(tmp_path):
    assert one(tmp_path, '{"id": 1, "subject": "s", "status": "deleted"}').status == "cancelled"
    assert one(tmp_path, '{"id": "1", "subject": "s", "activeForm": "x", "status": "done"}').status == "completed"


def test_a_blocked_research_task_is_held_but_a_persons_own_waits(tmp_path):
    files = Files(
        tmp_path,
        {
            "a.json": '{"id": "a", "title": "a", "state": "blocked", "owner": "main"}',
            "b.json": '{"id": "b", "title": "b", "state": "blocked", "owner": "user"}',
            "c.json": '{"id": "c", "title": "c", "state": "blocked", "owner": "user", "hold": "not now"}',
            "d.json": '{"id": "d", "title": "d", "state": "blocked", "owner": "chair"}',
            "e.json": '{"id": "e", "title": "e", "state": "blocked"}',
        },
        people=("chair",),
    )
    view = files.store.read()
    assert {t.id: state(view, t).name for t in view} == {
        "a": "held",
        "b": "waiting",
        "c": "held",
        "d": "waiting",
        "e": "held",
    }


def test_a_key_of_ours_with_a_foreign_type_is_kept_and_ignored(tmp_path):
    text = (
        '{\n  "id": 1,\n  "subject": "s",\n  "status": "pending",\n  "priority": "high",\n  "labels": "a",\n'
        '  "notes": "by hand",\n  "metadata": [1]\n}\n'
    )
    files = Files(tmp_path, {"1.json": text})
    task = files.store.read().get("1")
    assert (task.priority, task.labels, task.notes, task.metadata) == (2, (), (), {})
    assert {notice.split()[0] for notice in task.notices} == {"priority", "labels", "notes", "metadata"}
    files.board().claim("1")
    assert files.diff() == {
        "1.json": ['-  "status": "pending",', '+  "status": "in_progress",', '+  "owner": "agent",']
    }
    for edit in (Edit(note="mine"), Edit(metadata={"k": "v"}), Edit(labels=("b",)), Edit(priority=1)):
        with pytest.raises(Invalid, match="not ours to replace") as refusal:
            files.board().update("1", edit)
        assert refusal.value.task == "1" and "by hand" in refusal.value.next
    assert files.diff() == {}


def test_a_parent_may_be_a_number(tmp_path):
    files = Files(
        tmp_path,
        {
            "1.json": '{\n "id": 1,\n "subject": "a",\n "status": "pending"\n}',
            "2.json": '{\n "id": 2,\n "subject": "b",\n "status": "pending",\n "parent": 1\n}',
            "3.json": '{\n "id": "3",\n "subject": "c",\n "status": "pending"\n}',
        },
    )
    assert files.board().get("1").row.waits == ("2",)
    files.board().update("3", Edit(parent="1"))
    assert files.diff()["3.json"] == ['- "status": "pending"', '+ "status": "pending",', '+ "parent": 1']


# Writing: exactly the changed lines

CLAIMED = {
    "lesson": [
        '-  "status": "pending",',
        '-  "owner": null,',
        '+  "status": "in_progress",',
        '+  "owner": "agent",',
    ],
    "numbered": [
        '-  "status" : "pending",',
        '+  "status" : "in_progress",',
        '-  "owner" : "",',
        '+  "owner" : "agent",',
    ],
    "research": ['-  "state": "pending",', '+  "state": "in_progress",', '+  "owner": "agent",'],
    "claude-code": ['-  "status": "pending",', '+  "status": "in_progress",', '+  "owner": "agent",'],
}
DONE = {"lesson": "completed", "numbered": "completed", "research": "done", "claude-code": "completed"}
CANCELLED = {"lesson": "cancelled", "numbered": "deleted", "research": "cancelled", "claude-code": "deleted"}


def status_line(dialect, sign, value):
    return (
        f'{sign}  "status" : "{value}",'
        if dialect == "numbered"
        else (f'{sign}  "{"state" if dialect == "research" else "status"}": "{value}",')
    )


@writable
def test_a_claim_changes_status_and_owner(tmp_path, dialect):
    files, task_id, name = opened(tmp_path, dialect)
    files.board().claim(task_id)
    assert files.diff() == {name: CLAIMED[dialect]}


@writable
def test_claim_and_release_restore_the_file_byte_for_byte(tmp_path, dialect):
    files, task_id, _ = opened(tmp_path, dialect)
    before = files.texts()
    for _ in range(2):
        files.board().claim(task_id)
        files.board().release(task_id)
        assert files.texts() == before


NO_OWNER = ['"owner": null,', '"owner": "",', ""]


@pytest.mark.parametrize("form", NO_OWNER)
@pytest.mark.parametrize(
    "rest", ['"subject": "s", "status"', '"blocks": [], "subject": "s", "status"', '"title": "t", "state"']
)
@pytest.mark.parametrize("task_id", ['"x"', "7"])
def test_an_owner_is_cleared_in_the_files_own_empty_form(tmp_path, form, rest, task_id):
    text = f'{{{form} "id": {task_id}, {rest}: "pending"}}'
    files = Files(tmp_path, {"t.json": text})
    files.board().claim()
    assert '"owner": "agent"' in files.texts()["t.json"].decode()
    files.board().release(task_id.strip('"'))
    assert files.texts()["t.json"].decode() == text


@writable
def test_a_reservation_is_back_after_a_release(tmp_path, dialect):
    files, task_id, _ = opened(tmp_path, dialect)
    files.board().update(task_id, Edit(owner="runner"))
    before = files.texts()
    files.board("runner/2").claim(task_id)
    files.board("runner/2").release(task_id)
    assert files.texts() == before


@writable
def test_completing_changes_the_status_line(tmp_path, dialect):
    files, task_id, name = opened(tmp_path, dialect)
    files.board().claim(task_id)
    files.diff()
    files.board().complete(task_id)
    assert files.diff() == {name: [status_line(dialect, "-", "in_progress"), status_line(dialect, "+", DONE[dialect])]}


@writable
def test_cancelling_uses_the_word_of_the_dialect(tmp_path, dialect):
    files, task_id, name = opened(tmp_path, dialect)
    files.board().cancel(task_id)
    assert files.diff() == {name: [status_line(dialect, "-", "pending"), status_line(dialect, "+", CANCELLED[dialect])]}
    assert files.reread().get(task_id).status == "cancelled"
    files.board().reopen(task_id)
    assert files.diff() == {name: [status_line(dialect, "-", CANCELLED[dialect]), status_line(dialect, "+", "pending")]}


@writable
def test_a_hold_and_its_end(tmp_path, dialect):
    files, task_id, name = opened(tmp_path, dialect)
    before = files.texts()
    files.board().hold(task_id, "等审批")
    gained = '+  "hold" : "等审批",' if dialect == "numbered" else '+  "hold": "等审批",'
    (lines,) = files.diff().values()
    if dialect == "research":
        assert [status_line(dialect, "-", "pending"), status_line(dialect, "+", "blocked")] == lines[:2]
        lines = lines[2:]
    assert lines == [gained]
    assert state(files.reread(), files.reread().get(task_id)).reasons[0].text == "等审批"
    files.board("user").resume(task_id)
    assert files.texts() == before


@writable
def test_an_answer_is_one_line_and_the_status(tmp_path, dialect):
    files, task_id, name = opened(tmp_path, dialect)
    files.board().update(task_id, Edit(owner="user"))
    files.diff()
    files.board("user").answer(task_id, "A1")
    (lines,) = files.diff().values()
    assert sorted(lines) == sorted(
        [
            status_line(dialect, "-", "pending"),
            status_line(dialect, "+", DONE[dialect]),
            '+  "answer" : "A1",' if dialect == "numbered" else '+  "answer": "A1",',
        ]
    )


@writable
def test_a_note_is_added_and_the_prose_of_others_stays(tmp_path, dialect):
    files, task_id, name = opened(tmp_path, dialect)
    files.board().update(task_id, Edit(note="看过"))
    (lines,) = files.diff().values()
    assert all(line.startswith("+") for line in lines if "note" not in line[:8]) or dialect == "research"
    assert [n["text"] for n in files.reread().get(task_id).notes] == ["看过"]
    raw = json.loads(files.texts()[name])
    assert set(raw) - set(json.loads(DIALECTS[dialect][2])) == {"notes"}


@writable
def test_a_blocker_is_added_and_removed_in_the_type_of_its_own_file(tmp_path, dialect):
    also = {
        "n.json": '{"id": 40, "subject": "n", "status": "pending"}',
        "s.json": '{"id": "41", "subject": "s", "status": "pending"}',
    }
    files, task_id, name = opened(tmp_path, dialect, **also)
    before = files.texts()
    files.board().update(task_id, Edit(add_blocked_by=("40", "41")))
    assert list(files.diff()) == [name]
    raw = json.loads(files.texts()[name])
    assert raw["blocked_by" if dialect == "research" else "blockedBy"] == [40, "41"]
    files.board().update(task_id, Edit(remove_blocked_by=("40", "41")))
    after = files.texts()
    if dialect == "numbered":  # `[ ]` is written `[]`
        after[name] = after[name].replace(b'"blockedBy" : []', b'"blockedBy" : [ ]')
    assert after == before


def test_ids_in_a_list_stay_as_they_are_written(tmp_path):
    text = '{"id": 1, "subject": "a", "status": "pending", "blockedBy": [77, "2", 3]}'
    files = Files(
        tmp_path,
        {
            "1.json": text,
            "2.json": '{"id": 2, "subject": "b", "status": "pending"}',
            "4.json": '{"id": 4, "subject": "d", "status": "pending"}',
        },
    )
    files.board().update("1", Edit(add_blocked_by=("4",)))
    assert files.texts()["1.json"].decode() == text.replace('"2", 3]', '"2", 3, 4]')


def life(files, task_id):
    """Every kind of write there is, one after the other."""
    agent, user = files.board(), files.board("user")
    agent.claim(task_id, ttl=10)
    agent.release(task_id, failed=True, reason="no luck")
    agent.hold(task_id, "wait")
    user.resume(task_id)
    agent.claim(task_id)
    agent.heartbeat(task_id, ttl=5)
    agent.update(task_id, Edit(note="x", priority=1, labels=("l",), metadata={"k": "v"}))
    asked = agent.ask(task_id, "which?").also[0].task.id
    user.answer(asked, "that")
    agent.claim(task_id)
    agent.complete(task_id, result="made")
    user.reopen(task_id)
    user.cancel(task_id, drop_edges=True)


@writable
def test_dialect_files_never_gain_bookkeeping_keys(tmp_path, dialect):
    files, task_id, name = opened(tmp_path, dialect)
    life(files, task_id)
    before, after = json.loads(DIALECTS[dialect][2]), json.loads(files.texts()[name])
    assert not (set(after) - set(before)) & BOOKKEEPING
    for key in ("worktree", "created_at", "createdAt", "updatedAt", "requiredRole", "activeForm", "products", "note"):
        assert after.get(key) == before.get(key)


@writable
def test_attempts_and_epochs_survive_in_the_ledger(tmp_path, dialect):
    files, task_id, name = opened(tmp_path, dialect)
    for epoch in (1, 2):
        assert files.board().claim(task_id).row.task.epoch == epoch
        files.board().release(task_id, failed=True)
    task = files.reread().get(task_id)
    assert (task.attempts, task.epoch) == (2, 2)
    assert files.board().claim(task_id).row.task.token == f"{task_id}#3"
    files.board().release(task_id, failed=True)
    assert state(files.reread(), files.reread().get(task_id)).name == "held"
    files.board("user").resume(task_id)
    assert files.reread().get(task_id).attempts == 0


@writable
def test_a_superseded_holder_of_a_dialect_task_is_refused(tmp_path, dialect):
    files, task_id, name = opened(tmp_path, dialect)
    token = files.board("a").claim(task_id).row.task.token
    files.board("b").claim(task_id, steal=True, reason="a is gone")
    before = files.texts()
    with pytest.raises(Superseded):
        files.board("a").complete(token)
    with pytest.raises(Superseded):
        files.board("a").complete(task_id)
    assert files.texts() == before


@writable
def test_a_claim_made_by_hand_is_one_epoch_further_and_that_epoch_is_not_given_twice(tmp_path, dialect):
    files, task_id, name = opened(tmp_path, dialect)
    files.board("a").claim(task_id)
    claimed = (files.path / name).read_bytes()
    files.board("a").release(task_id)
    (files.path / name).write_bytes(claimed.replace(b'"a"', b'"carol"'))
    task = files.reread().get(task_id)
    assert (task.status, task.owner, task.epoch) == ("in_progress", "carol", 2)
    with pytest.raises(NotOwner, match="carol"):
        files.board("a").complete(task_id)
    token = files.board("carol").claim(task_id).row.task.token
    files.board("carol").update(task_id, Edit(note="at it"))
    files.board("carol").release(token)
    assert files.reread().get(task_id).epoch == 2
    assert files.board("b").claim(task_id).row.task.epoch == 3
    with pytest.raises(Superseded):
        files.board("carol").complete(token)


@writable
def test_a_claim_taken_back_by_hand_is_a_release_unless_it_beats(tmp_path, dialect):
    files, task_id, name = opened(tmp_path, dialect)
    free = (files.path / name).read_bytes()
    files.board("a").claim(task_id)
    (files.path / name).write_bytes(free)
    assert state(files.reread(), files.reread().get(task_id)).name == "ready"
    files.board("a").claim(task_id, ttl=15)
    (files.path / name).write_bytes(free)
    task = files.reread().get(task_id)
    assert (task.status, task.owner) == ("in_progress", "a")
    files.clock.sleep(minutes=16)
    assert files.reread().get(task_id).status == "pending"


def test_products_and_checks_gate_nothing_in_files_of_others(tmp_path):
    text = '{"id": "a", "title": "t", "state": "pending", "products": ["no such file"], "checks": ["false"]}'
    files = Files(tmp_path, {"a.json": text})
    files.board().claim("a")
    assert files.board().complete("a").row.state == "completed"


# Read-only dialects


@pytest.mark.parametrize(("task_id", "text"), [("5", ARM), ("9", NESTED)])
def test_arm_and_nested_are_shown_and_gate_but_are_never_written(tmp_path, task_id, text):
    files = Files(tmp_path, {"odd.json": text, "after.json": '{"id": "z", "subject": "z", "status": "pending"}'})
    files.board().update("z", Edit(add_blocked_by=(task_id,)))
    assert files.board().get("z").row.state == "blocked"
    files.diff()
    board, user = files.board(), files.board("user")
    for attempt in (
        lambda: board.claim(task_id),
        lambda: board.complete(task_id),
        lambda: board.release(task_id),
        lambda: board.hold(task_id, "r"),
        lambda: user.resume(task_id),
        lambda: user.answer(task_id, "x"),
        lambda: user.cancel(task_id),
        lambda: user.cancel(task_id, cascade=True),
        lambda: user.reopen(task_id),
        lambda: board.update(task_id, Edit(note="n")),
        lambda: board.update(task_id, Edit(add_blocked_by=("z",))),
        lambda: board.ask(task_id, "q?"),
    ):
        with pytest.raises(ReadOnly) as refusal:
            attempt()
        assert refusal.value.code == "read_only" and "import" in refusal.value.next
    assert files.diff() == {}


def test_claiming_without_an_id_passes_over_what_cannot_be_written(tmp_path):
    files = Files(tmp_path, {"odd.json": ARM, "t.json": '{"id": "z", "subject": "z", "status": "pending"}'})
    assert files.board().claim().row.task.id == "z"


# Mixed boards and our own files


def test_a_mixed_board_is_one_board(tmp_path):
    texts = {name: text for _, name, text in DIALECTS.values()} | {"arm.json": ARM, "nested.json": NESTED}
    files = Files(tmp_path, texts)
    add(files.board(), "mine", "1", "3", "phase2-do7", "task_1796044583_1706", subject="all of it")
    assert files.diff() == {"mine.json": "added"}
    assert json.loads(files.texts()["mine.json"])["blockedBy"] == ["1", "3", "phase2-do7", "task_1796044583_1706"]
    files.board().update("mine", Edit(remove_blocked_by=("1", "3")))
    files.board().update("mine", Edit(add_blocked_by=("1", "3")))
    files.diff()
    assert json.loads(files.texts()["mine.json"])["blockedBy"] == ["phase2-do7", "task_1796044583_1706", "1", "3"]
    for task_id in ("1", "3", "phase2-do7", "task_1796044583_1706"):
        assert files.board().get("mine").row.state == "blocked"
        files.board().claim(task_id)
        done = files.board().complete(task_id)
        assert len(files.diff()) == 1
    assert ids(done.unblocked) == ["mine"]


def test_our_own_files_have_the_keys_in_order(tmp_path):
    files = Files(tmp_path)
    board = files.board("alice")
    add(board, "one", subject="一")
    add(
        board,
        "two",
        "one",
        description="d",
        priority=1,
        labels=("l",),
        parent="",
        owner="bob",
        products=("a.txt",),
        checks=("true",),
        key="k",
    )
    text = files.texts()["one.json"].decode()
    made = json.loads(text)["createdAt"]
    assert text == (
        '{\n  "id": "one",\n  "subject": "一",\n  "description": "",\n  "status": "pending",\n  "owner": null,\n'
        f'  "blockedBy": [],\n  "createdAt": "{made}",\n  "createdBy": "alice",\n  "updatedAt": "{made}",\n'
        '  "rev": 1\n}\n'
    )
    raw = json.loads(files.texts()["two.json"])
    assert list(raw) == [key for key in KEYS if key in raw]
    assert '\n  "labels": [\n    "l"\n  ],\n' in files.texts()["two.json"].decode()
    life(files, "one")
    raw = json.loads(files.texts()["one.json"])
    assert list(raw) == [key for key in KEYS if key in raw] and raw["rev"] > 8 and raw["epoch"] == 3


def test_a_new_task_under_an_old_id_is_not_its_predecessors(tmp_path):
    files = Files(tmp_path)
    add(files.board(), "slug")
    token = files.board("old").claim("slug").row.task.token
    (files.path / "slug.json").unlink()
    add(files.board(), "slug", subject="another")
    task = files.reread().get("slug")
    assert (task.status, task.owner, task.epoch, task.notices) == ("pending", None, 1, ())
    assert files.board("new").claim("slug").row.task.epoch == 2
    with pytest.raises(Superseded):
        files.board("old").complete(token)


def test_a_file_that_another_program_changes_meanwhile_is_not_overwritten(tmp_path):
    files = Files(tmp_path, {"t.json": '{"id": "t", "subject": "s", "status": "pending"}'})
    path = files.path / "t.json"
    for theirs in ('{"id": "t", "subject": "edited", "status": "pending"}', "{", '{"id": "t"}', None):
        path.write_text('{"id": "t", "subject": "s", "status": "pending"}')
        with pytest.raises(Refused, match="changed by another program just now"), files.store.write() as txn:
            txn.put(txn.get("t").replace(status="completed"))
            path.write_text(theirs) if theirs else path.unlink()
        assert (path.read_text() if path.exists() else None) == theirs


def test_a_git_checkout_cannot_take_a_claim_back(tmp_path):
    files = Files(tmp_path)
    add(files.board(), "t")
    before = (files.path / "t.json").read_bytes()
    token = files.board("a").claim("t").row.task.token
    (files.path / "t.json").write_bytes(before)
    task = files.reread().get("t")
    assert (task.status, task.owner) == ("in_progress", "a") and "taken back" in task.notices[0]
    assert files.board("a").complete(token).row.state == "completed"
    raw = json.loads((files.path / "t.json").read_text())
    assert (raw["status"], raw["owner"], raw["epoch"]) == ("completed", "a", 1)


def test_a_claim_that_ended_says_nothing_about_a_later_one_made_by_hand(tmp_path):
    files = Files(tmp_path)
    add(files.board(), "t")
    files.board("a").claim("t", ttl=15)
    held = (files.path / "t.json").read_bytes()
    files.board("a").release("t")
    (files.path / "t.json").write_bytes(held.replace(b'"a"', b'"bob"'))
    files.clock.sleep(minutes=60)
    view = files.reread()
    assert state(view, view.get("t")).name == "in_progress"


@pytest.mark.parametrize(
    "entry",
    [
        "",
        "[]",
        '{"claim": 5}',
        '{"claim": {"task": "1", "epoch": "x"}}',
        '{"claim": {"task": "1", "epoch": "x", "actor": 1, "session": "s", "since": "", "reserved": null, "ttl": null,'
        ' "open": true, "past": []}}',
        '{"claim": {"task": "other", "epoch": 9, "actor": "a", "session": "s", "since": "", "reserved": null,'
        ' "ttl": null, "open": true, "past": []}}',
        '{"claim": {"task": "1", "epoch": 1, "actor": "a", "session": "s", "since": "", "reserved": null,'
        ' "ttl": "x", "open": true, "past": [1]}, "lease": {"until": "x", "boot": 3}}',
        '{"book": {"attempts": "many", "evidence": 4}, "free": 3, "ended": "x"}',
        '{"book": {"attempts": null, "evidence": null}}',
        '{"book": [], "free": {"owner": 3, "status": []}, "ended": -4}',
        "\0\0\0",
    ],
)
def test_a_damaged_ledger_entry_is_as_good_as_none(tmp_path, entry):
    files, task_id, name = opened(tmp_path, "numbered")
    (files.path / ".local" / "claims").mkdir(parents=True)
    (files.path / ".local" / "claims" / "1.json").write_text(entry)
    assert files.board().get("1").row.state == "ready"
    before = files.texts()
    files.board().claim("1")
    files.board().release("1")
    assert files.texts() == before


def test_losing_the_local_folder_degrades_claims_to_held_and_nothing_known(tmp_path):
    import shutil

    files, task_id, _ = opened(tmp_path, "lesson")
    files.board("a", "s1").claim(task_id)
    shutil.rmtree(files.path / ".local")
    row = files.board("a", "s2").get(task_id)
    assert row.row.state == "in_progress" and row.claim is None
    with pytest.raises(Refused):
        files.board("b").claim(task_id)
    files.board("a", "s2").complete(task_id)
    assert files.board("a", "s3").complete(task_id).already
