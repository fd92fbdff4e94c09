"""`taskwall prime`: what an agent should know of the board when it begins, goes on, or has lost its context."""

from __future__ import annotations

import threading

from .. import config
from ..glance import digest
from ..lengths import clipped
from ..wording import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..config import Location
    from ..core.model import Actor
    from ..overviews import Digest

SECONDS = 1.3
"""How long a board may take to answer, so that no client waits for more than two seconds."""

COMMANDS = """\
Commands:
taskwall next (what may be started)
taskwall claim ID (before you work on it)
taskwall done ID -m "what came of it"
taskwall add "subject" -b ID (ID: what it waits for)
taskwall ask ID "what only a person can decide"
"""
SLOW = "It did not answer in time; ask it later: taskwall next"


def prime(location: Location, actor: Actor, seconds: float = SECONDS) -> str:
    """The digest as text of at most 700 tokens; when the board is slow, what is known without it. Raises Refused."""
    return told(location, glance(location, actor, seconds))


def told(location: Location, found: Digest | None) -> str:
    """What was glanced at as text, None when that took too long."""
    where = clipped(safe(location.path), 40)
    return (
        f"taskwall: a task board shared with other agents and people, in {where}\n"
        f"{digest(found) if found else SLOW}\n{COMMANDS.strip()}"
    )


def glance(location: Location, actor: Actor, seconds: float = SECONDS) -> Digest | None:
    """The digest of a board, None when that takes too long. Takes no lock. Raises Refused."""
    found: Digest | None = within(seconds, lambda: config.open_board(location, actor).digest())
    return found


def within(seconds: float, work: Callable[[], Any]) -> Any:
    """What `work` returns or raises; None when it takes longer, and is then left to end with this process."""
    ended: list[tuple[Any, Exception | None]] = []

    def run() -> None:
        try:
            ended.append((work(), None))
        except Exception as error:  # noqa: BLE001 - raised where somebody waits for it
            ended.append((None, error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    value, error = ended[0] if ended else (None, None)
    if error:
        raise error
    return value
