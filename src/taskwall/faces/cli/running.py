"""How a command runs: its board is found, its verb is called, the answer is printed."""

from __future__ import annotations

import os
import sys

from ... import config, render
from ...core.errors import Invalid
from ...registry import VERBS
from ...results import Inbox, Listing, Offer
from ...wording import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import SimpleNamespace

    from ...config import Location
    from ...onlooker import Onlooker
    from ...results import Answer
    from .command import Command


def here() -> str:
    """The current folder. Raises Invalid when it is gone: an agent may tidy its worktree away before its last words."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise Invalid("the folder that this was called in is gone", next="change to one that exists") from None


def located(args: SimpleNamespace) -> Location:
    """The board that a command line means; says on standard error what is odd about it."""
    location = config.find_board(args.board, os.environ, here())
    for warning in location.warnings:
        print(f"note: {safe(warning)}", file=sys.stderr)
    return location


def call(command: Command, args: SimpleNamespace) -> int:
    """Most commands: one verb, with those of the words that are its parameters."""
    location, verb = located(args), VERBS[command.verb]
    values = {name: value for name, value in command.values(args).items() if name in verb.names}
    actor = config.find_actor(args.actor, os.environ)
    if verb.writes:
        board: Onlooker = config.open_board(location, actor, make=verb.makes_board)
    else:
        board = config.open_to_look(location, actor)
    answer = verb.run(board, **values)
    for notice in board.store.notices:
        print(f"note: {safe(notice)}", file=sys.stderr)
    if not location.exists:
        print(f"note: made the board {safe(location.path)} ({location.why})", file=sys.stderr)
    return print_answer(answer, args)


def print_answer(answer: Answer, args: SimpleNamespace) -> int:
    """Print an answer as it is asked for: JSON, a table where a person reads it, else text. Returns its exit status."""
    if args.json:
        from ...envelope import dumps, envelope

        print(dumps(envelope(answer)))
    elif getattr(args, "mermaid", False):
        from ...mermaid import mermaid
        from ...overviews import Graph

        assert isinstance(answer, Graph)
        print(mermaid(answer))
    elif isinstance(answer, (Listing, Offer)) and not isinstance(answer, Inbox) and answer.rows and sys.stdout.isatty():
        from .tables import print_table

        print_table(answer)
    elif answer.wide and sys.stdout.isatty():
        import shutil

        from ...lengths import cut

        width = shutil.get_terminal_size().columns
        print("\n".join(cut(line, width) for line in render.text(answer).split("\n")))
    else:
        print(render.text(answer, None if sys.stdout.isatty() else render.MOST))
    return answer.exit
