"""Boards to measure on: always the same ones for a size, four fifths finished, two blockers a task, some children.

Written once, straight as files, into a cache outside the repository; each run works on a copy made of hard links (a
write of ours replaces a file and leaves the cached one alone).
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

CACHE = Path(os.environ.get("BENCH_CACHE") or Path(tempfile.gettempdir()) / f"taskwall-bench-{os.getuid()}")
LAYOUT = 1  # to be raised when the boards change
ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
RACY = 2.5  # seconds after which a changed file is no longer suspected of changing again


class Task(NamedTuple):
    id: str
    subject: str
    done: bool
    blockers: tuple[str, ...]
    priority: int
    parent: str | None


def graph(size: int) -> list[Task]:
    """The tasks of a board, blockers before those that wait for them. Of the open ones about four tenths can be begun."""
    rng = random.Random(size)
    ids = ["task_" + "".join(rng.choices(ALPHABET, k=10)) for _ in range(size)]
    finished = size * 4 // 5
    tasks = []
    for n in range(size):
        last = finished if n > finished and rng.random() < 0.4 else n
        near = range(max(0, last - 200), last)
        blockers = tuple(ids[i] for i in sorted(rng.sample(near, min(2, len(near)))))
        parent = ids[min(size - 1, n + rng.randint(1, 20))] if n > finished and rng.random() < 0.05 else None
        parent = None if parent == ids[n] else parent
        tasks.append(
            Task(ids[n], f"task number {n}", n < finished, blockers, rng.choice((0, 1, 2, 2, 2, 3, 4)), parent)
        )
    return tasks


def stamp(n: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(1_790_000_000 + n)) + ".000000Z"


def as_file(task: Task, n: int) -> str:
    """The text of our file of a task."""
    told = {
        "id": task.id, "subject": task.subject, "description": "", "status": "completed" if task.done else "pending",
        "owner": "agent" if task.done else None, "blockedBy": list(task.blockers),
    }  # fmt: skip
    if task.priority != 2:
        told["priority"] = task.priority
    if task.parent:
        told["parent"] = task.parent
    told |= {"createdAt": stamp(n), "createdBy": "agent", "updatedAt": stamp(n)}
    told |= {"startedAt": stamp(n), "completedAt": stamp(n), "epoch": 1, "rev": 3} if task.done else {"rev": 1}
    return json.dumps(told, ensure_ascii=False, indent=2) + "\n"


def cached(name: str, make) -> Path:
    """The folder of that name in the cache, made by `make(folder)` unless it is there whole."""
    folder = CACHE / f"{name}-{LAYOUT}"
    if not folder.exists():
        part = CACHE / f"{name}.part"
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        make(part)
        part.rename(folder)
    return folder


def board(size: int) -> Path:
    """A fresh board of this size, at rest."""

    def make(folder: Path) -> None:
        for n, task in enumerate(graph(size)):
            (folder / f"{task.id}.json").write_text(as_file(task, n))

    return linked(f"board-{size}", make)


def linked(name: str, make) -> Path:
    """A folder to work in whose `.tasks` is made of links to the files of that name in the cache, and at rest."""
    target = fresh(CACHE / "work" / name)
    subprocess.run(["cp", "-al", cached(name, make), target / ".tasks"], check=True)
    time.sleep(RACY)
    return target


def fresh(place: Path) -> Path:
    """An empty folder. What lay there is put aside, not removed: for a minute after many files were removed, a file
    system without a journal makes new ones slowly."""
    aside = CACHE / "aside"
    aside.mkdir(parents=True, exist_ok=True)
    if place.exists():
        place.rename(aside / str(time.time_ns()))
    place.mkdir(parents=True)
    return place


def tidy() -> None:
    """Remove what was put aside."""
    shutil.rmtree(CACHE / "aside", ignore_errors=True)


def set_durability(folder: Path, durability: str) -> None:
    """A board with the defaults has no settings."""
    settings = folder / ".tasks" / "board.toml"
    settings.unlink(missing_ok=True)
    if durability != "full":
        settings.write_text(f'durability = "{durability}"\n')
