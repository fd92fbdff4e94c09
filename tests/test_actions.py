"""What an actor may do with a task now is what the rules would not refuse, and nothing else."""

import pytest

from conftest import add
from taskwall.core.actions import ACTIONS, legal_actions
from taskwall.core.errors import Refused
from taskwall.core.rules import Edit
from taskwall.outcomes import Changed


@pytest.fixture
def legal(board_for):
    def legal(task_id, name="user", session=None):
        board = board_for(name, session)
        view = board.store.read()
        return set(legal_actions(view, view.get(task_id), board.actor))

    return legal


OPEN = {"ask", "block", "edit", "cancel"}


def test_a_free_task_can_be_claimed_and_held_but_not_completed(board_for, legal):
    add(board_for(), "a")
    assert legal("a") == OPEN | {"claim", "hold"}
    assert legal("a", "agent") == OPEN | {"claim", "hold"}


def test_a_blocked_task_cannot_be_claimed(board_for, legal):
    board = board_for()
    add(board, "a")
    add(board, "b", "a")
    assert legal("b") == OPEN | {"hold"}


def test_a_held_claim_is_its_holders_to_finish_and_others_to_take_over(board_for, legal):
    add(board_for(), "a")
    board_for("ann").claim("a")
    assert legal("a", "ann") == OPEN | {"complete", "release", "hold"}
    assert legal("a", "bob") == {"steal", "ask", "block", "edit"}
    assert legal("a", "user") == OPEN | {"steal"}


def test_a_lapsed_claim_is_claimed_and_not_stolen(board_for, legal, clock):
    add(board_for(), "a")
    board_for("ann").claim("a", ttl=1)
    clock.sleep(minutes=2)
    assert {"claim"} == legal("a", "bob") & {"claim", "steal"}


def test_a_decision_is_for_its_person_to_answer(board_for, legal):
    board = board_for("ann")
    add(board, "a")
    decision = board.ask("a", "which?", ("x", "y")).also
    decision = decision[0].task.id
    assert "answer" in legal(decision, "user")
    assert not {"answer", "complete", "claim"} & legal(decision, "ann")
    assert "complete" not in legal(decision, "user"), "a question is answered in words"


def test_only_a_person_resumes_a_hold(board_for, legal):
    board = board_for()
    add(board, "a")
    board.hold("a", "wait")
    assert "resume" in legal("a", "user") and "claim" not in legal("a", "user")
    assert "resume" not in legal("a", "ann")


def test_what_is_finished_can_be_reopened(board_for, legal):
    board = board_for("ann")
    add(board, "a")
    board.claim("a")
    board.complete("a")
    assert legal("a") == {"reopen", "edit"}


def test_cancelling_is_offered_though_others_wait(board_for, legal):
    board = board_for()
    add(board, "a")
    add(board, "b", "a")
    assert "cancel" in legal("a")


DO = {
    "claim": lambda board: board.claim("t"),
    "steal": lambda board: board.claim("t", steal=True, reason="because"),
    "complete": lambda board: board.complete("t"),
    "answer": lambda board: board.answer("t", "?"),
    "release": lambda board: board.release("t"),
    "ask": lambda board: board.ask("t", "why?"),
    "block": lambda board: board.update("t", Edit(add_blocked_by=("other",))),
    "hold": lambda board: board.hold("t"),
    "resume": lambda board: board.resume("t"),
    "cancel": lambda board: board.cancel("t", cascade=True),
    "reopen": lambda board: board.reopen("t"),
    "edit": lambda board: board.update("t", Edit(note="n")),
}
STATES = {
    "ready": lambda board: None,
    "mine": lambda board: board.claim("t"),
    "theirs": lambda board: board.claim("t"),
    "held": lambda board: board.hold("t"),
    "asked": lambda board: board.ask("t", "what?"),
    "done": lambda board: (board.claim("t"), board.complete("t")),
    "cancelled": lambda board: board.cancel("t"),
}


@pytest.mark.parametrize("actor", ["user", "ann"])
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("action", DO)
def test_an_action_is_legal_exactly_when_its_verb_then_changes_something(board_for, legal, state, actor, action):
    board = board_for("bob" if state == "theirs" else actor)
    add(board, "t")
    add(board, "other")
    STATES[state](board)
    offered = action in legal("t", actor)
    try:
        answer = DO[action](board_for(actor))
        changed = isinstance(answer, Changed) and not answer.already
    except Refused:
        changed = False
    takes_over = action == "steal" and "claim" in legal("t", actor)
    assert offered == changed or takes_over or (action == "steal" and state == "ready")


def test_every_action_is_tried():
    assert set(DO) == {name for name, _, _ in ACTIONS}
