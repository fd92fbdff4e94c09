"""A run from its beginning to its end: the model, the board and the log are found, and what it held is given back."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from .. import config, signals
from ..board import Board
from ..config import Location
from ..core.errors import Refused
from ..core.model import Actor, checked_line
from ..core.record import Record
from ..heartbeat import Heartbeat
from ..onlooker import timestamp, utc_now
from .budget import MAX_TURNS, Budget, Limits, limits
from .claims import Claims, OneTask, WorkingOff, give_back
from .ending import FAILED, INTERRUPTED, Ended
from .files import Workspace
from .helpers import Helpers
from .http import HTTPModel
from .loop import Agent
from .messages import system_message, tool_message, unanswered, user_message
from .models import choose
from .patience import Patient
from .prompts import NOT_BEGUN, SYSTEM, UNKNOWN, goal_of, going_on, opening
from .runs import RunLog, fresh_run_id
from .screen import Screen
from .shell import Consent
from .tools import Toolbox

NOT_FOR_ONE_TASK = ("claim_task", "next_actionable")
"""Tools that a run has no use for which works on one task alone."""


class Options(Record):
    """How a run goes. yes: commands run unasked. outside: files may lie outside the board's worktree.

    given: the flags that a run which goes on with this one needs as well; no log is asked where to send a key.
    """

    limits: Limits
    goal: str | None = None
    task: str | None = None
    yes: bool = False
    outside: bool = False
    given: tuple[str, ...] = ()


def run(
    location: Location,
    *,
    goal: str | None = None,
    actor: str | None = None,
    task: str | None = None,
    model: str | None = None,
    base_url: str | None = None,
    fallback: str | None = None,
    resume: str | None = None,
    yes: bool = False,
    outside: bool = False,
    max_turns: int = MAX_TURNS,
    max_tokens: int | None = None,
    max_seconds: float | None = None,
    max_cost: float | None = None,
    prices: str | None = None,
) -> int:
    """Run an agent on a board. Returns how it ended, one of the statuses in `ending`: 0 finished, 130 interrupted…

    goal: None works the board off. actor: its name, "agent" when neither this nor the environment gives one. task: the
    only one that it works on; a claim of it that its session already has is left as it is at the end. fallback: a model
    that stands in when the other is overloaded. resume: the run to go on with, "" for the latest. Raises Refused when
    the run cannot begin.
    """
    most = limits(max_turns, max_tokens, max_seconds, max_cost, prices or os.environ.get("TASKWALL_PRICES"))
    endpoints = [choose(name, base_url, os.environ) for name in ([model, fallback] if fallback else [model])]
    models = [HTTPModel(endpoint) for endpoint in endpoints]
    runs = os.path.join(location.local, "runs")
    resumed = RunLog.resume(runs, resume) if resume is not None else None
    earlier = resumed.header if resumed else {}
    run_id = resumed.id if resumed else fresh_run_id()
    flags = {"--model": model, "--base-url": base_url, "--fallback": fallback}
    given = [f"{flag}={value}" for flag, value in flags.items() if value] + ["--yes"] * yes + ["--outside"] * outside
    options = Options(most, goal or earlier.get("goal"), task or earlier.get("task"), yes, outside, tuple(given))
    who = _actor(actor, earlier, run_id)
    board = config.open_board(location, who, make=not options.task, beats=True)
    with board.store.write():
        pass  # makes .local, which ignores itself, and tells now rather than later that a board cannot be written
    header = {"actor": who.name, "session": who.session, "model": endpoints[0].model, "at": timestamp(utc_now())}
    log = resumed or RunLog.start(runs, run_id, header | {"goal": options.goal, "task": options.task})
    with log.locked(), signals.ending():
        return Run(location, board, log, options, new_goal=goal).drive(models)


def _actor(given: str | None, header: Mapping[str, Any], run_id: str) -> Actor:
    """Who acts. Each run is a session of its own, which a resumed run takes up again."""
    actor = config.find_actor(given or header.get("actor"), os.environ, default="agent")
    session = os.environ.get("TASKWALL_SESSION") or header.get("session") or run_id
    return actor.replace(session=checked_line(session, "the session"))


class Run:
    """One run. What a session that somebody else began held before is theirs to beat for and to give back."""

    def __init__(
        self, location: Location, board: Board, log: RunLog, options: Options, *, new_goal: str | None
    ) -> None:
        self.location, self.board, self.log, self.options = location, board, log, options
        self.new_goal = new_goal
        self.screen, self.budget = Screen(), Budget(options.limits)
        borrowed = os.environ.get("TASKWALL_SESSION") and (options.task or not log.messages)
        self.theirs = self.held() if borrowed else set()

    def held(self) -> set[str]:
        """The tokens of all that this actor and session hold."""
        return {task.token for task in self.board.store.read().held_by(self.board.actor)}

    def drive(self, models: Sequence[HTTPModel]) -> int:
        """Do the work and, however it ends, give back what is held and say so. Returns how it ended."""
        log, screen = self.log, self.screen
        if screen.terminal:
            screen.note(f"{models[0].name}, run {log.id}")
        ended = Ended(FAILED, "it broke off")
        try:
            ended = self.work(Patient(models, screen.note))
        except KeyboardInterrupt as stop:
            ended = Ended(INTERRUPTED, str(stop) or "interrupted")
        except Refused as refused:
            ended = Ended(refused.exit, refused.message)
            raise
        except BrokenPipeError:  # nobody reads any more; nothing can be said
            raise
        except OSError as error:
            ended = Ended(FAILED, f"it cannot go on: {error}")
        finally:
            with signals.undisturbed():
                why = f"the run {log.id} of {self.board.actor.name} ended: {ended.why}"
                released = give_back(self.board, why, self.theirs)
                with contextlib.suppress(OSError):
                    log.end(ended.exit, ended.why, self.budget.told())
        for line in released:
            screen.say(line)
        if ended.exit:
            again = shlex.join(["taskwall", "agent", f"--resume={log.id}", *self.options.given])
            screen.complain(f"Stopped: {ended.why}\nGo on with: {again}")
        screen.note(self.budget.told())
        return ended.exit

    def work(self, model: Patient) -> Ended:
        """Set everything up around the loop, and run it."""
        actor, log, screen = self.board.actor, self.log, self.screen
        consent = Consent(always=self.options.yes, ask=screen.ask if screen.terminal and sys.stdin.isatty() else None)
        workspace = Workspace(self.location.root, self.location.folder, log.folder, self.options.outside)
        with Heartbeat(config.open_board(self.location, actor, beats=True), but=self.theirs) as heartbeat:
            claims = self.claims(heartbeat)
            without = NOT_FOR_ONE_TASK if self.options.task else ()
            helpers = Helpers(self.location, self.board, model, log, self.budget, workspace)
            delegate = helpers.tool(consent, claims, without)
            toolbox = Toolbox(
                self.board, workspace, consent, log, deadline=self.budget.deadline, more=[delegate], without=without
            )
            with contextlib.closing(toolbox):
                self.open()
                return Agent(model, toolbox, log, screen, self.budget, claims).run()

    def claims(self, heartbeat: Heartbeat) -> Claims:
        """What the run looks after; the one task that it works on is claimed now, unless that was done for it."""
        if not self.options.task:
            kind = Claims if self.options.goal else WorkingOff
            return kind(self.board, heartbeat.take_lost, self.log.path)
        task = self.board.get(self.options.task).row.task
        if task.token not in self.held():
            task = self.board.claim(task.id).row.task
        return OneTask(self.board, heartbeat.take_lost, self.log.path, task)

    def open(self) -> None:
        """Begin the conversation, or answer what was left open in it and go on."""
        log = self.log
        if not log.messages:
            log.add(system_message(SYSTEM))
        if len(log.messages) == 1:
            goal = goal_of(self.board, self.options.goal, self.options.task)
            log.add(user_message(opening(self.board, goal, self.location.root)))
            return
        for number, call in enumerate(unanswered(log.messages)):
            # One call runs after the other, and each result is saved before the next.
            log.add(tool_message(call, NOT_BEGUN if number else UNKNOWN))
        log.add(user_message(going_on(self.board, self.new_goal)))
