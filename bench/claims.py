"""Claims per second, of many processes through the library, beside what the disk gives and what queues in SQLite reach.

Run as a script, this file is one of those processes: `claims.py work KIND PLACE NAME SECONDS` says when it is ready,
waits for a line on standard input, and prints one JSON line: when it began and ended, and what it got.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from fleet import TAKERS


def claimer(place, name):
    from taskwall.board import Board
    from taskwall.config import read_settings
    from taskwall.core.refusals import NothingActionable
    from taskwall.core.model import Actor
    from taskwall.stores.files.store import FileStore

    tasks = os.path.join(place, ".tasks")
    board = Board(FileStore(tasks, read_settings(tasks)), Actor(name, name))
    with board.store.write():
        pass
    board.next()  # what a first write and a first look make is there for those that follow

    def claim():
        try:
            return board.claim().row.task.id
        except NothingActionable:
            return None

    return claim


def replacer(place, name, *, durable, locked):
    """A file replaced and brought to the disk, as a claim must do it with each of its files; locked: one at a time."""
    count = 0
    lock = os.open(os.path.join(place, "lock"), os.O_RDWR | os.O_CREAT, 0o666)

    def replace():
        nonlocal count
        count += 1
        if locked:
            fcntl.flock(lock, fcntl.LOCK_EX)
        part, path = os.path.join(place, f"{name}.part"), os.path.join(place, f"{name}.json")
        fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        os.write(fd, b"{}" * 200)
        if durable:
            os.fsync(fd)
        os.close(fd)
        os.replace(part, path)
        if durable:
            fd = os.open(place, os.O_RDONLY)
            os.fsync(fd)
            os.close(fd)
        if locked:
            fcntl.flock(lock, fcntl.LOCK_UN)
        return f"{name}-{count}"

    return replace


def queue_at(kind, place):
    """How something is put into a queue in SQLite, and how it is taken out."""
    path = os.path.join(place, "queue.db")
    if kind == "huey":
        from huey.storage import SqliteStorage

        storage = SqliteStorage(filename=path)
        return lambda text: storage.enqueue(text.encode()), lambda: (data := storage.dequeue()) and data.decode()
    from litequeue import LiteQueue

    queue = LiteQueue(path)
    return queue.put, lambda: (message := queue.pop()) and message.data


QUEUES = ("huey", "litequeue")
RAW = ("raw full", "raw full, one lock", "raw fast", "raw fast, one lock")
KINDS = {
    "taskwall": claimer,
    **{
        kind: lambda place, name, kind=kind: replacer(place, name, durable="full" in kind, locked="lock" in kind)
        for kind in RAW
    },
    **{kind: lambda place, _, kind=kind: queue_at(kind, place)[1] for kind in QUEUES},
    **TAKERS,
}


def work(kind, place, name, seconds):
    step = KINDS[kind](place, name)
    print("ready", flush=True)
    sys.stdin.readline()
    began = time.monotonic()
    got = []
    while time.monotonic() < began + float(seconds) and (one := step()):
        got.append(one)
    print(json.dumps({"began": began, "ended": time.monotonic(), "got": got}))


# The crowd


def per_second(kind: str, place: Path | str, crowd: int, seconds: float, python: str = sys.executable) -> float:
    """What so many processes get in a second. Raises when two got the same."""
    command = [python, __file__, "work", kind, str(place)]
    running = [
        subprocess.Popen([*command, f"p{n}", str(seconds)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for n in range(crowd)
    ]
    for each in running:
        each.stdout.readline()
    for each in running:
        each.stdin.write("\n")
        each.stdin.flush()
    told = [json.loads(each.communicate()[0]) for each in running]
    got = [one for each in told for one in each["got"]]
    if len(got) != len(set(got)):
        raise RuntimeError(f"{kind}: the same one was given out twice")
    return len(got) / (max(each["ended"] for each in told) - min(each["began"] for each in told))


def free_board(tasks: int, durability: str) -> Path:
    """A board of tasks that anybody may begin."""
    from boards import Task, as_file, linked, set_durability

    def make(folder: Path) -> None:
        for n in range(tasks):
            task = Task(f"task_{n:010}", f"task number {n}", False, (), 2, None)
            (folder / f"{task.id}.json").write_text(as_file(task, n))

    place = linked(f"free-{tasks}", make)
    set_durability(place, durability)
    return place


def full_queue(kind: str, tasks: int, python: str) -> Path:
    """A queue with so much in it."""
    from boards import CACHE, cached, fresh

    def make(folder: Path) -> None:
        subprocess.run([python, __file__, "fill", kind, str(folder), str(tasks)], check=True)

    return shutil.copytree(cached(f"{kind}-{tasks}", make), fresh(CACHE / "work" / kind), dirs_exist_ok=True)


def fill(kind: str, place: str, tasks: str) -> None:
    put, _ = queue_at(kind, place)
    for n in range(int(tasks)):
        put(str(n))


if __name__ == "__main__":
    {"fill": fill, "work": work}[sys.argv[1]](*sys.argv[2:])
