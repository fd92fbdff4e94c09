"""A board as somebody works on it: a store, a clock, new ids, and who acts in which session. One method a verb.

Each method opens one transaction, asks the rules, keeps what they return, and answers with a record. Those that only
look are an `Onlooker`'s.
"""

from __future__ import annotations

import os
from itertools import chain, islice

from .core import rules
from .core.errors import Invalid, Refused
from .core.light import suppress
from .core.model import Actor
from .core.state import actionable
from .core.view import age, locate
from .onlooker import DAY_NS, Onlooker, timestamp, utc_now
from .outcomes import Archived, Changed, Created, Released
from .results import Row, rows
from .stores.base import Overtaken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence
    from typing import Any

    from .core.model import Task
    from .core.rules import Change, Draft, Edit, Proof
    from .core.rules.incoming import Brought, Incoming
    from .core.view import View
    from .stores.base import Store, Txn

NEAR = 50
"""How many tasks a claim looks at before it lets others go on and chooses without the lock."""
MOST_DAYS = 36_500
"""Before how many days the archive may be asked to begin: further back no clock need reach."""
MAX_NAMED = 5
"""How many tasks a notice names."""

_CROCKFORD = "0123456789abcdefghjkmnpqrstvwxyz"


def fresh_id() -> str:
    """A new id: 50 random bits."""
    bits = int.from_bytes(os.urandom(7), "big")
    return "task_" + "".join(_CROCKFORD[bits >> shift & 31] for shift in range(0, 50, 5))


class Board(Onlooker):
    """The verbs on one board, for one actor.

    root: the folder under which products must exist and checks run. lease: minutes that a claim gets when its verb
    names none; for sessions that beat. None for claims by hand, which never lapse. trusts: whether a check of this
    board may run as this user; without it, none may.
    """

    def __init__(
        self,
        store: Store,
        actor: Actor,
        *,
        root: str = ".",
        lease: float | None = None,
        trusts: Callable[[str], bool] = lambda _: False,
        clock: Callable[[], int] = utc_now,
        new_id: Callable[[], str] = fresh_id,
    ) -> None:
        super().__init__(store, actor, clock=clock)
        self.root, self.lease, self.trusts = root, lease, trusts
        self._new_id = new_id

    # Making and changing tasks

    def create(self, drafts: Sequence[Draft]) -> Created:
        """Create all of these tasks, or none."""
        start = self._clock()
        times = [timestamp(start + 1000 * n) for n in range(len(drafts))]
        with self.store.write() as txn:
            ids = [self._new_id() for _ in drafts]
            txn.expect(draft.id or made for draft, made in zip(drafts, ids, strict=True))
            change, tasks = rules.create(txn, self.actor, drafts, ids, times)
            made = {task.id for task in change.put}
            txn.apply(change)
            known = tuple(t.id for t in tasks if t.id not in made)
            return Created(rows(txn, tasks), known, (*change.notices, *self._untrusted(tasks), *self._recovered()))

    def _untrusted(self, tasks: Iterable[Task]) -> tuple[str, ...]:
        """Said early: whoever completes such a task may be alone by then."""
        names = [task.id for task in tasks if not all(map(self.trusts, task.checks))]
        way = f"`taskwall trust {' '.join(names[:MAX_NAMED])}`"
        return (f"checks run once a person has seen and trusted them: {way}",) if names else ()

    def bring_in(self, incoming: Sequence[Incoming], *, format: str, board: str, dry_run: bool = False) -> Brought:
        """Create or update the tasks of another board, all or none. dry_run: say what would happen."""
        from .core.rules.importing import bring_in  # imported late: no other verb needs it

        start = self._clock()
        times = [timestamp(start + 1000 * n) for n in range(len(incoming))]
        if dry_run:
            return bring_in(self.store.read(), self.actor, incoming, times, format=format, board=board)
        with self.store.write() as txn:
            brought = bring_in(txn, self.actor, incoming, times, format=format, board=board)
            for task in brought.put:
                txn.put(task)
            txn.log += brought.events
            return brought

    def update(self, name: str, edit: Edit) -> Changed:
        """Change fields, notes, metadata, edges."""
        return self._change(rules.update, name, edit=edit)

    # Claiming and its ends

    def claim(
        self,
        name: str | None = None,
        *,
        ttl: float | None = None,
        steal: bool = False,
        reason: str = "",
        but: Collection[str] = (),
    ) -> Changed:
        """Claim a task; without a name, the best one that this actor may start. but: ids that are not chosen.

        Raises NothingActionable, WaitingOnPerson or Unreadable when there is none.
        """
        ttl = self.lease if ttl is None else ttl
        if name:
            return self._change(rules.claim, name, beside=True, ttl=ttl, steal=steal, reason=reason)
        return self._claim_best(ttl, but)

    def _claim_best(self, ttl: float | None, but: Collection[str]) -> Changed:
        alone, ahead, far = bool(self.store.settings.claims_per_session), None, False
        most: int | None = NEAR
        while True:
            untold = [*self.store.notices]
            overtaken = () if alone else (Overtaken,)  # whatever was in the way, it is told when nobody else writes
            with suppress(*overtaken), self.store.write(alone=alone, choosing=not alone) as txn:
                again = txn.get(ahead.id) if ahead else None
                offered = chain([again] if again else [], txn.unblocked())
                if best := self._best(txn, but, islice(offered, most)):
                    change = rules.claim(txn, self.actor, best, None, self._now(), ttl=ttl, anew=True)
                    return self._apply("claim", txn, change)
                far = next(offered, None) is not None
                if txn.alone and not far:
                    raise rules.nothing_to_claim(txn, self.actor)
            self.store.notices[:] = self.store.notices or untold  # an answer that came to nothing told nobody
            ahead = self._best(self.store.read(), but) if far else None
            alone, most = True, None  # something was perhaps passed over because others were about to change it

    def _best(self, view: View, but: Collection[str], among: Iterable[Task] | None = None) -> Task | None:
        return next((task for task in actionable(view, self.actor, among) if task.id not in but), None)

    def complete(self, name: str, *, result: str = "", products: Sequence[str] = ()) -> Changed:
        """Complete a task, when it keeps what it promised. `products` are promised and verified now."""
        return self._tidied(self._proven(rules.complete, name, result=result, products=products))

    def release(self, name: str, *, reason: str = "", failed: bool = False) -> Changed:
        """Give a claimed task back."""
        return self._change(rules.release, name, beside=True, reason=reason, failed=failed)

    def release_session(
        self, session: str, *, reason: str = "", failed: bool = False, agents: bool = False
    ) -> Released:
        """Give back everything that a session of any actor holds. agents: what its sub-agents hold, too."""
        with self.store.write() as txn:
            held = sorted((t for t in txn.in_progress() if _is_of(txn, t, session, agents)), key=age)
            for task in held:
                claim = txn.claim(task.id)
                assert claim is not None
                holder = Actor(claim.actor, claim.session)
                txn.apply(rules.release(txn, holder, task, None, self._now(), reason=reason, failed=failed))
            return Released(session, rows(txn, [t for task in held if (t := txn.get(task.id))]))

    def beat(self, known: Iterable[str], *, ttl: float, but: Collection[str] = ()) -> tuple[set[str], list[str]]:
        """Renew the leases of all that this session holds. Returns its tokens, and of those known what was lost.

        but: tokens that somebody else looks after.
        """
        with self.store.write(alone=False) as txn:
            renewed, lost = rules.beat(txn, self.actor, known, ttl, but)
            for claim in renewed:
                txn.record(claim)
            return {f"{claim.task}#{claim.epoch}" for claim in renewed}, list(lost)

    def leave(self, *, ttl: float) -> None:
        """Let the leases of all that this session holds run out after so many minutes: its process ends now."""
        with self.store.write(alone=False) as txn:
            for claim in rules.leave(txn, self.actor, ttl):
                txn.record(claim)

    def attribute(self, name: str, agent: str) -> None:
        """Record that a sub-agent made this claim of the session, so that its end can give back just that."""
        with self.store.write() as txn:
            task, epoch = locate(txn, name)
            for claim in rules.attribute(txn, self.actor, task, epoch, agent):
                txn.record(claim)

    def heartbeat(self, name: str, *, ttl: float | None = None) -> Changed:
        """Renew the lease of a claim."""
        return self._change(rules.heartbeat, name, beside=True, ttl=ttl)

    # Persons

    def ask(self, name: str, question: str, options: Sequence[str] = ()) -> Changed:
        """Put a decision for `user` in front of a task."""
        return self._change(rules.ask, name, question=question, options=options, fresh_id=self._new_id())

    def answer(self, name: str, text: str) -> Changed:
        """Complete a decision."""
        return self._proven(rules.answer, name, text=text)

    def hold(self, name: str, reason: str = "") -> Changed:
        """Let nobody start a task until a person resumes it."""
        return self._change(rules.hold, name, reason=reason)

    def resume(self, name: str) -> Changed:
        """Lift a hold."""
        return self._change(rules.resume, name)

    def cancel(self, name: str, *, cascade: bool = False, drop_edges: bool = False) -> Changed:
        """Cancel an open task."""
        return self._tidied(self._change(rules.cancel, name, cascade=cascade, drop_edges=drop_edges))

    def reopen(self, name: str) -> Changed:
        """Take the end of a task back."""
        return self._change(rules.reopen, name)

    def archive(self, older_than: float = 0) -> Archived:
        """Take the tasks out of the way that were finished more than so many days ago."""
        if not 0 <= older_than < MOST_DAYS:
            raise Invalid(f"{older_than:g} days is no age", next="give the days since a task was finished; 0 is all")
        before = timestamp(self._clock() - int(older_than * DAY_NS)) if older_than else None
        finished = [task.id for task in rules.archivable(self.store.read(), before)]
        gone, left = self.store.archive(finished)
        return Archived(tuple(gone), tuple(left))

    def _tidied(self, answer: Changed) -> Changed:
        """The answer, after what was finished long enough ago went to the archive, where the settings want that."""
        days = self.store.settings.archive_days
        if days and not answer.already and not self.store.is_tidy():
            with suppress(Refused):  # it will be tried again
                self.archive(days)
        return answer

    # How every changing verb goes

    def _now(self) -> str:
        return timestamp(self._clock())

    def _change(self, rule: Callable[..., Change], name: str, *, beside: bool = False, **given: Any) -> Changed:
        """Let a rule change one task. beside: it changes who holds that task, and nothing that others rest on."""
        alone = not beside or bool(self.store.settings.claims_per_session)
        with self.store.write(alone=alone) as txn:
            task, epoch = locate(txn, name)
            task = txn.lock(task.id) or task
            rules.require_current(txn, task, epoch)
            return self._apply(rule.__name__, txn, rule(txn, self.actor, task, epoch, self._now(), **given))

    def _proven(self, rule: Callable[..., Change], name: str, **given: Any) -> Changed:
        """Let a rule end a task that may have promised something.

        The proof is made between two transactions, for checks take minutes: in the second everything is asked again,
        and promises that have changed meanwhile are proved again.
        """
        proof = None
        while True:
            try:
                return self._change(rule, name, proof=proof, **given)
            except rules.Unproven as unproven:
                proof = self._prove(unproven.task)

    def _prove(self, task: Task) -> Proof:
        from .proof import Beat, prove  # imported late: few tasks promise anything

        claim = self.store.read().standing(task) if task.checks else None
        beat = Beat(lambda: self.heartbeat(task.token), claim.ttl if claim else None)
        return prove(task, self.root, self.trusts, self.store.settings.check_minutes, beat)

    def _apply(self, verb: str, txn: Txn, change: Change) -> Changed:
        txn.apply(change)
        known = [b for i in txn.blockers(change.task) if (b := txn.get(i))] if verb == "claim" else []
        return Changed(
            verb,
            Row.of(txn, txn.get(change.task.id) or change.task),
            unblocked=rows(txn, change.unblocked),
            also=rows(txn, change.also),
            blockers=rows(txn, known),
            notices=(*change.notices, *self._recovered()),
            already=change.already,
        )

    def _recovered(self) -> tuple[str, ...]:
        """What the store found when it finished the work of a killed process; told once."""
        told = tuple(self.store.notices)
        self.store.notices.clear()
        return told


def _is_of(view: View, task: Task, session: str, agents: bool) -> bool:
    claim = view.standing(task)
    if claim is None:
        return False
    return claim.session == session or (agents and claim.session.startswith(f"{session}/"))
