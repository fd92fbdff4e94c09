"""What follows from the rows of the board: columns, chains, sessions. What a task's state is, the core has said."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cached_property
from typing import Any

from ...core.graph import reached
from ..words import Words

Row = dict[str, Any]

CLOSED = ("completed", "cancelled")
COLUMNS = {
    "blocked": ("blocked",),
    "ready": ("ready", "stale"),
    "active": ("in_progress",),
    "person": ("waiting", "held", "broken"),
    "done": CLOSED,
}
"""The columns from left to right, and the states of the tasks in each."""
COLUMN_OF = {state: name for name, states in COLUMNS.items() for state in states}


class Branch:
    """A task in the tree of open work: how deep, whether it was told further up, how many are folded below it."""

    __slots__ = ("again", "depth", "folded", "row")

    def __init__(self, row: Row, depth: int, *, again: bool = False, folded: int = 0) -> None:
        self.row, self.depth, self.again, self.folded = row, depth, again, folded


class Sight:
    """The board as it was seen last, for a reader. rows: by id. query: what the board is searched for."""

    def __init__(self, rows: dict[str, Row], t: Words, query: str = "", clock: Callable[[], float] = time.time) -> None:
        self.rows, self.t, self.query, self.clock = rows, t, query, clock

    def called(self, task_id: str) -> str:
        """The subject of a task; its id where there is no such task."""
        row = self.rows.get(task_id)
        return str(row["subject"]) if row else task_id

    def named(self, ids: Iterable[str], most: int = 5) -> str:
        """The first of these tasks by their subjects."""
        names = [self.called(i) for i in ids]
        return ", ".join(names[:most]) + (f" +{len(names) - most}" if len(names) > most else "")

    @cached_property
    def found(self) -> list[Row]:
        """The tasks that hold every word that is searched for, most urgent first."""
        words = self.query.casefold().split()
        return sorted((row for row in self.rows.values() if not words or _matches(row, words)), key=_order)

    @cached_property
    def columns(self) -> dict[str, list[Row]]:
        """The tasks found, by column; the finished ones latest first."""
        columns: dict[str, list[Row]] = {name: [] for name in COLUMNS}
        for row in self.found:
            columns[COLUMN_OF[row["state"]]].append(row)
        columns["done"].sort(key=lambda row: row.get("completedAt") or "", reverse=True)
        return columns

    @cached_property
    def inbox(self) -> list[Row]:
        """What waits on whoever looks."""
        return sorted((row for row in self.rows.values() if row.get("you")), key=_order)

    @cached_property
    def behind(self) -> dict[str, list[str]]:
        """The open tasks that wait for each id."""
        found: dict[str, list[str]] = {}
        for row in sorted(self.rows.values(), key=_order):
            for blocker in row.get("blockers", ()) if row["state"] not in CLOSED else ():
                found.setdefault(blocker, []).append(row["id"])
        return found

    def ahead(self, task_id: str) -> list[str]:
        """What this task waits for, finished or not, as far as it is on the board."""
        row = self.rows.get(task_id)
        return [i for i in row.get("blockers", ()) if i in self.rows] if row else []

    def counts(self, task_id: str) -> tuple[int, int, int]:
        """Of the chain through a task: how many open ones it waits for, of how many, and how many open wait for it."""
        up = reached([task_id], self.ahead) - {task_id}
        down = self._under(task_id)
        return sum(self.rows[i]["state"] not in CLOSED for i in up), len(up), len(down)

    def _under(self, task_id: str) -> set[str]:
        return reached([task_id], lambda i: self.behind.get(i, ())) - {task_id}

    def tree(self, folded: Collection[str] = ()) -> Iterator[Branch]:
        """The open work from what can move first, and below each task what waits for it, each explained once."""
        opened = [row for row in self.found if row["state"] not in CLOSED]
        chosen = {row["id"] for row in opened}
        first = [row for row in opened if not chosen.intersection(row.get("waits", ()))]
        seen: set[str] = set()
        hidden: set[str] = set()
        # Members of a ring stand below nobody: whoever was not reached yet begins a tree of its own.
        for root in (*first, *opened):
            todo = [(root, 0)] if root["id"] not in seen and root["id"] not in hidden else []
            while todo:
                row, depth = todo.pop()
                task_id = row["id"]
                if task_id in seen:
                    yield Branch(row, depth, again=True)
                    continue
                seen.add(task_id)
                below = [self.rows[i] for i in self.behind.get(task_id, ()) if i in chosen]
                if below and task_id in folded:
                    under = self._under(task_id)
                    hidden |= under
                    yield Branch(row, depth, folded=len(under))
                    continue
                yield Branch(row, depth)
                todo += [(row, depth + 1) for row in reversed(below)]

    @cached_property
    def critical(self) -> frozenset[str]:
        """The longest chain of open work, from what can move first to its end."""
        path: list[str] = []
        opened = (row for row in self.rows.values() if row["state"] not in CLOSED)
        at = max(opened, key=lambda row: row.get("rank", 0), default=None)
        while at and (at.get("rank") or path):
            path.append(at["id"])
            rank = at.get("rank", 0) - 1
            after = (self.rows[i] for i in self.behind.get(at["id"], ()))
            at = next((row for row in after if row.get("rank", 0) == rank), None)
        return frozenset(path)

    @cached_property
    def sessions(self) -> list[list[Row]]:
        """The tasks in somebody's hands, by whose they are."""
        found: dict[Any, list[Row]] = {}
        for row in sorted(self.rows.values(), key=_order):
            if row["state"] in ("in_progress", "stale"):
                found.setdefault((row.get("owner"), row.get("claim", {}).get("session")), []).append(row)
        return list(found.values())


def _matches(row: Row, words: list[str]) -> bool:
    told = (row["id"], row["subject"], row.get("owner"), row.get("claim", {}).get("session"), *row.get("labels", ()))
    text = "\n".join(map(str, told)).casefold()
    return all(word in text for word in words)


def _order(row: Row) -> tuple[Any, ...]:
    """Most urgent first, then what most waits for, then the oldest."""
    return row["priority"], -row.get("rank", 0), row.get("createdAt") or "", row["id"]
