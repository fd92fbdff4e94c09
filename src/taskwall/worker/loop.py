"""The worker: one thread that claims a task for each free agent, tends the agents, and waits to be woken."""

from __future__ import annotations

import os
import time
from collections.abc import Collection
from contextlib import suppress

from .. import config
from ..agent.ending import NO_MODEL
from ..agent.runs import fresh_run_id
from ..board import Board
from ..config import Location
from ..core.errors import Invalid, ReadOnly, Refused, Unreadable
from ..core.model import BY_HAND, COMPLETED, LIVE, Actor, Claim, Task
from ..core.record import Record
from ..core.refusals import NothingActionable, WaitingOnPerson
from ..core.rules import Edit
from ..core.state import actionable
from ..core.view import View
from ..heartbeat import Heartbeat
from ..outcomes import Changed
from ..process import is_gone, this_host
from ..results import Offer
from .attempt import Attempt
from .bell import Bell
from .child import Child
from .command import OURS, environment, filled, reads_prompt
from .display import Display
from .notices import Notices
from .outcome import FAILED, RELEASED, STOPPED, Outcome, Worked, unread
from .pace import Pace
from .prompt import prompt_for, where
from .worktree import Forest, GitFailed, Tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..stores.base import Store

LOOK_AGAIN, LONGEST_WAIT, SECOND = 5.0, 60.0, 1.0
"""Seconds until the next look: where something may happen without a trace on the board, in any case, on a terminal."""

SLOW = 5.0
"""Seconds after which a look tells that the board was out of reach, for its agents too."""


class Orders(Record):
    """What a worker is to do. command: of an agent, checked. minutes: that one may take."""

    command: tuple[str, ...]
    agents: int = 1
    minutes: float = 60
    forever: bool = False


class Worker:
    """Keeps agents on a board until it is over. board: of an actor that lives as long as this process."""

    def __init__(
        self,
        location: Location,
        board: Board,
        orders: Orders,
        display: Display,
        *,
        forest: Forest | None = None,
        notices: Notices | None = None,
    ) -> None:
        self.location, self.board, self.orders, self.display = location, board, orders, display
        self.forest, self.notices = forest, notices
        self.attempts: dict[int, Attempt] = {}
        self.outcomes: list[Outcome] = []
        self.pace = Pace(orders.agents)
        self.bell = Bell()
        self.view: View | None = None
        self.awaited: list[str] | None = None
        self.untrusted: set[str] = set()
        self.late: set[str] = set()  # what waits until another worker has merged
        self.trouble = ""
        # For the threads that beat: they share it, but never with this thread, whose views live longer than a moment.
        self._beating = config.open_board(location, board.actor, beats=True).store

    def run(self) -> Worked:
        """Work until nothing is left to do or to wait for, or until a signal asks to end."""
        began = time.monotonic()
        watch = self.board.store.watch()
        with self.bell.hung():
            try:
                with suppress(Refused):  # said at the first turn, if it is still so
                    self._unmerged(self.board.store.read())  # what a worker that was killed has left
                while (offer := self._turn()) is None:
                    self.display.show(self.attempts, self.outcomes)
                    patience, self.view = self._patience(), None  # a view may keep a transaction open
                    watch.wait(patience, self.bell.wait)
            finally:
                self._abandon()
        seconds, interrupted = time.monotonic() - began, self.bell.asked > 0
        return Worked(tuple(self.outcomes), seconds, offer, tuple(sorted(self.untrusted)), interrupted=interrupted)

    def _turn(self) -> Offer | None:
        """All that can be done now. Returns what `next` answers once the work is over."""
        self.view = self._look()
        try:
            self._tend()
            if self.bell.asked:
                return self._stop()
            if self.view is None:
                return None
            self._fill()
            if self.notices:
                self.notices.look(self.board.store.read())
            return self._over()
        except ReadOnly:  # moved away, or this is nobody who may write: that will not change by itself
            if not self.attempts:
                raise
            return self._stop()
        except Refused as error:  # somebody keeps the lock, the disk is full, or the index is damaged
            self._complain(error)
            self.pace.stumbled()
            return None

    def _look(self) -> View | None:
        """The board as it is, None while it cannot be read."""
        began, view = time.monotonic(), None
        try:
            view = self.board.store.read()
        except Refused as error:
            self._complain(error)
        if view is None or time.monotonic() - began > SLOW:
            for attempt in self.attempts.values():
                attempt.excused = "the board could not be reached meanwhile"
        return view

    def _complain(self, error: Refused) -> None:
        """Say what is wrong with the board, once and not at every look."""
        if error.message != self.trouble:
            self.trouble = error.message
            self.display.say(self.trouble)

    def _tend(self) -> None:
        for number, attempt in list(self.attempts.items()):
            status = attempt.tend(self.view)
            if status is None:
                continue
            if status == NO_MODEL and self.orders.command == OURS:
                attempt.excused = "no model answered"
            try:
                outcome = attempt.close(status, self.forest, final=self.bell.asked > 0)
            except Refused as error:
                self._complain(error)
                continue
            del self.attempts[number]
            self._settle(number, attempt, outcome)

    def _settle(self, number: int, attempt: Attempt, outcome: Outcome) -> None:
        self.outcomes.append(outcome)
        self.display.ended(number, outcome)
        if outcome.kind == COMPLETED:
            self.pace.succeeded()
        elif outcome.kind == RELEASED and not attempt.excused:
            self.pace.given_back(outcome.task)
        elif outcome.kind in (FAILED, RELEASED):
            self.pace.failed(outcome.task)

    def _stop(self) -> Offer | None:
        for attempt in self.attempts.values():
            attempt.stop(STOPPED, "the worker was asked to end", hurry=self.bell.asked > 1)
        return None if self.attempts else Offer(())

    def _abandon(self) -> None:
        """Whatever broke the worker off (nobody reads its output any more): what its agents hold is given back."""
        for attempt in self.attempts.values():
            attempt.stop(STOPPED, "the worker broke off", hurry=True)
        for attempt in self.attempts.values():
            while (status := attempt.tend(None)) is None:
                self.bell.wait(SECOND)
            attempt.close(status, self.forest, final=True)

    # Taking tasks

    def _fill(self) -> None:
        """Put every free agent on a task, one after the other, so that they do not run for the same one."""
        while len(self.attempts) < self.orders.agents and not self.pace.pausing():
            view = self.board.store.read()
            but = self.pace.cooling()  # asked without the lock, which others need
            self.late = self._unmerged(view) if self._is_any_free(view, but) else set()
            but |= self.late
            if not self._is_any_free(view, but):
                return
            board = self._session(self.board.store, self.board.actor.replace(session=fresh_run_id()))
            try:
                claimed = board.claim(but=but | self.untrusted)
            except (NothingActionable, WaitingOnPerson, Unreadable):
                return
            self._begin(board, claimed)

    def _is_any_free(self, view: View, but: Collection[str] = ()) -> bool:
        """Whether there is a task to take beside these.

        Better ones are passed over whose checks may not run here: no agent could complete them.
        """
        self.untrusted = set()
        for task in actionable(view, self.board.actor):
            if task.id in but:
                continue
            if not task.gated or all(map(self.board.trusts, task.checks)):
                return True
            self.untrusted.add(task.id)
        return False

    def _session(self, store: Store, actor: Actor) -> Board:
        """The board in a session of its own."""
        return Board(store, actor, root=self.board.root, lease=self.board.lease)

    def _unmerged(self, view: View) -> set[str]:
        """What waits for tasks that may be completed, but are not merged: it would begin without their work.

        Raises Unreadable when git does not say.
        """
        if self.forest is None or not self.forest.merge:
            return set()
        ours = {attempt.task.id: attempt.task for attempt in self.attempts.values()}
        try:
            found = [each for each in self.forest.unmerged(view) if each[0].id not in ours]
        except GitFailed as error:
            raise Unreadable(str(error)) from None
        late = [task for task, branch in found if not self._settled(self.forest, view, task, branch)]
        late += [*ours.values(), *view.in_progress()]  # any of them may be completed before a task is claimed
        return {waiting.id for task in late for waiting in view.waiters(task)}

    def _settled(self, forest: Forest, view: View, task: Task, branch: str) -> bool:
        """Whether completed work is merged now, or a note says why not, for nobody is about to do that."""
        claim = view.claim(task.id)
        others = claim.process.split(",") if claim and claim.process and claim.host == this_host() else []
        if any(not is_gone(each) for each in others if each != self.board.actor.process):
            return False
        told = forest.settle(task, branch)
        self.display.say(f"{task.id} was left unmerged: {told}")
        try:
            self.board.update(task.id, Edit(note=told))
        except Refused as error:
            self._complain(error)
            return False
        return True

    def _begin(self, board: Board, claimed: Changed) -> None:
        """Start an agent on a claim; where none can be started, the claim is given back."""
        number = min(set(range(1, self.orders.agents + 1)) - self.attempts.keys())
        task, tree = claimed.row.task, None
        try:
            tree = self.forest.grow(task) if self.forest else None
            self.attempts[number] = self._started(board, claimed, tree)
        except (GitFailed, OSError, Refused) as error:
            if tree and self.forest:
                self.forest.close(tree, task, completed=False)
            board.release(task.token, reason=f"no agent could be started: {error}")
            self.pace.failed(task.id)
            self.display.say(f"{task.id} was given back: no agent could be started: {error}")
            return
        self.awaited = None
        self.display.begun(number, task)

    def _started(self, board: Board, claimed: Changed, tree: Tree | None) -> Attempt:
        task, actor, command = claimed.row.task, board.actor, self.orders.command
        heartbeat = Heartbeat(self._session(self._beating, actor))
        prompt = where(tree) if command == OURS else prompt_for(claimed, actor.name, tree)
        path, log = self._open_log(actor.session)
        try:
            child = Child(
                filled(command, prompt, task.id),
                folder=self.forest.folder_in(tree) if tree and self.forest else self.location.root,
                env=environment(os.environ, self.location.address, actor.name, actor.session, task.id),
                log=log,
                said=prompt if reads_prompt(command) else None,
            )
        finally:
            os.close(log)
        return Attempt(board, task, child, heartbeat, log=path, limit=60 * self.orders.minutes, tree=tree)

    def _open_log(self, session: str) -> tuple[str, int]:
        """The path of a new log and its descriptor."""
        runs = os.path.join(self.location.local, "runs")
        if os.path.islink(runs):  # it came with a repository and would lead what we write out of the board
            raise Invalid(f"{runs} is a symbolic link", next="look at what put it there")
        os.makedirs(runs, exist_ok=True)
        path = os.path.join(runs, f"{session}.log")
        return path, os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_NOFOLLOW, 0o644)

    # Waiting

    def _over(self) -> Offer | None:
        """What `next` answers when no agent is at work, none can be put to work, and nobody else's work is awaited."""
        if self.attempts:
            return None
        if not self.orders.forever and not self._awaits(self.board.store.read()):
            with self.board.store.write() as sure:  # under the lock nobody is between a task's file and its claim
                if not self._awaits(sure):
                    return self.board.next()
        offer = self.board.next()
        lines = [*offer.waiting.lines(), *unread(self.untrusted)] or ["nothing is open"]
        if (self.untrusted or not offer.rows) and lines != self.awaited:
            self.awaited = lines
            for line in lines:
                self.display.say(f"idle: {line}")
        return None

    def _awaits(self, view: View) -> bool:
        """Whether there is something to take, now or after a pause, or somebody else at work."""
        others = (claim.lease in (LIVE, BY_HAND) for claim in self._others(view))
        return any(others) or self._is_any_free(view)

    def _others(self, view: View) -> list[Claim]:
        """The claims that other agents hold. People are not waited for."""
        ours = {attempt.board.actor.session for attempt in self.attempts.values()}
        held = [task for task in view.in_progress() if not view.settings.is_person(task.owner)]
        return [claim for task in held if (claim := view.standing(task)) and claim.session not in ours]

    def _patience(self) -> float:
        """Seconds until something is due that no bell rings for."""
        due = [LOOK_AGAIN if self.attempts or self.view is None else LONGEST_WAIT, *self.pace.due()]
        due += [attempt.left for attempt in self.attempts.values()]
        if self.view and len(self.attempts) < self.orders.agents:
            others = self._others(self.view)
            due += [60 * claim.left for claim in others if claim.left is not None]
            due += [LOOK_AGAIN] if others or self.late else []  # a process that is gone changes nothing on the board
        due += [SECOND] if self.display.terminal else []
        return max(min(due), 0.01)
