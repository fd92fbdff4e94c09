"""Many processes that claim, complete, release and reopen on one board, and what each was told and when.

Run as a script, this file is one of those processes: `crowd.py WORK PLACE NAME COUNT [BUG]` waits for a line on standard
input, makes COUNT operations, and prints one JSON line `[verb, task, epoch, start, end]` for each that was acknowledged;
the times are of CLOCK_MONOTONIC, which all processes of a machine share. PLACE: a folder, or the URL of a board in
PostgreSQL. BUG `no-lock` seeds a lock that keeps nobody out.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import subprocess
import sys
import time
from typing import NamedTuple

from taskwall.board import Board
from taskwall.core.errors import Refused
from taskwall.core.model import Actor, Settings
from taskwall.core.rules import Draft
from taskwall.stores.files import store
from taskwall.stores.files.disk import write_all
from taskwall.stores.files.store import FileStore

FAST = Settings(durability="fast")


class Operation(NamedTuple):
    """One acknowledged operation. A claim, or the end of one, under this epoch of this task."""

    who: str
    verb: str
    task: str
    epoch: int
    start: float
    end: float


def board_of(place, name="maker"):
    return Board(store_of(str(place)), Actor(name, name), root=str(place))


def store_of(place):
    if "://" not in place:
        return FileStore(place, FAST)
    from taskwall.stores.postgres.database import Address, Database
    from taskwall.stores.postgres.store import PostgresStore

    return PostgresStore(Database(Address(place)))


def make_board(place, tasks):
    board = board_of(place)
    board.store.make() if "://" in str(place) else place.mkdir()
    board.create([Draft(subject=f"task {n}", id=f"t{n}") for n in range(tasks)])
    return place


# What one process does


class Recorder:
    """Makes operations, remembers those that were acknowledged, and says when there were enough."""

    def __init__(self, count, seeded):
        self.count, self.seeded, self.done, self.made = count, seeded, [], 0

    @property
    def enough(self):
        # With a seeded bug, tasks get stuck under claims that nobody can end: there it is attempts that count.
        return (self.made if self.seeded else len(self.done)) >= self.count

    def __call__(self, verb, call):
        """The task after an operation, None when it was refused."""
        start = time.monotonic()
        self.made += 1
        try:
            task = call().row.task
        except Refused:
            return None
        except OSError:
            if not self.seeded:  # parts of two writers get in each other's way, where no lock keeps them apart
                raise
            return None
        self.done.append((verb, task.id, task.epoch, start, time.monotonic()))
        return task


def _end(act, board, chance, task):
    """One end of a claim; a completed task is taken back for the next one."""
    if chance.random() < 0.5:
        return act("release", lambda: board.release(task.token))
    finished = act("complete", lambda: board.complete(task.token, result="ok"))
    return finished and act("reopen", lambda: board.reopen(task.id))


def claim_best(act, board, chance):
    """Take the best task there is, finish or release it, again and again."""
    while not act.enough:
        if task := act("claim", board.claim):
            _end(act, board, chance, task)


def claim_hot(act, board, chance):
    """Take one of a few tasks that everybody wants, now and then out of another's hands."""
    names = [task.id for task in board.store.read()]
    while not act.enough:
        name, steal = chance.choice(names), act.seeded or chance.random() < 0.1
        if task := act("claim", lambda: board.claim(name, steal=steal, reason="mine now")):
            _end(act, board, chance, task)


WORK = {work.__name__: work for work in (claim_best, claim_hot)}


@contextlib.contextmanager
def no_lock(path, deadline=0.0):
    """The seeded bug: everybody is let in."""
    yield lambda: True


def own_scratch(folder):
    path = os.path.join(folder, ".local", f"scratch-{os.getpid()}")
    os.makedirs(path, exist_ok=True)
    return path


def no_locks_in_postgres():
    """The seeded bug there: neither the board nor a row is locked."""
    from taskwall.stores.postgres.database import Session

    rows, script = Session.rows, Session.script
    Session.rows = lambda self, query, *values: rows(self, re.sub("FOR UPDATE( SKIP LOCKED)?", "", query), *values)
    Session.script = lambda self, text: script(self, re.sub(r"SELECT pg_advisory_xact_lock\w*\([^)]*\);", "", text))


def main():
    work, place, name, count, *bug = sys.argv[1:]
    if bug == ["no-lock"] and "://" in place:
        no_locks_in_postgres()
    elif bug == ["no-lock"]:
        store.lock = no_lock
        # Two writers would else trip over each other's unfinished parts, which hides that both were let in.
        store.write_all = lambda disk, writes, _, durable: write_all(disk, writes, own_scratch(place), durable=durable)
    board = board_of(place, name)
    board.store.read()  # what a first look makes is there when the others begin, too
    act = Recorder(int(count), bool(bug))
    print("ready", flush=True)
    sys.stdin.readline()
    WORK[work](act, board, random.Random(name))
    print("\n".join(json.dumps(line) for line in act.done))


# How they are run


def crowd(work, place, processes, operations, bug=""):
    """Let so many processes make so many operations in all; return those that were acknowledged, and the seconds."""
    each = -(-operations // processes)
    command = [sys.executable, __file__, work.__name__, str(place)]
    group = [
        subprocess.Popen(
            [*command, f"p{number}", str(each), *([bug] if bug else [])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(processes)
    ]
    try:
        for process in group:
            assert process.stdout.readline() == "ready\n"
        started = time.monotonic()
        for process in group:
            process.stdin.write("go\n")
            process.stdin.flush()
        found = []
        for number, process in enumerate(group):
            lines = process.communicate(timeout=300)[0].split("\n")
            assert process.returncode == 0
            found += [Operation(f"p{number}", *json.loads(line)) for line in lines if line]
        return found, time.monotonic() - started
    finally:
        for process in group:
            process.kill()
            process.wait(10)
            for pipe in (process.stdin, process.stdout):
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()


if __name__ == "__main__":
    main()
