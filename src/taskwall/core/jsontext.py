"""JSON by the half of the standard library's `json` that is written in C.

The other half compiles patterns when it is imported, which takes half as long as to start Python; every board command
would pay that. It is loaded to say what is wrong with a text.
"""

from __future__ import annotations

from .light import SimpleNamespace

try:
    import _json
except ImportError:  # a Python whose `json` has no such half
    _json = None  # type: ignore[assignment]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

SPACE = " \t\r\n"
_CONTEXT = {
    "strict": True,
    "object_hook": None,
    "object_pairs_hook": None,
    "parse_float": float,
    "parse_int": int,
    "parse_constant": float,
}


def scanner(**hooks: Any) -> Callable[[str, int], tuple[Any, int]]:
    """What reads the value that begins at a place of a text, and says where it ends.

    hooks: as those of `json.loads`. It is for texts that are known to be right; what it raises at others is no answer.
    """
    if _json is None:
        import json

        found: Any = json.JSONDecoder(**hooks)
        return found.scan_once
    context: Any = SimpleNamespace(**_CONTEXT | hooks)
    return _json.make_scanner(context)


def reader(**hooks: Any) -> Callable[[str], Any]:
    """What reads the one value in a text, as `json.loads` does with these hooks; it raises ValueError."""
    scan = scanner(**hooks)

    def read(text: str) -> Any:
        try:
            value, end = scan(text, len(text) - len(text.lstrip(SPACE)))
            if not text[end:].strip(SPACE):
                return value
        except (StopIteration, SystemError):  # before 3.12 the C half cannot say more until `json` is loaded
            pass
        import json

        return json.loads(text, **hooks)

    return read


loads = reader()


def dumps(value: Any, indent: str | None = None, *, line: str = "\n") -> str:
    """JSON with Unicode unescaped, on one line; with an indent, an item a line. line: what begins one at this depth."""
    if not indent or not value or not isinstance(value, (dict, list, tuple)):
        return _on_one_line(value)
    inner = line + indent
    if isinstance(value, dict):
        items = [f"{_on_one_line({key: 0})[1:-2]}{dumps(item, indent, line=inner)}" for key, item in value.items()]
        return f"{{{inner}{f',{inner}'.join(items)}{line}}}"
    return f"[{inner}{f',{inner}'.join(dumps(item, indent, line=inner) for item in value)}{line}]"


def _on_one_line(value: Any) -> str:
    if _encoder is None:
        import json

        return json.dumps(value, ensure_ascii=False)
    return "".join(_encoder(value, 0))


def _refuse(value: Any) -> NoReturn:
    raise TypeError(f"{type(value).__name__} is not JSON")


_encoder: Any = _json and _json.make_encoder(
    None, _refuse, _json.encode_basestring, None, ": ", ", ", False, False, True
)
