"""What happens inside one process: a plan in one call, and the cycle check of one edge.

A script, so that each figure is of a fresh process: `core.py plan FOLDER DURABILITY`, `core.py cycle real|diamonds`;
prints seconds.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

from boards import Task, as_file, graph

from taskwall.board import Board
from taskwall.core.model import Actor, Settings
from taskwall.core.rules import Draft
from taskwall.core.state import find_cycle_over
from taskwall.core.view import Overlay
from taskwall.stores.files.store import FileStore

PLANNED = 10_000


def plan(durability: str) -> float:
    """Seconds to make a plan of ten thousand dependent tasks, all or none."""
    drafts = [Draft(t.subject, ref=t.id, blocked_by=t.blockers, priority=t.priority) for t in graph(PLANNED)]
    with tempfile.TemporaryDirectory() as folder:
        board = Board(FileStore(folder, Settings(durability=durability)), Actor("bench", "bench"))
        began = time.perf_counter()
        board.create(drafts)
        return time.perf_counter() - began


def diamonds(size: int) -> list[Task]:
    """Layers of two, each waiting for both of the layer before: paths double with every layer."""
    layers = [(f"d{n}a", f"d{n}b") for n in range(size // 2)]
    return [
        Task(i, f"task {i}", False, layers[n - 1] if n else (), 2, None)
        for n, layer in enumerate(layers)
        for i in layer
    ]


def cycle(shape: str) -> float:
    """Median seconds to see that one more edge closes no cycle, on a board that was read already."""
    tasks = diamonds(PLANNED) if shape == "diamonds" else graph(PLANNED)
    with tempfile.TemporaryDirectory() as folder:
        for n, task in enumerate([*tasks, Task("new", "new", False, (), 2, None)]):
            Path(folder, f"{task.id}.json").write_text(as_file(task, n))
        view = FileStore(folder, Settings(durability="fast")).read()
        new = view.get("new")
        seconds = []
        for last in [task for task in tasks if not task.done][-21:]:
            after = Overlay(view, [new.replace(blocked_by=(last.id,))])
            began = time.perf_counter()
            assert find_cycle_over(after, "new", [last.id]) is None
            seconds.append(time.perf_counter() - began)
        return statistics.median(seconds)


if __name__ == "__main__":
    print({"plan": plan, "cycle": cycle}[sys.argv[1]](sys.argv[2]))
