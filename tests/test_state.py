"""The state of a task row by row, the order of actionable tasks, and who must act when there are none."""

import pytest
from conftest import add, ids

from taskwall.core.errors import EXITS
from taskwall.core.model import BY_HAND, LAPSED, LIVE, Actor, Claim, Settings, Task
from taskwall.core.state import actionable, is_actionable, is_for, state, who_must_act, would_unblock
from taskwall.core.view import View

ME = Actor("agent", "s1")


def task(id="t", **fields):
    return Task(id, f"task {id}", **fields)


def view(*tasks, claims=(), **settings):
    return View(tasks, {claim.task: claim for claim in claims}, Settings(**settings))


def claim(id="t", lease=BY_HAND, actor="bob", **fields):
    return Claim(id, 1, actor, "s9", "2026-01-01", lease=lease, ttl=None if lease == BY_HAND else 15, **fields)


def held(id="t", **fields):
    return task(id, **{"status": "in_progress", "owner": "bob", "epoch": 1, **fields})


ROWS = [
    # Each row wins over the ones below it: all of what they look at is true of the task as well.
    ("completed", task(status="completed", hold="h", blocked_by=("gone",), owner="user"), None, []),
    ("cancelled", task(status="cancelled", hold="h", blocked_by=("gone",), owner="user"), None, []),
    ("broken", task(flaw="t.json:3: not JSON", hold="h", blocked_by=("gone",)), None, ["t.json:3: not JSON"]),
    ("in_progress", held(hold="h", blocked_by=("gone",)), LIVE, ["held by bob"]),
    ("in_progress", held(hold="h", blocked_by=("gone",)), BY_HAND, ["held by bob"]),
    ("in_progress", held(owner=None), None, ["held by somebody unnamed"]),
    ("held", held(hold="wait for Ann", blocked_by=("gone",)), LAPSED, ["wait for Ann"]),
    ("held", task(hold="wait for Ann", attempts=3, blocked_by=("gone",), owner="user"), None, ["wait for Ann"]),
    ("held", task(attempts=3, blocked_by=("gone",)), None, ["3 attempts failed; a person looks at it and resumes it"]),
    ("held", held(attempts=2), LAPSED, ["3 attempts failed; a person looks at it and resumes it"]),
    ("blocked", held(blocked_by=("gone",)), LAPSED, ["gone does not exist"]),
    ("blocked", task(blocked_by=("gone",), owner="user"), None, ["gone does not exist"]),
    ("stale", held(attempts=1), LAPSED, ["the lease of bob ran out"]),
    ("waiting", task(owner="user"), None, ["reserved for user"]),
    ("waiting", task(owner="ann"), None, ["reserved for ann"]),
    ("ready", task(owner="robot"), None, ["reserved for robot"]),
    ("ready", task(attempts=2), None, []),
]


@pytest.mark.parametrize(("name", "one", "lease", "reasons"), ROWS)
def test_the_rows_of_the_state_table_are_tried_in_order(name, one, lease, reasons):
    board = view(one, claims=[claim(lease=lease)] if lease else [], people=("ann",))
    now = state(board, one)
    assert (now.name, [reason.text for reason in now.reasons]) == (name, reasons)


def test_every_reason_why_a_task_is_blocked_is_named():
    waiting = task(blocked_by=("open", "busy", "cancelled", "gone", "bad", "done"))
    board = view(
        waiting,
        task("open"),
        held("busy"),
        task("cancelled", status="cancelled"),
        task("bad", flaw="empty"),
        task("done", status="completed"),
        task("child", parent="t"),
        task("finished child", parent="t", status="completed"),
        task("dropped child", parent="t", status="cancelled"),
    )
    assert [(r.kind, r.subject, r.how) for r in state(board, waiting).reasons] == [
        ("blocker", "open", "open"),
        ("blocker", "busy", "open"),
        ("blocker", "cancelled", "cancelled"),
        ("blocker", "gone", "missing"),
        ("blocker", "bad", "unreadable"),
        ("child", "child", "open"),
    ]
    assert "busy is in_progress by bob" in state(board, waiting).reasons[1].text


def test_nothing_flows_down_from_parent_to_child():
    board = view(task("parent", hold="h", owner="user"), task("child", parent="parent"))
    assert ids(actionable(board, ME)) == ["child"]


def test_an_edge_found_only_in_blocks_gates():
    board = view(task("a", blocks=("b", "gone"), dialect="claude-code"), task("b"))
    assert state(board, board.get("b")).name == "blocked"
    assert ids(board.dependents("a")) == ["b"]


def test_actionable_tasks_come_by_claim_then_priority_then_rank_then_age():
    board = view(
        held("stale", priority=0, created_at="2026-01-01"),
        task("late", created_at="2026-03-01"),
        task("early", created_at="2026-02-01"),
        task("t10"),
        task("t9"),
        task("t09"),
        task("urgent", priority=1, created_at="2026-04-01"),
        task("foundation", created_at="2026-05-01"),
        task("middle", blocked_by=("foundation",)),
        task("last", blocked_by=("middle",)),
        claims=[claim("stale", LAPSED)],
    )
    order = ["urgent", "foundation", "t09", "t9", "t10", "early", "late", "stale"]
    assert ids(actionable(board, ME)) == order


def test_completing_a_task_changes_nobody_elses_rank():
    tasks = [task("a"), task("b", blocked_by=("a",)), task("c", blocked_by=("b",)), task("p"), task("k", parent="p")]
    before, after = view(*tasks), view(tasks[0].replace(status="completed"), *tasks[1:])
    assert [before.rank(i) for i in "abck"] == [2, 1, 0, 1]
    assert [after.rank(i) for i in "bck"] == [1, 0, 1]


@pytest.mark.parametrize(
    ("owner", "name", "fits"),
    [
        (None, "agent", True),
        ("robot", "robot", True),
        ("robot", "robot/1", True),
        ("robot/1", "robot", False),
        ("robot", "robot1", False),
        ("user", "user", True),
        ("user", "human", True),
        ("human", "ann", True),
        ("ann", "ann", True),
        ("ann", "user", False),
        ("ann", "bea", False),
        ("user", "agent", False),
        ("user", "user/1", False),
        ("ann", "ann/1", False),
    ],
)
def test_a_reservation_is_for_its_owner_its_workers_agents_and_any_person_when_it_says_user(owner, name, fits):
    assert is_for(owner, Actor(name, name), Settings(people=("ann", "bea"))) is fits


def test_waiting_tasks_are_actionable_for_this_very_person_and_stale_ones_keep_their_reservation():
    mine = held("stale")
    board = view(task("t", owner="ann"), mine, claims=[claim("stale", LAPSED, reserved="robot")], people=("ann", "bea"))
    for name, wanted in {"ann": ["t"], "bea": [], "user": [], "robot/2": ["stale"], "agent": []}.items():
        assert [t.id for t in board if is_actionable(board, t, Actor(name, name))] == wanted


def test_completing_a_task_would_unblock_exactly_those_whose_last_open_blocker_it_is():
    tasks = [task("a"), task("b"), task("only", blocked_by=("a",)), task("both", blocked_by=("a", "b"))]
    board = view(*tasks, task("parent"), tasks[0].replace(parent="parent"))
    assert ids(would_unblock(board, board.get("a"))) == ["only", "parent"]


WAITS = [
    # exit, which list of Waiting, its entries, the board
    (0, None, [], [task("a", status="completed")]),
    (7, "decisions", [("user", "q")], [task("q", owner="user"), task("a", blocked_by=("q",))]),
    (7, "decisions", [("ann", "q")], [task("q", owner="ann")]),
    (7, "decisions", [("ann", "q")], [held("q", owner="ann")]),
    (7, "holds", [("h", "later")], [task("h", hold="later"), task("a", blocked_by=("h",))]),
    (8, "broken", [("x", "empty")], [task("x", flaw="empty"), task("a", blocked_by=("x",)), task("q", owner="user")]),
    (8, "broken", [("x", "empty")], [task("x", flaw="empty")]),
    (6, "holders", [("bob", "h")], [held("h"), task("a", blocked_by=("h",)), task("q", owner="user")]),
    (6, "reserved", [("robot", "r")], [task("r", owner="robot"), task("a", blocked_by=("r",))]),
    (6, "missing", [("gone", "a")], [task("a", blocked_by=("gone",)), task("q", owner="user")]),
    (6, "cancelled", [("c", "a")], [task("c", status="cancelled"), task("a", blocked_by=("c",))]),
    (6, "cycles", [("a", "b", "a")], [task("a", blocked_by=("b",)), task("b", parent="a", blocked_by=("a",))]),
    (6, "foreign", [("x", "arm")], [task("x", dialect="arm"), task("a", blocked_by=("x",)), task("q", owner="user")]),
    (6, "cycles", [("a", "a")], [task("a", blocked_by=("a",)), task("q", owner="user")]),
]


@pytest.mark.parametrize(("exit", "room", "entries", "tasks"), WAITS)
def test_an_empty_answer_names_who_must_act_and_its_exit_status_says_whether_only_persons_can(
    exit, room, entries, tasks
):
    board = view(*tasks, people=("ann",))
    assert list(actionable(board, ME)) == []
    waiting = who_must_act(board)
    if room is None:
        assert waiting.lines() == []
    else:
        assert list(getattr(waiting, room)) == entries
        assert EXITS[waiting.code] == exit
        assert all(any(name in line for line in waiting.lines()) for name, _, *_ in entries)


def test_what_waits_for_an_open_task_in_the_archive_is_told_where_that_lies():
    board = View([task("a", blocked_by=("x",))], {}, Settings(), {"x": task("x")})
    waiting = who_must_act(board)
    assert (waiting.archived, waiting.code) == ((("x", "a"),), "nothing_actionable")
    assert waiting.lines()[0].startswith("archived: a waits for x, which is not finished and lies in the archive")


def test_who_must_act_for_one_task_follows_only_its_own_chain():
    board = view(
        task("q", owner="user"), task("a", blocked_by=("q",)), task("h", hold="x"), task("b", blocked_by=("a",))
    )
    assert who_must_act(board, [board.get("b")]).lines() == ["waiting on user: q"]


def test_long_lists_of_ends_are_capped_and_say_how_many_follow():
    lines = who_must_act(view(*[task(f"h{n}", hold="x") for n in range(30)])).lines()
    assert len(lines) == 21
    assert lines[-1] == "… 10 more"


def test_a_line_that_names_many_tasks_is_capped_too():
    ring = [task(f"r{n}", blocked_by=(f"r{(n + 1) % 30}",)) for n in range(30)]
    persons, cycle = who_must_act(view(*[task(f"q{n:02}", owner="user") for n in range(30)], *ring)).lines()
    assert persons.startswith("waiting on user: q00, q01,") and persons.endswith(" q19, … 10 more")
    assert cycle.startswith("cycle: r0 → r1 →") and cycle.endswith(" r19 → … 11 more")


def test_a_board_answers_next_with_the_exit_status_of_its_waits(board_for):
    board = board_for("agent")
    assert board.next().exit == 0
    add(board, "q", owner="user")
    add(board, "a", "q")
    assert (board.next().exit, board.next().waiting.lines()) == (7, ["waiting on user: q"])
    assert ids(board_for("user").next().rows) == ["q"]
    board_for("user").answer("q", "yes")
    assert ids(board.next().rows) == ["a"]
    board.claim("a")
    assert board.next().exit == 6
    board.complete("a")
    assert board.next().exit == 0
