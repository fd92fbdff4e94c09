"""Many processes on one board: nothing is granted twice, nothing acknowledged is lost, no dead process blocks.

Run as a script, this file is one of those processes: `test_races.py WORK FOLDER NAME [COUNT]` waits for a line on standard
input, does the work, and prints a line for everything that was acknowledged.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from worker_process import until

from taskwall.board import Board
from taskwall.core.errors import Locked, Refused
from taskwall.core.refusals import NothingActionable
from taskwall.core.model import Actor, Settings
from taskwall.core.rules import Draft, Edit
from taskwall.stores.files import lock as lock_module
from taskwall.stores.files.lock import is_locked, lock
from taskwall.stores.files.store import FileStore

FAST = Settings(durability="fast")


def board_of(folder, name="maker", settings=FAST):
    return Board(FileStore(str(folder), settings), Actor(name, name), root=str(folder))


# What one process does


def say(*words):
    print(*words, flush=True)


def claim_all(board, _):
    while True:
        try:
            task = board.claim().row.task
        except NothingActionable:
            return
        say(task.token, task.owner)


def create_many(board, count):
    for number in range(count):
        (row,) = board.create([Draft(subject=f"{board.actor.name} {number}")]).rows
        say(row.task.id)


def create_same(board, count):
    for number in range(count):
        try:
            board.create([Draft(subject=board.actor.name, id=f"slug-{number}")])
        except Refused as refusal:
            assert refusal.code == "invalid", refusal
        else:
            say(f"slug-{number}", board.actor.name)


def note_all(board, count):
    for number in range(count):
        board.update("shared", Edit(note=f"{board.actor.name} {number}"))
        say(f"{board.actor.name} {number}")


def edit_for_ever(board, _):
    for number in itertools.count():
        board.update("shared", Edit(priority=number % 5))
        if not number:
            say("begun")


def churn(board, _):
    """Create, claim, note, complete, for ever; everything acknowledged is said."""
    while True:
        (row,) = board.create([Draft(subject="s" * 150, description="d" * 3000)]).rows
        say("created", row.task.id)
        task = board.claim(row.task.id).row.task
        say("claimed", task.token)
        board.update(task.id, Edit(note="n" * 2000))
        say("noted", task.id)
        board.complete(task.token, result="r" * 500)
        say("completed", task.id)


def hold_lock(board, _):
    with lock(os.path.join(board.store.path, ".local", "lock")):
        say("held")
        sys.stdin.readline()


WORK = {
    work.__name__: work for work in (claim_all, create_many, create_same, note_all, edit_for_ever, churn, hold_lock)
}


# How they are run


class Process:
    def __init__(self, work, folder, name, count=0):
        command = [sys.executable, __file__, work.__name__, str(folder), name, str(count)]
        self.name = name
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.line() == "ready"

    def line(self):
        return self.process.stdout.readline().rstrip("\n")

    def go(self):
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def rest(self):
        lines = [line for line in self.process.stdout.read().split("\n") if line]
        self.process.wait(60)
        return lines

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(10)

    def close(self):
        self.process.kill()
        self.process.wait(10)
        for pipe in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(BrokenPipeError):
                pipe.close()


@pytest.fixture
def processes():
    """`processes(work, folder, n, count=0)`: n processes that all wait for `go`."""
    started = []

    def start(work, folder, n, count=0):
        new = [Process(work, folder, f"p{number}", count) for number in range(n)]
        started.extend(new)
        return new

    yield start
    for process in started:
        process.close()


def raced(group):
    """Let all of them go at once; return what each said."""
    for process in group:
        process.go()
    said = {process.name: process.rest() for process in group}
    assert [process.process.returncode for process in group] == [0] * len(group)
    return said


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / ".tasks"
    path.mkdir()
    return path


def stored(folder):
    """Every task file, parsed. Fails on one that is not whole, and on a part left behind in the board."""
    found = {}
    for path in folder.iterdir():
        if path.name != ".local":
            assert path.suffix == ".json", path
            task = json.loads(path.read_text())
            assert path.stem == task["id"]
            found[task["id"]] = task
    return found


# Races


@pytest.mark.parametrize("count", [40, pytest.param(200, marks=pytest.mark.slow)])
def test_eight_processes_claim_all_tasks_and_each_is_granted_once(folder, processes, count):
    board_of(folder).create([Draft(subject=f"t{number}") for number in range(count)])
    said = raced(processes(claim_all, folder, 8))
    grants = [line for lines in said.values() for line in lines]
    assert len(grants) == count and max(Counter(line.split()[0] for line in grants).values()) == 1
    tasks = stored(folder)
    for line in grants:
        token, owner = line.split()
        task = tasks[token.partition("#")[0]]
        assert (task["status"], task["owner"], task["epoch"]) == ("in_progress", owner, 1)
    assert len([e for e in FileStore(str(folder)).events() if e["verb"] == "claim"]) == count


def create_together(folder, processes, each):
    said = raced(processes(create_many, folder, 8, each))
    acknowledged = [line for lines in said.values() for line in lines]
    tasks = stored(folder)
    assert len(set(acknowledged)) == len(acknowledged) == 8 * each
    assert set(tasks) == set(acknowledged)
    subjects = {f"p{process} {number}" for process in range(8) for number in range(each)}
    assert {task["subject"] for task in tasks.values()} == subjects
    assert not [task for task in FileStore(str(folder)).read() if task.flaw or task.notices]


@pytest.mark.slow
def test_eight_processes_create_at_once_and_nothing_is_lost(folder, processes):
    create_together(folder, processes, 8)


@pytest.mark.slow
def test_two_thousand_creations_by_eight_processes_are_two_thousand_files(folder, processes):
    create_together(folder, processes, 250)


@pytest.mark.slow
def test_an_id_of_ones_own_is_given_to_one_process_only(folder, processes):
    said = raced(processes(create_same, folder, 4, 12))
    winners = dict(line.split() for lines in said.values() for line in lines)
    assert sum(map(len, said.values())) == len(winners) == 12
    assert {task_id: task["subject"] for task_id, task in stored(folder).items()} == winners


@pytest.mark.slow
def test_notes_of_many_processes_are_all_kept(folder, processes):
    board_of(folder).create([Draft(subject="s", id="shared")])
    said = raced(processes(note_all, folder, 4, 12))
    acknowledged = sorted(line for lines in said.values() for line in lines)
    task = stored(folder)["shared"]
    assert sorted(note["text"] for note in task["notes"]) == acknowledged
    assert task["rev"] == 1 + len(acknowledged) == 49


def test_a_reader_sees_each_file_whole(folder, processes):
    group = processes(churn, folder, 2)
    for process in group:
        process.go()
    while len(list(folder.glob("*.json"))) < 15:
        view = FileStore(str(folder)).read()
        assert not [task.flaw for task in view if task.flaw]
        for task in view:
            assert task.status != "completed" or (task.result and task.notes)


# Killed


def kill_rounds(folder, processes, rounds, seed):
    chance = random.Random(seed)
    acknowledged = set()
    for number in range(rounds):
        group = processes(churn, folder, 2)
        for process in group:
            process.go()
        for process in group:
            for _ in range(chance.randrange(1, 12)):
                acknowledged.add(process.line())
            process.kill()
            acknowledged.update(process.process.stdout.read().split("\n")[:-1])
        # The next process is let in at once, and what it finds is whole.
        (row,) = board_of(folder, f"after{number}").create([Draft(subject="after")]).rows
        acknowledged.add(f"created {row.task.id}")
    tasks = stored(folder)
    assert not [task.flaw for task in FileStore(str(folder)).read() if task.flaw]
    for line in acknowledged:
        verb, _, rest = line.partition(" ")
        task = tasks[rest.partition("#")[0]]
        match verb:
            case "claimed":
                assert task["epoch"] >= 1 and task["status"] in ("in_progress", "completed")
            case "noted":
                assert task["notes"]
            case "completed":
                assert task["status"] == "completed" and task["result"]
    return tasks


@pytest.mark.slow
def test_processes_killed_at_random_moments_leave_every_file_whole_and_no_lock(folder, processes):
    kill_rounds(folder, processes, 3, seed=2)


@pytest.mark.slow
def test_processes_killed_at_many_random_moments_leave_every_file_whole_and_no_lock(folder, processes):
    kill_rounds(folder, processes, 40, seed=1)


def test_parts_left_by_a_killed_process_are_in_nobodys_way(folder):
    board = board_of(folder)
    (row,) = board.create([Draft(subject="s")]).rows
    (folder / ".local" / "part-0.tmp").write_text('{"id": "half')
    board.claim(row.task.id)
    assert stored(folder)[row.task.id]["status"] == "in_progress"
    assert not list((folder / ".local").glob("part-*"))


# The lock


@pytest.fixture
def held(folder, processes):
    """A process that holds the board's lock until it is killed or gets a line."""
    board_of(folder).create([Draft(subject="s", id="t")])
    (process,) = processes(hold_lock, folder, 1)
    process.go()
    assert process.line() == "held"
    return process


def test_a_lock_that_is_not_had_in_time_names_who_has_it(folder, held):
    with pytest.raises(Locked) as refusal, lock(str(folder / ".local" / "lock"), deadline=0.1):
        pass
    assert refusal.value.exit == 4
    for word in (f"pid {held.process.pid}", os.uname().nodename, "since 20", "test_races.py hold_lock"):
        assert word in refusal.value.message
    assert board_of(folder).get("t").row.state == "ready", "reading waits for nobody"


def test_who_waited_in_vain_does_not_keep_what_comes_too_late(folder):
    path = str(folder / "lock")
    with lock(path), pytest.raises(Locked), lock(path, deadline=0.05):
        pass
    for _ in range(20):  # one of them comes behind the one that is late
        with lock(path):
            pass


def no_more_threads(*_):
    raise RuntimeError("can't start new thread")


def test_where_no_thread_can_wait_the_lock_is_tried_for(folder, held, monkeypatch):
    monkeypatch.setattr(lock_module, "start_new_thread", no_more_threads)
    path = str(folder / ".local" / "lock")
    with pytest.raises(Locked), lock(path, deadline=0.05):
        pass
    held.go()
    with lock(path):
        pass


@pytest.mark.slow
def test_a_process_that_comes_back_at_once_does_not_keep_the_others_out(folder, processes):
    board_of(folder).create([Draft(subject="s", id="shared")])
    [greedy], [other] = processes(edit_for_ever, folder, 1), processes(note_all, folder, 1, 20)
    greedy.go()
    assert greedy.line()
    other.go()
    assert len(other.rest()) == 20 and other.process.returncode == 0, "it waits for the lock for ten seconds at most"
    assert greedy.process.poll() is None


def took_turns(path, turn, soon, monkeypatch):
    """Whether others still wait for us after we took the lock and came back at once."""
    monkeypatch.setattr(lock_module, "TURN", turn)
    monkeypatch.setattr(lock_module, "SOON", soon)
    for _ in range(2):
        with lock(path):
            pass
    return is_locked(f"{path}.next")


def test_who_comes_back_at_once_keeps_its_turn_for_a_moment(folder, monkeypatch):
    path = str(folder / "lock")
    assert took_turns(path, 60.0, 0.5, monkeypatch)
    with lock(path, deadline=0):
        pass
    assert until(lambda: not is_locked(f"{path}.next"))


def test_a_turn_ends_though_one_comes_back_again_and_again(folder, monkeypatch):
    assert not took_turns(str(folder / "lock"), 0.0, 60.0, monkeypatch)


def test_who_does_not_come_back_lets_the_next_one_in_at_once(folder, monkeypatch):
    assert not took_turns(str(folder / "lock"), 60.0, 0.0, monkeypatch)


def test_where_no_thread_can_end_a_turn_it_is_not_kept(folder, monkeypatch):
    monkeypatch.setattr(lock_module, "start_new_thread", no_more_threads)
    assert not took_turns(str(folder / "lock"), 60.0, 60.0, monkeypatch)


def test_a_forked_child_does_not_keep_the_turn_of_a_parent_that_is_gone(folder):
    path = str(folder / "lock")
    script = (
        "import os, sys; from taskwall.stores.files import lock\n"
        "lock.TURN = lock.SOON = 60.0\n"
        "for _ in range(2):\n"
        "    with lock.lock(sys.argv[1]): pass\n"
        "assert lock.is_locked(sys.argv[1] + '.next')\n"
        "os.fork() or sys.stdin.read(); os._exit(0)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script, path], stdin=subprocess.PIPE)
    assert parent.wait(60) == 0  # the child reads on
    assert until(lambda: not is_locked(f"{path}.next"))
    parent.stdin.close()


def test_a_killed_holder_lets_the_next_one_in(folder, held):
    held.kill()
    with lock(str(folder / ".local" / "lock"), deadline=0):
        pass
    board_of(folder).claim("t")


def test_a_lock_file_removed_while_held_does_not_give_two_holders(folder):
    board_of(folder).create([Draft(subject="s", id="t")])
    first, second = board_of(folder, "first"), board_of(folder, "second")
    with pytest.raises(Locked, match="removed"), first.store.write() as txn:
        txn.put(txn.get("t").replace(status="in_progress", owner="first", epoch=1))
        os.unlink(folder / ".local" / "lock")
        assert second.claim("t").row.task.owner == "second"
    assert stored(folder)["t"]["owner"] == "second"


def test_who_waited_on_a_lock_file_that_was_removed_takes_the_new_one(folder):
    path = str(folder / "lock")
    with lock(path):
        os.rename(path, path + ".gone")
        with lock(path, deadline=0) as still_mine:
            assert still_mine()
            with pytest.raises(Locked), lock(path, deadline=0.05):
                pass


def test_a_forked_child_does_not_keep_the_lock(folder):
    path = str(folder / "lock")
    wake, go = os.pipe()
    with lock(path):
        child = os.fork()
        if child == 0:
            os.close(go)
            os.read(wake, 1)
            os._exit(0)
    try:
        with lock(path, deadline=0):
            pass
    finally:
        os.close(go)
        os.close(wake)
        assert os.waitpid(child, 0)[1] == 0


def test_a_refused_request_writes_nothing_and_lets_go_of_the_lock(folder):
    board = board_of(folder)
    board.create([Draft(subject="s", id="t")])
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != "lock"}
    for attempt in (
        lambda: board.create([Draft(subject="fine"), Draft(subject="")]),
        lambda: board.create([Draft(subject="fine", id="new"), Draft(subject="x", id="t")]),
        lambda: board.complete("t"),
        lambda: board.update("t", Edit(add_blocked_by=("t",))),
    ):
        with pytest.raises(Refused):
            attempt()
    assert before == {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != "lock"}
    with lock(str(folder / ".local" / "lock"), deadline=0):
        pass


def main():
    work, folder, name, count = sys.argv[1:]
    say("ready")
    sys.stdin.readline()
    WORK[work](board_of(Path(folder), name), int(count))


if __name__ == "__main__":
    main()
