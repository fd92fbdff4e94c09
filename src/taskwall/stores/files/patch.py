"""Strict reading of one JSON object, and patching its text so that what does not change stays byte for byte."""

from __future__ import annotations

import json
import math
import re
from json.decoder import scanstring  # type: ignore[attr-defined]

from ...core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

MAX_DEPTH = 32
_SPACE = re.compile(r"[ \t\r\n]*")
_SURROGATE = "[\ud800-\udfff]"


class Span(Record):
    """Where one top-level key and its value stand in the text."""

    key_start: int
    key_end: int
    start: int
    end: int


class NotStrict(ValueError):
    """The text is not one JSON object, or more permissive than JSON is. `line` counts from 1."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


def parse(text: str) -> dict[str, Any]:
    """The object in this text. Raises NotStrict: duplicate keys, NaN, deep nesting, anything that is not JSON."""
    if not text.strip("\0 \r\n\t"):
        raise NotStrict("the file is all zero bytes" if "\0" in text else "the file is empty")
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite)
    except json.JSONDecodeError as error:
        raise NotStrict(_conflict(text) or error.msg, error.lineno) from None
    except RecursionError:
        raise NotStrict(f"nested deeper than {MAX_DEPTH} levels") from None
    except NotStrict:
        raise
    except ValueError as error:
        raise NotStrict(str(error).partition(";")[0]) from None
    if not isinstance(value, dict):
        raise NotStrict(f"not a JSON object but a {type(value).__name__}")
    if text.count("{") + text.count("[") > MAX_DEPTH and _depth(value) > MAX_DEPTH:
        raise NotStrict(f"nested deeper than {MAX_DEPTH} levels")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        raise NotStrict(f"key {next(n for n in names if names.count(n) > 1)!r} stands twice")
    return found


def _no_constant(name: str) -> None:
    raise NotStrict(f"{name} is not JSON")


def _finite(digits: str) -> float:
    # 1e999 is JSON, but what it is read as cannot be written back.
    if (number := float(digits)) in (math.inf, -math.inf):
        raise NotStrict(f"{digits} is too large a number")
    return number


def _conflict(text: str) -> str | None:
    markers = ("<<<<<<<", ">>>>>>>", "=======")
    return "git conflict markers" if any(line.startswith(markers) for line in text.split("\n")) else None


def _depth(value: Any) -> int:
    deepest, todo = 0, [(value, 1)]
    for node, depth in todo:
        deepest = max(deepest, depth)
        children = node.values() if isinstance(node, dict) else node
        todo += [(child, depth + 1) for child in children if isinstance(child, (dict, list))]
    return deepest


def spans(text: str) -> dict[str, Span]:
    """The place of every top-level key and value of an object that `parse` accepts."""
    decoder = json.JSONDecoder()
    found: dict[str, Span] = {}
    at = _skip(text, text.index("{") + 1)
    while text[at] != "}":
        key_start = at
        key, key_end = scanstring(text, at + 1)
        start = _skip(text, _skip(text, key_end) + 1)
        _, end = decoder.raw_decode(text, start)
        found[key] = Span(key_start, key_end, start, end)
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return found


def _skip(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return space.end() if space else at


def patch(text: str, changes: Mapping[str, Any], removed: Iterable[str], order: list[str]) -> str:
    """Set and remove top-level keys of a JSON object in its text; everything else stays byte for byte.

    changes: new values by key; a value equal to the one there is not touched. order: where an added key goes, namely on
    a line of its own after the nearest of its predecessors in this order. Layout follows that of the text. Adding a key
    and removing it again gives the text back.
    """
    current = parse(text)
    for key, value in changes.items():
        here = spans(text)
        if key not in here:
            text = _insert(text, here, key, value, order)
        elif json.dumps(current[key]) != json.dumps(value):
            span = here[key]
            text = text[: span.start] + _replacement(text, here, span, value) + text[span.end :]
    for key in removed:
        here = spans(text)
        if key in here:
            text = _remove(text, here, key)
    return text


class _Layout:
    """How a text is laid out: its newline, the indentation of its keys, what stands between key and value."""

    def __init__(self, text: str, here: dict[str, Span]) -> None:
        self.newline = "\r\n" if "\r\n" in text else "\n"
        first = next(iter(here.values()), None)
        self.colon = text[first.key_end : first.start] if first else ": "
        before = (text[: span.key_start].rpartition("\n") for span in here.values())
        # None: all on one line.
        self.indent = next((line for _, newline, line in before if newline and not line.strip()), None)


def encode(value: Any, indent: str | None = None) -> str:
    """JSON with Unicode unescaped, but for lone surrogates, which UTF-8 cannot write."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    if text.isascii():
        return text
    return re.sub(_SURROGATE, lambda match: f"\\u{ord(match[0]):04x}", text)


def _encoded(value: Any, layout: _Layout) -> str:
    if layout.indent is None:
        return encode(value)
    return (layout.newline + layout.indent).join(encode(value, layout.indent or "  ").split("\n"))


def _replacement(text: str, here: dict[str, Span], span: Span, value: Any) -> str:
    """The text of a new value; a list that somebody wrote on one line stays on one."""
    old = text[span.start : span.end]
    on_one_line = old[0] in "[{" and "\n" not in old and old[1:-1].strip()
    return encode(value) if on_one_line else _encoded(value, _Layout(text, here))


def _insert(text: str, here: dict[str, Span], key: str, value: Any, order: list[str]) -> str:
    layout = _Layout(text, here)
    entry = encode(key) + layout.colon + _encoded(value, layout)
    gap = " " if layout.indent is None else layout.newline + layout.indent
    before = order[: order.index(key)] if key in order else list(here)
    predecessor = next((name for name in reversed(before) if name in here), None)
    if predecessor is not None:
        at = here[predecessor].end
        return text[:at] + "," + gap + entry + text[at:]
    first = next(iter(here.values()), None)
    at = first.key_start if first else text.index("{") + 1
    return text[:at] + entry + ("," + gap if first else "") + text[at:]


def _remove(text: str, here: dict[str, Span], key: str) -> str:
    """Without the key and what separates it from the one before it, or, for the first key, from the one after it."""
    names = list(here)
    at, span = names.index(key), here[key]
    if at:
        return text[: here[names[at - 1]].end] + text[span.end :]
    end = here[names[1]].key_start if len(names) > 1 else span.end
    return text[: span.key_start] + text[end:]
