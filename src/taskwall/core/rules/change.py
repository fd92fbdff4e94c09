"""What a transition returns, and the gates and steps that several of them share."""

from __future__ import annotations

from .. import errors, refusals
from ..model import COMPLETED, IN_PROGRESS, PENDING, READ_ONLY_DIALECTS, checked_text, to_the_second
from ..record import Record
from ..state import attempts, is_lapsed, named, open_waits, reservation, unblocked
from ..view import Overlay

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from ..model import Actor, Claim, Task
    from ..view import View


class Change(Record):
    """What a transition changes, in the order in which it is to be written.

    also: tasks the answer names beside the first (children cancelled too, dependents now suspect, a decision).
    already: nothing changed, because it had been done before.
    """

    task: Task
    put: tuple[Task, ...] = ()
    claims: tuple[Claim, ...] = ()
    events: tuple[dict[str, Any], ...] = ()
    unblocked: tuple[Task, ...] = ()
    also: tuple[Task, ...] = ()
    notices: tuple[str, ...] = ()
    already: bool = False


def event(actor: Actor, now: str, verb: str, task: Task, **more: Any) -> dict[str, Any]:
    known = {name: value for name, value in more.items() if value not in (None, "", ())}
    event = {"at": now, "by": actor.name, "session": actor.session, "verb": verb, "task": task.id}
    return event | ({"epoch": task.epoch} if task.epoch else {}) | known


def written(task: Task, now: str, **changes: Any) -> Task:
    return task.replace(updated_at=now, rev=task.rev + 1, **changes)


def note(actor: Actor, now: str, text: str) -> dict[str, str]:
    return {"at": now, "by": actor.name, "text": checked_text(text, "the note")}


def require_writable(task: Task) -> None:
    if task.flaw:
        way = "`taskwall doctor` says what helps; no verb writes to such a file"
        raise errors.Unreadable(f"{task.id} cannot be read: {task.flaw}", task=task.id, next=way)
    if task.dialect in READ_ONLY_DIALECTS:
        told = f"{task.id} is kept in the {task.dialect!r} format, which taskwall reads and never writes"
        way = "import it into a task of this board, or change it with the program that wrote it"
        raise errors.ReadOnly(told, task=task.id, next=way)


def require_open(task: Task) -> None:
    require_writable(task)
    if task.closed:
        by = task.owner if task.status == COMPLETED else None  # who held what is cancelled need not have done that
        told = f"{task.id} is already {task.status}{f' by {by}' if by else ''}"
        way = f"nothing to do; `taskwall reopen {task.id}` takes that back"
        raise refusals.AlreadyResolved(told, task=task.id, by=(by,) if by else (), next=way)


def is_decision(view: View, task: Task) -> bool:
    """Whether completing the task is answering it."""
    return task.question is not None or view.settings.is_person(reservation(view, task))


def require_left_to_persons(view: View, actor: Actor, task: Task, act: str) -> None:
    """Nobody goes round what a person is to decide: an agent takes back no question but its own. Raises Reserved."""
    held = task.status == IN_PROGRESS and view.current(task) is None  # on another machine, which knows for whom it was
    asked = is_decision(view, task) or (held and view.settings.is_person(task.owner))
    if task.closed:  # whoever completed it owns it now
        entry = view.claim(task.id)
        was_theirs = entry is not None and view.settings.is_person(entry.reserved)
        asked = was_theirs or task.question is not None or task.answer is not None
    its_own = task.question is not None and task.created_by == actor.name and not task.closed
    if asked and not its_own and not view.settings.is_person(actor.name):
        told = f"{task.id} is for a person to decide; only a person {act}{'' if task.closed else ', or who asked it'}"
        way = f"put it to them: `taskwall note {task.id} TEXT` (update_task), or ask anew (ask_person)"
        raise refusals.Reserved(told, task=task.id, by=(str(reservation(view, task) or "user"),), next=way)


MAX_NAMED = 20
"""How many tasks in the way a refusal names."""


def require_clear(view: View, task: Task) -> None:
    """The one gate on the way into in_progress and completed."""
    if waits := open_waits(view, task):
        more = f" and {len(waits) - MAX_NAMED} more" if len(waits) > MAX_NAMED else ""
        raise refusals.Blocked(
            f"Blocked by: {', '.join(str(w.subject) for w in waits[:MAX_NAMED])}{more}",
            lines=[f"- {w.text}" for w in waits[:MAX_NAMED]],
            task=task.id,
            by=tuple(str(w.subject) for w in waits),
            next=f"`taskwall why {task.id}` follows the chain; `taskwall next` (next_actionable) offers work",
        )


def holder(view: View, task: Task) -> str:
    claim = view.standing(task)
    since = f" since {to_the_second(claim.since)}" if claim else ""
    return f"{task.owner or 'somebody unnamed'}{since}"


def was_mine(view: View, task: Task, actor: Actor) -> bool:
    """Whether this actor and session held the task under an epoch that somebody else's has replaced."""
    claim = view.claim(task.id)
    if claim is None or actor.holds(claim):
        return claim is not None and claim.open and (claim.epoch < task.epoch or view.is_displaced(task))
    return any(actor.covers(name, session) for name, session, _ in claim.past)


def is_mine(view: View, task: Task, actor: Actor, epoch: int | None) -> bool:
    """Whether a holder's verb is this actor's to use on the task as it is, in progress or after."""
    claim = view.claim(task.id)
    if view.is_displaced(task) and actor.holds(claim):
        return False
    if epoch is not None:
        return epoch == task.epoch
    # A claim that has ended says nothing of a task that somebody since took by hand.
    if claim and view.current(task) and (claim.open or task.status != IN_PROGRESS):
        return actor.holds(claim)
    if claim and claim.open and claim.epoch < task.epoch and actor.holds(claim):
        # Another machine granted a later claim, perhaps to an actor of the same name, unless a merge raised the epoch.
        return claim.since == task.started_at and claim.actor == task.owner
    return task.owner == actor.name


def finished_by(view: View, task: Task, actor: Actor, epoch: int | None) -> bool:
    """Whether the completed task was completed by this actor: under its claim, or as a person without one."""
    claim = view.current(task)
    known = claim is not None and claim.actor == task.owner
    if epoch is not None and known:
        return epoch == task.epoch
    return task.owner == actor.name and (not known or actor.holds(claim))


def superseded(view: View, task: Task) -> refusals.Superseded:
    claim = view.current(task)
    successor = claim.actor if claim else task.owner
    now = f"{holder(view, task)} has it now" if task.status == IN_PROGRESS else f"it is {task.status} now"
    taken = f"was taken over by {successor}" if successor and task.status != IN_PROGRESS else "was taken over"
    return refusals.Superseded(
        f"Superseded: your claim on {task.id} {taken}; {now} (epoch {task.epoch})",
        task=task.id,
        by=(successor,) if successor else (),
        next="stop working on it; `taskwall next` (next_actionable) offers other work",
    )


def require_current(view: View, task: Task, epoch: int | None) -> None:
    """The fence, before which every verb with a token comes. Raises Superseded, NotOwner."""
    if epoch is not None and epoch < task.epoch:
        raise superseded(view, task)
    if epoch is not None and epoch > task.epoch:
        told = f"{task.id}#{epoch} is no claim that was ever granted; {task.id} was claimed {task.epoch} times"
        raise refusals.NotOwner(told, task=task.id, next="give the token that the claim printed, or the id alone")


def _who(actor: Actor, task: Task) -> str:
    return f"this session of it ({actor.session})" if actor.name == task.owner else actor.name


def require_held(view: View, task: Task, actor: Actor, epoch: int | None) -> None:
    """Let only the current holder pass. Raises Superseded, NotOwner, NotClaimed."""
    if task.status == IN_PROGRESS and is_mine(view, task, actor, epoch):
        return
    if (epoch is None or view.is_displaced(task)) and was_mine(view, task, actor):
        raise superseded(view, task)
    if task.status != IN_PROGRESS:
        way = f"claim it first: `taskwall claim {task.id}`"
        raise refusals.NotClaimed(f"{task.id} is {task.status}: nobody holds it", task=task.id, next=way)
    steal = f"`taskwall claim {task.id} --steal --reason …`"
    way = f"if that is you, say so: --as {task.owner}; to take it over: {steal}"
    if is_lapsed(view, task):
        way = f"nobody beats for it any more: `taskwall claim {task.id}` (claim_task) takes it"
    told = f"{task.id} is held by {holder(view, task)}, not by {_who(actor, task)}"
    raise refusals.NotOwner(told, task=task.id, by=(task.owner or "",), next=way)


def ended(view: View, task: Task) -> tuple[Claim, ...]:
    """The ledger entry that closes the claim on a task, for it was open."""
    claim = view.claim(task.id)
    return (claim.replace(open=False, epoch=task.epoch),) if claim and claim.open else ()


def used_up(view: View, task: Task) -> dict[str, Any]:
    """What to store of a lapsed claim that was the last allowed attempt: held for a person, whoever writes next."""
    if not is_lapsed(view, task) or attempts(view, task) < view.settings.max_attempts:
        return {}
    return freed(view, task) | {"attempts": attempts(view, task)}


def freed(view: View, task: Task) -> dict[str, Any]:
    """What makes a task nobody's, but for whom it was reserved."""
    return {"status": PENDING, "owner": reservation(view, task)}


def require_acyclic(cycle: Sequence[str] | None) -> None:
    if cycle:
        told = f"this would close a cycle: {named(cycle, ' → ')} (each waits for the next)"
        raise refusals.Cycle(told, task=cycle[0], by=tuple(cycle), next="leave out one of these edges")


def require_parents(view: View, tasks: Iterable[Task]) -> None:
    for task in tasks:
        parent = view.get(task.parent) if task.parent else None
        if parent and parent.closed:
            told = f"{parent.id} is already {parent.status} and can have no new children"
            way = f"reopen it first: `taskwall reopen {parent.id}`"
            raise refusals.AlreadyResolved(told, task=parent.id, next=way)


def closed(view: View, actor: Actor, task: Task, status: str, now: str, verb: str, **changes: Any) -> Change:
    done = written(task, now, status=status, completed_at=now, **changes)
    log = event(actor, now, verb, done, result=changes.get("result"), answer=changes.get("answer"))
    free = unblocked(view, Overlay(view, [done]), [done.id])
    return Change(done, put=(done,), claims=ended(view, task), events=(log,), unblocked=free)
