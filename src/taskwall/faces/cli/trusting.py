"""`taskwall trust`: a person sees the commands that a board's tasks would run, and says which of them may."""

from __future__ import annotations

import os

from ...config import agent_around, find_actor, open_board
from ...core.errors import Invalid
from ...core.refusals import Reserved, Untrusted
from ...outcomes import Trusted
from ...trust import Trust

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ...board import Board
    from ...config import Location


def trust(
    location: Location,
    given: str | None,
    names: Sequence[str] = (),
    *,
    list: bool = False,
    revoke: bool = False,
    yes: bool = False,
    ask: Callable[[Trusted], bool] | None = None,
) -> Trusted:
    """Trust the checks of these tasks, of all open ones without names; or revoke that, or list what is trusted.

    ask: shows the commands to the person at the terminal, None when nobody is there.
    Raises Reserved unless a person acts, Untrusted when nobody has agreed, Invalid when a command cannot be shown.
    """
    board = open_board(location, find_actor(given, os.environ))
    known = Trust(location.folder, os.environ)
    trusted = known.commands()
    if list:
        return Trusted("list", tuple(trusted))
    checks = _checks(board, names)
    if revoke:
        gone = tuple(command for command in trusted if command in checks or not names)
        if gone:
            known.revoke(gone)
        return Trusted("revoked", gone)
    _require_person(board)
    new = Trusted("granted", tuple(command for command in checks if command not in trusted))
    if not new.commands:
        return new
    _require_shown(new.commands)
    if not (yes or (ask and ask(new))):
        lines = [f"- {command}" for command in new.commands]
        way = "a person who has read these commands says --yes, or answers y at a terminal"
        raise Untrusted("nothing was trusted; this would be:", lines=lines, next=way)
    with board.store.write():
        pass  # makes .local
    known.grant(new.commands)
    return new


def _checks(board: Board, names: Sequence[str]) -> tuple[str, ...]:
    """The checks of these tasks, of all open ones without names, each once."""
    view = board.store.read()
    tasks = [view.find(name) for name in names] if names else [task for task in view if not task.closed]
    return tuple(dict.fromkeys(command for task in tasks if task.gated for command in task.checks))


def _require_person(board: Board) -> None:
    """An agent does not let a board's commands run, under whatever name; who is a person, the board says as well."""
    names = (board.actor.name, os.environ.get("TASKWALL_ACTOR", ""))
    agents = [name for name in names if name and not board.store.settings.is_person(name)]
    if agent := agent_around(os.environ) or (agents and agents[0]):
        way = "ask a person to read the checks and to run this command in a terminal of their own"
        raise Reserved(f"only a person trusts commands, and this is {agent}", by=("user",), next=way)


def _require_shown(commands: Sequence[str]) -> None:
    # What is approved must be what runs: nothing that hides, turns or erases a part of what is shown.
    if hidden := [command for command in commands if not command.isprintable()]:
        told = "these checks hold characters that do not show, so nobody can approve them"
        lines = [f"- {command!a}" for command in hidden]
        raise Invalid(told, lines=lines, next="write them anew: `taskwall edit ID --check COMMAND`")
