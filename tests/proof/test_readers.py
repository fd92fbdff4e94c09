"""I2 for readers: while changes of several files are written, and after their writer was killed, all of one is seen or none.

Run as a script, this file is a writer or a reader: `test_readers.py write|read FOLDER [BUG]`. The writer gives all tasks of
the board a new subject, the same for all, in one transaction after the other until it is killed. The reader prints
`reads half-seen` when its standard input ends. BUG `no-read-through` seeds readers that do not look into the journal.
"""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from taskwall.core.model import Settings, Task
from taskwall.stores.files.disk import Disk
from taskwall.stores.files.journal import Journal
from taskwall.stores.files.store import FileStore

FILES = 16


def make_board(folder):
    folder.mkdir()
    turn_all(FileStore(str(folder), Settings(durability="fast")), 1)
    return folder


def turn_all(store, turn):
    with store.write() as txn:
        for number in range(FILES):
            old = txn.get(f"t{number}") or Task(f"t{number}", "")
            txn.put(old.replace(subject=f"turn {turn}", rev=turn))


def turns(store):
    """The turns that one look at the board finds in it: one, when it was whole."""
    return {task.subject if not task.flaw else task.flaw for task in store.read()}


# What one process does


def write(folder):
    store, turn = FileStore(folder, Settings(durability="fast")), 1
    while True:
        turn += 1
        turn_all(store, turn)
        if turn == 2:
            print("ready", flush=True)


def read(folder):
    kept, tried, bad = FileStore(folder), 0, 0
    print("ready", flush=True)
    while not select.select([sys.stdin], [], [], 0)[0]:
        # Every other look is that of a new reader, which has read no file before.
        bad += len(turns(kept if tried % 2 else FileStore(folder))) != 1
        tried += 1
    print(tried, bad)


@contextlib.contextmanager
def running(work, folder, *bug):
    command = [sys.executable, __file__, work.__name__, str(folder), *bug]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def looked(folder, seconds, readers, *bug):
    """How often readers looked at a board while it was written, and how often they saw half of a transaction."""
    with running(write, folder), contextlib.ExitStack() as stack:
        group = [stack.enter_context(running(read, folder, *bug)) for _ in range(readers)]
        time.sleep(seconds)  # how long they are given
        said = [process.communicate("\n")[0].split() for process in group]
    assert len(turns(FileStore(str(folder)))) == 1, "the killed writer left half of a transaction"
    return sum(int(tried) for tried, _ in said), sum(int(bad) for _, bad in said)


def no_read_through():
    """The seeded bug: what is committed and not yet applied is not looked for."""
    Journal.pending = lambda self: {}
    Journal.mark = None


@pytest.mark.slow
def test_readers_see_whole_transactions_quickly(tmp_path, figure):
    tried, bad = looked(make_board(tmp_path / "board"), 0.7, 2)
    figure("readers during transactions, quick", tried=tried, bad=bad, at_least=50)


@pytest.mark.slow
def test_readers_see_whole_transactions(tmp_path, figure):
    tried, bad = looked(make_board(tmp_path / "board"), 12, 4)
    figure("readers during transactions: half of one seen", tried=tried, bad=bad, at_least=2_000)


@pytest.mark.slow
def test_readers_that_do_not_look_into_the_journal_see_half_a_transaction(tmp_path):
    tried, bad = looked(make_board(tmp_path / "board"), 0.7, 2, "no-read-through")
    assert bad, f"the detector sees nothing in {tried} looks"


# After the writer was killed


class Deadly(Disk):
    """Ends the process before its operation number `left`."""

    def __init__(self, left):
        self.left = left

    def __getattribute__(self, name):
        if name in ("write_new", "rename", "link", "unlink", "sync_folder"):
            self.left -= 1
            if self.left < 0:
                os._exit(9)
        return super().__getattribute__(name)


def killed_at(folder, operation):
    """Whether a writer was killed before this operation of a transaction."""
    child = os.fork()
    if child == 0:
        try:
            turn_all(FileStore(str(folder), disk=Deadly(operation)), 1_000 + operation)
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


def seen_after_kills(folder):
    """For each operation of a transaction, whether a reader saw half of it after its writer died there."""
    halves, before = [], turns(FileStore(str(folder)))
    while killed_at(folder, len(halves)):
        seen = turns(FileStore(str(folder)))
        halves.append(len(seen) != 1 or not seen <= before | {f"turn {1_000 + len(halves)}"})
        turn_all(FileStore(str(folder), Settings(durability="fast")), 1)  # the next writer recovers
        before = turns(FileStore(str(folder)))
    return halves


@pytest.mark.slow
def test_a_reader_sees_all_or_nothing_of_a_transaction_whose_writer_was_killed(tmp_path, figure):
    halves = seen_after_kills(make_board(tmp_path / "board"))
    figure("readers after a killed writer: half of one seen", tried=len(halves), bad=sum(halves), at_least=40)


@pytest.mark.slow
def test_readers_that_do_not_look_into_the_journal_see_what_a_killed_writer_left(tmp_path, monkeypatch):
    monkeypatch.setattr(Journal, "pending", lambda self: {})
    assert sum(seen_after_kills(make_board(tmp_path / "board"))), "the detector sees nothing"


def main():
    work, folder, *bug = sys.argv[1:]
    if bug:
        no_read_through()
    {"write": write, "read": read}[work](folder)


if __name__ == "__main__":
    main()
