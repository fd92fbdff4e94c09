"""JSON by the half of the standard library's `json` that is written in C.

The other half compiles patterns when it is imported, which takes half as long as to start Python; every board command
would pay that.
"""

from __future__ import annotations

from _json import encode_basestring, make_encoder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn


def _refuse(value: Any) -> NoReturn:
    raise TypeError(f"{type(value).__name__} is not JSON")


_encoder = make_encoder(None, _refuse, encode_basestring, None, ": ", ", ", False, False, True)


def dumps(value: Any) -> str:
    """JSON on one line, Unicode unescaped."""
    return "".join(_encoder(value, 0))
