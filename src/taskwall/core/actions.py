"""What an actor may do with a task as it is now, for faces that offer only that. The rules are asked, not repeated."""

from __future__ import annotations

from . import rules
from .errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .model import Actor, Task
    from .rules import Change
    from .view import View

_ANY = "?"
"""Stands for what the actor has yet to say."""
_ASKED = {"question": _ANY, "options": (), "fresh_id": _ANY}

ACTIONS: tuple[tuple[str, Callable[..., Change], tuple[dict[str, Any], ...]], ...] = (
    ("claim", rules.claim, ({},)),
    ("steal", rules.claim, ({"steal": True, "reason": _ANY},)),
    ("complete", rules.complete, ({},)),
    ("answer", rules.answer, ({"text": _ANY},)),
    ("release", rules.release, ({},)),
    ("ask", rules.ask, (_ASKED,)),
    ("block", rules.ask, (_ASKED,)),  # a question is a new blocker, and any other is refused like it
    ("hold", rules.hold, ({},)),
    ("resume", rules.resume, ({},)),
    ("cancel", rules.cancel, ({}, {"cascade": True}, {"drop_edges": True})),
    ("reopen", rules.reopen, ({},)),
    ("edit", rules.update, ({"edit": rules.Edit(note=_ANY)},)),
)
"""Each action, the rule that decides on it, and the ways to ask for it, of which one must be open."""


def legal_actions(view: View, task: Task, actor: Actor) -> tuple[str, ...]:
    """The names of ACTIONS that would change something and would not be refused.

    What a rule is told of the world outside the board (products, checks) may still refuse it when it is asked for.
    """
    found = [name for name, rule, ways in ACTIONS if any(_changes(rule, view, actor, task, way) for way in ways)]
    # A free task is claimed; taking it over is for one in other hands.
    return tuple(name for name in found if name != "steal" or "claim" not in found)


def _changes(rule: Callable[..., Change], view: View, actor: Actor, task: Task, given: dict[str, Any]) -> bool:
    try:
        return not rule(view, actor, task, None, "", **given).already
    except rules.Unproven:  # all but the proof is there, and that is looked at when it is asked for
        return True
    except Refused:
        return False
