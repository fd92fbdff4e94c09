"""The task graph of seed 002 (reference/contracts.md section 3), worked through over a copy of its own files."""

from __future__ import annotations

import pytest

from boardfiles import SAMPLES, Files, needs_samples
from conftest import ids
from taskwall.core.errors import Refused
from taskwall.core.refusals import Blocked, Reserved, WaitingOnPerson

pytestmark = needs_samples

DECISION = "phase2-decision-pc-main"
DO7, DO8, DO9, DO10 = "phase2-do7-iv-psm", "phase2-do8-mech", "phase2-do9-hetero", "phase2-do10-robust"


@pytest.fixture
def files(tmp_path):
    return Files(tmp_path, {path.name: path.read_bytes() for path in (SAMPLES / "research").iterdir()})


def answered(files):
    return files.board("user").answer(DECISION, "切到 A1 经典")


def do7_done(files):
    answered(files)
    files.board("main").claim(DO7)
    return files.board("main").complete(DO7)


def test_at_first_nothing_is_actionable_for_main_and_exit_7_names_whom_it_waits_for(files):
    offer = files.board("main").next()
    assert (offer.rows, offer.exit) == ((), 7)
    assert offer.waiting.lines() == [f"waiting on user: {DECISION}"]
    with pytest.raises(WaitingOnPerson, match=f"waiting on user: {DECISION}"):
        files.board("main").claim()
    with pytest.raises(Blocked) as refusal:
        files.board("main").claim(DO7)
    assert (refusal.value.exit, refusal.value.by) == (4, (DECISION,))
    assert files.diff() == {}


def test_why_follows_the_chain_to_the_decision(files):
    why = files.board("main").why(DO8)
    assert [(step.row.task.id, step.depth) for step in why.steps] == [(DO8, 0), (DO7, 1), (DECISION, 2)]
    assert why.waiting.decisions == (("user", DECISION),)


def test_the_decision_is_offered_to_user_alone(files):
    assert ids(files.board("user").next().rows) == [DECISION]
    with pytest.raises(Reserved) as refusal:
        files.board("main").answer(DECISION, "mine")
    assert refusal.value.exit == 4
    with pytest.raises(Refused) as refusal:
        files.board("main").claim(DECISION)
    assert refusal.value.code == "reserved"
    assert files.diff() == {}


def test_answering_makes_do7_actionable_and_changes_one_file(files):
    done = answered(files)
    assert (ids(done.unblocked), done.exit) == ([DO7], 0)
    assert files.diff() == {
        f"{DECISION}.json": ['-  "state": "blocked",', '+  "state": "done",', '+  "answer": "切到 A1 经典",']
    }
    offer = files.board("main").next()
    assert (ids(offer.rows), offer.exit) == ([DO7], 0)


def test_done_by_the_person_is_the_same_as_an_answer(files):
    assert ids(files.board("user").complete(DECISION).unblocked) == [DO7]
    assert files.diff() == {f"{DECISION}.json": ['-  "state": "blocked",', '+  "state": "done",']}


def test_claiming_do7_is_a_one_line_diff(files):
    answered(files)
    files.diff()
    claimed = files.board("main").claim()
    assert claimed.row.task.id == DO7
    assert files.diff() == {f"{DO7}.json": ['-  "state": "pending",', '+  "state": "in_progress",']}


def test_completing_do7_unblocks_do8_do9_and_do10_at_once(files):
    answered(files)
    files.board("main").claim(DO7)
    files.diff()
    done = files.board("main").complete(DO7)
    assert {row.task.id: row.reserved for row in done.unblocked} == {
        DO8: "main",
        DO9: "main",
        DO10: "robust-runner-1",
    }
    assert files.diff() == {f"{DO7}.json": ['-  "state": "in_progress",', '+  "state": "done",']}


def test_do10_is_refused_to_main_and_granted_to_its_runner(files):
    do7_done(files)
    files.diff()
    assert set(ids(files.board("main").next(limit=9).rows)) == {DO8, DO9}
    with pytest.raises(Reserved, match="robust-runner-1") as refusal:
        files.board("main").claim(DO10)
    assert refusal.value.exit == 4
    assert files.diff() == {}
    runner = files.board("robust-runner-1")
    assert runner.claim().row.task.id == DO10
    assert files.diff() == {f"{DO10}.json": ['-  "state": "pending",', '+  "state": "in_progress",']}
    runner.release(DO10)
    assert files.diff() == {f"{DO10}.json": ['-  "state": "in_progress",', '+  "state": "pending",']}


def test_at_the_end_only_the_runners_task_is_left(files):
    do7_done(files)
    main = files.board("main")
    for _ in range(2):
        main.complete(main.claim().row.task.token)
    offer = main.next()
    assert offer.exit == 6 and offer.waiting.reserved == (("robust-runner-1", DO10),)
    runner = files.board("robust-runner-1")
    runner.complete(runner.claim().row.task.token)
    assert main.next().exit == 0
    assert all(task.status == "completed" for task in files.reread())
