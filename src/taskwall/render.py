"""Answers as text, in the words of the lessons that users come from.

Here stand those of the looks that agents take all day; the others are `accounts`.
"""

from __future__ import annotations

from .core.model import BY_HAND, IDLE, stored, to_the_minute
from .results import ALL, Inbox, Listing, Offer, Report, Shown
from .wording import (
    MAX_ITEMS,
    after,
    because,
    block,
    came_of,
    indented,
    line,
    plus,
    printed,
    rest,
    safe,
    section,
    within,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from typing import Any

    from .core.errors import Refused
    from .results import Answer, Row


MOST = 8_000
"""How many bytes an answer has that nobody asked for in another size."""


def text(answer: Answer, most: int | None = MOST) -> str:
    """An answer as lines of text in at most so many bytes, but for reports that must tell all that they found.

    Whatever a line forgot to escape is escaped here.
    """
    lines = _shown(answer, whole=True) if most is None and isinstance(answer, Shown) else _lines_of(answer)
    told = safe("\n".join(lines), lines=True)
    if isinstance(answer, Report) and not answer.long:
        return told
    if most is None or len(told) * 4 <= most or len(told.encode()) <= most:
        return told
    if isinstance(answer, (Listing, Offer)) and len(answer.rows) > 1:
        fewer = _fewer(answer, lines, most)
        return safe("\n".join([*lines[: len(fewer.rows)], *after(fewer, cut=True)]), lines=True)
    from .lengths import leveled  # imported late: most answers are short

    return leveled([safe(each, lines=True) for each in lines], most, ALL)


def _lines_of(answer: Answer) -> list[str]:
    if isinstance(answer, Report):
        return answer.lines()
    kind = type(answer)
    if kind in LINES:
        return LINES[kind](answer)
    from . import accounts  # imported late: most looks need no more

    return accounts.LINES[kind](answer)


def counted(answer: Answer, most: int = MOST) -> str:
    """An answer in at most so many bytes; a list says first how long it is, for whoever reads no further."""
    if not isinstance(answer, (Listing, Offer)) or not answer.rows:
        return text(answer, most)
    lines = _lines_of(answer)[: len(answer.rows)]
    if sum(len(each.encode()) + 1 for each in lines) > most - MAX_COUNTS:
        answer = _fewer(answer, lines, most)
    return safe("\n".join([_counts(answer), *lines[: len(answer.rows)]]), lines=True)


def _fewer(answer: Listing | Offer, lines: Sequence[str], most: int) -> Listing | Offer:
    """A list without its last rows, so that the others fit in so many bytes. lines: first of all, one a row."""
    shown = max(1, min(len(answer.rows) - 1, within(lines, most - MAX_COUNTS)))
    if isinstance(answer, Inbox):
        answer = answer.replace(behind=answer.behind[:shown])
    return answer.replace(rows=answer.rows[:shown], more=answer.more + len(answer.rows) - shown)


MAX_COUNTS = 200
"""How many bytes the words around the rows of a list have at most."""


def _counts(answer: Listing | Offer) -> str:
    """How many tasks there are, how many of them are shown, and how to see the others."""
    shown, total = len(answer.rows), len(answer.rows) + answer.more
    words = [f"{shown} of {total}{plus(answer)} tasks" if shown < total else f"{total} task{'s' * (total > 1)}"]
    if isinstance(answer, Listing):
        words += [f"{answer.finished} finished"] if answer.finished else []
        name = "waiting" if isinstance(answer, Inbox) else "list_tasks"
        words += [f"the next ones: {name} with after={answer.rows[shown - 1].task.id}"] if shown < total else []
    return ", ".join(words)


def refusal(error: Refused) -> str:
    """A refusal as text: what and why, then the next safe step."""
    told = safe(error.message, lines=True)
    if len(told.encode()) > MOST:
        from .lengths import leveled

        told = leveled(told.split("\n"), MOST, ALL)
    return f"{told}\nNext: {safe(error.next)}"


def near(name: str, offered: Collection[str]) -> str:
    """The way out for a name that is none of these."""
    from difflib import get_close_matches  # imported late: only an error needs it

    close = get_close_matches(name.lower(), offered, n=1, cutoff=0.5)
    return f"{f'did you mean {close[0]}? ' if close else ''}there are {', '.join(offered)}"


def _listing(answer: Listing) -> list[str]:
    if not answer.total:
        return ["No tasks. Use create_task (taskwall add) to add some."]
    lines = [line(row) for row in answer.rows] or ["No task matches." if not answer.finished else "No open tasks."]
    return lines + after(answer)


def _shown(answer: Shown, *, whole: bool = False) -> list[str]:
    row = answer.row
    task = row.task
    lines = [line(row), f"state: {row.state}{because(row)}"]
    if task.description:
        lines.append(f"description:\n  {indented(task.description)}")
    known = stored(task)
    shown = ("id", "subject", "description", "status", "owner", "blockedBy", "notes", "key")
    for key, value in {k: v for k, v in known.items() if k not in shown}.items():
        plain = isinstance(value, list) and all(isinstance(item, str) for item in value)
        lines.append(f"{key}: {', '.join(map(safe, value)) if plain else printed(value)}")
    lines += [f"{safe(key)}: {printed(value)}" for key, value in task.extra.items()]
    if answer.claim:
        lines.append(f"claim: {_claim(answer.claim)}")
    waits = [*_related(answer.blockers), *(f"- {safe(i)}: does not exist" for i in answer.missing)]
    waits += [f"  {outcome}" for outcome in came_of(answer.blockers)]
    near = {"Waits for:": waits, "Children:": _related(answer.children), "Dependents:": _related(answer.dependents)}
    lines += [each for title, told in near.items() if told for each in (title, *told)]
    notes = task.notes if whole else task.notes[-MAX_ITEMS:]
    earlier, most = len(task.notes) - len(notes), MAX_NOTES // max(1, len(notes))
    texts = (indented(n["text"]) if whole else block(n["text"], most) for n in notes)
    told = [f"- {safe(to_the_minute(n['at']))} {safe(n['by'])}: {text}" for n, text in zip(notes, texts, strict=True)]
    lines += ["Notes:", *([f"… {earlier} earlier ({ALL})"] if earlier > 0 else []), *told] if told else []
    lines += section("Completing it would unblock:", answer.would_unblock)
    return lines + [f"notice: {safe(notice)}" for notice in task.notices]


def _related(items: Sequence[Row]) -> list[str]:
    return [*(f"- {line(item)}" for item in items[:MAX_ITEMS]), *rest(items)]


MAX_NOTES = 4_000
"""How many characters of notes are shown together, where not all is asked for."""


def _claim(told: dict[str, Any]) -> str:
    words = [f"{key} {printed(value)}" for key, value in told.items() if key not in ("lease", "left")]
    by_hand = told.get("lease") in (BY_HAND, IDLE)
    words.append("by hand, never lapses" if by_hand else f"lease {printed(told.get('lease'))}")
    return ", ".join(words + ([f"{told['left']:.1f} minutes left"] if "left" in told else []))


def _offer(answer: Offer) -> list[str]:
    if answer.rows:
        return [*map(line, answer.rows), *after(answer)]
    if not answer.total:
        return ["No tasks. Use create_task (taskwall add) to add some."]
    if not answer.open:
        return [f"Everything is finished ({answer.total} task{'s' * (answer.total > 1)})."]
    return ["Nothing is actionable.", *map(safe, answer.waiting.lines())]


LINES: dict[type, Callable[[Any], list[str]]] = {Listing: _listing, Shown: _shown, Offer: _offer}
