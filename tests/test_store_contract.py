"""The contract of stores: every store passes this suite."""

import pytest
from conftest import NOON, add, ids, open_board

from taskwall.core.errors import Refused
from taskwall.core.model import Claim, Task
from taskwall.core.rules import Draft
from taskwall.stores.base import Txn

pytestmark = pytest.mark.usefixtures("store")


def put(store, *tasks):
    with store.write() as txn:
        for task in tasks:
            txn.put(task)


def new(id, **fields):
    return Task(id, f"task {id}", **{"rev": 1, **fields})


def event(task, verb="create"):
    return {"at": f"{NOON}", "by": "a", "session": "s", "verb": verb, "task": task}


def claim(task, epoch=1, **fields):
    return Claim(task, epoch, "a", "s", "2026-01-01T00:00:00Z", **fields)


def test_an_empty_board_reads_as_empty(store):
    view = store.read()
    assert list(view) == []
    assert (view.get("x"), view.claim("x"), "x" in view, store.events()) == (None, None, False, [])


def test_what_was_put_recorded_and_logged_is_there_afterwards(store):
    full = new(
        "t", description="多行\nline", blocked_by=("u", "gone"), priority=0, labels=("a",), parent="p", status="in_progress", owner="a", epoch=1,
        products=("*.md",), checks=("true",), hold="h", question="?", options=("x", "y"), metadata={"n": 1.5, "l": [None]},
        notes=({"at": "1", "by": "a", "text": "\u2028"},), created_at="2026-01-01T00:00:00.000001Z", key="k", attempts=2,
        evidence={"products": {"a.md": 3}}, result="r", answer="a",
    )  # fmt: skip
    put(store, new("t"), new("u"))
    with store.write() as txn:
        txn.put(full)
        txn.record(claim("t", reserved="bob", past=(("z", "s0", 0),), host="alpha"))
        txn.log.append(event("t"))
    view = store.read()
    assert view.get("t") == full
    assert view.claim("t") == claim("t", reserved="bob", past=(("z", "s0", 0),), host="alpha")
    assert (ids(view.dependents("u")), ids(view.dependents("gone")), ids(view.children("p"))) == (["t"], ["t"], ["t"])
    assert view.by_key("k") == full
    assert store.events() == [event("t")]


def test_a_view_is_not_touched_by_later_writes(store):
    put(store, new("a"), new("b", blocked_by=("a",)))
    view = store.read()
    with store.write() as txn:
        txn.put(txn.get("a").replace(subject="changed", blocked_by=("c",), rev=2))
        txn.put(new("c", blocked_by=("a",)))
        txn.record(claim("a", ttl=5))
    assert (view.get("a").subject, view.get("c"), view.claim("a")) == ("task a", None, None)
    assert ids(view.dependents("a")) == ["b"]
    assert ids(store.read().dependents("a")) == ["b", "c"]


def test_a_transaction_sees_its_own_changes_and_others_see_them_only_when_it_ends(store):
    put(store, new("a"), new("p"))
    with store.write() as txn:
        assert isinstance(txn, Txn)
        before = store.read()
        txn.put(new("b", blocked_by=("a",), parent="p"))
        txn.put(txn.get("a").replace(blocked_by=("p",), rev=2))
        txn.record(claim("a"))
        assert [ids(txn.dependents("a")), ids(txn.children("p")), ids(txn.dependents("p"))] == [["b"], ["b"], ["a"]]
        assert sorted(ids(txn)) == ["a", "b", "p"]
        assert txn.claim("a").epoch == 1
        assert (txn.is_new(txn.get("b")), txn.is_new(txn.get("a"))) == (True, False)
        for view in (before, store.read()):
            assert (view.get("b"), view.get("a").blocked_by, view.claim("a")) == (None, (), None)
    assert store.read().get("b") is not None


@pytest.mark.parametrize("failure", [ValueError("bug"), Refused("no"), KeyboardInterrupt()])
def test_a_transaction_that_raises_writes_nothing_and_leaves_the_board_usable(store, failure):
    put(store, new("a"))
    with pytest.raises(type(failure)), store.write() as txn:
        txn.put(txn.get("a").replace(subject="changed", rev=2))
        txn.put(new("b"))
        txn.record(claim("a"))
        txn.log.append(event("a"))
        raise failure
    view = store.read()
    assert (ids(view), view.get("a").subject, view.claim("a"), store.events()) == (["a"], "task a", None, [])
    put(store, new("c"))
    assert sorted(ids(store.read())) == ["a", "c"]


def test_an_id_is_taken_once(store, clock):
    board = open_board(store, clock=clock, new_id=lambda: "same")
    board.create([Draft("first")])
    with pytest.raises(Refused) as error:
        board.create([Draft("second")])
    assert error.value.code == "invalid"
    assert [t.subject for t in store.read()] == ["first"]


def test_events_come_in_order_and_by_task(store):
    for number, task in enumerate("abab"):
        with store.write() as txn:
            txn.log.append(event(task, f"verb{number}"))
    with store.write() as txn:
        txn.log += [event("a", "verb4"), event("b", "verb5")]
    assert [e["verb"] for e in store.events()] == [f"verb{n}" for n in range(6)]
    assert [e["verb"] for e in store.events("b")] == ["verb1", "verb3", "verb5"]
    assert store.events("c") == []


def test_events_since_a_time_are_those_at_or_after_it(store):
    times = [f"2026-01-0{day}T12:00:00.{micro:06d}Z" for day in (1, 2, 3) for micro in (0, 1)]
    for number, at in enumerate(times):
        with store.write() as txn:
            txn.log.append(event("ab"[number % 2], "verb") | {"at": at, "text": "\u2028 \x85 多行"})
    assert [e["at"] for e in store.events(since=times[3])] == times[3:]
    assert [e["at"] for e in store.events("a", since=times[3])] == [times[4]]
    assert store.events(since="2026-01-03T12:00:00.000002Z") == []
    assert store.events(since="2025") == store.events() and len(store.events()) == 6


def test_a_lease_is_live_until_its_minutes_have_passed_on_the_monotonic_clock(store, clock):
    put(store, new("a", status="in_progress", epoch=1), new("b", status="in_progress", epoch=1))
    with store.write() as txn:
        txn.record(claim("a", ttl=10))
        txn.record(claim("b"))
    clock.now += 10**18  # a wall clock that was set wrong burns no lease
    view = store.read()
    assert (view.claim("a").lease, view.claim("a").left) == ("live", 10)
    assert (view.claim("b").lease, view.claim("b").left) == ("by hand", None)
    clock.sleep(minutes=9)
    assert store.read().claim("a").left == pytest.approx(1)
    clock.sleep(minutes=1)
    assert store.read().claim("a").lease == "lapsed"
    assert store.read().claim("b").lease == "by hand"


def test_recording_a_claim_again_renews_its_lease_and_touching_the_task_does_not(store, clock):
    put(store, new("a", status="in_progress", epoch=1))
    with store.write() as txn:
        txn.record(claim("a", ttl=10))
    clock.sleep(minutes=9)
    with store.write() as txn:
        txn.put(txn.get("a").replace(subject="touched", rev=2))
    assert store.read().claim("a").left == pytest.approx(1)
    with store.write() as txn:
        txn.record(txn.claim("a"))
    assert store.read().claim("a").left == pytest.approx(10)


@pytest.mark.slow
def test_a_thousand_tasks_keep_their_edges(store, clock):
    put(store, *[new(f"t{n}", blocked_by=(f"t{n - 1}",) if n else ()) for n in range(1000)])
    view = store.read()
    assert sum(1 for _ in view) == 1000
    assert view.rank("t0") == 999
    assert add(open_board(store, clock=clock), "last", "t999") == "last"


def test_a_watch_wakes_for_a_change_and_for_nothing_else(store):
    put(store, new("a"))
    watch = store.watch()
    quiet = lambda seconds: True  # noqa: E731 - gives up at the first pause
    assert not watch.wait(60, quiet)
    store.read()
    assert not watch.wait(60, quiet)
    put(store, new("b"))
    assert watch.wait(20)
    assert not watch.wait(0, quiet)
