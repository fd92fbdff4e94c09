"""What a rule may ask of a board: `View`, and `Overlay`, the same board with some tasks changed."""

from __future__ import annotations

from .graph import longest_chains, natural
from .light import cached_property
from .model import COMPLETED, IN_PROGRESS, Settings, Task, composed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from .model import Actor, Claim

    Ids = dict[str, list[str]]


def age(task: Task) -> tuple[str, ById]:
    """Sort key: tasks of unknown age first, then the older, then the natural order of ids."""
    return (task.created_at or "", ById(task.id))


class ById:
    """Sort key: an id, in the natural order. Worked out when it is compared, for few tasks are of one age."""

    def __init__(self, task_id: str) -> None:
        self.task_id = task_id

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ById) and self.task_id == other.task_id

    def __lt__(self, other: ById) -> bool:
        # `1` and `01` are the same number.
        return (natural(self.task_id), self.task_id) < (natural(other.task_id), other.task_id)

    __hash__ = None  # type: ignore[assignment]


def _by_age(tasks: list[Task]) -> list[Task]:
    # The order in which files were found is no order: every store gives the same answer.
    return sorted(tasks, key=age) if len(tasks) > 1 else tasks


class View:
    """A consistent state of one board: its tasks, the latest claim on each, its settings.

    Everything below `__iter__` follows from `get`, `claim` and iteration; a store with an index answers it faster.
    Archived tasks are answered by `get`, and named by `archived_ids`: they count as blockers, and no other question
    finds them.
    """

    def __init__(
        self,
        tasks: Iterable[Task],
        claims: Mapping[str, Claim],
        settings: Settings,
        archived: Mapping[str, Task] | None = None,
    ) -> None:
        self.settings = settings
        self._tasks = {task.id: task for task in tasks}
        self._claims, self._archived = claims, archived or {}

    def get(self, task_id: str) -> Task | None:
        """The task with exactly this id, archived or not."""
        return self._tasks.get(task_id) or self._archived.get(task_id)

    def is_completed(self, task_id: str) -> bool:
        """Whether a task with exactly this id is completed: all that is asked of most blockers."""
        task = self.get(task_id)
        return task is not None and not task.flaw and task.status == COMPLETED

    def archived_ids(self) -> Iterable[str]:
        """The ids of all archived tasks, in no order: seldom asked."""
        return self._archived

    def expect(self, ids: Iterable[str]) -> None:
        """Said before much is asked about these: what lies behind a wire fetches it at once."""

    def lock(self, task_id: str) -> Task | None:
        """The task with exactly this id; where this is a transaction, nobody else changes it until that ends."""
        return self.get(task_id)

    def claim(self, task_id: str) -> Claim | None:
        """The latest claim on this task, whether it still stands or not."""
        return self._claims.get(task_id)

    def __iter__(self) -> Iterator[Task]:
        return iter(self._tasks.values())

    def __contains__(self, task_id: str) -> bool:
        return self.get(task_id) is not None

    def counts(self, after: Task | None = None) -> tuple[int, int]:
        """How many tasks are open, and how many there are; only the younger ones when one is given."""
        found = [task.closed for task in self if after is None or age(task) > age(after)]
        return found.count(False), len(found)

    def by_age(self, after: Task | None = None, *, closed: bool = False) -> Iterator[Task]:
        """The open tasks, oldest first, from behind one of them on. closed: the finished ones, too."""
        found = sorted((task for task in self if closed or not task.closed), key=age)
        return (task for task in found if after is None or age(task) > age(after))

    def unblocked(self) -> Iterator[Task]:
        """The open tasks that wait for no other, in the order in which work is offered: priority, rank, age.

        Those in progress come last. Some that do wait may be among them: `state` decides, this is where to look first.
        """
        found = (task for task in self if not task.closed and not task.flaw)
        order = lambda t: (t.status == IN_PROGRESS, t.priority, -self.rank(t.id), *age(t))  # noqa: E731
        return iter(sorted(found, key=order))

    def in_progress(self) -> Iterator[Task]:
        """The tasks that somebody holds."""
        return (task for task in self if task.status == IN_PROGRESS)

    def subjects(self) -> Iterator[tuple[str, str]]:
        """The id and the subject of every task."""
        return ((task.id, task.subject) for task in self)

    @cached_property
    def _links(self) -> tuple[Ids, Ids, Ids]:
        """Per id: its dependents, its children, and its blockers that only the blocker's own file names."""
        dependents: Ids = {}
        children: Ids = {}
        wild: Ids = {}
        known = {task.id: task for task in self}
        for task in known.values():
            for blocker in dict.fromkeys(task.blocked_by):
                dependents.setdefault(blocker, []).append(task.id)
            if task.parent:
                children.setdefault(task.parent, []).append(task.id)
            for blocked_id in dict.fromkeys(task.blocks):
                blocked = self.get(blocked_id)
                if not (blocked and task.id in blocked.blocked_by):
                    wild.setdefault(blocked_id, []).append(task.id)
                    if blocked_id in known:  # an archived task is among nobody's dependents
                        dependents.setdefault(task.id, []).append(blocked_id)
        return dependents, children, wild

    @cached_property
    def _ranks(self) -> dict[str, int]:
        open_tasks = {task.id: task for task in self if not task.closed and not task.flaw}
        # A parent that a merge left open in the archive is behind its children, and no part of a chain here.
        return longest_chains({i: [d.id for d in self.behind(t) if d.id in open_tasks] for i, t in open_tasks.items()})

    def blockers(self, task: Task) -> tuple[str, ...]:
        """The ids it waits for, known or not, without its children."""
        wild = self._links[2].get(task.id, ())
        return tuple(dict.fromkeys([*task.blocked_by, *sorted(wild, key=natural)]))

    def dependents(self, task_id: str) -> list[Task]:
        """The tasks that name this id as a blocker, oldest first."""
        return _by_age([task for i in self._links[0].get(task_id, ()) if (task := self.get(i))])

    def children(self, task_id: str) -> list[Task]:
        """The tasks whose parent this id is, oldest first."""
        return _by_age([task for i in self._links[1].get(task_id, ()) if (task := self.get(i))])

    def waiters(self, task: Task) -> list[Task]:
        """The tasks that wait for this one, open or not: its dependents and its parent."""
        parent = self.get(task.parent) if task.parent else None
        return list({t.id: t for t in [*self.dependents(task.id), *([parent] if parent else [])]}.values())

    def behind(self, task: Task) -> list[Task]:
        """The open tasks that wait for this one."""
        return [t for t in self.waiters(task) if not t.closed and not t.flaw]

    def current(self, task: Task) -> Claim | None:
        """The claim of the task's own epoch, whether it still stands or has ended."""
        claim = self.claim(task.id)
        if claim is None or claim.epoch != task.epoch:
            return None
        return None if self.is_displaced(task) else claim

    def is_displaced(self, task: Task) -> bool:
        """Whether the open claim known here lost the task in a merge to one of another machine, of the same epoch."""
        claim = self.claim(task.id) if task.status == IN_PROGRESS else None
        return claim is not None and claim.open and claim.epoch == task.epoch and not claim.is_of(task)

    def standing(self, task: Task) -> Claim | None:
        """The claim under which a task is in progress, where it is known."""
        claim = self.current(task) if task.status == IN_PROGRESS else None
        return claim if claim and claim.open else None

    def by_key(self, key: str) -> Task | None:
        """The task that was created with this idempotency key."""
        return next((task for task in self if task.key == key), None)

    def held_by(self, actor: Actor) -> list[Task]:
        """The tasks in progress that this actor holds in this session, oldest first."""
        return _by_age([task for task in self.in_progress() if actor.holds(self.standing(task))])

    def rank(self, task_id: str) -> int:
        """The length of the longest chain of open tasks that wait behind this one."""
        return self._ranks.get(task_id, 0)

    def exact(self, text: str) -> Task | None:
        """The task with this id or, when only one has it, this subject, to the letter."""
        wanted = composed(text.strip())
        if task := self.get(wanted):
            return task
        same = self.by_subject(wanted)
        return self.get(same[0]) if len(same) == 1 else None

    def by_subject(self, wanted: str) -> list[str]:
        """The ids of the tasks with this subject, to the letter; of two at least when there are more."""
        return [task_id for task_id, subject in self.subjects() if subject == wanted]

    def find(self, text: str) -> Task:
        """The task meant by an id, an unambiguous prefix or suffix of one, or a unique subject.

        Raises UnknownTask with near ids, AmbiguousId with the matching ones.
        """
        if exact := self.exact(text):
            return exact
        from . import naming  # imported late: who works off a board names its tasks by whole ids

        wanted = naming.bare(text)
        if exact := self.get(wanted) or self.get(wanted.removeprefix("task_")):
            return exact
        known = list(self.subjects())
        matches = naming.matching(wanted, known) or naming.having_part(wanted, self.archived_ids())
        if len(matches) == 1 and (only := self.get(matches[0])):
            return only
        if matches:
            raise naming.ambiguous(wanted, matches)
        claim = self.claim(wanted) or self.claim(f"task_{wanted}")
        raise naming.removed(claim) if claim and claim.open else naming.unknown(wanted, known)


def locate(view: View, name: str) -> tuple[Task, int | None]:
    """The task that is meant, and the epoch of a token `ID#epoch`. Raises UnknownTask, AmbiguousId."""
    if task := view.exact(name):
        return task, None
    head, mark, tail = name.strip().rpartition("#")
    if mark and head and tail.isdecimal() and len(tail) <= MAX_DIGITS:
        return view.find(head), int(tail)
    return view.find(name), None


MAX_DIGITS = 15
"""How many digits the epoch of a token may have."""


class Overlay(View):
    """A view with some tasks and claims changed or added on top, without copying what lies below."""

    def __init__(self, below: View, tasks: Iterable[Task] = ()) -> None:
        self.settings = below.settings
        self.below = below
        self.changed = {task.id: task for task in tasks}
        self.claimed: dict[str, Claim] = {}

    def put(self, task: Task) -> None:
        """Change or add a task."""
        self.changed[task.id] = task
        for derived in ("_ranks", "_changed_links"):
            self.__dict__.pop(derived, None)

    @cached_property
    def _changed_links(self) -> tuple[dict[str, list[Task]], dict[str, list[Task]]]:
        """Per id: its dependents and its children among the changed tasks."""
        dependents: dict[str, list[Task]] = {}
        children: dict[str, list[Task]] = {}
        for task in self.changed.values():
            for blocker in self.blockers(task):
                dependents.setdefault(blocker, []).append(task)
            if task.parent:
                children.setdefault(task.parent, []).append(task)
        return dependents, children

    def get(self, task_id: str) -> Task | None:
        """The task with exactly this id."""
        return self.changed.get(task_id) or self.below.get(task_id)

    def is_completed(self, task_id: str) -> bool:
        """Whether a task with exactly this id is completed."""
        return super().is_completed(task_id) if task_id in self.changed else self.below.is_completed(task_id)

    def archived_ids(self) -> Iterable[str]:
        """The ids of all archived tasks but those that come back."""
        return (task_id for task_id in self.below.archived_ids() if task_id not in self.changed)

    def expect(self, ids: Iterable[str]) -> None:
        """Said before much is asked about these."""
        self.below.expect(ids)

    def lock(self, task_id: str) -> Task | None:
        """The task with exactly this id; nobody else changes it until the transaction ends."""
        return self.changed.get(task_id) or self.below.lock(task_id)

    def claim(self, task_id: str) -> Claim | None:
        """The latest claim on this task, whether it still stands or not."""
        return self.claimed.get(task_id) or self.below.claim(task_id)

    def __iter__(self) -> Iterator[Task]:
        added = dict(self.changed)
        yield from (added.pop(task.id, task) for task in self.below)
        yield from added.values()

    def counts(self, after: Task | None = None) -> tuple[int, int]:
        """How many tasks are open, and how many there are."""
        return self.below.counts(after) if not self.changed else super().counts(after)

    def unblocked(self) -> Iterator[Task]:
        """The open tasks that wait for no other, in the order in which work is offered."""
        return self.below.unblocked() if not self.changed else super().unblocked()

    def in_progress(self) -> Iterator[Task]:
        """The tasks that somebody holds."""
        yield from (task for task in self.below.in_progress() if task.id not in self.changed)
        yield from (task for task in self.changed.values() if task.status == IN_PROGRESS)

    def subjects(self) -> Iterator[tuple[str, str]]:
        """The id and the subject of every task."""
        yield from (pair for pair in self.below.subjects() if pair[0] not in self.changed)
        yield from ((task.id, task.subject) for task in self.changed.values())

    def by_subject(self, wanted: str) -> list[str]:
        """The ids of the tasks with this subject, to the letter."""
        below = [task_id for task_id in self.below.by_subject(wanted) if task_id not in self.changed]
        return below + [task.id for task in self.changed.values() if task.subject == wanted]

    def held_by(self, actor: Actor) -> list[Task]:
        """The tasks in progress that this actor holds in this session, oldest first."""
        return self.below.held_by(actor) if not (self.changed or self.claimed) else super().held_by(actor)

    def by_key(self, key: str) -> Task | None:
        """The task that was created with this idempotency key."""
        changed = next((task for task in self.changed.values() if task.key == key), None)
        below = None if changed else self.below.by_key(key)
        return changed or (below if below and below.id not in self.changed else None)

    def rank(self, task_id: str) -> int:
        """The length of the longest chain of open tasks that wait behind this one."""
        return self.below.rank(task_id) if not self.changed else super().rank(task_id)

    def dependents(self, task_id: str) -> list[Task]:
        """The tasks that name this id as a blocker, oldest first."""
        if not self.changed:
            return self.below.dependents(task_id)
        kept = [t for t in self.below.dependents(task_id) if t.id not in self.changed]
        return _by_age(kept + self._changed_links[0].get(task_id, []))

    def children(self, task_id: str) -> list[Task]:
        """The tasks whose parent this id is, oldest first."""
        if not self.changed:
            return self.below.children(task_id)
        kept = [t for t in self.below.children(task_id) if t.id not in self.changed]
        return _by_age(kept + self._changed_links[1].get(task_id, []))

    def blockers(self, task: Task) -> tuple[str, ...]:
        """The ids it waits for, known or not, without its children."""
        known = self.below.blockers(task)
        if known == task.blocked_by:
            return known
        wild = (i for i in known if i not in task.blocked_by)
        still = (i for i in wild if (blocker := self.get(i)) and task.id in blocker.blocks)
        return tuple(dict.fromkeys(task.blocked_by)) + tuple(still)
