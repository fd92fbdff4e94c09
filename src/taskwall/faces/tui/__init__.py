"""The wall in a terminal: the board, the graph as a tree, the agents, the inbox and each task; live, and it acts."""

from __future__ import annotations

import os
import sys
from functools import partial

from ... import config
from ...config import Location
from ...core.errors import Invalid


def run(location: Location, actor: str | None) -> int:
    """Show the board until the person at the terminal leaves it. Raises Invalid where it cannot be shown."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Invalid("`taskwall tui` needs a terminal", next="`taskwall list` and `taskwall graph` print the board")
    try:
        import textual  # noqa: F401 - an extra
    except ModuleNotFoundError:
        raise Invalid("`taskwall tui` needs the package textual", next="pip install 'taskwall[tui]'") from None
    from ..words import language_of
    from .app import Wall

    open_board = partial(config.open_board, location, config.find_actor(actor, os.environ))
    open_board()  # a board that is not there is refused before the screen is taken
    name = location.path.rpartition("=")[2] if location.url else os.path.basename(location.root)
    wall = Wall(open_board, name, language_of(os.environ))
    wall.run()
    return wall.return_code or 0
