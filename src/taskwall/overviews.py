"""What is told of all that is open: the board at a glance, chains of reasons, the tree of what waits, what happened."""

from __future__ import annotations

from .core.record import Record
from .core.state import STATES, Waiting, actionable, state, who_must_act
from .results import Answer, Row, rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from .core.model import Actor, Task
    from .core.view import View


class Digest(Answer):
    """The board at a glance: how many tasks are in which state, what this session holds, what is next, who must act.

    others: how many tasks others hold. more: how many may be started beside those in `next`.
    """

    counts: tuple[tuple[str, int], ...]
    held: tuple[Row, ...]
    others: int
    next: tuple[Row, ...]
    more: int
    waiting: Waiting

    @classmethod
    def of(cls, view: View, actor: Actor) -> Digest:
        """What this actor should know of the board."""
        unfinished, total = view.counts()
        found = [state(view, task).name for task in view.by_age()]
        held = view.held_by(actor)
        startable = list(actionable(view, actor))
        waiting = who_must_act(view)
        mine = {task.id for task in held}
        counts = [(name, found.count(name)) for name in STATES if name in found]
        counts += [("finished", total - unfinished)] if total > unfinished else []
        return cls(
            tuple(counts),
            rows(view, held),
            sum(1 for _ in view.in_progress()) - len(held),
            rows(view, startable[:NEXT]),
            max(0, len(startable) - NEXT),
            waiting.replace(
                holders=tuple(end for end in waiting.holders if end[1] not in mine),
                decisions=tuple(end for end in waiting.decisions if end[1] not in mine),
            ),
        )


NEXT = 3
"""How many startable tasks a digest names."""


class Step(Record):
    """One link of a chain of reasons: a task, at `depth` waits from the one that was asked about."""

    row: Row
    depth: int
    seen: bool = False  # its own reasons stand further up


class Why(Answer):
    """The chain of reasons of one task, down to who must act."""

    wide = True

    steps: tuple[Step, ...]
    waiting: Waiting
    more: int = 0


class History(Answer):
    """Events, oldest first."""

    wide = True

    events: tuple[dict[str, Any], ...]
    task: str | None = None
    more: int = 0


class Graph(Answer):
    """The open work as a tree: a task, and below it what waits for it. edges: (blocker, dependent)."""

    wide = True

    steps: tuple[Step, ...]
    edges: tuple[tuple[str, str], ...]
    finished: int = 0
    more: int = 0


MAX_STEPS = 100
"""How many lines a chain or tree has at most."""


def walk(
    view: View, roots: Sequence[Task], after: Callable[[Task], Sequence[str]], *, again: bool = True
) -> tuple[tuple[Step, ...], int]:
    """Depth first from these tasks, each explained once: the first steps, and how many tasks are in none of them.

    again: name a root that was reached before; otherwise it is passed over.
    """
    steps: list[Step] = []
    seen: set[str] = set()
    todo = [(task, 0) for task in reversed(roots)]
    while todo:
        task, depth = todo.pop()
        if task.id in seen and depth == 0 and not again:
            continue
        if len(steps) < MAX_STEPS:
            steps.append(Step(Row.of(view, task), depth, seen=task.id in seen))
        if task.id not in seen:
            seen.add(task.id)
            todo += [(t, depth + 1) for i in reversed(after(task)) if (t := view.get(i))]
    return tuple(steps), len(seen) - len({step.row.task.id for step in steps})
