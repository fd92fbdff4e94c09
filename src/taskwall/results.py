"""What a verb answers: plain records, made where the board is at hand and rendered where it is not."""

from __future__ import annotations

from .core.errors import EXITS
from .core.model import IDLE
from .core.record import Record
from .core.state import STATES, Waiting, actionable, reservation, state, waits_for, who_must_act

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from .core.model import Actor, Task
    from .core.rules.incoming import Finding
    from .core.state import Reason
    from .core.view import View


class Row(Record):
    """A task with its derived state, enough for one line about it."""

    task: Task
    state: str
    reasons: tuple[Reason, ...] = ()
    waits: tuple[str, ...] = ()  # the blockers and children that are not completed
    reserved: str | None = None
    idle: bool = False  # claimed by hand more than a day ago

    @classmethod
    def of(cls, view: View, task: Task) -> Row:
        """The row of a task in this view."""
        now = state(view, task)
        claim = view.standing(task)
        waits = tuple(waits_for(view, task.id))
        kept = reservation(view, task) if not task.closed else None
        return cls(task, now.name, now.reasons, waits, kept, claim is not None and claim.lease == IDLE)


def rows(view: View, tasks: Iterable[Task]) -> tuple[Row, ...]:
    """One row a task."""
    return tuple(Row.of(view, task) for task in tasks)


class Answer(Record):
    """What every verb's answer has: the exit status of the command that asked."""

    @property
    def exit(self) -> int:
        return 0


class Report(Answer):
    """An answer of a room of its own, which says itself how it reads."""

    def lines(self) -> list[str]:
        """It as text; what is not safe to print is escaped by `render`."""
        raise NotImplementedError


class Archived(Report):
    """Finished tasks were taken out of the way. left: those that stay, for their files are not called like them."""

    ids: tuple[str, ...]
    left: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """How many went; they are still found by id."""
        plural = "s" * (len(self.ids) != 1)
        stay = f"{len(self.left)} stay, for their files are not called like them: {', '.join(self.left[:5])}"
        found = f"Archived {len(self.ids)} finished task{plural}; `taskwall show ID` still finds them"
        return [found if self.ids else "Nothing to archive.", *([stay] if self.left else [])]


class Changed(Answer):
    """One task was changed by a verb."""

    verb: str
    row: Row
    unblocked: tuple[Row, ...] = ()
    also: tuple[Row, ...] = ()
    blockers: tuple[Row, ...] = ()  # of a claimed task: what came of them is part of the briefing
    notices: tuple[str, ...] = ()
    already: bool = False


class Created(Answer):
    """Tasks were created; `already` holds the ids of those whose key was known."""

    rows: tuple[Row, ...]
    already: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


class Imported(Report):
    """What an import did, or would do (dry_run), and its loss report. records: how many the source has."""

    format: str
    source: str
    dry_run: bool
    records: int
    created: tuple[str, ...]
    updated: tuple[str, ...]
    unchanged: int
    findings: tuple[Finding, ...]
    notices: tuple[str, ...] = ()

    @property
    def exit(self) -> int:
        """What could not be read is no reason to leave the rest, but whoever removes the source must hear of it."""
        return EXITS["unreadable"] if any(finding.kind == "unreadable" for finding in self.findings) else 0

    def lines(self) -> list[str]:
        """What was done, then the loss report: each kind with its count and its first lines."""
        from .core.rules.incoming import KINDS  # imported late: only an import needs it

        would = "would be " if self.dry_run else ""
        counts = f"{len(self.created)} {would}created, {len(self.updated)} {would}updated, {self.unchanged} left as is"
        lines = [f"{self.format}: {self.records} read from {self.source}: {counts}"]
        for kind, meaning in KINDS.items():
            told = [f"- {f.where}: {f.text[:MAX_TOLD]}" for f in self.findings if f.kind == kind]
            lines += [f"{kind}: {len(told)} {meaning}", *told[:MAX_FINDINGS]] if told else []
            more = len(told) - MAX_FINDINGS
            lines += [f"… {more} more (--json lists all)"] if more > 0 else []
        return [*lines, "Nothing was written."] if self.dry_run else [*lines, *self.notices]


MAX_FINDINGS, MAX_TOLD = 8, 200
"""How many findings of a kind are shown, and how many characters of each."""


class Exported(Report):
    """What was exported: into a file, or as text. left_out: why files that cannot be read are not in it."""

    format: str
    path: str | None
    tasks: int
    left_out: tuple[str, ...] = ()
    text: str = ""

    @property
    def exit(self) -> int:
        return EXITS["unreadable"] if self.left_out else 0

    def lines(self) -> list[str]:
        """What was written where, and what was not."""
        told = [f"Exported {self.tasks} task{'s' * (self.tasks != 1)} to {self.path}"] if self.path else []
        return told + [f"left out, for it cannot be read: {flaw}" for flaw in self.left_out]


class Released(Answer):
    """All tasks of a session were given back."""

    session: str
    rows: tuple[Row, ...]


class Listing(Answer):
    """Tasks by age. more: how many follow after the last one; finished: how many are left out for being finished."""

    rows: tuple[Row, ...]
    more: int = 0
    finished: int = 0
    total: int = 0


class Shown(Answer):
    """Everything about one task."""

    row: Row
    blockers: tuple[Row, ...] = ()
    missing: tuple[str, ...] = ()
    children: tuple[Row, ...] = ()
    dependents: tuple[Row, ...] = ()
    would_unblock: tuple[Row, ...] = ()
    claim: dict[str, Any] | None = None


MOST_COUNTED = 9
"""How many more startable tasks an offer counts: what it costs does not depend on how many there are."""


class Offer(Answer):
    """What may be started next, best first; when nothing may, who must act. more: at most MOST_COUNTED."""

    rows: tuple[Row, ...]
    more: int = 0
    open: int = 0
    total: int = 0
    waiting: Waiting = Waiting()

    @property
    def exit(self) -> int:
        return 0 if self.rows or not self.open else EXITS[self.waiting.code]


class Digest(Answer):
    """The board at a glance: how many tasks are in which state, what this session holds, what is next, who must act.

    others: how many tasks others hold. more: how many may be started beside those in `next`.
    """

    counts: tuple[tuple[str, int], ...]
    held: tuple[Row, ...]
    others: int
    next: tuple[Row, ...]
    more: int
    waiting: Waiting

    @classmethod
    def of(cls, view: View, actor: Actor) -> Digest:
        """What this actor should know of the board."""
        unfinished, total = view.counts()
        found = [state(view, task).name for task in view.by_age()]
        held = view.held_by(actor)
        startable = list(actionable(view, actor))
        waiting = who_must_act(view)
        mine = {task.id for task in held}
        return cls(
            (
                *((name, found.count(name)) for name in STATES if name in found),
                *([("finished", total - unfinished)] if total > unfinished else []),
            ),
            rows(view, held),
            sum(1 for _ in view.in_progress()) - len(held),
            rows(view, startable[:NEXT]),
            max(0, len(startable) - NEXT),
            waiting.replace(holders=tuple(end for end in waiting.holders if end[1] not in mine)),
        )


NEXT = 3
"""How many startable tasks a digest names."""


class Step(Record):
    """One link of a chain of reasons: a task, at `depth` waits from the one that was asked about."""

    row: Row
    depth: int
    seen: bool = False  # its own reasons stand further up


class Why(Answer):
    """The chain of reasons of one task, down to who must act."""

    steps: tuple[Step, ...]
    waiting: Waiting
    more: int = 0


class History(Answer):
    """Events, oldest first."""

    events: tuple[dict[str, Any], ...]
    task: str | None = None
    more: int = 0


class Graph(Answer):
    """The open work as a tree: a task, and below it what waits for it. edges: (blocker, dependent)."""

    steps: tuple[Step, ...]
    edges: tuple[tuple[str, str], ...]
    finished: int = 0
    more: int = 0


MAX_STEPS = 200
"""How many lines a chain or tree has at most."""


def walk(
    view: View, roots: Sequence[Task], after: Callable[[Task], Sequence[str]], *, again: bool = True
) -> tuple[tuple[Step, ...], int]:
    """Depth first from these tasks, each explained once: the first steps, and how many were left out.

    again: name a root that was reached before; otherwise it is passed over.
    """
    steps: list[Step] = []
    seen: set[str] = set()
    count = 0
    todo = [(task, 0) for task in reversed(roots)]
    while todo:
        task, depth = todo.pop()
        if task.id in seen and depth == 0 and not again:
            continue
        count += 1
        if len(steps) < MAX_STEPS:
            steps.append(Step(Row.of(view, task), depth, seen=task.id in seen))
        if task.id not in seen:
            seen.add(task.id)
            todo += [(t, depth + 1) for i in reversed(after(task)) if (t := view.get(i))]
    return tuple(steps), count - len(steps)


class Place(Answer):
    """Which board is in use and why, and who acts on it. made: it was made just now."""

    path: str
    why: str
    exists: bool
    made: bool
    actor: str
    session: str
    clients: tuple[str, ...] = ()  # coding agents that `setup` would set up
    git: SetUp | None = None  # what `init --git` did

    @property
    def exit(self) -> int:
        return self.git.exit if self.git else 0


class Trusted(Answer):
    """Commands that were trusted or revoked just now, or all that this user trusts on the board (`list`)."""

    action: str
    commands: tuple[str, ...]


class SetUp(Answer):
    """What set-up of clients changes: to set them up, to remove that, or to check it. files: those concerned.

    done: they were written just now.
    """

    action: str
    clients: tuple[str, ...]
    files: tuple[str, ...]
    diff: str
    notes: tuple[str, ...] = ()
    done: bool = False

    @property
    def exit(self) -> int:
        return 0 if self.done or not self.files else EXITS["check_failed"]
