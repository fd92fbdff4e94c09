"""Proof of done: what a task promised is looked at outside the board, and judged here; who may take a promise back."""

from __future__ import annotations

from .. import refusals
from ..model import PENDING
from ..record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..model import Actor, Task
    from ..view import View


class Failed(Record):
    """A check that did not pass. end: how it ended, in words; output: its last lines."""

    command: str
    end: str
    output: tuple[str, ...] = ()


class Proof(Record):
    """What was found of the promises of one claim on a task. It proves nothing of another epoch or other promises.

    evidence: what is stored when nothing is missing, untrusted or failed.
    """

    task: str
    epoch: int
    products: tuple[str, ...]
    checks: tuple[str, ...]
    missing: tuple[str, ...] = ()
    untrusted: tuple[str, ...] = ()
    failed: Failed | None = None
    evidence: dict[str, Any] = {}

    def covers(self, task: Task) -> bool:
        """Whether this is the proof of what the task promises now."""
        mine = (self.task, self.epoch, self.products, self.checks)
        return mine == (task.id, task.epoch, task.products, task.checks)


class Unproven(Exception):
    """Raised before a task ends whose promises nobody has looked at: look, outside the lock, and ask again.

    task: as it would end, with all that it promises.
    """

    def __init__(self, task: Task) -> None:
        super().__init__(f"{task.id} is unproven")
        self.task = task


def proven(task: Task, proof: Proof | None) -> dict[str, Any]:
    """What completing a task stores of its proof. Raises Unproven, Untrusted, ProductsMissing, CheckFailed."""
    if not task.gated or not (task.products or task.checks):
        return {}
    if proof is None or not proof.covers(task):
        raise Unproven(task)
    if proof.untrusted:
        raise refusals.Untrusted(
            f"{task.id} has checks that may not run here until a person has seen and trusted them",
            lines=[f"- {command}" for command in proof.untrusted],
            task=task.id,
            by=proof.untrusted,
            next=f"a person looks at them with `taskwall trust {task.id}`; then complete it again",
        )
    if proof.missing:
        told = f"{task.id} promised what does not exist: {', '.join(proof.missing)}"
        raise refusals.ProductsMissing(told, task=task.id, by=proof.missing, next="make them, then complete it")
    if proof.failed:
        raise refusals.CheckFailed(
            f"{task.id} is not done: {proof.failed.command}: {proof.failed.end}",
            lines=[f"  {line}" for line in proof.failed.output],
            task=task.id,
            by=(proof.failed.command,),
            next="mend what it found, then complete it again",
        )
    return {"evidence": proof.evidence}


def require_kept_promises(view: View, actor: Actor, task: Task, changes: dict[str, Any]) -> None:
    """Promises only grow in an agent's hands: else whoever cannot keep one would take it back. Raises Reserved.

    A person changes any; an agent those of a task of its own that was never claimed.
    """
    if not task.gated or view.settings.is_person(actor.name):
        return
    if task.created_by == actor.name and task.status == PENDING and not task.epoch:
        return
    kept = ((now, changes.get(name, now)) for name, now in (("products", task.products), ("checks", task.checks)))
    if gone := [promise for now, after in kept for promise in now if promise not in after]:
        told = f"only a person takes back what {task.id} promised: {', '.join(gone)}"
        way = "keep it and add to it, or put it to a person (`taskwall ask`, ask_person)"
        raise refusals.Reserved(told, task=task.id, by=("user",), next=way)
