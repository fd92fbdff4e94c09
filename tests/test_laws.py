"""Laws of the core over random boards (DESIGN section 5: I6, I7, I8 and what follows from one state function)."""

from conftest import Clock, ids, open_board
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taskwall.core.errors import Refused
from taskwall.core.model import LAPSED, LIVE, Claim, Settings, Task
from taskwall.core.rules import Draft, Edit
from taskwall.core.state import STATES, actionable, find_cycle, is_actionable, open_waits, state, waits_for, waits_in
from taskwall.core.view import View
from taskwall.stores.memory import MemoryStore

NAMES = [f"t{n}" for n in range(8)]
PEOPLE = Settings(people=("ann",))
ACTORS = ["user", "ann", "robot", "robot/1", "agent"]

names = st.sampled_from(NAMES)
actors = st.sampled_from(ACTORS)


@st.composite
def boards(draw, cycles=True):
    """A store with a few tasks in any state, edges among them, some to what does not exist or cannot be read."""
    tasks, claims = [], {}
    for number, name in enumerate(NAMES[: draw(st.integers(1, 8))]):
        before, behind = (NAMES, NAMES) if cycles else (NAMES[:number], NAMES[number + 1 :])
        some = st.lists(st.sampled_from([*before, "gone"]), max_size=3, unique=True)
        status = draw(st.sampled_from(["pending", "pending", "pending", "in_progress", "completed", "cancelled"]))
        owner = draw(st.sampled_from([None, None, *ACTORS])) if status == "pending" else draw(actors)
        tasks.append(
            Task(
                name,
                f"task {name}",
                status=status,
                owner=owner,
                blocked_by=tuple(draw(some)),
                parent=draw(st.sampled_from([None, None, *behind])),
                priority=draw(st.integers(1, 2)),
                hold=draw(st.sampled_from([None, None, None, "wait"])) if status == "pending" else None,
                question=draw(st.sampled_from([None, None, "which?"])) if owner in ("user", "ann") else None,
                attempts=draw(st.sampled_from([0, 0, 2, 3])) if status == "pending" else 0,
                epoch=int(status == "in_progress"),
                flaw="empty" if status == "pending" and draw(st.integers(0, 9)) == 0 else None,
                rev=1,
            )
        )
        if status == "in_progress":
            ttl = draw(st.sampled_from([None, 15, -1]))
            claims[name] = Claim(name, 1, str(owner), str(owner), "2026-01-01", ttl=ttl)
    if not cycles:
        tasks = draw(st.permutations(tasks))
    clock = Clock()
    store = MemoryStore(tasks, PEOPLE, monotonic=clock.monotonic)
    with store.write() as txn:
        for claim in claims.values():
            txn.record(claim)
    return store


requests = st.one_of(
    st.tuples(st.just("claim"), st.one_of(st.none(), names)),
    st.tuples(st.just("steal"), names),
    st.tuples(
        st.sampled_from(["complete", "release", "hold", "resume", "cancel", "cascade", "drop", "reopen", "ask"]), names
    ),
    st.tuples(st.just("answer"), names),
    st.tuples(st.sampled_from(["block", "unblock", "move"]), names, names),
    st.tuples(st.just("leave"), names),
    st.tuples(st.just("create"), st.lists(names, max_size=3), st.one_of(st.just(""), names)),
)


def perform(board, verb, *arguments):
    """One request in the words above."""
    calls = {
        "steal": lambda name: board.claim(name, steal=True, reason="test"),
        "cascade": lambda name: board.cancel(name, cascade=True),
        "drop": lambda name: board.cancel(name, drop_edges=True),
        "ask": lambda name: board.ask(name, "which?"),
        "answer": lambda name: board.answer(name, "this"),
        "block": lambda name, by: board.update(name, Edit(add_blocked_by=(by,))),
        "unblock": lambda name, by: board.update(name, Edit(remove_blocked_by=(by,))),
        "move": lambda name, parent: board.update(name, Edit(parent=parent)),
        "leave": lambda name: board.update(name, Edit(parent="")),
        "create": lambda blockers, parent: board.create([Draft("new", blocked_by=tuple(blockers), parent=parent)]),
    }
    return calls.get(verb, lambda *a: getattr(board, verb)(*a))(*arguments)


def attempt(store, actor, request):
    """The answer, or None when refused."""
    try:
        return perform(open_board(store, actor), *request)
    except Refused:
        return None


def content(store):
    view = store.read()
    return {t.id: (t, view.claim(t.id)) for t in view}, store.events()


@given(boards(), actors)
def test_state_is_total_deterministic_and_the_one_gate_of_what_is_actionable(store, actor):
    view = store.read()
    shuffled = View(list(view)[::-1], {t.id: c for t in view if (c := view.claim(t.id))}, view.settings)
    acting = open_board(store, actor).actor
    for task in view:
        now = state(view, task)
        assert now.name in STATES
        assert now == state(shuffled, task)
        assert bool(now.reasons) == (
            now.name not in ("completed", "cancelled") and (now.name != "ready" or bool(task.owner))
        )
        if is_actionable(view, task, acting):
            assert now.name in ("ready", "waiting", "stale")
            assert not open_waits(view, task)
        assert waits_in(view, task, now) == waits_for(view, task.id)
    assert ids(actionable(view, acting)) == ids(actionable(shuffled, acting))


@given(boards(), actors)
def test_next_list_and_claim_agree(store, actor):
    board = open_board(store, actor)
    offered = ids(board.next(50).rows)
    listed = {row.task.id: row.state for row in board.list(everything=True).rows}
    assert all(listed[name] in ("ready", "waiting", "stale") for name in offered)
    assert listed == {t.id: state(store.read(), t).name for t in store.read()}
    answer = attempt(store, actor, ("claim", None))
    assert (answer.row.task.id if answer else None) == (offered[0] if offered else None)


@pytest.mark.slow
@given(boards(), actors, names)
def test_what_is_offered_is_granted_by_id_and_what_is_not_is_refused(store, actor, name):
    view = store.read()
    task, offered = view.get(name), name in ids(open_board(store, actor).next(50).rows)
    mine = task and task.status == "in_progress" and task.owner == actor
    answer = attempt(store, actor, ("claim", name))
    assert bool(answer) == bool(offered or mine)
    if answer and not answer.already:
        assert answer.row.task.epoch == task.epoch + 1


@pytest.mark.slow
@given(boards(), actors, requests)
def test_I6_when_a_claim_is_granted_or_a_task_completed_every_blocker_is_completed(store, actor, request):
    before = store.read()
    attempt(store, actor, request)
    after = store.read()
    for task in after:
        old = before.get(task.id)
        granted = task.epoch > (old.epoch if old else 0)
        if granted or (task.status == "completed" and old.status != "completed"):
            assert all(after.get(i).status == "completed" and not after.get(i).flaw for i in after.blockers(task))
            assert all(child.closed for child in after.children(task.id))


@pytest.mark.slow
@given(boards(cycles=False), actors, st.lists(requests, min_size=1, max_size=6))
def test_I7_no_accepted_request_closes_a_cycle(store, actor, steps):
    for request in steps:
        attempt(store, actor, request)
        view = store.read()
        assert find_cycle(view, ids(view)) is None


@pytest.mark.slow
@given(boards(cycles=False), names, names)
def test_I7_exactly_the_edges_that_close_a_cycle_are_refused_for_one(store, name, blocker):
    view = store.read()
    reached, todo = set(), [blocker]
    while todo:
        node = todo.pop()
        if node not in reached:
            reached.add(node)
            todo += waits_for(view, node)
    task = view.get(name)
    if task and blocker in view and not task.closed and not task.flaw and blocker not in task.blocked_by:
        try:
            open_board(store, str(task.owner or "user")).update(name, Edit(add_blocked_by=(blocker,)))
            assert name not in reached
        except Refused as refusal:
            assert refusal.code == "cycle"
            assert name in reached


@given(boards(), actors, requests)
def test_I8_unblocked_is_exact(store, actor, request):
    before = store.read()
    answer = attempt(store, actor, request)
    after = store.read()
    wanted = {
        t.id
        for t in after
        if (old := before.get(t.id)) and t.status == "pending" and not t.flaw
        and open_waits(before, old) and not open_waits(after, t)
    }  # fmt: skip
    assert set(ids(getattr(answer, "unblocked", ()))) == wanted


@given(boards(), names)
def test_completing_a_task_changes_nobody_elses_rank(store, name):
    before = store.read()
    task = before.get(name)
    if task and not task.closed and not open_waits(before, task) and find_cycle(before, ids(before)) is None:
        after = View([t if t.id != name else t.replace(status="completed") for t in before], {}, before.settings)
        assert all(before.rank(t.id) == after.rank(t.id) for t in before if t.id != name)


@given(boards(), actors, requests)
def test_a_refused_request_changes_nothing_and_a_repeated_one_little(store, actor, request):
    before = content(store)
    answer = attempt(store, actor, request)
    if answer is None or getattr(answer, "already", False) is True:
        assert content(store) == before
    elif request[0] in (
        "complete",
        "release",
        "resume",
        "cancel",
        "cascade",
        "drop",
        "reopen",
        "answer",
        "block",
        "unblock",
        "move",
    ):
        kept = content(store)
        attempt(store, actor, request)
        assert content(store)[0].keys() == kept[0].keys()
        assert {i: t for i, (t, _) in content(store)[0].items()} == {i: t for i, (t, _) in kept[0].items()}


@given(boards(), st.lists(st.tuples(actors, requests), min_size=2, max_size=8))
@settings(max_examples=50)
def test_I4_epochs_grow_and_an_epoch_has_one_holder(store, steps):
    holders = {}
    for actor, request in steps:
        before = store.read()
        attempt(store, actor, request)
        after = store.read()
        for task in after:
            old, claim = before.get(task.id), after.claim(task.id)
            assert task.epoch >= (old.epoch if old else 0)
            assert task.rev >= (old.rev if old else 0)
            if task.status == "in_progress":
                assert task.epoch == claim.epoch
                assert holders.setdefault(task.token, (claim.actor, claim.session)) == (claim.actor, claim.session)
                assert claim.lease in (LIVE, LAPSED, "by hand")
