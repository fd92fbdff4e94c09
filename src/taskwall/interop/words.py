"""What changed between two states of a task, in the words of the board."""

from __future__ import annotations

from collections.abc import Iterator

from ..core.model import CANCELLED, COMPLETED, IN_PROGRESS, Task
from ..core.record import Record
from ..lengths import clipped

MOST = 40
"""About how many tokens of a text are repeated."""


class Word(Record):
    """One thing that changed. what: created, removed, claimed, …, or the key of a field; text: all of it in words."""

    what: str
    text: str


def changes(old: Task | None, new: Task | None) -> tuple[Word, ...]:
    """What became of a task; None: it was not there, or is no more."""
    return tuple(_words(old, new))


def _words(old: Task | None, new: Task | None) -> Iterator[Word]:
    if new is None or old is None:
        if old is not None:
            yield Word("removed", f"removed, was {'unreadable' if old.flaw else old.status}")
        elif new is not None:
            yield from _created(new)
    elif old.flaw or new.flaw:
        if new.flaw != old.flaw:
            yield Word(*(("unreadable", f"unreadable: {new.flaw}") if new.flaw else ("readable", "readable again")))
    else:
        yield from _progress(old, new)
        yield from _lists(old, new)
        yield from _fields(old, new)


def _created(new: Task) -> Iterator[Word]:
    more = [f"blockedBy {', '.join(new.blocked_by)}"] if new.blocked_by else []
    more += [new.status if not new.owner else f"{new.status}, owner {new.owner}"]
    yield Word("created", f"created ({'; '.join(more)})" if not new.flaw else f"came unreadable: {new.flaw}")


def _progress(old: Task, new: Task) -> Iterator[Word]:
    """Status, owner, and what they bring."""
    who = new.owner or "nobody named"
    if new.status == old.status == IN_PROGRESS and (old.owner, old.epoch) != (new.owner, new.epoch):
        yield Word("claimed", f"taken over by {who} from {old.owner or 'nobody named'}")
    elif new.status == old.status and new.owner != old.owner:
        yield Word("owner", f"reserved for {new.owner}" if new.owner else f"reserved for {old.owner} no longer")
    elif new.status == IN_PROGRESS != old.status:
        yield Word("claimed", f"claimed by {who}")
    elif new.status == COMPLETED != old.status:
        yield Word("completed", f"completed by {who}")
    elif new.status == CANCELLED != old.status:
        yield Word("cancelled", "cancelled")
    elif new.status != old.status:
        how = ("reopened", "reopened") if old.closed else ("released", f"released by {old.owner or 'nobody named'}")
        yield Word(*how)
    if new.attempts != old.attempts:
        yield Word("attempts", f"attempts {old.attempts} → {new.attempts}")


def _lists(old: Task, new: Task) -> Iterator[Word]:
    for field, plus, minus in (
        ("blocked_by", "waits for", "no longer waits for"),
        ("labels", "label", "no longer label"),
        ("products", "promises", "no longer promises"),
        ("checks", "check", "no longer check"),
        ("options", "option", "no longer option"),
    ):
        before, after = getattr(old, field), getattr(new, field)
        added, gone = [v for v in after if v not in before], [v for v in before if v not in after]
        for word, values in ((plus, added), (minus, gone)):
            if values:
                yield Word(field, f"{word} {', '.join(values)}")
    for note in new.notes:
        if note not in old.notes:
            yield Word("note", f"note by {note['by']}: {clipped(note['text'], MOST)}")


def _fields(old: Task, new: Task) -> Iterator[Word]:
    if new.description != old.description:
        yield Word("description", f"description: {_lines(old.description, new.description)}")
    for field in ("subject", "hold", "question", "answer", "result", "parent"):
        before, after = getattr(old, field), getattr(new, field)
        if before != after:
            told = f"{clipped(before, MOST)} → " if before else ""
            yield Word(field, f"{field}: {told}{clipped(after, MOST) if after else 'none'}")
    if new.priority != old.priority:
        yield Word("priority", f"priority {old.priority} → {new.priority}")
    for field, before, after in (("metadata", old.metadata, new.metadata), ("other", old.extra, new.extra)):
        names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
        if names:
            yield Word(field, f"{'metadata' if field == 'metadata' else 'other keys'}: {', '.join(names)}")


def _lines(old: str, new: str) -> str:
    from difflib import ndiff

    if len(old) + len(new) > 20_000:  # a line-wise comparison may take time that grows faster than the texts
        return f"{len(old)} → {len(new)} characters"
    marks = [line[0] for line in ndiff(old.splitlines(), new.splitlines())]
    return f"+{marks.count('+')} −{marks.count('-')} lines"
