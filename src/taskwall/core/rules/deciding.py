"""What persons decide: questions and answers, holds and their end."""

from __future__ import annotations

from .. import errors, refusals
from ..model import COMPLETED, IN_PROGRESS, MAX_SUBJECT, Claim, Task, checked_line, checked_text
from ..state import attempts, is_for, is_lapsed, open_waits, reservation
from ..view import Overlay
from .change import (
    Change,
    closed,
    ended,
    event,
    freed,
    is_decision,
    require_clear,
    require_held,
    require_open,
    require_writable,
    written,
)
from .making import Edit, update
from .proving import proven

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ..model import Actor
    from ..view import View
    from .proving import Proof


def may_answer(view: View, actor: Actor, task: Task) -> bool:
    return view.settings.is_person(actor.name) and is_for(reservation(view, task), actor, view.settings)


def ask(
    view: View,
    actor: Actor,
    task: Task,
    epoch: int | None,
    now: str,
    *,
    question: str,
    options: Sequence[str],
    fresh_id: str,
) -> Change:
    """A decision for `user` becomes a blocker of the task, and the claim is released. Writes the decision first."""
    require_open(task)
    question = checked_text(question, "the question").strip()
    if not question:
        raise errors.Invalid("the question is empty", task=task.id, next="say what the person is to decide")
    first = "".join(c if c.isprintable() else " " for c in question.splitlines()[0]).strip() or "a question"
    decision = Task(
        id=fresh_id,
        subject=first if len(first) <= MAX_SUBJECT else first[: MAX_SUBJECT - 1] + "…",
        owner="user",
        priority=task.priority,
        question=question,
        options=tuple(checked_line(option, "an option") for option in options),
        created_at=now,
        created_by=actor.name,
        updated_at=now,
        rev=1,
    )
    change = update(Overlay(view, [decision]), actor, task, epoch, now, edit=Edit(add_blocked_by=(decision.id,)))
    log = event(actor, now, "ask", decision, about=task.id, question=question)
    return change.replace(put=(decision, *change.put), events=(log, *change.events), also=(decision,))


def answer(
    view: View,
    actor: Actor,
    task: Task,
    epoch: int | None,
    now: str,
    *,
    text: str,
    proof: Proof | None = None,
    **changes: Any,
) -> Change:
    """Complete a decision, without a claim and whatever hold is on it. changes: what else completing it changes.

    Raises Reserved, Blocked, Invalid, and what `proven` raises.
    """
    require_writable(task)
    text = checked_text(text, "the answer").strip()
    if task.status == COMPLETED and (task.answer or "") == text and task.owner == actor.name:
        return Change(task, already=True)
    require_open(task)
    if not is_decision(view, task):
        raise _asks_nothing(view, task)
    if not may_answer(view, actor, task):
        owner = str(reservation(view, task) or "user")
        told = f"{task.id} is for {owner} to decide, not for {actor.name}"
        way = f"if that is you, say so: --as {owner}; else wait for the answer, `taskwall next` offers other work"
        raise refusals.Reserved(told, task=task.id, by=(owner,), next=way)
    if task.question and not text:
        raise errors.Invalid(f"{task.id} asks: {task.question}", task=task.id, next=f"`taskwall answer {task.id} TEXT`")
    require_clear(view, task)
    changes |= proven(task.replace(**changes), proof) | ({"answer": text} if text else {})
    done = closed(view, actor, task, COMPLETED, now, "answer", owner=actor.name, hold=None, **changes)
    # For whom it was, so that reopening it asks them again.
    past = view.claim(task.id)
    entry = Claim(task.id, task.epoch, actor.name, actor.session, now, reserved=reservation(view, task), open=False)
    return done.replace(claims=(entry.replace(past=past.past if past else ()),))


def _asks_nothing(view: View, task: Task) -> errors.Invalid:
    asked = [
        w.subject for w in open_waits(view, task) if w.subject and (t := view.get(w.subject)) and is_decision(view, t)
    ]
    owner = reservation(view, task)
    way = f"claim and complete it: `taskwall claim {task.id}`"
    way = f'{owner} counts as an agent; name persons in board.toml: people = ["{owner}"]' if owner else way
    way = f"answer what it waits for: `taskwall answer {asked[0]} TEXT`" if asked else way
    return errors.Invalid(f"{task.id} asks nothing of a person", task=task.id, by=tuple(asked), next=way)


def hold(view: View, actor: Actor, task: Task, epoch: int | None, now: str, *, reason: str = "") -> Change:
    """Nobody may start the task until a person resumes it. One's own claim is released. Raises NotOwner."""
    require_open(task)
    reason = checked_line(reason or f"held by {actor.name}", "the reason")
    if task.status == IN_PROGRESS and not is_lapsed(view, task):
        require_held(view, task, actor, epoch)
    held = written(task, now, **freed(view, task), hold=reason, attempts=attempts(view, task))
    return Change(held, put=(held,), claims=ended(view, task), events=(event(actor, now, "hold", held, reason=reason),))


def resume(view: View, actor: Actor, task: Task, epoch: int | None, now: str) -> Change:
    """Lift a hold and forgive failed attempts. Raises Held unless a person acts."""
    require_open(task)
    if not view.settings.is_person(actor.name):
        told = f"only a person may resume {task.id}; {actor.name} is an agent"
        raise refusals.Held(told, task=task.id, next=f"ask a person to `taskwall resume {task.id}`")
    if task.hold is None and not attempts(view, task):
        return Change(task, already=True)
    changes: dict[str, Any] = {"hold": None, "attempts": 0}
    if is_lapsed(view, task):
        changes |= freed(view, task)
    free = written(task, now, **changes)
    claims = ended(view, task) if is_lapsed(view, task) else ()
    return Change(free, put=(free,), claims=claims, events=(event(actor, now, "resume", free),))
