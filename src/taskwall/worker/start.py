"""A worker from its beginning to its end: everything that could refuse it is asked before the first claim."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Sequence
from typing import TextIO

from .. import config
from ..agent.models import choose
from ..config import Location
from ..core.errors import Invalid
from .command import PROMPT, checked_command
from .display import Display
from .loop import Orders, Worker
from .notices import Notices, read_notify
from .outcome import Worked
from .worktree import Forest

MOST_AGENTS = 256


def run(
    location: Location,
    *,
    actor: str | None = None,
    command: Sequence[str] = (),
    agents: int = 1,
    minutes: float = 60,
    until_empty: bool = False,
    forever: bool = False,
    worktree: bool = False,
    base: str | None = None,
    merge: bool = False,
    out: TextIO | None = None,
) -> Worked:
    """Keep agents on a board. What it tells meanwhile goes to `out`. Raises Refused when it cannot begin."""
    orders = _orders(command, agents, minutes, until_empty=until_empty, forever=forever)
    if (base or merge) and not worktree:
        raise Invalid("--base and --merge are about worktrees", next="add --worktree")
    board = config.open_board(location, config.find_actor(actor, os.environ, default="agent"), beats=True)
    if board.store.settings.is_person(board.actor.name):
        raise Invalid(f"{board.actor.name} is a person, and agents are none", next="name the agents: --as NAME")
    forest = Forest(location, base or "HEAD", merge=merge) if worktree else None
    wanted = read_notify(os.environ)
    with board.store.write():
        pass  # tells now rather than later that a board cannot be written
    display = Display(out or sys.stdout)
    if forest and (left := forest.left()):
        display.say(f"note: earlier claims left work in {forest.folder}: {', '.join(left)}")
    say = lambda line: display.say(f"note: {line}")  # noqa: E731
    notices = Notices(wanted, location.path, location.local, say) if wanted else None
    try:
        return Worker(location, board, orders, display, forest=forest, notices=notices).run()
    finally:
        display.close()
        if notices:
            notices.close()


def _orders(command: Sequence[str], agents: int, minutes: float, *, until_empty: bool, forever: bool) -> Orders:
    """What the worker is to do, when it can be done. Raises Invalid."""
    if not 1 <= agents <= MOST_AGENTS:
        raise Invalid(f"{agents} agents are not possible", next=f"give 1 to {MOST_AGENTS}")
    if not 0 < minutes < math.inf:
        raise Invalid(f"a limit of {minutes:g} minutes is not possible", next="give more than 0")
    if forever and until_empty:
        raise Invalid("--forever and --until-empty exclude each other", next="choose one")
    if not command:
        try:
            choose(None, None, os.environ)  # without a model our agent would fail at every task
        except Invalid as error:
            another = f"name another agent, such as `taskwall work -- claude -p {PROMPT}`"
            raise Invalid(error.message, next=f"{another}; or {error.next}") from None
    return Orders(checked_command(command, os.environ), agents, minutes, forever)
