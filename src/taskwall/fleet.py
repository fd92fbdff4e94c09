"""A fleet at a glance: who works where, how claims stand, what was done lately, which decision waits longest.

It costs what the open work and one day's events cost, however much is finished.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from itertools import groupby
from statistics import median

from .core.model import BY_HAND, CLOSED, IDLE, LAPSED, LIVE
from .core.record import Record
from .core.state import STATES, WAITING, reservation, state
from .core.view import age
from .lengths import columns, cut, filled
from .results import ALL, Report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from .core.model import Claim, Task
    from .core.view import View

    Event = dict[str, Any]

UNKNOWN = "unknown"
LEASES = (LAPSED, LIVE, BY_HAND, IDLE, UNKNOWN)
"""How a claim may stand, what says most of its session first. Unknown: a task is held, and no claim on it is known."""
FINISHED = "finished"
LAST_FIFTH = 0.2
"""A live lease with less than this part of its length left was not renewed in time."""
HOUR, DAY = 3600, 24 * 3600
WIDTH = 80
MAX_LINES = 60
"""How many lines of sessions the text has at most."""


class Held(Record):
    """A task that a session holds, under which lease. left: minutes until that lapses, where it is live."""

    id: str
    subject: str
    lease: str
    left: float | None = None


class Session(Record):
    """One run of an actor on a host, and what it holds. lease: of LEASES, the first that one of its claims has.

    left: the least minutes until one of its leases lapses. since: its oldest claim, so many minutes ago.
    """

    host: str
    actor: str
    session: str
    lease: str
    left: float | None
    since: str | None
    minutes: float | None
    tasks: tuple[Held, ...]


class Work(Record):
    """What was done within a time. failed: attempts. minutes: from claim to completion, the median where known."""

    completed: int = 0
    failed: int = 0
    created: int = 0
    minutes: float | None = None


class Decision(Record):
    """A task that waits for a person, since when, and for how many minutes; its question where it has one."""

    id: str
    subject: str
    question: str | None
    person: str | None
    since: str | None
    minutes: float | None


class Fleet(Report):
    """What a fleet does. claims: how many stand under each of LEASES. lapsing: live ones in their last fifth.

    counts: the open tasks in each state, and how many are finished.
    """

    sessions: tuple[Session, ...]
    claims: dict[str, int]
    lapsing: int
    hour: Work
    day: Work
    decision: Decision | None
    counts: dict[str, int]

    @classmethod
    def of(cls, view: View, events: Iterable[Event], now: float) -> Fleet:
        """The fleet on this board. events: those of the last day at least. now: seconds since 1970."""
        held = [(task, view.standing(task)) for task in sorted(view.in_progress(), key=age)]
        open_tasks = [(task, state(view, task).name) for task in view.by_age()]
        states = Counter(name for _, name in open_tasks)
        leases = Counter(claim.lease if claim else UNKNOWN for _, claim in held)
        unfinished, total = view.counts()
        waits = [_decision(view, task, now) for task, name in open_tasks if name == WAITING]
        done = _outcomes(events)
        return cls(
            sessions=_sessions(held, now),
            claims={lease: leases[lease] for lease in LEASES},
            lapsing=sum(_is_lapsing(claim) for _, claim in held if claim),
            hour=_work(done, now - HOUR),
            day=_work(done, now - DAY),
            decision=max(waits, key=lambda d: -1 if d.minutes is None else d.minutes, default=None),
            counts={name: states[name] for name in STATES if name not in CLOSED} | {FINISHED: total - unfinished},
        )

    def lines(self) -> list[str]:
        """It in 80 columns: sessions by host with what they hold, then a line for each of the other questions."""
        if not any(self.counts.values()):
            return ["No tasks. Use create_task (taskwall add) to add some."]
        counted = [f"{number} {name}" for name, number in self.counts.items() if number]
        return [
            *_session_lines(self.sessions),
            *([f"Claims: {self._claims()}"] if self.sessions else []),
            f"Tasks: {', '.join(counted)}",
            f"Last hour: {_told(self.hour)}",
            f"Last 24 hours: {_told(self.day)}",
            *_decision_lines(self.decision),
        ]

    def _claims(self) -> str:
        lapsing = f" ({self.lapsing} in the last fifth of its lease)" if self.lapsing else ""
        words = [f"{n} {lease}{lapsing * (lease == LIVE)}" for lease, n in self.claims.items() if n]
        return ", ".join(words)


# Who holds what


def _sessions(held: Iterable[tuple[Task, Claim | None]], now: float) -> tuple[Session, ...]:
    """A session for each actor and run of it on each host; all that a name holds without a claim is one more."""
    found: dict[tuple[str, str, str], list[tuple[Task, Claim | None]]] = {}
    for task, claim in held:
        who = (claim.host, claim.actor, claim.session) if claim else ("", task.owner or "", "")
        found.setdefault(who, []).append((task, claim))
    return tuple(_session(who, found[who], now) for who in sorted(found))


def _session(who: tuple[str, str, str], held: list[tuple[Task, Claim | None]], now: float) -> Session:
    tasks = tuple(
        Held(task.id, task.subject, claim.lease, claim.left if claim.lease == LIVE else None)
        if claim
        else Held(task.id, task.subject, UNKNOWN)
        for task, claim in held
    )
    since = min((claim.since for _, claim in held if claim), default=None)
    return Session(
        *who,
        lease=min((task.lease for task in tasks), key=LEASES.index),
        left=min((task.left for task in tasks if task.left is not None), default=None),
        since=since,
        minutes=_minutes(since, now),
        tasks=tasks,
    )


def _is_lapsing(claim: Claim) -> bool:
    return claim.lease == LIVE and claim.left is not None and claim.left < LAST_FIFTH * (claim.ttl or 0)


# What was done


def _outcomes(events: Iterable[Event]) -> list[tuple[float, str, float | None]]:
    """What counts of these events: when, as what (a field of Work), and how many minutes after its claim."""
    began: dict[str, float] = {}
    found = []
    for event in events:
        at, token = seconds(event["at"]), f"{event.get('task')}#{event.get('epoch')}"
        if at is None:
            continue
        if outcome := _outcome(event):
            took = (at - began[token]) / 60 if outcome == "completed" and token in began else None
            found.append((at, outcome, took))
        if event["verb"] == "claim":
            began[token] = at
    return found


def _outcome(event: Event) -> str | None:
    """As what an event counts. A claim that takes over without a reason ends one whose lease ran out."""
    verb = event["verb"]
    if verb in ("complete", "answer"):
        return "completed"
    if verb in ("create", "ask"):
        return "created"
    lapsed = verb == "claim" and event.get("taken_from") and not event.get("reason")
    return "failed" if lapsed or (verb == "release" and event.get("failed")) else None


def _work(done: list[tuple[float, str, float | None]], since: float) -> Work:
    late = [(outcome, took) for at, outcome, took in done if at >= since]
    counts = Counter(outcome for outcome, _ in late)
    times = [took for _, took in late if took is not None]
    return Work(**counts, minutes=round(median(times), 1) if times else None)


# What waits for a person


def _decision(view: View, task: Task, now: float) -> Decision:
    """It waits since it was made, or since the last that it waited for was completed."""
    before = [*map(view.get, view.blockers(task)), *view.children(task.id)]
    times = [task.created_at, *(other.completed_at for other in before if other)]
    since = max((time for time in times if time), key=lambda time: seconds(time) or 0, default=None)
    return Decision(task.id, task.subject, task.question, reservation(view, task), since, minutes=_minutes(since, now))


def seconds(time: str | None) -> float | None:
    """An RFC 3339 time as seconds since 1970; None of what is none."""
    try:
        return datetime.fromisoformat(time).timestamp() if time else None
    except (ValueError, OverflowError):
        return None


def _minutes(time: str | None, now: float) -> float | None:
    """How long ago that was; nothing is yet to come, whatever another machine's clock says."""
    at = seconds(time)
    return None if at is None else round(max(0.0, now - at) / 60, 1)


# As text


def _session_lines(sessions: tuple[Session, ...]) -> list[str]:
    if not sessions:
        return ["No session holds a task."]
    hosts = [(host, list(found)) for host, found in groupby(sessions, key=lambda s: s.host)]
    tasks = sum(len(session.tasks) for session in sessions)
    head = f"{_many(len(sessions), 'session')} on {_many(len(hosts), 'host')}, {_many(tasks, 'task')} held"
    widest = min(MAX_ID, max(sum(columns(task.id)) for session in sessions for task in session.tasks))
    lines = []
    for host, found in hosts:
        lines.append(cut(_plain(host) or "host not known", WIDTH))
        for session in found:
            lines.append(cut(f"  {_name(session)}", WIDTH))
            lines += [_held_line(task, widest) for task in session.tasks]
    more = len(lines) - MAX_LINES
    return [head, *lines[:MAX_LINES], *([f"… {more} more lines ({ALL})"] if more > 0 else [])]


MAX_ID, LEASE = 24, len("live, 119 min left")


def _name(session: Session) -> str:
    run = f", session {session.session}" if session.session not in ("", session.actor) else ""
    since = f", for {_span(session.minutes)}" if session.minutes is not None else ""
    return _plain(f"{session.actor or 'somebody unnamed'}{run}{since}")


def _held_line(task: Held, widest: int) -> str:
    lease = f"live, {_span(task.left)} left" if task.lease == LIVE and task.left is not None else task.lease
    subject = filled(_plain(task.subject), WIDTH - widest - LEASE - 8)
    return f"    {filled(_plain(task.id), widest)}  {subject}  {lease}"


def _told(work: Work) -> str:
    took = f" (median {_span(work.minutes)})" if work.minutes is not None else ""
    return f"{work.completed} completed{took}, {_many(work.failed, 'attempt')} failed, {work.created} created"


def _decision_lines(decision: Decision | None) -> list[str]:
    if decision is None:
        return ["No decision waits for a person."]
    since = f" for {_span(decision.minutes)}" if decision.minutes is not None else ""
    asks = _plain(decision.question or decision.subject)
    return [
        f"Oldest decision, on {_plain(decision.person or '')}{since}: {_plain(decision.id)}",
        cut(f"    {asks}", WIDTH),
    ]


def _span(minutes: float) -> str:
    """A time in its largest unit."""
    whole = int(minutes)
    if whole < 120:
        return f"{whole or '< 1'} min"
    return f"{whole // 60} h" if whole < 48 * 60 else f"{whole // (24 * 60)} days"


def _many(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def _plain(text: str) -> str:
    """Text on one line, in which nothing is there that cannot be seen: columns count on it."""
    return "".join(c if c.isprintable() else " " for c in text)
