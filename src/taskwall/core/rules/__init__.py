"""One pure transition per verb: a view, who acts, what is asked and the time → what changes.

No clock, disk, lock or print. A refusal is raised before anything is returned, so a refused request changes nothing.

making: create, update · claiming: claim, complete, release, heartbeat · deciding: ask, answer, hold, resume ·
ending: cancel, reopen · proving: what stands between work and its end · change: what they return and what they share ·
importing: bring_in, with incoming, fitting, remembered, recognising and places; loaded by who asks for it
"""

# mypy: implicit-reexport
# ruff: noqa: F401 - what is imported for type checkers is what others find here

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .change import Change, require_current
    from .claiming import attribute, beat, claim, complete, heartbeat, leave, nothing_to_claim, release
    from .deciding import answer, ask, hold, resume
    from .ending import archivable, cancel, reopen
    from .making import Draft, Edit, create, update
    from .proving import Failed, Proof, Unproven

ROOMS = {
    "change": ("Change", "require_current"),
    "claiming": ("attribute", "beat", "claim", "complete", "heartbeat", "leave", "nothing_to_claim", "release"),
    "deciding": ("answer", "ask", "hold", "resume"),
    "ending": ("archivable", "cancel", "reopen"),
    "making": ("Draft", "Edit", "create", "update"),
    "proving": ("Failed", "Proof", "Unproven"),
}
"""Where each name is. A room is loaded when something of it is asked for: who only looks needs next to none of them."""


def __getattr__(name: str) -> Any:
    room = next((room for room, names in ROOMS.items() if name in names), None)
    if room is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(__import__(f"{__name__}.{room}", fromlist=[name]), name)
