"""`taskwall watch`: what happens on the board, a line each, as it happens; and what becomes of tasks by it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from time import sleep
from typing import Any

from ..board import Board
from ..core.errors import Unreadable
from ..core.state import state
from ..envelope import dumps
from ..onlooker import timestamp, utc_now
from ..overviews import History
from ..render import text

Event = dict[str, Any]

LONGEST_WAIT = 5.0
"""Seconds between two looks at leases, which run out without a change of any file."""

MOMENT = 0.05
"""Seconds within which a change is recorded once its file is written."""

BEHIND = 10_000
"""How many events of before are read with the new ones, so that none is missed for a clock that is late."""


def watch(board: Board, say: Callable[[str], object], *, as_json: bool = False) -> int:
    """Say each event of the board from now on, a line each, until interrupted. as_json: as one JSON object."""
    with suppress(KeyboardInterrupt):
        for event in events(board):
            say((dumps(event) if as_json else text(History((event,)))) + "\n")
    return 0


def events(board: Board) -> Iterator[Event]:
    """Each recorded event as it comes, then an event `became` for each task that is in another state without one.

    That is how an edit by another program shows, a lease that ran out, and what a completed task unblocked.
    """
    changes = board.store.watch()
    recorded, states = board.store.events(), _states(board)
    # From here on, of a long history only the end is read.
    since = recorded[-BEHIND]["at"] if len(recorded) > BEHIND else ""
    known = sum(event["at"] >= since for event in recorded)
    late: list[Event] = []  # recorded after the last look, which may not show them
    while True:
        changes.wait(LONGEST_WAIT)
        try:
            earlier, now = len(board.store.events(since=since)), _states(board)
            if now != states:
                sleep(MOMENT)
            recorded = board.store.events(since=since)
        except Unreadable:  # a server that restarts; what happened meanwhile is told then
            continue
        fresh = recorded[known:] if len(recorded) >= known else recorded  # the log was removed, and begins anew
        known = len(recorded)
        yield from fresh
        named = {event.get("task") for event in (*late, *fresh)}
        for task_id in now.keys() | states.keys():
            before, after = states.get(task_id), now.get(task_id, "gone")
            if before != after and task_id not in named:
                yield {"at": timestamp(utc_now()), "by": "-", "verb": "became", "task": task_id, "state": after}
        states, late = now, recorded[earlier:]


def _states(board: Board) -> dict[str, str]:
    view = board.store.read()
    return {task.id: state(view, task).name for task in view}
