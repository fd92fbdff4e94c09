"""Transactions that the proofs interrupt, each of them the same to the byte whenever it runs, and what may be left of one.

A *world* is everything in a board's folder: `{path below the folder: bytes}`, folders as `{path + "/": b""}`.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from itertools import count
from pathlib import Path
from typing import NamedTuple

import pytest

from taskwall.board import Board
from taskwall.core.model import Actor, Settings
from taskwall.core.rules import Draft, Edit
from taskwall.stores.files.disk import DISK
from taskwall.stores.files.store import FileStore


@pytest.fixture
def board_dir(tmp_path):
    """In memory where there is such a place: proofs of what survives a process do not depend on the kind of disk."""
    if not os.access("/dev/shm", os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder)


NOON = 1_790_000_000_000_000_000
LOCAL, CLAIMS = ".local/", ".local/claims/"
KEPT_APART = (".local/lock", ".local/lock.next", ".local/events.jsonl")


def open_store(path, disk=DISK, durability="full"):
    return FileStore(str(path), Settings(durability=durability), monotonic=lambda: 1000.0, disk=disk)


def open_board(path, disk=DISK, name="agent", hour=1, durability="full"):
    """A board whose clock and ids are the same every time."""
    ticks, ids = count(), count()
    return Board(
        open_store(path, disk, durability),
        Actor(name, name),
        root=str(path),
        clock=lambda: NOON + hour * 3_600_000_000_000 + next(ticks) * 1_000_000,
        new_id=lambda: f"task_{hour:02}{next(ids):08}",
    )


class Case(NamedTuple):
    """A transaction: `act` on a board of these files, after `prepare`."""

    name: str
    act: object
    prepare: object = lambda board: None
    files: dict | None = None  # our own four tasks unless given

    def __str__(self):
        return self.name


def draft(id, *blocked_by, **more):
    return Draft(subject=f"the task {id}", id=id, blocked_by=blocked_by, **more)


def four(board):
    board.create([draft("a"), draft("b", "a"), draft("c", "b", priority=1), draft("d", "a", "b")])


def claimed(board):
    board.claim("a", ttl=15)


def completed(board):
    claimed(board)
    board.complete("a")


def two_claims(board):
    board.update("b", Edit(remove_blocked_by=("a",)))
    board.claim("a", ttl=15)
    board.claim("b")


DIALECTS = {
    "a.json": b'{"id": "a", "title": "of research", "state": "pending", "blocked_by": [], "weight": 1.77E9}\n',
    "2.json": b'{\n  "id": 2,\n  "subject": "numbered",\n  "status": "pending",\n  "owner": "",\n  "blockedBy": ["a"]\n}',
    "3.json": b'{"id":"3","subject":"of claude","status":"pending","activeForm":"doing","blocks":[],"blockedBy":["2"]}',
    "odd name.json": b'{"id": "lesson", "subject": "s", "status": "pending", "owner": null, "blockedBy": ["a"]}\n',
}

SINGLE = (
    Case("create", lambda b: b.create([draft("new", "a")])),
    Case("claim", lambda b: b.claim("a", ttl=15)),
    Case("complete", lambda b: b.complete("a", result="done"), claimed),
    Case("release", lambda b: b.release("a", reason="later", failed=True), claimed),
    Case("reopen", lambda b: b.reopen("a"), completed),
    Case("note", lambda b: b.update("a", Edit(note="n" * 300))),
    Case("beat", lambda b: b.heartbeat("a", ttl=30), claimed),
    Case("claim in a dialect", lambda b: b.claim("a"), files=DIALECTS),
    Case("complete in a dialect", lambda b: b.complete("a", result="r"), lambda b: b.claim("a"), DIALECTS),
)
SEVERAL = (
    Case("plan", lambda b: b.create([draft("p"), draft("q", "p"), draft("r", "q", "a"), draft("s", "r")])),
    Case("ask", lambda b: b.ask("a", "which?", ("x", "y")), claimed),
    Case("cascade", lambda b: b.cancel("a", cascade=True), claimed),
    Case("drop edges", lambda b: b.cancel("a", drop_edges=True)),
    Case("release a session", lambda b: b.release_session("agent"), two_claims),
    Case("first plan", lambda b: b.create([draft("p"), draft("q", "p")]), files={}),
    Case("ask in a dialect", lambda b: b.ask("a", "which?"), lambda b: b.claim("a"), DIALECTS),
    Case("cascade over dialects", lambda b: b.cancel("a", cascade=True), lambda b: b.claim("a"), DIALECTS),
)
CASES = (*SINGLE, *SEVERAL)
BY_NAME = {case.name: case for case in CASES}


# Worlds


def world_of(path):
    """Everything in a folder."""
    found = {}
    for top, folders, files in os.walk(path):
        here = os.path.relpath(top, path)
        prefix = "" if here == "." else here + "/"
        found |= {prefix + name + "/": b"" for name in folders}
        for name in files:
            with open(os.path.join(top, name), "rb") as file:
                found[prefix + name] = file.read()
    return found


def restore(path, world):
    """The folder, holding this world and nothing else."""
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    for name in sorted(world):
        if name.endswith("/"):
            os.makedirs(os.path.join(path, name), exist_ok=True)
        else:
            with open(os.path.join(path, name), "wb") as file:
                file.write(world[name])


def tasks_in(world):
    return {name: data for name, data in world.items() if name.endswith(".json") and "/" not in name}


def entries_in(world):
    return {name: data for name, data in world.items() if name.endswith(".json") and name.startswith(CLAIMS)}


def kept(world):
    """What a transaction is about: the task files and the claim ledger."""
    return tasks_in(world) | entries_in(world)


def seen_by(store):
    """What a reader is told of every task; raises as the reader does."""
    view = store.read()
    told = {}
    for task in view:
        claim = view.claim(task.id)
        told[task.id] = repr((task, claim and (claim.epoch, claim.open, claim.actor)))
    return told


class Expected(NamedTuple):
    """What may be left of a transaction: the worlds without and with it, and of one task file, the file without its claim."""

    before: dict
    after: dict
    lag: dict | None

    def worlds(self, *, acknowledged):
        return [w for w in ((self.after,) if acknowledged else self) if w is not None]


def expected(before, after):
    changed = {name for name in tasks_in(after) if tasks_in(before).get(name) != after[name]}
    lag = None
    if len(changed) == 1:
        lag = {name: data for name, data in after.items() if name not in entries_in(after)} | entries_in(before)
    return Expected(before, after, lag)


def prepared(case, path, disk=DISK):
    """Make the board of a case in `path`; returns its world."""
    restore(path, DIALECTS if case.files is DIALECTS else {})
    board = open_board(path, disk, hour=0, durability="fast")
    if case.files is None:
        four(board)
    if case.files != {}:
        case.prepare(board)
    return world_of(path)


def outcome(case, path, world):
    """What may be left of a case that began in this world."""
    restore(path, world)
    case.act(open_board(path, durability="fast"))
    return expected(world, world_of(path))
