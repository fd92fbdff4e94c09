"""What each verb does: claims and their successors, exact unblocking, repetition, reservations, attempts."""

import pytest
from conftest import add, ids
from test_rules import everything, refused

from taskwall.core import rules
from taskwall.core.rules import Draft, Edit


@pytest.fixture
def user(board_for):
    return board_for("user")


@pytest.fixture
def agent(board_for):
    return board_for("agent")


@pytest.fixture
def bob(board_for):
    return board_for("bob")


def finish(board, *names):
    """Claim and complete these; what the last one unblocked."""
    for name in names:
        board.claim(name)
        done = board.complete(name)
    return ids(done.unblocked)


def task(board, name):
    return board.get(name).row.task


# Claims


def test_a_claim_makes_the_next_epoch_and_its_token(agent, store):
    add(agent, "t")
    claimed = agent.claim("t").row
    assert (claimed.task.status, claimed.task.owner, claimed.task.token) == ("in_progress", "agent", "t#1")
    agent.release("t#1", reason="lunch")
    again = agent.claim("t").row.task
    assert (again.token, again.notes[0]["text"]) == ("t#2", "released: lunch")
    assert [event["verb"] for event in store.events("t")] == ["create", "claim", "release", "claim"]
    entry = store.read().claim("t")
    assert (entry.epoch, entry.actor, entry.session, entry.open) == (2, "agent", "agent", True)


def test_claiming_again_by_id_answers_already_yours_and_renews_the_lease(agent, clock):
    add(agent, "t")
    agent.claim("t", ttl=15)
    clock.sleep(minutes=14)
    again = agent.claim("t")
    assert (again.already, again.row.task.token) == (True, "t#1")
    assert "already yours since" in again.notices[0]
    assert "claim without an id" in again.notices[0]
    clock.sleep(minutes=14)
    assert agent.get("t").row.state == "in_progress"


def test_claims_by_hand_never_lapse_and_leases_do(agent, clock):
    for name in ("hand", "lease"):
        add(agent, name)
    agent.claim("hand")
    agent.claim("lease", ttl=15)
    clock.sleep(minutes=14)
    agent.heartbeat("lease")
    clock.sleep(minutes=14.9)
    assert agent.get("lease").row.state == "in_progress"
    clock.sleep(minutes=0.2)
    assert agent.get("lease").row.state == "stale"
    clock.sleep(minutes=60 * 24 * 365)
    assert agent.get("hand").row.state == "in_progress"


def test_a_claim_without_id_takes_the_best_and_each_actor_another(agent, bob):
    for name in ("a", "b"):
        add(agent, name)
    add(agent, "first", priority=0)
    assert [agent.claim().row.task.id, bob.claim().row.task.id, agent.claim().row.task.id] == ["first", "a", "b"]


def test_a_stale_task_that_was_chosen_for_its_own_holder_is_granted_anew(agent, store, clock):
    add(agent, "t")
    agent.claim("t", ttl=1)
    clock.sleep(minutes=2)
    view = store.read()
    again = rules.claim(view, agent.actor, view.get("t"), None, "now", anew=True)
    assert (again.already, again.task.token, again.task.attempts) == (False, "t#2", 1)


def steal(old, new, clock):
    old.claim("t", ttl=15)
    new.claim("t", steal=True, reason="it hangs")


def take_over(old, new, clock):
    old.claim("t", ttl=15)
    clock.sleep(minutes=16)
    assert new.claim("t").notices == ("taken over from agent, whose lease ran out",)


@pytest.mark.parametrize("succeed", [steal, take_over])
@pytest.mark.parametrize("name", ["t", "t#1"])
def test_a_superseded_holder_is_told_its_successor_and_changes_nothing(agent, bob, store, clock, succeed, name):
    add(agent, "t")
    add(agent, "u")
    succeed(agent, bob, clock)
    calls = [
        (agent.complete, {}),
        (agent.release, {}),
        (agent.heartbeat, {}),
        (agent.hold, {}),
        (agent.update, {"edit": Edit(subject="mine")}),
        (agent.update, {"edit": Edit(add_blocked_by=("u",))}),
        (agent.ask, {"question": "Why?"}),
    ]
    for call, more in calls:
        error = refused("superseded", call, name, **more, store=store)
        assert (error.by, error.exit) == (("bob",), 5)
        assert "bob" in error.message
    bob.complete("t")
    assert refused("superseded", agent.complete, name, store=store).by == ("bob",)
    assert task(agent, "t").owner == "bob"


def test_a_superseded_holder_is_told_even_when_its_successor_gave_up(agent, bob, store, clock):
    add(agent, "t")
    steal(agent, bob, clock)
    bob.release("t")
    assert refused("superseded", agent.complete, "t", store=store).by == ("bob",)
    agent.claim("t")
    agent.release("t")
    refused("not_claimed", agent.complete, "t", store=store)  # its own latest claim was not taken from it


def test_the_epoch_of_a_claim_that_ended_by_hand_is_superseded_by_the_next(agent, bob, store):
    add(agent, "t")
    agent.claim("t")
    with store.write() as txn:
        txn.put(txn.get("t").replace(status="pending", owner=None))
    bob.claim("t")
    refused("superseded", agent.complete, "t", store=store)


def test_a_claim_that_has_ended_says_nothing_of_what_was_taken_by_hand_since(agent, board_for, bob, store, clock):
    add(agent, "t")
    agent.claim("t", ttl=1)
    agent.release("t")
    with store.write() as txn:
        txn.put(txn.get("t").replace(status="in_progress", owner="mallory"))
    clock.sleep(minutes=60)
    assert agent.get("t").row.state == "in_progress"
    refused("not_owner", agent.complete, "t", store=store)
    refused("already_claimed", agent.claim, "t", store=store)
    board_for("mallory").complete("t")


def test_attempts_are_counted_to_the_maximum_and_forgiven_by_a_person_only(agent, bob, user, store, clock):
    add(agent, "t")
    agent.claim("t", ttl=1)
    clock.sleep(minutes=2)
    assert agent.claim("t", ttl=1).already, "its own lapsed claim is still its own by id"
    agent.release("t", failed=True)
    agent.claim("t", ttl=1)
    agent.release("t", failed=True, reason="no luck")
    agent.claim("t", ttl=1)
    assert task(agent, "t").attempts == 2
    clock.sleep(minutes=2)
    assert agent.get("t").row.state == "held"
    assert "3 attempts" in refused("held", bob.claim, "t", store=store).message
    refused("waiting_on_person", bob.claim, store=store)
    assert agent.next().exit == 7
    user.resume("t")
    assert (task(agent, "t").status, task(agent, "t").attempts) == ("pending", 0)
    assert agent.claim("t").row.task.epoch == 4


# Unblocked


def test_a_diamond_is_unblocked_at_its_last_edge_only(agent):
    for name, *blockers in (["a"], ["b", "a"], ["c", "a"], ["d", "b", "c"]):
        add(agent, name, *blockers)
    assert finish(agent, "a") == ["b", "c"]
    assert finish(agent, "b") == []
    assert finish(agent, "c") == ["d"]


def test_what_was_startable_before_is_not_announced(agent, bob, user):
    add(agent, "a")
    add(agent, "free")
    add(agent, "busy", "a")
    add(agent, "held", "a")
    add(agent, "person", "a", owner="user")
    add(agent, "robot", "a", owner="robot-1")
    add(agent, "gone", "a")
    agent.cancel("gone")
    agent.hold("held", "later")
    done = agent.claim("a") and agent.complete("a")
    assert {row.task.id: row.state for row in done.unblocked} == {
        "busy": "ready", "held": "held", "person": "waiting", "robot": "ready",
    }  # fmt: skip
    bob.claim("busy")
    agent.reopen("a")
    assert finish(agent, "a") == ["held", "person", "robot"]  # busy is not pending


def test_repeating_a_completion_succeeds_and_announces_nothing(agent):
    add(agent, "a")
    add(agent, "b", "a")
    assert finish(agent, "a") == ["b"]
    again = agent.complete("a")
    assert (again.already, ids(again.unblocked)) == (True, [])


def test_parents_are_unblocked_by_their_last_child_done_or_cancelled(agent):
    add(agent, "p")
    for name in ("k1", "k2", "k3"):
        add(agent, name, parent="p")
    assert finish(agent, "k1", "k2") == []
    assert ids(agent.cancel("k3").unblocked) == ["p"]
    assert agent.get("p").row.state == "ready"


def test_cancelling_by_dropping_edges_frees_and_by_cascade_takes_along(agent):
    for name, *blockers in (["a"], ["b", "a"], ["c", "b"], ["x"], ["y", "x"], ["z", "y"]):
        add(agent, name, *blockers)
    add(agent, "p")
    agent.update("z", Edit(parent="p"))
    dropped = agent.cancel("a", drop_edges=True)
    assert (ids(dropped.unblocked), ids(dropped.also), task(agent, "b").blocked_by) == (["b"], [], ())
    taken = agent.cancel("x", cascade=True)
    assert (ids(taken.also), ids(taken.unblocked)) == (["y", "z"], ["p"])
    assert task(agent, "z").blocked_by == ("y",)
    assert agent.cancel("x").already


def test_unblock_answers_what_it_freed(agent):
    add(agent, "a")
    add(agent, "b")
    add(agent, "t", "a", "b")
    assert ids(agent.update("t", Edit(remove_blocked_by=("a",))).unblocked) == []
    assert ids(agent.update("t", Edit(remove_blocked_by=("b",))).unblocked) == ["t"]
    add(agent, "k", parent="t")
    assert ids(agent.update("k", Edit(parent="")).unblocked) == ["t"]


# A holder that adds work in front of its task


def test_a_holder_that_adds_a_blocker_a_child_or_a_question_gives_the_task_back(agent, store):
    for name in ("block", "child", "move", "ask", "new", "kid"):
        add(agent, name, owner="agent" if name == "ask" else "")
    for name in ("block", "child", "move", "ask"):
        agent.claim(name)
    told = agent.update("block", Edit(add_blocked_by=("new",)))
    assert "your claim on it was released" in told.notices[0]
    made = agent.create([Draft("a part", parent="child")])
    assert "child waits now" in made.notices[0]
    assert "move waits now" in agent.update("kid", Edit(parent="move")).notices[0]
    asked = agent.ask("ask", "Which?\tor what", ["this", "that"])
    assert asked.also[0].task.subject == "Which? or what"
    assert [task(agent, n).status for n in ("block", "child", "move", "ask")] == ["pending"] * 4
    assert task(agent, "ask").owner == "agent", "its reservation is restored"
    assert not any(store.read().claim(n).open for n in ("block", "child", "move", "ask"))


def test_what_somebody_else_adds_leaves_the_claim_and_is_met_at_done(agent, bob, store):
    for name in ("t", "new"):
        add(agent, name)
    agent.claim("t")
    bob.update("t", Edit(add_blocked_by=("new",)))
    bob.create([Draft("a part", id="part", parent="t")])
    question = bob.ask("t", "Which?").also[0].task.id
    assert task(agent, "t").owner == "agent"
    assert refused("blocked", agent.complete, "t", store=store).by == ("new", question, "part")


def test_adding_finished_work_in_front_keeps_the_claim(agent):
    for name in ("done", "t"):
        add(agent, name)
    finish(agent, "done")
    agent.claim("t")
    assert agent.update("t", Edit(add_blocked_by=("done",))).row.task.status == "in_progress"


# Reservations and repetition


@pytest.mark.parametrize("end", ["release", "complete", "cancel", "hold"])
def test_release_and_reopen_restore_the_reservation_from_before_the_claim(board_for, agent, end):
    worker = board_for("robot/1")
    for name, owner in (("mine", "robot"), ("free", "")):
        add(agent, name, owner=owner)
        worker.claim(name)
        getattr(worker, end)(name)
        if end in ("complete", "cancel"):
            assert agent.reopen(name).row.task.owner == (owner or None)
        assert task(agent, name).owner == (owner or None)
        assert agent.reopen(name).already


def test_reopening_what_was_cancelled_without_a_claim_keeps_for_whom_it_is(agent):
    add(agent, "t", owner="robot")
    agent.cancel("t")
    assert agent.reopen("t").row.task.owner == "robot"


def test_reopen_names_what_relied_on_it_through_finished_work_and_parents(agent):
    add(agent, "p")
    for name, *blockers in (["a"], ["b", "a"], ["c", "b"], ["d", "c"]):
        add(agent, name, *blockers, parent="p" if name == "a" else "")
    finish(agent, "a", "b")
    agent.claim("c")
    agent.claim("p")
    reopened = agent.reopen("a")
    assert set(ids(reopened.also)) == {"b", "c", "p"}
    assert reopened.row.task.completed_at is None
    refused("blocked", agent.complete, "p")


def test_every_verb_of_a_holder_can_be_repeated(agent, user, store):
    add(agent, "t")
    agent.claim("t")
    agent.release("t", failed=True)
    before = everything(store)
    assert agent.release("t", failed=True).already
    assert everything(store) == before
    agent.claim("t")
    agent.complete("t#2", result="done")
    before = everything(store)
    assert agent.complete("t#2", result="done").already
    assert agent.complete("t").already
    add(agent, "q", owner="user")
    user.answer("q", "yes")
    assert user.answer("q", "yes").already
    assert user.complete("q").already
    refused("already_resolved", user.answer, "q", "no")
    assert agent.update("t", Edit(subject="task t")).already


def test_a_holder_that_gave_a_task_back_did_not_complete_what_a_person_answered(user, agent, store):
    add(agent, "q")
    agent.claim("q")
    agent.ask("q", "Which?")
    question = agent.get("q").blockers[0].task.id
    agent.update(question, Edit(owner=""))
    agent.claim(question)
    agent.release(question)
    user.answer(question, "this")
    refused("already_resolved", agent.complete, question, store=store)
    assert user.complete(question).already


def test_a_key_makes_creation_repeatable_also_within_a_plan(agent):
    first = agent.create([Draft("s", key="k")])
    again = agent.create([Draft("other words", key=" k ")])
    assert ids(again.rows) == ids(first.rows)
    assert again.already == tuple(ids(first.rows))
    twice = agent.create([Draft("s", key="n", ref="a"), Draft("s", key="n", ref="b"), Draft("t", blocked_by=("b",))])
    made = ids(twice.rows)
    assert made[0] == made[1]
    assert twice.rows[2].task.blocked_by == (made[0],)


def test_a_decision_is_answered_whatever_hold_is_on_it_and_a_claimed_one_too(user, agent):
    for name in ("held", "claimed"):
        add(agent, name, owner="user")
        add(agent, f"after-{name}", name)
    agent.hold("held", "not yet")
    answered = user.answer("held", "go")
    assert (answered.row.task.hold, ids(answered.unblocked)) == (None, ["after-held"])
    user.claim("claimed")
    done = user.complete("claimed", result="go")
    assert (done.row.task.answer, done.row.task.owner, ids(done.unblocked)) == ("go", "user", ["after-claimed"])


def test_hold_gives_back_ones_own_claim_and_counts_a_lapsed_one(agent, bob, clock, user):
    add(agent, "t")
    agent.claim("t", ttl=1)
    assert agent.hold("t", "wait").row.task.status == "pending"
    user.resume("t")
    agent.claim("t", ttl=1)
    clock.sleep(minutes=2)
    assert bob.hold("t", "wait").row.task.attempts == 1
    refused("held", agent.claim, "t")


def test_edit_changes_fields_notes_and_metadata(agent):
    add(agent, "t", labels=("a",))
    agent.update("t", Edit(metadata={"k": "v", "x": "y"}, note="one", labels=("b", "b"), priority=0, owner="robot"))
    edited = agent.update("t", Edit(metadata={"k": ""}, note="two")).row.task
    assert (edited.metadata, edited.labels, edited.priority, edited.owner) == ({"x": "y"}, ("b",), 0, "robot")
    assert [(note["by"], note["text"]) for note in edited.notes] == [("agent", "one"), ("agent", "two")]
    assert edited.rev == 3
