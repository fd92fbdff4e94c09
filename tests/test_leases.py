"""Leases, heartbeats and what ends them: the clock of one boot, a process that vanished, a session that beats."""

import json
import os
import subprocess
import sys
import time

import pytest
from conftest import Clock, add, ids, open_board, open_store

from taskwall import config, process
from taskwall.board import Board
from taskwall.core.errors import AlreadyClaimed, Held, NotOwner, Superseded
from taskwall.core.model import Actor, Settings
from taskwall.core.rules import Edit
from taskwall.heartbeat import Heartbeat
from taskwall.stores.files import ledger
from taskwall.stores.files.disk import Disk
from taskwall.stores.files.store import FileStore


def test_a_process_is_told_from_one_that_vanished_and_one_that_took_its_number():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    mine = process.this_process()
    pid, start, namespace = mine.split(":", 2)
    theirs = f"{child.pid}:{process._start_of(child.pid)}:{namespace}"
    assert not process.is_gone(mine) and not process.is_gone(theirs)
    assert process.is_gone(f"{pid}:{int(start) + 1}:{namespace}")
    child.communicate(b"\n")
    assert process.is_gone(theirs)
    assert not process.is_gone(theirs.replace(namespace, "pid:[1]")), "of another container nothing is certain"
    assert not process.is_gone("")


def test_a_claim_knows_the_host_of_its_holder_and_one_of_before_that_reads_as_it_did(tmp_path):
    board = config.open_board(config.find_board(str(tmp_path), {}, str(tmp_path)), Actor("a", "s"), make=True)
    for id in ("t", "old", "bare"):
        add(board, id)
    board.claim("t"), board.claim("old")
    assert board.get("t").claim["host"] == board.store.read().claim("t").host == os.uname().nodename
    open_board(board.store).claim("bare")
    path = tmp_path / ".tasks" / ".local" / "claims"
    assert "host" not in (path / "bare.json").read_text() and "host" not in board.get("bare").claim
    entry = json.loads((path / "old.json").read_text())
    for known in ({}, {"process": ""}):
        entry["claim"] = {k: v for k, v in entry["claim"].items() if k not in ("host", "process")} | known
        (path / "old.json").write_text(json.dumps(entry))
        claim = board.store.read().claim("old")
        assert (claim.actor, claim.open, claim.host) == ("a", True, "")
    (path / "old.json").write_text(json.dumps(entry | {"claim": entry["claim"] | {"host": 7}}))
    assert board.store.read().claim("old") is None


def held_by_child(folder, *, lease):
    """A claim of a process of its own, which then waits to be killed."""
    code = """if True:
        import sys
        from taskwall import config
        from taskwall.core.model import Actor
        location = config.find_board(sys.argv[1], {}, sys.argv[1])
        board = config.open_board(location, Actor("holder", "s"), beats=True)
        print(board.claim("t1").row.task.token, flush=True)
        input()
    """
    child = subprocess.Popen(
        [sys.executable, "-c", code, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout.readline() == "t1#1\n"
    return child


def test_a_killed_holder_is_stale_at_once_and_a_living_one_is_not(tmp_path):
    store = open_store("files", tmp_path, Clock())
    board = config.open_board(config.find_board(str(tmp_path), {}, str(tmp_path)), Actor("next", "n"))
    add(board, "t1")
    child = held_by_child(tmp_path, lease=15)
    assert board.get("t1").row.state == "in_progress"
    with pytest.raises(AlreadyClaimed):
        board.claim("t1")
    child.kill(), child.wait()
    assert board.get("t1").row.state == "stale"
    taken = board.claim()
    assert (taken.row.task.token, taken.row.task.attempts) == ("t1#2", 1)
    assert "taken over from holder, whose lease ran out" in taken.notices[0]


def test_a_session_that_beats_keeps_all_its_claims_those_by_hand_too(store, clock):
    living = open_board(store, "agent", "s1", clock=clock)
    living.lease = 15
    add(living, "t1"), add(living, "t2"), add(living, "t3")
    living.claim("t1")
    open_board(store, "agent", "s1", clock=clock).claim("t2")
    open_board(store, "other", "s2", clock=clock).claim("t3")
    heart = Heartbeat(living)
    for _ in range(10):
        heart.beat()
        clock.sleep(minutes=10)
    assert {living.get(i).row.state for i in ("t1", "t2", "t3")} == {"in_progress"}
    clock.sleep(minutes=10)
    assert [living.get(i).row.state for i in ("t1", "t2", "t3")] == ["stale", "stale", "in_progress"]
    assert heart.take_lost() == []


def test_a_claim_that_was_taken_over_is_noticed_by_the_next_beat(store, clock):
    board, other = open_board(store, "agent", "s1", clock=clock), open_board(store, "other", clock=clock)
    board.lease = 15
    add(board, "t1"), add(board, "t2")
    heart = Heartbeat(board)
    board.claim("t1"), board.claim("t2")
    heart.beat()
    board.complete("t2")
    other.claim("t1", steal=True, reason="too slow")
    heart.beat()
    (line,) = heart.take_lost()
    assert "t1#1 was taken over" in line and "other" in line
    assert heart.take_lost() == []
    with pytest.raises(Superseded):
        board.complete("t1")


def test_a_heartbeat_never_raises_and_never_touches_a_task_file(tmp_path, clock):
    store = open_store("files", tmp_path, clock)
    board = open_board(store, "agent", clock=clock)
    add(board, "t1")
    board.claim("t1", ttl=1)
    path = tmp_path / ".tasks" / "t1.json"
    before = (path.read_bytes(), path.stat().st_mtime_ns)
    board.lease = 1
    heart = Heartbeat(board)
    heart.beat()
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    os.rename(tmp_path / ".tasks", tmp_path / "gone")
    (tmp_path / ".tasks").write_text("in the way")
    heart.beat()


def test_the_thread_beats_by_itself(tmp_path):
    store = open_store("files", tmp_path, Clock())
    store = type(store)(store.path, store.settings)
    board = open_board(store, "agent")
    add(board, "t1")
    board.claim("t1", ttl=0.02)  # 1.2 seconds
    entry = tmp_path / ".tasks/.local/claims/t1.json"
    first = json.loads(entry.read_text())["lease"]["until"]
    beating = open_board(store, "agent")
    beating.lease = 0.02
    with Heartbeat(beating):
        deadline = time.monotonic() + 20
        while json.loads(entry.read_text())["lease"]["until"] < first + 0.6 and time.monotonic() < deadline:
            time.sleep(0.02)
    assert json.loads(entry.read_text())["lease"]["until"] >= first + 0.6
    assert board.get("t1").row.task.epoch == 1


def test_another_boot_ends_every_lease_but_no_claim_by_hand(tmp_path, clock, monkeypatch):
    store = open_store("files", tmp_path, clock)
    board = open_board(store, "agent", clock=clock)
    add(board, "t1"), add(board, "t2")
    board.claim("t1", ttl=15), board.claim("t2")
    monkeypatch.setattr(ledger, "boot_id", lambda: "another boot")
    assert [board.get(i).row.state for i in ("t1", "t2")] == ["stale", "in_progress"]


def test_the_third_lapsed_lease_holds_the_task_and_the_next_write_stores_that(tmp_path, clock):
    store = open_store("files", tmp_path, clock, Settings(max_attempts=3))
    board, person = open_board(store, "agent", clock=clock), open_board(store, "user", clock=clock)
    add(board, "t1", owner="agent")
    for attempt in range(3):
        assert board.claim("t1", ttl=1).row.task.attempts == attempt
        clock.sleep(minutes=2)
        # the same session would renew its own claim
        board = open_board(store, "agent", f"session {attempt}", clock=clock)
    assert board.get("t1").row.state == "held"
    with pytest.raises(Held):
        board.claim("t1")
    stored = json.loads((tmp_path / ".tasks/t1.json").read_text())
    assert (stored["status"], stored["attempts"]) == ("in_progress", 2)
    board.update("t1", Edit(note="it hangs every time"))
    stored = json.loads((tmp_path / ".tasks/t1.json").read_text())
    assert (stored["status"], stored["attempts"], stored["owner"]) == ("pending", 3, "agent")
    assert board.get("t1").row.state == "held"
    assert person.resume("t1").row.state == "ready"


def test_completing_after_the_lease_ran_out_is_fine_when_nobody_took_it(store, clock):
    board = open_board(store, "agent", clock=clock)
    add(board, "t1")
    board.claim("t1", ttl=1)
    clock.sleep(minutes=600)
    assert board.complete("t1").row.state == "completed"


def test_stale_work_comes_after_what_was_never_claimed(store, clock):
    board, other = open_board(store, "agent", clock=clock), open_board(store, "other", clock=clock)
    add(board, "t1", priority=0), add(board, "t2", priority=4)
    board.claim("t1", ttl=1)
    clock.sleep(minutes=2)
    assert ids(other.next(2).rows) == ["t2", "t1"]


def test_a_plan_with_a_key_is_made_once(store, clock):
    from taskwall import registry, verbs  # noqa: F401 - registers the verbs

    board = open_board(store, "agent", clock=clock)
    plan = {"tasks": [{"ref": "a", "subject": "A"}, {"ref": "b", "subject": "B", "blockedBy": "a"}], "key": "night-1"}
    first, again = registry.call(board, "create_tasks", plan), registry.call(board, "create_tasks", plan)
    assert ids(first.rows) == ids(again.rows)
    assert set(again.already) == set(ids(first.rows))
    assert board.list().total == 2


def test_a_session_that_leaves_shortens_its_leases_but_not_those_that_another_process_beats(store, clock):
    gone, stays = (Board(store, Actor("agent", "s", process=name), lease=15, clock=clock) for name in ("gone", "stays"))
    add(gone, "t1"), add(gone, "t2"), add(gone, "t3")
    gone.claim("t1"), stays.claim("t2"), open_board(store, "other", clock=clock).claim("t3", ttl=15)
    gone.leave(ttl=2)
    assert [(c.ttl, c.process) for i in ("t1", "t2") if (c := store.read().claim(i))] == [(2, ""), (15, "stays")]
    clock.sleep(minutes=3)
    assert [gone.get(i).row.state for i in ("t1", "t2", "t3")] == ["stale", "in_progress", "in_progress"]


def test_a_sub_agents_claim_is_still_its_sessions_and_is_given_back_apart(store, clock):
    session, other = open_board(store, "agent", "s", clock=clock), open_board(store, "agent", "s2", clock=clock)
    for id in ("t1", "t2", "t3"):
        add(session, id)
        session.claim(id)
    session.attribute("t2#1", "a1"), session.attribute("t3#1", "a2")
    assert [store.read().claim(i).session for i in ("t1", "t2", "t3")] == ["s", "s/a1", "s/a2"]
    other.attribute("t1#1", "a9")  # a token of another session moves nothing
    assert store.read().claim("t1").session == "s"
    with pytest.raises(NotOwner):
        other.complete("t2")
    session.complete("t2")
    assert ids(session.release_session("s/a2").rows) == ["t3"]
    assert ids(session.release_session("s").rows) == ["t1"]
    session.claim("t1"), session.attribute("t1#2", "a1")
    assert ids(session.release_session("s").rows) == []
    assert ids(session.release_session("s", agents=True).rows) == ["t1"]


class Killed(BaseException):
    """Stands for a process that is no more: nobody catches it."""


class DyingDisk(Disk):
    """Ends its process before the rename of this number."""

    def __init__(self, renames):
        self.left = renames

    def rename(self, old, new):
        if not self.left:
            raise Killed
        self.left -= 1
        super().rename(old, new)


@pytest.mark.parametrize("renames", range(5))
def test_a_leased_claim_killed_at_any_rename_lapses_or_never_was(tmp_path, renames):
    clock = Clock()
    store = open_store("files", tmp_path, clock)
    add(open_board(store, "agent", clock=clock), "t1")
    dying = FileStore(store.path, store.settings, clock.monotonic, DyingDisk(renames))
    try:
        open_board(dying, "agent", clock=clock).claim("t1", ttl=1)
    except Killed:
        pass
    clock.sleep(minutes=2)
    other = open_board(store, "other", clock=clock)
    assert other.get("t1").row.state == ("ready" if renames == 0 else "stale")
    assert other.claim().row.task.id == "t1"


def test_one_of_two_processes_of_a_session_may_die_without_the_other_being_robbed(tmp_path, clock):
    store = open_store("files", tmp_path, clock)
    board = open_board(store, "agent", "s1", clock=clock)
    board.lease = 15
    _, _, namespace = process.this_process().split(":", 2)
    board.actor = board.actor.replace(process=process.this_process())
    second = open_board(store, "agent", "s1", clock=clock)
    second.actor = second.actor.replace(process=f"1:999999:{namespace}")  # vanished
    add(board, "t1")
    board.claim("t1")
    second.beat((), ttl=15)
    assert board.get("t1").row.state == "in_progress"
    second.leave(ttl=2)
    assert board.get("t1").claim["left"] > 10


def test_a_beat_leaves_alone_what_others_look_after(store, clock):
    board = open_board(store, "agent", "s1", clock=clock)
    add(board, "t1"), add(board, "t2")
    board.claim("t1"), board.claim("t2")
    assert board.beat((), ttl=1, but={"t1#1"})[0] == {"t2#1"}
    clock.sleep(minutes=2)
    assert [board.get(i).row.state for i in ("t1", "t2")] == ["in_progress", "stale"]


def test_a_claim_by_hand_is_shown_idle_after_a_day_and_stands(tmp_path, clock):
    from taskwall import render

    store = open_store("files", tmp_path, clock)
    board, other = open_board(store, "agent", clock=clock), open_board(store, "other", clock=clock)
    add(board, "t1")
    board.claim("t1")
    clock.sleep(minutes=23 * 60)
    assert "idle" not in render.text(other.list())
    clock.sleep(minutes=2 * 60)
    assert "owner=agent idle: claimed by hand over a day ago" in render.text(other.list())
    assert other.get("t1").row.state == "in_progress"
    with pytest.raises(AlreadyClaimed):
        other.claim("t1")
    assert board.complete("t1").row.state == "completed"
