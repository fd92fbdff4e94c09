"""A board as somebody looks at it: a store, a clock, and who looks. One method a verb that changes nothing."""

from __future__ import annotations

import time
from itertools import islice

from .core.state import HELD, WAITING, Waiting, actionable, waits_for, who_must_act, would_unblock
from .core.view import age, locate
from .results import MOST_COUNTED, PAGE, Inbox, Listing, Offer, Row, Shown, rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from .core.model import Actor
    from .core.view import View
    from .fleet import Fleet
    from .overviews import Digest, Graph, History, Why
    from .stores.base import Store

    Filters = tuple[str, str, str, str, Sequence[str]]
    """Owner, label, pattern of ids, text, states."""

DAY_NS = 24 * 3_600_000_000_000


def utc_now() -> int:
    """Nanoseconds since 1970."""
    return time.time_ns()


def timestamp(nanoseconds: int) -> str:
    """RFC 3339 UTC with microseconds."""
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{rest // 1000:06d}Z"


class Onlooker:
    """The verbs that only look at a board, for one actor. `Board` has the others, too."""

    def __init__(self, store: Store, actor: Actor, *, clock: Callable[[], int] = utc_now) -> None:
        self.store, self.actor = store, actor
        self._clock = clock

    def list(
        self,
        states: Sequence[str] = (),
        *,
        owner: str = "",
        label: str = "",
        glob: str = "",
        text: str = "",
        after: str = "",
        limit: int = PAGE,
        everything: bool = False,
    ) -> Listing:
        """Tasks by age that match all that is given; finished ones only when asked for by `everything` or state."""
        filters = (owner, label, glob, text, states)
        return self._listed(self.store.read(), filters, after, limit, everything)

    def _listed(self, view: View, filters: Filters, after: str, limit: int, everything: bool = False) -> Listing:
        from .selection import chosen, require_states  # imported late: no other verb selects

        states = filters[-1]
        require_states(states)
        unfinished, total = view.counts()
        last = view.find(after) if after else None
        most = max(1, min(limit, PAGE))
        hidden = not everything and not states
        if any(filters):
            wanted = list(chosen(view, *filters))
            finished = sum(task.closed for task in wanted) if hidden else 0
            wanted = [t for t in wanted if not (hidden and t.closed) and (last is None or age(t) > age(last))]
            count = len(wanted)
        else:
            # What is not asked for is not even looked at, however much there is of it.
            wanted = list(islice(view.by_age(last, closed=everything), most))
            count = view.counts(last)[everything]
            finished = total - unfinished if hidden else 0
        page = wanted[:most]
        return Listing(rows(view, page), more=count - len(page), finished=finished, total=total)

    def waiting(self, *, after: str = "", limit: int = PAGE) -> Inbox:
        """What waits for a person to decide or to resume, by age, and what waits behind it."""
        view = self.store.read()
        found = self._listed(view, ("", "", "", "", (WAITING, HELD)), after, limit)
        view.expect(row.task.id for row in found.rows)
        behind = tuple(tuple(task.id for task in view.behind(row.task)) for row in found.rows)
        return Inbox(found.rows, found.more, found.finished, found.total, behind)

    def get(self, name: str) -> Shown:
        """Everything stored and derived of one task."""
        view = self.store.read()
        task = locate(view, name)[0]
        claim = view.standing(task)
        known = [blocker for i in view.blockers(task) if (blocker := view.get(i))]
        dependents = rows(view, view.dependents(task.id))
        freed = () if task.closed or task.flaw else would_unblock(view, task)
        seen = {row.task.id: row for row in dependents}  # nearly all of what is freed, and not worked out twice
        return Shown(
            Row.of(view, task),
            blockers=rows(view, known),
            missing=tuple(i for i in view.blockers(task) if i not in view),
            children=rows(view, view.children(task.id)),
            dependents=dependents,
            would_unblock=tuple(seen.get(t.id) or Row.of(view, t) for t in freed),
            claim=_told(claim) if claim else None,
        )

    def next(self, limit: int = 1) -> Offer:
        """What this actor may start now, best first."""
        most = max(1, min(limit, PAGE))
        view = self.store.read()
        found = list(islice(actionable(view, self.actor), most + MOST_COUNTED))
        if not found:
            view = self.store.read(anew=True)
            found = list(islice(actionable(view, self.actor), most + MOST_COUNTED))
        page = found[:most]
        unfinished, total = view.counts()
        return Offer(
            rows(view, page),
            more=len(found) - len(page),
            open=unfinished,
            total=total,
            waiting=who_must_act(view) if not page else Waiting(),
        )

    def digest(self) -> Digest:
        """The board at a glance, for a session that begins or goes on."""
        from .overviews import Digest  # imported late, as below: the looks that agents take all day need no more

        return Digest.of(self.store.read(), self.actor)

    def why(self, name: str) -> Why:
        """The chain of reasons down to who must act."""
        view = self.store.read()
        task = locate(view, name)[0]
        from .overviews import Why, walk

        steps, more = walk(view, [task], lambda t: waits_for(view, t.id))
        return Why(steps, who_must_act(view, [task]), more)

    def history(self, name: str = "", limit: int = PAGE) -> History:
        """Events of the board, or of one task; the latest `limit`."""
        task_id = locate(self.store.read(), name)[0].id if name else None
        events = self.store.events(task_id)
        page = events[-max(1, limit) :]
        from .overviews import History

        return History(tuple(page), task_id, more=len(events) - len(page))

    def graph(self) -> Graph:
        """The open work: what can move first, and below each task what waits for it."""
        view = self.store.read()
        open_tasks = list(view.by_age())
        unfinished, total = view.counts()
        behind = {task.id: [d.id for d in view.behind(task)] for task in open_tasks}
        waiting = {i for ids in behind.values() for i in ids}
        # Members of cycles come last: all of them wait for something.
        roots = [t for t in open_tasks if t.id not in waiting] + [t for t in open_tasks if t.id in waiting]
        from .overviews import Graph, walk

        steps, more = walk(view, roots, lambda t: behind.get(t.id, []), again=False)
        edges = tuple((blocker, after) for blocker, ids in behind.items() for after in ids)
        return Graph(steps, edges, finished=total - unfinished, more=more)

    def fleet(self) -> Fleet:
        """Who works where, how claims stand, what was done lately, which decision waits longest."""
        from .fleet import Fleet  # imported late: no other verb needs it

        return Fleet.of(self.store.read(), self.lately(), self._clock() / 1e9)

    def lately(self, days: int = 1) -> Sequence[dict[str, Any]]:
        """The events of so many days until now."""
        return self.store.events(since=timestamp(self._clock() - days * DAY_NS))


def _told(claim: object) -> dict[str, object]:
    names = ("actor", "session", "host", "since", "epoch", "lease", "left")
    return {name: value for name in names if (value := getattr(claim, name)) not in (None, "")}
