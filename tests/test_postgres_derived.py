"""What the database derives from tasks, where it follows from more than the task that changes."""

import json

import pytest
from conftest import add, ids, open_board
from postgres import drift, drop, open_postgres
from test_postgres_machine import BUGS, rings_that_are_forgotten

from taskwall.core.model import Task
from taskwall.core.rules import Edit
from taskwall.stores.files.dialects import read
from taskwall.stores.files.strict import parse
from taskwall.stores.postgres import writing
from taskwall.stores.whole import Piece, Whole


@pytest.fixture
def store(clock):
    store = open_postgres(clock)
    yield store
    drop(store)


@pytest.fixture
def board(store, clock):
    return open_board(store, "user", clock=clock)


def move_in(store, *tasks):
    """Bring in task files as a move from files does."""
    texts = [json.dumps(task) for task in tasks]
    with store.taking_in(Whole(tuple(Piece(f"{t['id']}.json", x, read(parse(x))) for t, x in zip(tasks, texts)))):
        pass


def of_claude(id, blocks=(), blocked_by=()):
    told = {"blocks": [*blocks], "blockedBy": [*blocked_by]}
    return {"id": id, "subject": f"task {id}", "status": "pending", "activeForm": "doing", **told}


def offered(board):
    return ids(board.next(50).rows)


def test_ranks_before_a_ring_stay_those_that_a_whole_count_gives(store, board):
    move_in(store, of_claude("1", blocked_by=["2"]), of_claude("2", blocked_by=["1", "3"]), of_claude("3"))
    add(board, "first")
    board.update("3", Edit(add_blocked_by=("first",)))
    assert drift(store) == []
    board.cancel("1", drop_edges=True)  # and there is no ring any more
    board.update("first", Edit(priority=1, add_blocked_by=(add(board, "zero"),)))
    assert drift(store) == []
    assert store.read().rank("zero") == 3


def test_dropping_edges_frees_what_only_the_blocker_named_and_says_so_ever_after(store, board):
    move_in(store, of_claude("1", blocks=["2"]), of_claude("2"))
    assert offered(board) == ["1"]
    board.cancel("1", drop_edges=True)
    assert offered(board) == ["2"]
    assert store.read().get("1").blocks == ()
    assert drift(store) == []


def test_what_an_archived_task_alone_says_of_others_counts_until_it_is_archived_and_from_when_it_comes_back(
    store, board
):
    move_in(store, of_claude("1", blocks=["2"]), of_claude("2"), of_claude("3", blocked_by=["2"]))
    with store.write() as txn:
        txn.put(txn.get("1").replace(status="cancelled", rev=2))
    assert offered(board) == []
    board.archive()
    assert (offered(board), drift(store)) == (["2"], [])
    board.reopen("1")
    assert (offered(board), drift(store)) == (["1"], [])


def test_a_key_that_was_used_again_does_not_keep_an_archived_task_from_coming_back(board):
    add(board, "old", key="k")
    board.claim("old")
    board.complete("old")
    board.archive()
    assert add(board, "new", key="k") == "new"
    board.reopen("old")
    assert offered(board) == ["old", "new"]


def test_ranks_are_counted_right_anew_where_a_task_among_those_written_did_not_move(store, monkeypatch):
    tasks = [Task(str(n), f"task {n}", rev=1, blocked_by=(str(n - 1),) if n else ()) for n in range(4)]
    with store.write() as txn:
        for task in tasks:
            txn.put(task)
    monkeypatch.setattr(writing, "MOST_MENDED", 0)
    with store.write() as txn:
        txn.put(Task("x", "another", rev=1))
        txn.put(tasks[2].replace(subject="renamed", rev=2))  # it does not move, and others count on it
    assert drift(store) == []


def a_working_day(store, board, ringed):
    """A board on which everything happens once; what had drifted after each step. ringed: behind a ring."""
    ring = [of_claude("1", blocked_by=["2"]), of_claude("2", blocked_by=["1", "3"])]
    move_in(store, *(ring if ringed else ()), of_claude("3"))
    steps = [
        lambda: [add(board, "a"), add(board, "b", "a"), add(board, "c", "b"), add(board, "d")],
        lambda: board.update("d", Edit(parent="b")),
        lambda: board.update("3", Edit(add_blocked_by=("c",))),
        lambda: [board.claim("a"), board.complete("a")],
        lambda: board.archive(),
        lambda: board.update("d", Edit(parent="")),
        lambda: board.reopen("a"),
        lambda: board.cancel("b", cascade=True),
    ]
    return [drift(store) for step in steps if step() or True]


@pytest.mark.parametrize("ringed", [False, True])
def test_nothing_drifts_on_a_working_day(store, board, ringed):
    assert a_working_day(store, board, ringed) == [[]] * 8


@pytest.mark.parametrize("bug", BUGS, ids=lambda each: each.__name__)
def test_on_a_working_day_a_seeded_bug_is_found(store, board, bug, monkeypatch):
    bug(monkeypatch)
    assert any(a_working_day(store, board, bug == rings_that_are_forgotten)), "the detector sees nothing"
