"""Strict reading of the JSON object of a file, and how values are written there."""

from __future__ import annotations

from ...core.jsontext import SPACE, dumps, reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_DEPTH = 32
_INFINITE = (float("inf"), float("-inf"))


class NotStrict(ValueError):
    """The text is not one JSON object, or more permissive than JSON is. `line` counts from 1."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


def parse(text: str) -> dict[str, Any]:
    """The object in this text. Raises NotStrict: duplicate keys, NaN, deep nesting, anything that is not JSON."""
    try:
        value = _read(text)
    except RecursionError:
        raise NotStrict(f"nested deeper than {MAX_DEPTH} levels") from None
    except NotStrict:
        raise
    except ValueError as error:
        if not text.strip("\0" + SPACE):
            raise NotStrict("the file is all zero bytes" if "\0" in text else "the file is empty") from None
        line = getattr(error, "lineno", None)
        flaw = _conflict(text) if line else None
        raise NotStrict(flaw or str(getattr(error, "msg", error)).partition(";")[0], line) from None
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
    if (number := float(digits)) in _INFINITE:
        raise NotStrict(f"{digits} is too large a number")
    return number


_read = reader(object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite)


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


def encode(value: Any, indent: str | None = None) -> str:
    """JSON with Unicode unescaped, but for lone surrogates, which UTF-8 cannot write."""
    return dumps(value, indent).encode("utf-8", "backslashreplace").decode()
