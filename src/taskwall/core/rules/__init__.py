"""One pure transition per verb: a view, who acts, what is asked and the time → what changes.

No clock, disk, lock or print. A refusal is raised before anything is returned, so a refused request changes nothing.

making: create, update · claiming: claim, complete, release, heartbeat · deciding: ask, answer, hold, resume ·
ending: cancel, reopen · proving: what stands between work and its end · change: what they return and what they share ·
importing: bring_in, with incoming, places and fitting; loaded by who asks for it
"""

from .change import Change, locate, require_current
from .claiming import attribute, beat, claim, complete, heartbeat, leave, nothing_to_claim, release
from .deciding import answer, ask, hold, resume
from .ending import archivable, cancel, reopen
from .making import Draft, Edit, create, update
from .proving import Failed, Proof, Unproven

__all__ = [
    "Change",
    "Draft",
    "Edit",
    "Failed",
    "Proof",
    "Unproven",
    "answer",
    "archivable",
    "ask",
    "attribute",
    "beat",
    "cancel",
    "claim",
    "complete",
    "create",
    "heartbeat",
    "hold",
    "leave",
    "locate",
    "nothing_to_claim",
    "release",
    "reopen",
    "require_current",
    "resume",
    "update",
]
