"""The fleet at a glance: sessions by host, leases, what was done lately, what waits longest, and what that costs."""

import json
import sys
from pathlib import Path

import pytest
from rich.cells import cell_len
from test_hot_paths import Counter, wait_until_settled

from boardfiles import Files
from conftest import add, open_board
from taskwall.board import Board
from taskwall.core.model import Actor, Settings
from taskwall.envelope import envelope
from taskwall.fleet import Decision, Fleet, Held, Session, Work
from taskwall.render import text
from taskwall.stores.files.store import FileStore


@pytest.fixture
def on(store, clock, tmp_path):
    """`on(host, name, session)`: the board as an actor on that host has it."""

    def on(host, name, session=None):
        return Board(store, Actor(name, session or name, host=host), root=str(tmp_path), clock=clock)

    return on


def test_an_empty_board_and_one_that_nobody_works_on_say_so(on):
    board = on("alpha", "ann")
    assert text(board.fleet()) == "No tasks. Use create_task (taskwall add) to add some."
    add(board, "t")
    assert text(board.fleet()).splitlines() == [
        "No session holds a task.",
        "Tasks: 1 ready",
        "Last hour: 0 completed, 0 attempts failed, 1 created",
        "Last 24 hours: 0 completed, 0 attempts failed, 1 created",
        "No decision waits for a person.",
    ]


def test_sessions_stand_under_their_host_with_what_they_hold(on, clock):
    ann, bob, sub, old = on("beta", "ann"), on("alpha", "bob", "s1"), on("alpha", "bob", "s1/x"), on("", "old")
    for n in range(5):
        add(ann, f"t{n}")
    ann.claim("t0")
    clock.sleep(minutes=5)
    bob.claim("t1", ttl=10), bob.claim("t2", ttl=20), sub.claim("t3", ttl=1), old.claim("t4")
    clock.sleep(minutes=2)
    found = ann.fleet()
    told = [
        (s.host, s.actor, s.session, s.lease, s.left, round(s.minutes), [t.id for t in s.tasks]) for s in found.sessions
    ]
    assert told == [
        ("", "old", "old", "by hand", None, 2, ["t4"]),
        ("alpha", "bob", "s1", "live", pytest.approx(8), 2, ["t1", "t2"]),
        ("alpha", "bob", "s1/x", "lapsed", None, 2, ["t3"]),
        ("beta", "ann", "ann", "by hand", None, 7, ["t0"]),
    ]
    assert found.claims == {"lapsed": 1, "live": 2, "by hand": 2, "idle": 0, "unknown": 0}
    assert (found.counts["in_progress"], found.counts["stale"], found.lapsing) == (4, 1, 0)
    clock.sleep(minutes=6.5)  # of ten minutes one and a half are left
    assert on("alpha", "bob", "s1").fleet().lapsing == 1
    assert ann.fleet().sessions[1].left == pytest.approx(1.5)


def test_what_is_held_without_a_known_claim_and_a_claim_by_hand_of_yesterday(tmp_path):
    files = Files(tmp_path)
    board = files.board()
    for id in ("t", "lost"):
        add(board, id)
        board.claim(id)
    (files.path / ".local/claims/lost.json").unlink()
    files.clock.sleep(minutes=25 * 60)
    found = board.fleet()
    assert [(s.actor, s.session, s.lease, s.since is None) for s in found.sessions] == [
        ("agent", "", "unknown", True),
        ("agent", "agent", "idle", False),
    ]
    assert (found.claims["unknown"], found.claims["idle"], found.claims["by hand"]) == (1, 1, 0)
    assert "  agent, for 25 h" in text(found).splitlines() and "  agent" in text(found).splitlines()


def test_work_is_counted_by_the_hour_and_the_day(on, clock):
    ann, bob, user = on("h", "ann"), on("h", "bob"), on("h", "user")
    for n in range(5):
        add(ann, f"old{n}")
    ann.claim("old4")
    ann.complete("old4")
    clock.sleep(minutes=23 * 60)  # what was done before is 23 hours ago
    for n, minutes in enumerate((2, 10, 30)):
        ann.claim(f"old{n}")
        clock.sleep(minutes=minutes)
        ann.complete(f"old{n}")
    ann.claim("old3", ttl=1)
    ann.release("old3", failed=True)
    ann.claim("old3", ttl=1)
    clock.sleep(minutes=2)
    bob.claim("old3")  # over a lease that ran out
    on("h", "cat").claim("old3", steal=True, reason="bob sleeps")
    on("h", "cat").ask("old3", "red or blue?")
    user.answer(ann.fleet().decision.id, "red")
    found = ann.fleet()
    assert found.hour == Work(completed=4, failed=2, created=1, minutes=10)
    assert found.day == Work(completed=5, failed=2, created=6, minutes=pytest.approx(6, abs=0.1))
    clock.sleep(minutes=90)
    assert (ann.fleet().hour, ann.fleet().day.completed) == (Work(), 4)
    clock.sleep(minutes=24 * 60)
    assert ann.fleet().day == Work()


def test_events_of_before_and_of_other_clocks_break_nothing(store, on):
    add(on("h", "ann"), "t")
    odd = [{"at": "9999-12-31T23:59:59Z"}, {"at": "no time", "verb": "complete"}, {"at": "9", "verb": ["x"], "task": {}},
           {"at": "2999-01-01T00:00:00Z", "verb": "complete", "task": ["t"], "epoch": {}}]  # fmt: skip
    with store.write() as txn:
        txn.log += [{"verb": "claim", "task": "t", "by": "x", "session": "s"} | event for event in odd]
    assert on("h", "ann").fleet().hour == Work(completed=1, created=1)


def test_the_decision_that_waits_longest_waits_since_it_could_be_answered(on, clock):
    ann = on("h", "ann")
    add(ann, "first")
    add(ann, "late", "first", owner="user", subject="a decision that waited for other work")
    clock.sleep(minutes=60)
    ann.claim("first")
    ann.ask("first", "红色还是蓝色？\nOr neither?", ["红", "蓝"])
    clock.sleep(minutes=30)
    found = ann.fleet().decision
    assert (found.subject, found.question, found.person) == ("红色还是蓝色？", "红色还是蓝色？\nOr neither?", "user")
    assert found.minutes == pytest.approx(30, abs=0.1)
    user = on("h", "user")
    user.answer(found.id, "红")
    ann.claim("first"), ann.complete("first")
    clock.sleep(minutes=200)
    found = ann.fleet().decision
    assert (found.id, found.question, round(found.minutes)) == ("late", None, 200)
    assert text(ann.fleet()).splitlines()[-2:] == [
        "Oldest decision, on user for 3 h: late",
        "    a decision that waited for other work",
    ]
    user.hold("late")
    assert ann.fleet().decision is None, "what is held waits for being resumed"


def test_the_text_stays_in_eighty_columns_whatever_the_script(on, clock):
    names = ["ann", "数据库代理-" + "长" * 30]
    for host in ("alpha", "主机" * 30):
        for name in names:
            board = on(host, name, f"session of {name}")
            for n in range(3):
                add(
                    board,
                    f"{'任务' if n else 'task'}-{host[0]}-{name[0]}-{n}",
                    subject="封墙刷漆" * 20 if n else "x" * 90,
                )
                board.claim(ttl=119.9)
    add(board, "q", owner="user", subject="红色还是蓝色" * 12)
    lines = text(board.fleet()).splitlines()
    assert max(map(cell_len, lines)) <= 80
    held = [line for line in lines if line.endswith("live, 119 min left")]
    assert len(held) == 12 and {cell_len(line) for line in held} == {80}, "the leases stand in one column"
    assert lines[0] == "4 sessions on 2 hosts, 12 tasks held"


def test_no_text_of_a_board_breaks_a_line_or_reaches_a_terminal_raw(on, store):
    hostile = "\x1b[31m\u202e\nrm -rf\r\x9b中文"
    board = on(hostile, hostile, f"{hostile}2")
    add(board, "t")
    board.claim("t")
    with store.write() as txn:
        txn.put(txn.get("t").replace(subject=hostile, rev=9))
    lines = text(board.fleet()).splitlines()
    assert len(lines) == 9 and "中文" in lines[1] and not any(set(line) & set("\x1b\u202e\r\x9b") for line in lines)


@pytest.mark.parametrize("store", ["memory"], indirect=True)
def test_a_great_fleet_is_told_in_few_lines_and_whole_as_json(on, clock):
    board = on("h", "boss")
    for n in range(100):
        add(board, f"t{n}")
        on(f"host{n:03}", "agent", f"s{n}").claim(f"t{n}", ttl=15)
    told = text(board.fleet())
    assert len(told) < 8192 and "… 240 more lines (--json tells all)" in told
    data = envelope(board.fleet())["data"]
    assert len(data["sessions"]) == 100 and data["claims"]["live"] == 100
    json.dumps(data)


@pytest.mark.slow
def test_finished_work_costs_nothing(tmp_path):
    sys.path.insert(0, str(Path(__file__).parent.parent / "bench"))
    costs = []
    for size in (300, 1500):
        folder = tmp_path / str(size)
        (folder / ".tasks").mkdir(parents=True)
        for n in range(size):
            told = {
                "id": f"d{n}",
                "subject": "s",
                "description": "",
                "status": "completed",
                "owner": "a",
                "blockedBy": [],
            }
            (folder / ".tasks" / f"d{n}.json").write_text(
                json.dumps(told | {"completedAt": "2026-01-01T00:00:00Z", "rev": 2})
            )
        store = FileStore(str(folder / ".tasks"), Settings(durability="fast"))
        board = open_board(store, clock=None)
        for n in range(20):
            add(board, f"t{n}")
        board.claim(ttl=15)
        wait_until_settled(folder)
        board.fleet()
        costs.append(Counter().cost(folder, board.fleet))
    small, large = costs
    # Of a large board, the tasks that were written just now are read again; of finished ones, nothing is.
    assert large.opened <= small.opened + 20 + 2 and large.calls <= small.calls * 1.1 + 200, costs


def test_the_fleet_of_the_docs_is_what_the_command_prints():
    def session(host, actor, name, minutes, *tasks):
        return Session(host, actor, name, tasks[0].lease, None, None, minutes, tasks)

    shown = Fleet(
        sessions=(
            session("build-1", "claude", "5f0c2a", 42, Held("api-v1", "接口", "live", 12), Held("schema", "数据库表结构", "live", 2)),
            session("build-1", "night/2", "night/2", 190, Held("docs", "write the docs", "lapsed")),
            session("desk", "ann", "ann", 25 * 60, Held("paint", "刷漆", "idle")),
        ),
        claims={"lapsed": 1, "live": 2, "by hand": 0, "idle": 1, "unknown": 0},
        lapsing=1,
        hour=Work(12, 1, 3, 7.5),
        day=Work(80, 4, 30, 9.1),
        decision=Decision("which-db", "a decision", "which database?", "user", None, 200),
        counts={"ready": 12, "in_progress": 3, "stale": 1, "waiting": 2, "blocked": 8, "held": 0, "finished": 240},
    )  # fmt: skip
    docs = (Path(__file__).parent.parent / "docs" / "fleet.md").read_text()
    assert docs.partition("$ taskwall fleet\n")[2].partition("```")[0] == text(shown) + "\n", text(shown)
