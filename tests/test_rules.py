"""Every refusal of DESIGN section 4 once, with what it tells; nothing changes when a request is refused."""

import pytest
from conftest import add, ids, open_board, open_store

from taskwall.core import errors
from taskwall.core.actions import legal_actions
from taskwall.core.model import MAX_SUBJECT, Settings, Task
from taskwall.core.rules import Draft, Edit
from taskwall.stores.memory import MemoryStore


def everything(store):
    """All that a store holds, to compare before and after."""
    view = store.read()
    return ({t.id: (t, view.claim(t.id)) for t in view}, store.events())


def refused(code, call, *arguments, store=None, **more):
    """The refusal of this call, which must have this code and leave the store as it was."""
    before = everything(store) if store else None
    with pytest.raises(errors.Refused) as found:
        call(*arguments, **more)
    assert found.value.code == code, found.value
    assert before is None or everything(store) == before
    assert found.value.next, "no way out is told"
    return found.value


@pytest.fixture
def user(board_for):
    return board_for("user")


@pytest.fixture
def agent(board_for):
    return board_for("agent")


# create


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"subject": " "}, "empty"),
        ({"subject": "x" * (MAX_SUBJECT + 1)}, "201 characters"),
        ({"subject": "two\nlines"}, "one line"),
        ({"subject": "bell\a"}, "one line"),
        ({"subject": "half \ud800 a character"}, "UTF-8"),
        ({"description": "x" * 70_000}, "bytes"),
        ({"priority": 5}, "priority is 5"),
        ({"id": ".."}, "id"),
        ({"id": "a/b"}, "id"),
        ({"id": "-m"}, "begins like an option"),
        ({"id": "nul.json"}, "id"),
        ({"id": "x" * 65}, "id"),
        ({"id": "there"}, "exists already"),
        ({"products": ("../secret",)}, "inside the worktree"),
        ({"products": ("/etc/passwd",)}, "inside the worktree"),
        ({"products": ("a/../../b",)}, "inside the worktree"),
    ],
)
def test_invalid_tasks_are_not_created(agent, store, fields, words):
    add(agent, "there")
    assert words in refused("invalid", agent.create, [Draft(**{"subject": "s", **fields})], store=store).message


def test_an_unknown_blocker_is_refused_and_near_ids_are_offered(agent, store):
    add(agent, "database-schema")
    error = refused("unknown_task", agent.create, [Draft("s", blocked_by=("databse-schema",))], store=store)
    assert error.by == ("database-schema",)
    assert "did you mean database-schema?" in error.next


def test_a_plan_with_one_bad_task_creates_nothing(agent, store):
    good, bad = Draft("good", ref="a"), Draft("bad", blocked_by=("a", "nowhere"))
    error = refused("unknown_task", agent.create, [good, bad], store=store)
    assert "'nowhere' on this board, nor a ref of this plan: 'bad' names it" in error.message
    near = refused("unknown_task", agent.create, [Draft("good", ref="pipes"), Draft("bad", blocked_by=("pipe",))])
    assert near.next == "did you mean pipes of this plan?"
    refused("invalid", agent.create, [good, Draft("bad", ref="a")], store=store)
    refused("invalid", agent.create, [], store=store)


def test_a_plan_may_name_later_tasks_by_ref_but_not_in_a_ring(agent, store):
    made = agent.create([Draft("b", ref="b", blocked_by=("a",)), Draft("a", ref="a"), Draft("c", parent="a")])
    b, a, c = (row.task for row in made.rows)
    assert (b.blocked_by, c.parent) == ((a.id,), a.id)
    assert a.created_at > b.created_at, "times increase along a plan"
    ring = [Draft(n, id=f"id-{n}", ref=n, blocked_by=(m,)) for n, m in ("xy", "yz", "zx")]
    error = refused("cycle", agent.create, ring, store=store)
    assert error.by[0] == error.by[-1]
    assert set(error.by) == {"id-x", "id-y", "id-z"}
    error = refused("cycle", agent.create, [d.replace(id="") for d in ring], store=store)
    assert set(error.by) == {"x", "y", "z"}, "ids that were never given are not told"


def test_a_task_cannot_block_itself(agent, store):
    refused("cycle", agent.create, [Draft("s", id="x", blocked_by=("x",))], store=store)
    refused("cycle", agent.create, [Draft("s", id="x", parent="x")], store=store)
    add(agent, "x")
    refused("cycle", agent.update, "x", Edit(add_blocked_by=("x",)), store=store)
    refused("cycle", agent.update, "x", Edit(parent="x"), store=store)


def test_cycles_over_blockers_and_children_together_are_refused_with_their_path(agent, store):
    add(agent, "parent")
    add(agent, "child", parent="parent")
    error = refused("cycle", agent.update, "child", Edit(add_blocked_by=("parent",)), store=store)
    assert error.by == ("child", "parent", "child")
    assert "child → parent → child" in error.message
    refused("cycle", agent.create, [Draft("s", parent="child", blocked_by=("parent",))], store=store)


def test_a_new_task_whose_id_was_a_dangling_reference_cannot_close_a_cycle():
    store = MemoryStore([Task("old", "waits for what is not there", blocked_by=("X",))])
    agent = open_board(store)
    refused("cycle", agent.create, [Draft("s", id="X", blocked_by=("old",))], store=store)
    assert add(agent, "X") == "X"


def test_an_edge_that_only_the_blockers_file_names_counts_for_a_new_task_too():
    store = MemoryStore([Task("old", "s", blocked_by=("X",), blocks=("X",), dialect="numbered")])
    error = refused("cycle", open_board(store).create, [Draft("s", id="X")], store=store)
    assert error.by == ("X", "old", "X")


def test_a_cycle_that_came_by_merge_does_not_forbid_mending_it_edge_by_edge():
    edges = {"a": ("b", "c"), "b": ("a",), "c": ("a",), "d": ()}
    agent = open_board(MemoryStore([Task(name, "s", blocked_by=blockers) for name, blockers in edges.items()]))
    agent.update("a", Edit(remove_blocked_by=("b",)))
    agent.update("a", Edit(add_blocked_by=("d",)))
    assert agent.update("a", Edit(remove_blocked_by=("c",))).row.task.blocked_by == ("d",)


def test_a_finished_parent_takes_no_new_children(agent, store):
    add(agent, "p")
    agent.claim("p")
    agent.complete("p")
    refused("already_resolved", agent.create, [Draft("s", parent="p")], store=store)


# claim


def test_claiming_what_somebody_holds_names_them(agent, board_for, store):
    add(agent, "t")
    board_for("bob").claim("t", ttl=15)
    error = refused("already_claimed", agent.claim, "t", store=store)
    assert (error.by, error.exit) == (("bob",), 5)
    refused("invalid", agent.claim, "t", steal=True, store=store)


def test_the_fallback_user_is_not_told_that_a_task_is_already_theirs(board_for, store):
    nobody = board_for("user", named=False)
    add(nobody, "t")
    nobody.claim("t")
    refused("already_claimed", nobody.claim, "t", store=store)


def test_finished_blocked_held_reserved_and_unknown_tasks_are_not_claimed(agent, user, store):
    for name in ("done", "open", "held", "reserved", "cancelled", "broken-later"):
        add(agent, name, owner="robot" if name == "reserved" else "")
    add(agent, "blocked", "open", subject="blocked one")
    agent.claim("done")
    agent.complete("done")
    agent.hold("held", "wait for Ann")
    agent.cancel("cancelled")
    assert refused("already_resolved", agent.claim, "done", store=store).by == ("agent",)
    assert refused("already_resolved", agent.claim, "cancelled", store=store).by == ()
    error = refused("blocked", agent.claim, "blocked one", store=store)
    assert (error.message.splitlines()[0], error.by, error.exit) == ("Blocked by: open", ("open",), 4)
    assert "wait for Ann" in refused("held", agent.claim, "held", store=store).message
    assert refused("reserved", agent.claim, "reserved", store=store).by == ("robot",)
    assert refused("unknown_task", agent.claim, "nowhere", store=store).exit == 3


def test_an_id_that_fits_several_tasks_is_refused_with_them(agent, store):
    add(agent, "task_aaaa1")
    add(agent, "task_aaaa2")
    error = refused("ambiguous_id", agent.claim, "task_aaaa", store=store)
    assert (set(error.by), error.exit) == ({"task_aaaa1", "task_aaaa2"}, 3)


@pytest.mark.parametrize("kind", ["memory", "files"])
def test_a_session_may_hold_no_more_than_the_board_allows(kind, tmp_path, clock):
    store = open_store(kind, tmp_path, clock, Settings(claims_per_session=1, durability="fast"))
    agent, other = open_board(store, session="s1", clock=clock), open_board(store, session="s2", clock=clock)
    for name in ("a", "b", "c"):
        add(agent, name)
    agent.claim("a")
    assert refused("busy", agent.claim, "b", store=store).by == ("a",)
    refused("busy", agent.claim, store=store)
    assert agent.claim("a").already
    other.claim("b")
    agent.complete("a")
    agent.claim("c")


def test_claim_without_id_says_why_there_is_nothing(agent, user, store):
    assert refused("nothing_actionable", agent.claim, store=store).exit == 6
    add(agent, "q", owner="user")
    error = refused("waiting_on_person", agent.claim, store=store)
    assert (error.exit, error.by) == (7, ("user",))
    user.claim("q")
    add(agent, "t", "q")
    add(agent, "r", owner="robot")
    error = refused("nothing_actionable", agent.claim, store=store)
    assert "reserved for robot: r" in error.message


# complete, release, update, heartbeat


def test_only_the_holder_completes_releases_and_beats(agent, board_for, store):
    add(agent, "t")
    for verb in (agent.complete, agent.release, agent.heartbeat):
        refused("not_claimed", verb, "t", store=store)
    board_for("bob").claim("t")
    for verb in (agent.complete, agent.release, agent.heartbeat):
        taken = refused("not_owner", verb, "t", store=store)
        assert taken.by == ("bob",) and "`taskwall claim t --steal" in taken.next
    refused("invalid", board_for("bob").heartbeat, "t", ttl=-5, store=store)
    twin = board_for("bob", session="another")
    refused("not_owner", twin.complete, "t", store=store)


def test_nobody_completes_over_an_open_blocker_or_child(agent, board_for, store):
    for name in ("t", "late"):
        add(agent, name)
    agent.claim("t")
    board_for("bob").update("t", Edit(add_blocked_by=("late",)))
    add(board_for("bob"), "child", parent="t")
    assert refused("blocked", agent.complete, "t", store=store).by == ("late", "child")


def test_promised_products_must_exist(agent, store, tmp_path):
    add(agent, "t", products=("out/*.txt",))
    agent.claim("t")
    error = refused("products_missing", agent.complete, "t", products=["more.md"], store=store)
    assert error.by == ("out/*.txt", "more.md")
    (tmp_path / "out").mkdir()
    (tmp_path / "out/a.txt").write_text("four")
    (tmp_path.parent / "outside").touch()
    refused("invalid", agent.complete, "t", products=["../outside"], store=store)
    assert agent.complete("t").row.task.evidence == {"products": {"out/a.txt": 4}}


def test_checks_are_not_skipped_but_refused_until_a_person_trusts_them(agent, user, store):
    add(agent, "t", checks=("make test",))
    add(agent, "q", checks=("make test",), owner="user")
    agent.claim("t")
    assert refused("untrusted", agent.complete, "t", store=store).by == ("make test",)
    refused("untrusted", user.complete, "q", store=store)
    user.update("t", Edit(checks=()))
    agent.complete("t")


def test_only_a_person_takes_back_what_a_task_promised(agent, board_for, user, store):
    planner = board_for("planner")
    add(planner, "t", checks=("make test",), products=("a.txt",))
    planner.update("t", Edit(checks=("make tests",)))  # its own, which nobody has begun
    for other in (agent, board_for("planner/1")):
        refused("reserved", other.update, "t", Edit(checks=()), store=store)
    planner.claim("t")
    for edit in (Edit(checks=()), Edit(checks=("true",)), Edit(products=())):
        refused("reserved", planner.update, "t", edit, store=store)
    planner.release("t")
    refused("reserved", planner.update, "t", Edit(checks=()), store=store)
    agent.update("t", Edit(checks=("make tests", "make lint")))
    user.update("t", Edit(checks=(), products=()))
    agent.claim("t")
    agent.complete("t")


def test_a_finished_task_is_completed_by_nobody_else(agent, board_for, store):
    add(agent, "t")
    agent.claim("t")
    agent.complete("t")
    refused("already_resolved", board_for("bob").complete, "t", store=store)
    refused("not_claimed", board_for("bob").release, "t", store=store)
    refused("already_resolved", board_for("bob").update, "t", Edit(add_blocked_by=(add(agent, "u"),)))
    refused("invalid", agent.update, "t", Edit(owner="bob"), store=store)


# persons, ends


def test_decisions_are_answered_by_the_right_persons_only(tmp_path, clock):
    store = open_store("memory", tmp_path, clock, Settings(people=("ann", "bea")))
    agent, user, ann, bea = (open_board(store, name, clock=clock) for name in ("agent", "user", "ann", "bea"))
    add(agent, "for-ann", owner="ann")
    for name in ("anybody", "anybody2"):
        add(agent, name, owner="user")
    add(agent, "work")
    for board in (agent, user, bea, open_board(store, "ann/1", clock=clock)):
        assert refused("reserved", board.answer, "for-ann", "yes", store=store).by == ("ann",)
    refused("reserved", agent.answer, "anybody", "yes", store=store)
    refused("not_claimed", agent.complete, "anybody", store=store)
    refused("invalid", user.answer, "work", "yes", store=store)
    assert ann.answer("for-ann", "yes").row.task.answer == "yes"
    assert ann.answer("anybody", "yes").row.task.owner == "ann"
    assert user.complete("anybody2", result="fine").row.task.answer == "fine"


def test_a_question_needs_an_answer_and_waits_for_its_own_blockers(agent, user, store):
    add(agent, "t")
    question = agent.ask("t", "Which?").also[0].task.id
    refused("invalid", user.answer, question, "  ", store=store)
    refused("invalid", user.complete, question, store=store)
    add(agent, "report")
    agent.update(question, Edit(add_blocked_by=("report",)))
    refused("blocked", user.answer, question, "that", store=store)
    refused("invalid", agent.ask, "t", " ", store=store)


def test_an_agent_goes_round_no_decision_but_a_question_of_its_own(agent, board_for, user, store):
    bob = board_for("bob")
    add(agent, "t")
    asked = bob.ask("t", "Which?").also[0].task.id
    add(user, "sign", owner="user")
    add(agent, "after", "sign")
    add(user, "first")
    for decision, dependent in ((asked, "t"), ("sign", "after")):
        for edit in (
            Edit(owner=""),
            Edit(owner="agent"),
            Edit(parent="first"),
            Edit(subject="Which, A or A?"),
            Edit(description="A."),
        ):
            assert refused("reserved", agent.update, decision, edit, store=store).by == ("user",)
        refused("reserved", agent.update, dependent, Edit(remove_blocked_by=(decision,)), store=store)
        for how in ({}, {"cascade": True}, {"drop_edges": True}):
            refused("reserved", agent.cancel, decision, store=store, **how)
        agent.update(decision, Edit(note="A is cheaper", priority=1, labels=("money",)))
    agent.update("sign", Edit(add_blocked_by=("first",)))
    refused("reserved", agent.cancel, "first", cascade=True, store=store)
    bob.update(asked, Edit(subject="Which one?"))
    assert ids(bob.update("t", Edit(remove_blocked_by=(asked,))).unblocked) == ["t"]
    bob.cancel(asked)
    add(agent, "deploy")
    user.update("deploy", Edit(owner="user"))
    refused("reserved", agent.update, "deploy", Edit(owner="agent"), store=store)
    refused("reserved", agent.update, "deploy", Edit(checks=("false",)), store=store)
    user.update("sign", Edit(owner="agent"))
    assert agent.cancel("sign", drop_edges=True).row.task.status == "cancelled"


def test_only_a_person_takes_an_answer_back(agent, user, store):
    add(agent, "t")
    asked = agent.ask("t", "Which?").also[0].task.id
    user.answer(asked, "A")
    assert "reopen" not in legal_actions(store.read(), store.read().find(asked), agent.actor)
    assert "ask_person" in refused("reserved", agent.reopen, asked, store=store).next
    assert agent.update("t", Edit(remove_blocked_by=(asked,))).row.task.blocked_by == ()
    assert user.reopen(asked).row.state == "waiting"
    user.cancel(asked)
    assert agent.reopen(asked).row.state == "waiting"
    for owner, refusal in (("user", "reserved"), ("", None)):
        task = add(user, f"for-{owner}", owner=owner)
        user.claim(task)
        user.complete(task)
        if refusal:
            refused(refusal, agent.reopen, task, store=store)
        else:
            assert agent.reopen(task).row.state == "ready"


def test_only_a_person_cancels_what_is_held(agent, user, store):
    add(agent, "t")
    user.hold("t", "not before legal says so")
    assert "not before legal says so" in refused("held", agent.cancel, "t", store=store).message
    assert user.cancel("t").row.task.status == "cancelled"


def test_only_a_person_resumes(agent, user, store):
    add(agent, "t")
    agent.hold("t", "why")
    refused("held", agent.resume, "t", store=store)
    assert user.resume("t").row.task.hold is None
    assert user.resume("t").already


def test_cancel_with_open_dependents_waits_to_be_told(agent, board_for, store):
    add(agent, "a")
    add(agent, "b", "a")
    assert refused("open_dependents", agent.cancel, "a", store=store).by == ("b",)
    refused("invalid", agent.cancel, "a", cascade=True, drop_edges=True, store=store)
    add(agent, "done")
    agent.claim("done")
    board_for("bob").update("b", Edit(add_blocked_by=("done",)))
    agent.complete("done")
    refused("already_resolved", agent.cancel, "done", store=store)


def test_an_agent_does_not_cancel_or_hold_what_another_works_on(agent, board_for, store, user):
    add(agent, "a")
    add(agent, "b", "a")
    board_for("bob").claim("a")
    refused("already_claimed", agent.cancel, "a", cascade=True, store=store)
    refused("not_owner", agent.hold, "a", store=store)
    assert ids(user.cancel("a", cascade=True).also) == ["b"]
    refused("already_resolved", board_for("bob").complete, "a", store=store)


def test_reopen_cannot_close_a_cycle(agent, store):
    add(agent, "b")
    add(agent, "a", "b")
    for name in ("b", "a"):
        agent.claim(name)
        agent.complete(name)
    assert ids(agent.reopen("b").also) == ["a"]
    agent.update("b", Edit(add_blocked_by=("a",)))  # a is finished: nothing waits in a ring
    assert refused("cycle", agent.reopen, "a", store=store).by == ("a", "b", "a")


@pytest.mark.parametrize(
    ("fields", "code"), [({"flaw": "t.json: empty"}, "unreadable"), ({"dialect": "arm"}, "read_only")]
)
def test_what_cannot_be_read_or_is_only_read_is_never_written(fields, code):
    store = MemoryStore([Task("t", "s", **fields), Task("after", "s", blocked_by=("t",))])
    user = open_board(store, "user")
    calls = [
        (user.claim, ()), (user.complete, ()), (user.release, ()), (user.update, (Edit(note="x"),)), (user.ask, ("?",)),
        (user.answer, ("x",)), (user.hold, ()), (user.resume, ()), (user.reopen, ()),
    ]  # fmt: skip
    for call, arguments in calls:
        refused(code, call, "t", *arguments, store=store)
    for choice in ({"cascade": True}, {"drop_edges": True}, {}):
        refused(code, user.cancel, "t", store=store, **choice)
