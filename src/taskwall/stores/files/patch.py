"""Patching the text of one JSON object so that what does not change stays byte for byte."""

from __future__ import annotations

from ...core.jsontext import SPACE, dumps, scanner
from .strict import encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    Entry = tuple[str, str]

_BETWEEN = SPACE + ":,"
_scan = scanner()


class Span:
    """Where one top-level key and its value stand in the text, and the value."""

    __slots__ = ("end", "key_end", "key_start", "start", "value")

    def __init__(self, key_start: int, key_end: int, start: int, end: int, value: Any) -> None:
        self.key_start, self.key_end, self.start, self.end, self.value = key_start, key_end, start, end, value


def spans(text: str) -> dict[str, Span]:
    """The place of every top-level key and value of an object that `parse` accepts."""
    found: dict[str, Span] = {}
    at = _skip(text, text.index("{") + 1)
    while text[at] != "}":
        key, key_end = _scan(text, at)
        start = _skip(text, key_end)
        value, end = _scan(text, start)
        found[key] = Span(at, key_end, start, end, value)
        at = _skip(text, end)
    return found


def _skip(text: str, at: int) -> int:
    """Where the next key or value begins, or the object ends."""
    while text[at] in _BETWEEN:
        at += 1
    return at


def patch(text: str, changes: Mapping[str, Any], removed: Iterable[str], order: list[str]) -> str:
    """Set and remove top-level keys of a JSON object in its text; everything else stays byte for byte.

    changes: new values by key; a value equal to the one there is not touched. order: where an added key goes, namely on
    a line of its own after the nearest of its predecessors in this order. Layout follows that of the text. Adding a key
    and removing it again gives the text back.
    """
    here = spans(text)
    layout = _Layout(text, here)
    head, entries, tail = _parts(text, here, layout)
    for key, value in changes.items():
        if key not in here:
            entries = _insert(entries, key, (layout.comma, encode(key) + layout.colon + _encoded(value, layout)), order)
        elif not _same((span := here[key]).value, value):
            new = _replacement(text[span.start : span.end], layout, value)
            entries[key] = (entries[key][0], text[span.key_start : span.start] + new)
    for key in removed:
        entries.pop(key, None)
    first, *others = entries.values() or [("", "")]
    return "".join([head, first[1], *map("".join, others), tail])


def _parts(text: str, here: dict[str, Span], layout: _Layout) -> tuple[str, dict[str, Entry], str]:
    """What stands before the first key, per key what separates it from the one before and its own text, and the rest.

    The first has what would separate it, should another come before it.
    """
    entries: dict[str, Entry] = {}
    head = end = next((span.key_start for span in here.values()), text.index("{") + 1)
    for key, span in here.items():
        entries[key] = (text[end : span.key_start] or layout.comma, text[span.key_start : span.end])
        end = span.end
    return text[:head], entries, text[end:]


def _insert(entries: dict[str, Entry], key: str, entry: Entry, order: list[str]) -> dict[str, Entry]:
    """With an entry after the nearest of its predecessors in this order, else before all."""
    before = order[: order.index(key)] if key in order else list(entries)
    predecessor = next((name for name in reversed(before) if name in entries), None)
    items = list(entries.items())
    items.insert(0 if predecessor is None else list(entries).index(predecessor) + 1, (key, entry))
    return dict(items)


def _same(left: Any, right: Any) -> bool:
    """Whether two values are equal as JSON: 1, 1.0 and true are three."""
    return bool(left == right) and dumps(left) == dumps(right)


class _Layout:
    """How a text is laid out: its newline, the indentation of its keys, what stands between key and value."""

    def __init__(self, text: str, here: dict[str, Span]) -> None:
        self.newline = "\r\n" if "\r\n" in text else "\n"
        first = next(iter(here.values()), None)
        self.colon = text[first.key_end : first.start] if first else ": "
        before = (text[: span.key_start].rpartition("\n") for span in here.values())
        # None: all on one line.
        self.indent = next((line for _, newline, line in before if newline and not line.strip()), None)
        self.comma = ", " if self.indent is None else f",{self.newline}{self.indent}"


def _encoded(value: Any, layout: _Layout) -> str:
    if layout.indent is None or not isinstance(value, (dict, list)):
        return encode(value)
    return (layout.newline + layout.indent).join(encode(value, layout.indent or "  ").split("\n"))


def _replacement(old: str, layout: _Layout, value: Any) -> str:
    """The text of a new value; a list that somebody wrote on one line stays on one."""
    on_one_line = old[0] in "[{" and "\n" not in old and old[1:-1].strip()
    return encode(value) if on_one_line else _encoded(value, layout)
