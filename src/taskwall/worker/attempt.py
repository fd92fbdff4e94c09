"""One claim and the agent that works on it, from its start to what the board says in the end.

The board alone judges: what an agent's process says of itself, its exit status above all, decides nothing.
"""

from __future__ import annotations

import math
import os
import time

from ..board import Board
from ..core.errors import Locked, Refused, Unreadable, Unwritable
from ..core.model import CANCELLED, COMPLETED, IN_PROGRESS, Actor, Task
from ..core.refusals import Superseded
from ..core.rules import Edit
from ..core.state import state
from ..core.view import View
from ..heartbeat import Heartbeat
from ..proof import last_lines
from .child import Child
from .outcome import FAILED, GONE, RELEASED, SUPERSEDED, Outcome
from .worktree import Forest, Tree

HELD = "held"
LINGER = 60.0
"""Seconds that an agent has for its last words, once it has completed or released its task, and for a task's file to
come back: git takes it away for a moment when it stashes or checks out."""
TAIL = 400
"""How many of the last bytes of a log are looked at for its last lines."""
MAX_LOG = 256 * 1024 * 1024
"""Bytes of output at which an agent is ended."""


def fate(view: View, task: Task, actor: Actor) -> str:
    """What the board says of a claim, given the task as it was claimed: HELD while it stands."""
    now = view.get(task.id)
    if now is None or now.flaw:
        return GONE
    if now.epoch != task.epoch:
        return SUPERSEDED
    if now.status != IN_PROGRESS:
        return now.status if now.closed else RELEASED
    claim = view.current(now)
    return HELD if claim is None or actor.holds(claim) else SUPERSEDED


def last_words(path: str, lines: int = 1) -> str:
    """The last lines of text in a log, as one."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.path.getsize(path) - TAIL))
            return " / ".join(line.strip() for line in last_lines(file.read(TAIL), lines))
    except OSError:  # somebody has tidied up
        return ""


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:  # somebody has tidied up
        return 0


class Attempt:
    """An agent at work on a claim. board: in the claim's own session. limit: seconds that the agent may take."""

    def __init__(
        self,
        board: Board,
        task: Task,
        child: Child,
        heartbeat: Heartbeat,
        *,
        log: str,
        limit: float,
        tree: Tree | None = None,
    ) -> None:
        self.board, self.task, self.log, self.tree, self.limit = board, task, log, tree, limit
        self._child, self._heartbeat = child, heartbeat
        self._began = time.monotonic()
        self._until, self._lingers = self._began + limit, math.inf
        self._stops = 0
        self._why, self._kind = "", FAILED
        self.excused = ""  # why it is no attempt when nothing came of it
        self._work: str | None = None  # what the forest said, which is asked once
        heartbeat.start()

    @property
    def seconds(self) -> float:
        """How long it has been at work."""
        return time.monotonic() - self._began

    @property
    def left(self) -> float:
        """Seconds until its agent is ended for taking too long."""
        return min(self._until, self._lingers) - time.monotonic()

    def stop(self, kind: str, why: str, *, hurry: bool = False) -> None:
        """End its agent; the first reason counts. kind: what becomes of the claim. hurry: without a grace."""
        if not self._stops:
            self._kind, self._why, self._until = kind, why, math.inf
        for _ in range(self._stops, 1 + hurry):
            self._child.stop()
            self._stops += 1

    def tend(self, view: View | None) -> int | None:
        """End the agent when its claim or its time is over; its exit status once it has ended."""
        ended = self._child.exit()
        if ended is not None:
            self._until = self._lingers = math.inf
            return ended
        now = fate(view, self.task, self.board.actor) if view else HELD
        if now in (SUPERSEDED, CANCELLED):
            self.stop(now, "")
        self._lingers = math.inf if now == HELD or self._stops else min(self._lingers, time.monotonic() + LINGER)
        if self.left <= 0:
            self.stop(FAILED, f"its agent was ended after {self.limit / 60:g} minutes")
        elif _size(self.log) > MAX_LOG:
            self.stop(FAILED, f"its agent was ended: it wrote more than {MAX_LOG} bytes")
        return None

    def close(self, status: int, forest: Forest | None, *, final: bool = False) -> Outcome:
        """Judge by the board what came of it, and give back what its session still holds.

        Raises Locked, Unwritable, Unreadable where that cannot be done now; unless it is final, the lease is then kept.
        """
        log = os.path.relpath(self.log, self.board.root)
        try:
            kind, told = self._judge(status, forest, log)
        except (Refused, OSError) as error:
            if isinstance(error, (Locked, Unwritable, Unreadable)) and not final:
                raise
            kind, told = SUPERSEDED if isinstance(error, Superseded) else GONE, str(error)
        self._heartbeat.stop()
        return Outcome(kind, self.task.id, self.task.subject, self.seconds, log, told, self._work or "")

    def _judge(self, status: int, forest: Forest | None, log: str) -> tuple[str, str]:
        """What became of the claim, and its result or why there is none. Writes that down. Raises Refused, OSError."""
        view = self.board.store.read()
        kind, now = fate(view, self.task, self.board.actor), view.get(self.task.id)
        if self._work is None and forest and self.tree:
            self._work = forest.close(self.tree, self.task, completed=kind == COMPLETED)
        told = self._told(view, now) if now and kind in (COMPLETED, RELEASED) else ""
        if kind == HELD:
            kind, told = self._kind, self._why or f"its agent ended with exit status {status} without completing it"
            if self.excused and not self._why:
                kind, told = RELEASED, f"{told}; {self.excused}"
            said = "" if self._why else last_words(self.log, 3)
            last = [f"its last words: {said}"] if said else []
            reason = [f"{told}, after {self.seconds:.0f} s", *last, f"log: {log}", *filter(None, [self._work])]
            self.board.release(self.task.token, reason="; ".join(reason), failed=kind == FAILED)
            told = "; ".join([told, *last])
        elif self._work and kind not in (SUPERSEDED, GONE):
            self.board.update(self.task.id, Edit(note=self._work))
        self._give_back(view)
        return kind, told

    def _told(self, view: View, now: Task) -> str:
        """The result of a task that is completed; of one given back, why, and what keeps it from being taken again."""
        if now.closed:
            return now.result or ""
        noted = [note["text"] for note in now.notes[len(self.task.notes) :]]
        return "; ".join([*noted, *(reason.text for reason in state(view, now).reasons)])

    def _give_back(self, view: View) -> None:
        """Release what the agent claimed besides, itself or by sub-agents."""
        actor, mine = self.board.actor, self.task.id
        if any(task.id != mine for task in view.held_by(actor)):
            self.board.release_session(actor.session, reason=f"the agent on {mine} ended", agents=True)
