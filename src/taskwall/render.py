"""Answers as text, in the words of the lessons that users come from.

Text from tasks is escaped on its way out: no control or direction mark of a task reaches a terminal.
"""

from __future__ import annotations

from .board import PAGE
from .core.jsontext import dumps
from .core.model import BY_HAND, CANCELLED, COMPLETED, IDLE, IN_PROGRESS, PENDING, PERSONS, STATUSES, stored
from .core.state import BROKEN, HELD, STALE, WAITING
from .results import (
    MOST_COUNTED,
    Changed,
    Created,
    Graph,
    History,
    Listing,
    Offer,
    Place,
    Released,
    Report,
    Row,
    SetUp,
    Shown,
    Trusted,
    Why,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence
    from typing import Any

    from .core.errors import Refused
    from .core.model import Task
    from .results import Answer, Step

MARKS = {PENDING: "[ ]", IN_PROGRESS: "[>]", COMPLETED: "[x]", CANCELLED: "[-]"}
MAX_TEXT = 2_000
"""How much of a description or note a claim's answer repeats, in characters."""
MAX_REASONS = 5
MAX_ITEMS = 20
"""How many tasks one section of an answer names."""
LAPSED = "its holder is gone or its lease ran out"

UNSAFE = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
"""A pattern of what no terminal is given raw."""


def safe(text: str, *, lines: bool = False) -> str:
    """Text with control characters, direction marks and lone surrogates made visible; line breaks stay when `lines`."""
    text = text.replace("\r\n", "\n") if lines else text.replace("\n", "\\n").replace("\t", " ")
    return replaced(text, lambda character: character.encode("unicode_escape").decode())


def replaced(text: str, write: Callable[[str], str]) -> str:
    """Text with what `write` makes of each character that is not safe to print."""
    if text.replace("\n", "").isprintable():  # most texts are plain, and `re` takes half as long to load as Python
        return text
    import re

    return re.sub(UNSAFE, lambda match: write(match[0]), text)


# Text


def text(answer: Answer) -> str:
    """An answer as lines of text, for models and pipes. Whatever a line forgot to escape is escaped here."""
    lines = answer.lines() if isinstance(answer, Report) else LINES[type(answer)](answer)
    return safe("\n".join(lines), lines=True)


def fitted(answer: Answer, most: int) -> str:
    """An answer in at most `most` characters: a list says first how long it is and gives up its last rows."""
    from .lengths import shortened  # imported late: only models are given no more than they can take

    lines = text(answer).split("\n")
    if isinstance(answer, (Listing, Offer)) and answer.rows:
        lines = [line(row) for row in answer.rows]
        while len(lines) > 1 and sum(map(len, lines)) + len(lines) + MAX_COUNTS > most:
            del lines[-1]
        lines.insert(0, _counts(answer, len(lines)))
    return shortened(safe("\n".join(lines), lines=True), most)


MAX_COUNTS = 200
"""How long the first line of a list may be."""


def _counts(answer: Listing | Offer, shown: int) -> str:
    """How many tasks there are, how many of them are shown, and how to see the others."""
    total = len(answer.rows) + answer.more
    words = [f"{shown} of {total}{_plus(answer)} tasks" if shown < total else f"{total} task{'s' * (total > 1)}"]
    if isinstance(answer, Listing):
        words += [f"{answer.finished} finished"] if answer.finished else []
        words += [f"the next ones: list_tasks with after={answer.rows[shown - 1].task.id}"] if shown < total else []
    return ", ".join(words)


def refusal(error: Refused) -> str:
    """A refusal as text: what and why, then the next safe step."""
    lines = safe(error.message, lines=True)
    return f"{lines}\nNext: {safe(error.next)}"


def near(name: str, offered: Collection[str]) -> str:
    """The way out for a name that is none of these."""
    from difflib import get_close_matches  # imported late: only an error needs it

    close = get_close_matches(name.lower(), offered, n=1, cutoff=0.5)
    return f"{f'did you mean {close[0]}? ' if close else ''}there are {', '.join(offered)}"


def line(row: Row) -> str:
    """One task on one line: mark, id, subject, status, what it waits for or who has it."""
    task = row.task
    if row.state == BROKEN:
        return f"[?] {safe(task.id)}: unreadable: {safe(task.flaw or '')}"
    words = [f"[{task.status if task.status in STATUSES else '?'}]", *_circumstances(row)]
    if task.priority != 2:
        words.append(f"P{task.priority}")
    words += [f"#{safe(label)}" for label in task.labels]
    return f"{MARKS[task.status]} {task.id}: {safe(task.subject)} {' '.join(words)}"


def _circumstances(row: Row) -> list[str]:
    """What keeps a task, and for whom it is, in words."""
    task = row.task
    words = []
    if task.closed:
        return [f"owner={safe(task.owner)}"] if task.owner else []
    if task.status == IN_PROGRESS:
        words += [
            f"owner={safe(task.owner or 'unknown')}",
            *(["idle: claimed by hand over a day ago"] if row.idle else []),
        ]
    if row.waits:
        words.append(f"blockedBy={_some(row.waits, 5)}")
    if row.state == HELD:
        words.append(f"held: {safe(row.reasons[0].text)}")
    elif row.state == STALE:
        words.append(f"stale: {LAPSED}")
    elif row.state == WAITING:
        words.append(f"waiting on {safe(row.reserved or '')}")
    elif row.reserved and task.status == PENDING:
        words.append(f"reserved for {safe(row.reserved)}")
    return words


def _item(row: Row) -> str:
    marks = _circumstances(row.replace(waits=()))
    return f"- {row.task.id}: {safe(row.task.subject)}{' [' + '; '.join(marks) + ']' if marks else ''}"


def _section(title: str, items: Sequence[Row]) -> list[str]:
    return [title, *map(_item, items[:MAX_ITEMS]), *_rest(items)] if items else []


def _rest(items: Sequence[Row]) -> list[str]:
    return [f"… {len(items) - MAX_ITEMS} more"] if len(items) > MAX_ITEMS else []


def _some(names: Sequence[str], most: int) -> str:
    """The first few of these names, and how many more there are."""
    return ",".join(map(safe, names[:most])) + (f",+{len(names) - most}" if len(names) > most else "")


def _changed(answer: Changed) -> list[str]:
    row = answer.row
    if answer.already:
        head = list(answer.notices) or [
            f"{row.task.id} ({safe(row.task.subject)}): {_ALREADY.get(answer.verb, 'no change')}"
        ]
        return [*map(safe, head), *_section("Unblocked:", answer.unblocked)]
    lines = [f"{_DONE[answer.verb]} {row.task.id} ({safe(row.task.subject)})", *map(safe, answer.notices)]
    if answer.verb == "claim":
        lines += _briefing(row, answer.blockers)
    if answer.verb == "ask":
        decision = answer.also[0].task
        lines.insert(1, f"Waits for {decision.id}: {safe(decision.subject)}")
        lines.append(f"Next: a person answers with `taskwall answer {decision.id} TEXT`")
    elif answer.also:
        lines += _section(_ALSO[answer.verb], answer.also)
    return lines + _section("Unblocked:", answer.unblocked)


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
        lines.append("  " + _block(task.description))
    lines += [outcome for blocker in blockers[:MAX_ITEMS] for outcome in _outcome(blocker.task)]
    lines += [f"attempts before: {task.attempts}"] if task.attempts else []
    lines += [f"note by {safe(note['by'])}: {_block(note['text'])}" for note in task.notes[-5:]]
    lines += [f"products: {', '.join(map(safe, task.products))}"] if task.products else []
    lines += [f"checks: {'; '.join(map(safe, task.checks))}"] if task.checks else []
    way = f"taskwall answer {task.id} TEXT" if row.reserved in PERSONS or task.question is not None else ""
    return [*lines, f"Next: {way or f'do it, then complete_task (taskwall done {task.id})'}"]


def _block(text: str) -> str:
    """Text of several lines, indented so that none of them can be taken for a line of ours."""
    return safe(text[:MAX_TEXT], lines=True).replace("\n", "\n  ")


def _outcome(task: Task) -> list[str]:
    """What came of a task, for those that waited for it."""
    told = (("answer", task.answer), ("result", task.result))
    return [f"{word} of {task.id} ({safe(task.subject)}): {_block(text)}" for word, text in told if text]


def _created(answer: Created) -> list[str]:
    lines = []
    for row in answer.rows:
        verb = "Exists already" if row.task.id in answer.already else "Created"
        waits = (
            f" (blockedBy: {_some(row.task.blocked_by, MAX_ITEMS).replace(',', ', ')})" if row.task.blocked_by else ""
        )
        lines.append(f"{verb} {row.task.id}: {safe(row.task.subject)}{waits}")
    return lines + list(map(safe, answer.notices))


def _listing(answer: Listing) -> list[str]:
    if not answer.total:
        return ["No tasks. Use create_task (taskwall add) to add some."]
    lines = [line(row) for row in answer.rows] or ["No task matches." if not answer.finished else "No open tasks."]
    return lines + after(answer)


def after(answer: Listing | Offer) -> list[str]:
    """What follows the rows of a list: how many more there are, and the command that shows them."""
    shown, total = len(answer.rows), len(answer.rows) + answer.more
    if isinstance(answer, Listing):
        way = f": list --after {safe(answer.rows[-1].task.id)} (with the same filters)" if shown else ""
        finished = [f"{answer.finished} finished"] if answer.finished else []
    else:
        most = PAGE if _plus(answer) else min(total, PAGE)
        way, finished = f": taskwall next -n {most}" if shown < PAGE else "", []
    return ([f"… {answer.more}{_plus(answer)} more{way}"] if answer.more else []) + finished


def _plus(answer: Listing | Offer) -> str:
    """What stands behind a number that was not counted to its end."""
    return "+" if isinstance(answer, Offer) and answer.more >= MOST_COUNTED else ""


def _shown(answer: Shown) -> list[str]:
    row = answer.row
    task = row.task
    lines = [line(row), f"state: {row.state}{_because(row)}"]
    if task.description:
        lines += ["description:", *(f"  {part}" for part in safe(task.description, lines=True).split("\n"))]
    known = stored(task)
    shown = ("id", "subject", "description", "status", "owner", "blockedBy", "notes", "key")
    for key, value in {k: v for k, v in known.items() if k not in shown}.items():
        lines.append(f"{key}: {_value(value)}")
    lines += [f"{safe(key)}: {_value(value)}" for key, value in task.extra.items()]
    if answer.claim:
        lines.append(f"claim: {_claim(answer.claim)}")
    for title, items in (
        ("Waits for:", answer.blockers),
        ("Children:", answer.children),
        ("Dependents:", answer.dependents),
    ):
        lines += [title, *(f"- {line(item)}" for item in items[:MAX_ITEMS]), *_rest(items)] if items else []
        lines += (
            [f"  {outcome}" for item in items[:MAX_ITEMS] for outcome in _outcome(item.task)]
            if items is answer.blockers
            else []
        )
    lines += [f"- {safe(i)}: does not exist" for i in answer.missing]
    told = (f"- {safe(n['at'][:16])} {safe(n['by'])}: {safe(n['text'], lines=True)}" for n in task.notes)
    lines += ["Notes:", *(note.replace("\n", "\n  ") for note in told)] if task.notes else []
    lines += _section("Completing it would unblock:", answer.would_unblock)
    return lines + [f"notice: {safe(notice)}" for notice in task.notices]


def _claim(told: dict[str, Any]) -> str:
    words = [f"{key} {_value(value)}" for key, value in told.items() if key not in ("lease", "left")]
    by_hand = told.get("lease") in (BY_HAND, IDLE)
    words.append("by hand, never lapses" if by_hand else f"lease {_value(told.get('lease'))}")
    return ", ".join(words + ([f"{told['left']:.1f} minutes left"] if "left" in told else []))


def _because(row: Row) -> str:
    told = [safe(reason.text) for reason in row.reasons[:MAX_REASONS]]
    more = [f"… {len(row.reasons) - MAX_REASONS} more"] if len(row.reasons) > MAX_REASONS else []
    return f" ({'; '.join(told + more)})" if told else ""


def _value(value: Any) -> str:
    return safe(value) if isinstance(value, str) else safe(dumps(value))


def _offer(answer: Offer) -> list[str]:
    if answer.rows:
        return [*map(line, answer.rows), *after(answer)]
    if not answer.total:
        return ["No tasks. Use create_task (taskwall add) to add some."]
    if not answer.open:
        return [f"Everything is finished ({answer.total} tasks)."]
    return ["Nothing is actionable.", *map(safe, answer.waiting.lines())]


def _tree(steps: Sequence[Step], more: int) -> list[str]:
    lines = [f"{'  ' * step.depth}{_above(step) if step.seen else line(step.row)}" for step in steps]
    return lines + ([f"… {more} more"] if more else [])


def _above(step: Step) -> str:
    return f"{MARKS[step.row.task.status]} {safe(step.row.task.id)} (see above)"


def _why(answer: Why) -> list[str]:
    first = answer.steps[0].row
    lines = [f"{first.task.id} is {first.state}{_because(first) if not first.waits else ''}"]
    lines += _tree(answer.steps, answer.more) if len(answer.steps) > 1 else []
    ends = answer.waiting.lines()
    return lines + (["Who must act:", *(f"- {safe(end)}" for end in ends)] if ends else [])


def _history(answer: History) -> list[str]:
    import re  # imported late: see `replaced`

    known = ("at", "by", "session", "verb", "task")
    lines = []
    for event in answer.events:
        told = [safe(str(event.get(key))) for key in ("at", "by", "verb", "task")]
        told[0] = re.sub(r"\.\d+Z$", "Z", told[0])
        told += [f"{safe(str(key))}={_value(value)}" for key, value in event.items() if key not in known]
        lines.append(" ".join(told))
    shown = len(answer.events)
    name = f" {safe(answer.task)}" if answer.task else ""
    way = f": taskwall log{name} -n {min(shown + answer.more, PAGE)}" if shown < PAGE else ""
    earlier = [f"… {answer.more} earlier{way}"] if answer.more else []
    return earlier + lines or ["Nothing is recorded here."]


def _released(answer: Released) -> list[str]:
    lines = [f"Released {row.task.id} ({safe(row.task.subject)})" for row in answer.rows]
    return lines or [f"Session {safe(answer.session)} holds nothing."]


def _graph(answer: Graph) -> list[str]:
    lines = _tree(_without_parents(answer.steps), answer.more) or ["No open tasks."]
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
        return [
            {"list": "No command of this board is trusted.", "granted": "There is nothing new to trust."}.get(
                answer.action, "Nothing of that was trusted."
            )
        ]
    head = {"list": "Trusted on this board:", "granted": "Trusted, on this board alone:"}
    return [head.get(answer.action, "Trusted no longer:"), *(f"- {safe(command)}" for command in answer.commands)]


def _set_up(answer: SetUp) -> list[str]:
    names, files = ", ".join(answer.clients), ", ".join(map(safe, answer.files))
    if not files:
        said = f"Nothing to change for {names}: {'see above' if answer.notes else 'all is as it should be'}."
    elif answer.done:
        said = f"{'Removed' if answer.action == 'remove' else 'Set up'} for {names}: {files} changed"
    else:
        said = f"Not as set up: {files}" if answer.action == "check" else f"Nothing was written. --yes changes: {files}"
    return [*filter(None, [answer.diff.rstrip("\n")]), *map(safe, answer.notes), said]


LINES: dict[type, Callable[[Any], list[str]]] = {
    Changed: _changed,
    Created: _created,
    Released: _released,
    Listing: _listing,
    Shown: _shown,
    Offer: _offer,
    Why: _why,
    History: _history,
    Graph: _graph,
    Place: _place,
    Trusted: _trusted,
    SetUp: _set_up,
}
