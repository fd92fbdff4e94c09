"""Claiming a task and the ways in which a claim ends."""

from __future__ import annotations

from .. import errors, refusals
from ..model import (
    COMPLETED,
    IN_PROGRESS,
    PENDING,
    Claim,
    checked_glob,
    checked_line,
    checked_text,
    checked_ttl,
    to_the_second,
)
from ..state import HELD, attempts, is_for, is_lapsed, reservation, state, who_must_act
from .change import (
    Change,
    closed,
    ended,
    event,
    finished_by,
    freed,
    holder,
    is_decision,
    is_mine,
    note,
    require_clear,
    require_held,
    require_open,
    require_writable,
    was_mine,
    written,
)
from .deciding import answer, may_answer
from .proving import proven

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from typing import Any

    from ..model import Actor, Task
    from ..view import View
    from .proving import Proof


def claim(
    view: View,
    actor: Actor,
    task: Task,
    epoch: int | None,
    now: str,
    *,
    ttl: float | None = None,
    steal: bool = False,
    reason: str = "",
    anew: bool = False,
) -> Change:
    """pending or stale → in_progress, under the next epoch.

    ttl: minutes after which the claim lapses unless beaten; None for a claim by hand, which never does.
    anew: the task was chosen for the actor, who did not ask for it by id; its own lapsed claim is then superseded too.
    Raises AlreadyClaimed, AlreadyResolved, Blocked, Held, Reserved, Busy, Invalid.
    """
    require_open(task)
    checked_ttl(ttl)
    if steal and not reason.strip():
        raise errors.Invalid("a claim is taken over only with a reason", task=task.id, next="add --reason TEXT")
    lapsed = is_lapsed(view, task)
    if task.status == IN_PROGRESS:
        if actor.named and is_mine(view, task, actor, epoch) and not (anew and lapsed):
            return _renewed(view, task, ttl)
        if not lapsed and not steal:
            raise _taken(view, task)
    _require_startable(view, actor, task)
    held = {"status": IN_PROGRESS, "owner": actor.name, "epoch": task.epoch + 1, "started_at": now}
    claimed = written(task, now, **held, attempts=attempts(view, task))
    why = ", whose lease ran out" if lapsed else f": {reason}" if task.status == IN_PROGRESS else ""
    notices = (f"taken over from {task.owner}{why}",) if why else ()
    log = event(actor, now, "claim", claimed, taken_from=task.owner if why else None, reason=reason)
    granted = _granted(view, actor, task, now, ttl)
    return Change(claimed, put=(claimed,), claims=(granted,), events=(log,), notices=notices)


def _taken(view: View, task: Task) -> errors.Refused:
    told = f"{task.id} is already claimed by {holder(view, task)}"
    way = "`taskwall claim` without an id (claim_task) takes the best free one"
    return refusals.AlreadyClaimed(told, task=task.id, by=(task.owner or "",), next=way)


def nothing_to_claim(view: View, actor: Actor) -> errors.Refused:
    """Why there is no task to claim, as the refusal that fits."""
    waiting = who_must_act(view)
    if mine := view.held_by(actor):
        held = ", ".join(task.id for task in mine[:MAX_NAMED])
        told = f"nothing else is actionable for {actor.name}: you hold {held}"
        way = "finish it (`taskwall done`, complete_task) or give it back (`taskwall release`, release_task)"
        return refusals.NothingActionable(told, lines=waiting.lines(), by=(actor.name,), next=way)
    unfinished, total = view.counts()
    if not unfinished:
        empty = "every task is finished" if total else "the board has no tasks"
        return refusals.NothingActionable(empty, next="add some: `taskwall add`, `taskwall plan` (create_tasks)")
    kinds = (refusals.WaitingOnPerson, errors.Unreadable)
    refusal = next((kind for kind in kinds if kind.code == waiting.code), refusals.NothingActionable)
    by = tuple(dict.fromkeys(who for who, _ in (*waiting.decisions, *waiting.holders, *waiting.reserved)))
    way = "wait for them; `taskwall next` (next_actionable) asks again"
    return refusal(f"nothing is actionable for {actor.name}", lines=waiting.lines(), by=by, next=way)


MAX_NAMED = 5
"""How many held tasks a refusal names."""


def _renewed(view: View, task: Task, ttl: float | None) -> Change:
    """The answer to somebody who claims by id what is theirs already."""
    held = view.current(task)
    lease = (ttl or held.ttl) if held else None
    since = f" since {to_the_second(held.since)}" if held else ""
    yours = f"{task.id} is already yours{since}; if another sub-agent works on it, claim without an id"
    claims = (held.replace(ttl=lease),) if held and lease else ()
    return Change(task, claims=claims, already=True, notices=(yours,))


def _granted(view: View, actor: Actor, task: Task, now: str, ttl: float | None) -> Claim:
    """The ledger entry of a new claim; it remembers the holders whose claims were never given back."""
    held = view.claim(task.id)
    past = held.past + (((held.actor, held.session, held.epoch),) if held.open else ()) if held else ()
    process = actor.process if ttl is not None else ""
    claim = Claim(task.id, task.epoch + 1, actor.name, actor.session, now, reserved=reservation(view, task), ttl=ttl)
    return claim.replace(past=past[-MAX_PAST:], process=process, host=actor.host)


MAX_PAST = 8
"""How many superseded holders a ledger entry remembers."""


def _require_startable(view: View, actor: Actor, task: Task) -> None:
    now = state(view, task.replace(**freed(view, task), attempts=attempts(view, task)))
    if now.name == HELD:
        way = f"a person lifts it: `taskwall resume {task.id}`"
        raise refusals.Held(f"{task.id} is held: {now.reasons[0].text}", task=task.id, next=way)
    require_clear(view, task)
    owner = reservation(view, task)
    if not is_for(owner, actor, view.settings):
        way = "take another task: `taskwall next`"
        raise refusals.Reserved(f"{task.id} is reserved for {owner}", task=task.id, by=(str(owner),), next=way)
    limit = view.settings.claims_per_session
    holding = [t.id for t in view.held_by(actor) if t.id != task.id] if limit else []
    if limit and len(holding) >= limit:
        told = f"this session already holds {len(holding)} of at most {limit}: {', '.join(holding)}"
        raise refusals.Busy(told, task=task.id, by=tuple(holding), next="complete or release one first")


def complete(
    view: View,
    actor: Actor,
    task: Task,
    epoch: int | None,
    now: str,
    *,
    result: str = "",
    products: Sequence[str] = (),
    proof: Proof | None = None,
) -> Change:
    """in_progress → completed, with exactly the tasks that this unblocks; repeating it succeeds.

    products: promised at completion, beside those of the task. A person completes a decision by answering it.
    Raises NotClaimed, Superseded, NotOwner, Blocked, AlreadyResolved, and what `proven` raises.
    """
    require_writable(task)
    if task.status == COMPLETED and finished_by(view, task, actor, epoch):
        return Change(task, already=True)
    if task.closed and not was_mine(view, task, actor):
        require_open(task)
    deciding = is_decision(view, task) and may_answer(view, actor, task)
    if task.status != PENDING or not deciding:
        require_held(view, task, actor, epoch)
    require_clear(view, task)
    changes: dict[str, Any] = {}
    if products:
        changes["products"] = tuple(dict.fromkeys([*task.products, *(checked_glob(glob) for glob in products)]))
    if deciding:
        return answer(view, actor, task, epoch, now, text=result, proof=proof, **changes)
    changes |= proven(task.replace(**changes), proof)
    if result:
        changes["result"] = checked_text(result, "the result")
    return closed(view, actor, task, COMPLETED, now, "complete", **changes)


def release(
    view: View, actor: Actor, task: Task, epoch: int | None, now: str, *, reason: str = "", failed: bool = False
) -> Change:
    """in_progress → pending, reserved again for whom it was before. `failed` counts an attempt.

    Repeating it succeeds. Raises NotClaimed, Superseded, NotOwner.
    """
    require_writable(task)
    if task.status == PENDING and view.current(task) and is_mine(view, task, actor, epoch):
        return Change(task, already=True)
    require_held(view, task, actor, epoch)
    changes: dict[str, Any] = {"attempts": task.attempts + 1} if failed else {}
    if reason:
        changes["notes"] = (*task.notes, note(actor, now, f"released: {reason}"))
    back = written(task, now, **freed(view, task), **changes)
    log = event(actor, now, "release", back, reason=reason, failed=failed or None)
    return Change(back, put=(back,), claims=ended(view, task), events=(log,))


def heartbeat(view: View, actor: Actor, task: Task, epoch: int | None, now: str, *, ttl: float | None = None) -> Change:
    """Renew the lease of a claim; one made by hand has none and stays so unless a ttl is given."""
    require_held(view, task, actor, epoch)
    checked_ttl(ttl)
    held = view.current(task)
    if held is None:
        return Change(task, notices=("nothing is known of this claim here, so it has no lease to renew",), already=True)
    return Change(task, claims=(held.replace(ttl=ttl or held.ttl),))


def _with(processes: str, own: str) -> str:
    """The processes that a claim lives by, this one among them."""
    return ",".join(dict.fromkeys(filter(None, [*processes.split(","), own])))


def leave(view: View, actor: Actor, ttl: float) -> tuple[Claim, ...]:
    """Shorten the leases of all that a session holds, for its process ends; what another process of it beats stays.

    The process is named no more: the claims are not to be stale before the lease is over.
    """
    claims = [claim for task in view.held_by(actor) if (claim := view.standing(task))]
    others = {c.task: ",".join(p for p in c.process.split(",") if p not in ("", actor.process)) for c in claims}
    return tuple(c.replace(ttl=c.ttl if others[c.task] else ttl, process=others[c.task]) for c in claims)


def attribute(view: View, actor: Actor, task: Task, epoch: int | None, agent: str) -> tuple[Claim, ...]:
    """The claim as that of a sub-agent of the session that made it. Raises Superseded, NotOwner, NotClaimed."""
    require_held(view, task, actor, epoch)
    held = view.current(task)
    mine = held is not None and held.session == actor.session
    return (held.replace(session=checked_line(f"{actor.session}/{agent}", "the session")),) if held and mine else ()


def beat(
    view: View, actor: Actor, known: Iterable[str], ttl: float, but: Collection[str] = ()
) -> tuple[tuple[Claim, ...], tuple[str, ...]]:
    """Renew everything that a session holds, claims by hand too, but for some tokens; tell which known ones were lost.

    A session may have several processes: clients start a second server of theirs before the first has ended.
    """
    held = [task for task in view.held_by(actor) if task.token not in but]
    claims = [claim for task in held if (claim := view.standing(task))]
    renewed = tuple(c.replace(ttl=ttl, process=_with(c.process, actor.process)) for c in claims)
    kept = {task.token for task in held}
    lost = []
    for token in known:
        task_id, _, epoch = token.rpartition("#")
        task = view.get(task_id)
        if task and token not in kept and (task.epoch > int(epoch) or view.is_displaced(task)):
            now = f"{holder(view, task)} has {task_id} now"
            lost.append(f"your claim {token} was taken over: {now}; stop working on it")
    return renewed, tuple(lost)
