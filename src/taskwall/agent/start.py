"""A run from its beginning to its end: the model, the board and the log are found, and what it held is given back."""

from __future__ import annotations

import contextlib
import os
import sys

from .. import config, signals
from ..board import timestamp, utc_now
from ..core.errors import Refused
from ..core.model import checked_line
from ..heartbeat import Heartbeat
from .files import Workspace
from .loop import Agent, Ended
from .messages import system_message, tool_message, unanswered, user_message
from .models import OpenAIModel, choose
from .prompts import SYSTEM, UNKNOWN, going_on, opening
from .runs import RunLog, fresh_run_id
from .screen import Screen
from .shell import Consent
from .tools import Toolbox

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from ..board import Board
    from ..config import Location
    from ..core.model import Actor

MAX_TURNS = 100
"""How often a model is asked in one run, unless told otherwise."""


def run(
    location: Location,
    *,
    goal: str | None = None,
    actor: str | None = None,
    model: str | None = None,
    base_url: str | None = None,
    yes: bool = False,
    resume: str | None = None,
    max_turns: int = MAX_TURNS,
    outside: bool = False,
) -> int:
    """Run an agent on a board. Returns 0 when it finished, 1 after an error or its last turn, 130 when interrupted.

    goal: None works the board off. actor: its name, "agent" when neither this nor the environment gives one. yes:
    commands run unasked. resume: the run to go on with, "" for the latest. outside: files may lie outside the
    board's worktree. Raises Refused when the run cannot begin.
    """
    endpoint = choose(model, base_url, os.environ)
    runs = os.path.join(location.path, ".local", "runs")
    resumed = RunLog.resume(runs, resume) if resume is not None else None
    run_id = resumed.id if resumed else fresh_run_id()
    who = _actor(actor, resumed.header if resumed else {}, run_id)
    board = config.open_board(location, who, make=True, beats=True)
    with board.store.write():
        pass  # makes .local, which ignores itself, and tells now rather than later that a board cannot be written
    # A session that somebody else began may hold tasks already; those are theirs to give back.
    theirs = _held(board) if os.environ.get("TASKWALL_SESSION") and not resumed else set()
    heartbeat = Heartbeat(config.open_board(location, who, beats=True), but=theirs)
    header = {
        "actor": who.name,
        "session": who.session,
        "model": endpoint.model,
        "goal": goal,
        "at": timestamp(utc_now()),
    }
    log = resumed or RunLog.start(runs, run_id, header)
    screen = Screen()

    def work() -> Ended:
        consent = Consent(always=yes, ask=screen.ask if screen.terminal and sys.stdin.isatty() else None)
        workspace = Workspace(location.root, location.path, log.folder, outside)
        toolbox = Toolbox(board, workspace, consent, log)
        _open(log, board, goal or log.header.get("goal"), location.root, new_goal=goal)
        return Agent(OpenAIModel(endpoint), toolbox, log, screen, max_turns, heartbeat.take_lost).run()

    with log.locked(), signals.ending(), heartbeat:
        return _drive(work, board, log, screen, theirs)


def _held(board: Board) -> set[str]:
    return {task.token for task in board.store.read().held_by(board.actor)}


def _actor(given: str | None, header: Mapping[str, Any], run_id: str) -> Actor:
    """Who acts. Each run is a session of its own, which a resumed run takes up again."""
    actor = config.find_actor(given or header.get("actor"), os.environ, default="agent")
    session = os.environ.get("TASKWALL_SESSION") or header.get("session") or run_id
    return actor.replace(session=checked_line(session, "the session"))


def _open(log: RunLog, board: Board, goal: str | None, workspace: str, *, new_goal: str | None) -> None:
    """Begin the conversation, or answer what was left open in it and go on."""
    if not log.messages:
        log.add(system_message(SYSTEM))
    if len(log.messages) == 1:
        log.add(user_message(opening(board, goal, workspace)))
        return
    for call in unanswered(log.messages):
        log.add(tool_message(call, UNKNOWN))
    log.add(user_message(going_on(board, new_goal)))


def _drive(work: Callable[[], Ended], board: Board, log: RunLog, screen: Screen, theirs: set[str]) -> int:
    """Do the work and, however it ends, give back what is held and say so."""
    ended = Ended(1, "it broke off")
    try:
        ended = work()
    except KeyboardInterrupt as stop:
        ended = Ended(130, str(stop) or "interrupted")
    except BrokenPipeError:  # nobody reads any more; nothing can be said
        raise
    except OSError as error:
        ended = Ended(1, f"it cannot go on: {error}")
    finally:
        with signals.undisturbed():
            released = give_back(board, f"the run {log.id} of {board.actor.name} ended: {ended.why}", theirs)
            with contextlib.suppress(OSError):
                log.end(ended.exit, ended.why)
    for line in released:
        screen.say(line)
    if ended.exit:
        screen.complain(f"Stopped: {ended.why}\nGo on with: taskwall agent --resume={log.id}")
    return ended.exit


def give_back(board: Board, why: str, theirs: set[str]) -> list[str]:
    """Release everything that this actor and session hold, but for tokens of others; a line about each."""
    lines = []
    for task in board.store.read().held_by(board.actor):
        if task.token in theirs:
            continue
        try:
            board.release(task.token, reason=why)
            lines.append(f"Released {task.id} ({task.subject}): {why}")
        except Refused as error:
            lines.append(f"{task.id} could not be released: {error.message}")
    return lines
