"""Text from tasks, and tasks in a line or less: the words of which every answer is made.

Text from tasks is escaped on its way out: no control or direction mark of a task reaches a terminal.
"""

from __future__ import annotations

from itertools import accumulate

from .core.jsontext import dumps
from .core.model import CANCELLED, COMPLETED, IN_PROGRESS, PENDING, STATUSES
from .core.state import BROKEN, HELD, STALE, WAITING
from .results import ALL, MOST_COUNTED, PAGE, Inbox, Listing, Offer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from .results import Row

MARKS = {PENDING: "[ ]", IN_PROGRESS: "[>]", COMPLETED: "[x]", CANCELLED: "[-]"}
MAX_TEXT = 1_500
"""How much is told of a text, or of the results of all blockers, in characters."""
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
        words.append(f"owner={safe(task.owner or 'unknown')}")
        words += ["idle: claimed by hand over a day ago"] if row.idle else []
    if row.waits:
        words.append(f"blockedBy={some(row.waits, 5)}")
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


def section(title: str, items: Sequence[Row], way: str = ALL) -> list[str]:
    return [title, *map(_item, items[:MAX_ITEMS]), *rest(items, way)] if items else []


def rest(items: Sequence[Row], way: str = ALL) -> list[str]:
    return [f"… {len(items) - MAX_ITEMS} more ({way})"] if len(items) > MAX_ITEMS else []


def after(answer: Listing | Offer, *, cut: bool = False) -> list[str]:
    """What follows the rows of a list: how many more there are, and the command that shows them.

    cut: they are fewer than were asked for, for that they are long.
    """
    shown, total = len(answer.rows), len(answer.rows) + answer.more
    if isinstance(answer, Offer):
        most = PAGE if plus(answer) else min(total, PAGE)
        way = "taskwall list ready" if cut or shown >= PAGE else f"taskwall next -n {most}"
        return [f"… {answer.more}{plus(answer)} more: {way}"] if answer.more else []
    last = safe(answer.rows[-1].task.id) if shown else ""
    way = f"waiting --after {last}" if isinstance(answer, Inbox) else f"list --after {last} (with the same filters)"
    more = [f"… {answer.more} more{f': {way}' if shown else ''}"] if answer.more else []
    return more + ([f"{answer.finished} finished"] if answer.finished else [])


def plus(answer: Listing | Offer) -> str:
    """What stands behind a number that was not counted to its end."""
    return "+" if isinstance(answer, Offer) and answer.more >= MOST_COUNTED else ""


def some(names: Sequence[str], most: int) -> str:
    """The first few of these names, and how many more there are."""
    return ",".join(map(safe, names[:most])) + (f",+{len(names) - most}" if len(names) > most else "")


def block(text: str, most: int = MAX_TEXT) -> str:
    """The beginning of a text, indented."""
    more = len(text) - most
    return indented(text[:most] + (f"… {more} characters more (show --json)" if more > 0 else ""))


def indented(text: str) -> str:
    """Text of several lines, indented so that none of them can be taken for a line of ours."""
    return safe(text, lines=True).replace("\n", "\n  ")


def within(lines: Iterable[str], most: int) -> int:
    """How many of these lines, from the first on, fit in so many bytes."""
    return sum(size <= most for size in accumulate(len(each.encode()) + 1 for each in lines))


def came_of(blockers: Sequence[Row]) -> list[str]:
    """What came of tasks, for one that waited for them: the more there are, the less of each."""
    tasks = [row.task for row in blockers[:MAX_ITEMS]]
    told = [(t, word, text) for t in tasks for word, text in (("answer", t.answer), ("result", t.result)) if text]
    return [f"{word} of {t.id} ({safe(t.subject)}): {block(text, MAX_TEXT // len(told))}" for t, word, text in told]


def because(row: Row) -> str:
    told = [safe(reason.text) for reason in row.reasons[:MAX_REASONS]]
    more = [f"… {len(row.reasons) - MAX_REASONS} more"] if len(row.reasons) > MAX_REASONS else []
    return f" ({'; '.join(told + more)})" if told else ""


def printed(value: Any) -> str:
    return safe(value) if isinstance(value, str) else safe(dumps(value))
