"""Accounts of what was done, and of all that waits, as text."""

from __future__ import annotations

from .core.model import PERSONS, to_the_minute, to_the_second
from .core.state import HELD
from .outcomes import Changed, Created, Place, Released, SetUp, Trusted
from .overviews import Graph, History, Why
from .results import ALL, PAGE, Inbox
from .wording import (
    MARKS,
    MAX_ITEMS,
    MAX_REASONS,
    MAX_TEXT,
    after,
    because,
    block,
    came_of,
    line,
    printed,
    safe,
    section,
    some,
    within,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from .overviews import Step
    from .results import Row


def _changed(answer: Changed) -> list[str]:
    row = answer.row
    way = f"taskwall show {row.task.id} --json"  # asked again, the verb has nothing to tell
    if answer.already:
        told = f"{row.task.id} ({safe(row.task.subject)}): {_ALREADY.get(answer.verb, 'no change')}"
        head = answer.notices or [told]
        return [*map(safe, head), *section("Unblocked:", answer.unblocked, way)]
    lines = [f"{_DONE[answer.verb]} {row.task.id} ({safe(row.task.subject)})", *map(safe, answer.notices)]
    if answer.verb == "claim":
        lines += _briefing(row, answer.blockers)
    if answer.verb == "ask":
        decision = answer.also[0].task
        lines.insert(1, f"Waits for {decision.id}: {safe(decision.subject)}")
        lines.append(f"Next: a person answers with `taskwall answer {decision.id} TEXT`")
    elif answer.also:
        lines += section(_ALSO[answer.verb], answer.also, way)
    return lines + section("Unblocked:", answer.unblocked, way)


_DONE = {
    "update": "Updated",
    "claim": "Claimed",
    "complete": "Completed",
    "release": "Released",
    "heartbeat": "Renewed",
    "ask": "Asked about",
    "answer": "Answered",
    "hold": "Held",
    "resume": "Resumed",
    "cancel": "Cancelled",
    "reopen": "Reopened",
}
_ALREADY = {
    "update": "no change, it is like that already",
    "complete": "already completed by you",
    "release": "already released",
    "answer": "already answered so",
    "resume": "nothing holds it",
    "cancel": "already cancelled",
    "reopen": "already open",
}
_ALSO = {"cancel": "Cancelled too:", "reopen": "Suspect, for they relied on it:", "complete": "Also:"}


def _briefing(row: Row, blockers: Sequence[Row]) -> list[str]:
    """What whoever takes a task should know: its text, its past attempts and notes, what it promises."""
    task = row.task
    lines = [f"token: {task.token}"]
    if task.description:
        lines.append("  " + block(task.description, MAX_DESCRIPTION))
    lines += came_of(blockers)
    lines += [f"attempts before: {task.attempts}"] if task.attempts else []
    for note in task.notes[-5:]:
        room = MAX_TEXT if note is task.notes[-1] else MAX_TEXT // 5  # the last one is a handover
        lines.append(f"note by {safe(note['by'])}: {block(note['text'], room)}")
    lines += [f"products: {', '.join(map(safe, task.products))}"] if task.products else []
    lines += [f"checks: {'; '.join(map(safe, task.checks))}"] if task.checks else []
    way = f"taskwall answer {task.id} TEXT" if row.reserved in PERSONS or task.question is not None else ""
    return [*lines, f"Next: {way or f'do it, then complete_task (taskwall done {task.id})'}"]


MAX_DESCRIPTION = 4_000
"""How many characters of its description whoever takes a task is told."""


def _created(answer: Created) -> list[str]:
    lines = []
    for row in answer.rows[:PAGE]:
        verb = "Exists already" if row.task.id in answer.already else "Created"
        waits = some(row.task.blocked_by, MAX_ITEMS).replace(",", ", ")
        lines.append(f"{verb} {row.task.id}: {safe(row.task.subject)}{f' (blockedBy: {waits})' if waits else ''}")
    more = len(answer.rows) - PAGE
    lines += [f"… {more} more: taskwall list (list_tasks); {ALL}"] if more > 0 else []
    return lines + list(map(safe, answer.notices))


def _tree(steps: Sequence[Step], more: int, way: str = "") -> list[str]:
    lines = [_branch(step) for step in steps]
    shown = within(lines, MAX_TREE)
    named = [step.row.task.id for step in steps]
    more += len({*named} - {*named[:shown]})
    return lines[:shown] + ([f"… {more} more: taskwall {way or _way(steps[:shown])}"] if more else [])


def _way(steps: Sequence[Step]) -> str:
    """How to go on with reasons: a chain from its last link; where it branches, no link leads to all that is left."""
    is_chain = all(step.depth == depth for depth, step in enumerate(steps))
    return f"why {safe(steps[-1].row.task.id)}" if is_chain else f"show {safe(steps[0].row.task.id)} --json"


MAX_TREE = 6_000
"""How many bytes of a tree, or of a log, are shown: who must act comes after it."""


def _branch(step: Step) -> str:
    deep = step.depth > MAX_INDENT
    task = step.row.task
    again = f"{MARKS[task.status]} {safe(task.id)}: {safe(task.subject)} (see above)" if step.seen else ""
    return f"{'  ' * min(step.depth, MAX_INDENT)}{f'{step.depth}: ' if deep else ''}{again or line(step.row)}"


MAX_INDENT = 12
"""From which depth on a tree is no longer indented further, but says how deep it is."""


def _why(answer: Why) -> list[str]:
    first = answer.steps[0].row
    lines = [f"{first.task.id} is {first.state}{because(first) if not first.waits else ''}"]
    lines += _tree(answer.steps, answer.more) if len(answer.steps) > 1 else []
    ends = answer.waiting.lines()
    return lines + (["Who must act:", *(f"- {safe(end)}" for end in ends)] if ends else [])


def _history(answer: History) -> list[str]:
    from .lengths import clipped  # imported late: no other account needs it

    known = ("at", "by", "session", "verb", "task")
    lines = []
    for event in answer.events:
        told = [safe(str(event.get(key))) for key in ("at", "by", "verb", "task")]
        told[0] = to_the_second(told[0])
        told += [
            f"{safe(str(key))}={clipped(printed(value), MAX_WORDS)}" for key, value in event.items() if key not in known
        ]
        lines.append(" ".join(told))
    shown = within(reversed(lines), MAX_TREE)
    more = answer.more + len(lines) - shown
    name = f" {safe(answer.task)}" if answer.task else ""
    whole = " --json" if shown < len(lines) else ""
    earlier = [f"… {more} earlier: taskwall log{name} -n {shown + more}{whole}"] if more else []
    return earlier + lines[len(lines) - shown :] or ["Nothing is recorded here."]


MAX_WORDS = 60
"""About how many tokens of a value of an event are shown."""


def _released(answer: Released) -> list[str]:
    lines = [f"Released {row.task.id} ({safe(row.task.subject)})" for row in answer.rows]
    return lines or [f"Session {safe(answer.session)} holds nothing."]


def _graph(answer: Graph) -> list[str]:
    lines = _tree(_without_parents(answer.steps), answer.more, "list") or ["No open tasks."]
    return lines + ([f"{answer.finished} finished"] if answer.finished else [])


def _without_parents(steps: Iterable[Step]) -> list[Step]:
    """The tree does not repeat that a task waits for the one above it."""
    above: dict[int, str] = {}
    found = []
    for step in steps:
        above[step.depth] = step.row.task.id
        waits = tuple(name for name in step.row.waits if name != above.get(step.depth - 1))
        found.append(step.replace(row=step.row.replace(waits=waits)))
    return found


def _inbox(answer: Inbox) -> list[str]:
    """Each with the command that ends it, and all that its decision takes."""
    found = [_to_decide(row, behind) for row, behind in zip(answer.rows, answer.behind, strict=True)]
    return [*found, *after(answer)] or ["Nothing waits for a person."]


def _to_decide(row: Row, behind: Sequence[str]) -> str:
    task = row.task
    whose = f" --as {safe(row.reserved)}" if row.reserved and row.reserved not in PERSONS else ""
    when = to_the_minute(task.created_at or "")
    made = f"{'asked' if task.question else 'made'} by {safe(task.created_by or '')} at {when}"
    texts = (("question", task.question if task.question != task.subject else ""), ("about it", task.description))
    told = [
        f"taskwall resume {task.id}" if row.state == HELD else f"taskwall answer {task.id} TEXT{whose}",
        *(f"{name}: {block(text, MAX_TEXT // 2)}".replace("\n", "\n  ") for name, text in texts if text),
        f"options: {'; '.join(map(safe, task.options))}" if task.options else "",
        made if task.created_by and row.state != HELD else "",
        f"waiting for it: {some(behind, MAX_REASONS)}" if behind else "",
    ]
    return "\n  ".join([line(row), *filter(None, told)])


def _place(answer: Place) -> list[str]:
    if answer.git:
        made = f"Made {safe(answer.path)}" if answer.made else f"board: {safe(answer.path)}"
        return [f"{made} ({answer.why})", *_set_up(answer.git)]
    if answer.made:
        first = [
            f"Made {safe(answer.path)} ({answer.why})",
            'Next: `taskwall add "a first task"`, or `taskwall plan FILE`',
        ]
        names = ", ".join(answer.clients)
        return first + ([f"`taskwall setup` makes coding agents use it ({names})"] if names else [])
    there = "" if answer.exists else " (does not exist yet)"
    lines = [f"board: {safe(answer.path)}{there}", f"because: {answer.why}"]
    return [*lines, f"actor: {safe(answer.actor)}", f"session: {safe(answer.session)}"]


def _trusted(answer: Trusted) -> list[str]:
    if not answer.commands:
        none = {"list": "No command of this board is trusted.", "granted": "There is nothing new to trust."}
        return [none.get(answer.action, "Nothing of that was trusted.")]
    head = {"list": "Trusted on this board:", "granted": "Trusted, on this board alone:"}
    return [head.get(answer.action, "Trusted no longer:"), *(f"- {safe(command)}" for command in answer.commands)]


def _set_up(answer: SetUp) -> list[str]:
    names, files = ", ".join(answer.clients), ", ".join(map(safe, answer.files))
    if not files:
        fine = "nothing of ours is there" if answer.action == "remove" else "all is as it should be"
        said = f"Nothing to change for {names}: {'see above' if answer.notes else fine}."
    elif answer.done:
        said = f"{'Removed' if answer.action == 'remove' else 'Set up'} for {names}: {files} changed"
    else:
        said = f"Not as set up: {files}" if answer.action == "check" else f"Nothing was written. --yes changes: {files}"
    return [*filter(None, [answer.diff.rstrip("\n")]), *map(safe, answer.notes), said]


LINES: dict[type, Callable[[Any], list[str]]] = {
    Changed: _changed,
    Created: _created,
    Released: _released,
    Why: _why,
    History: _history,
    Graph: _graph,
    Inbox: _inbox,
    Place: _place,
    Trusted: _trusted,
    SetUp: _set_up,
}
