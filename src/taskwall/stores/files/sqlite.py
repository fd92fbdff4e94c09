"""What the index uses of SQLite, without what loading that brings along.

`sqlite3` is written in Python around `_sqlite3`, and takes longer to load for what is not used here. `_sqlite3` itself
loads `functools`, and `collections` with it, a quarter of an interpreter start, to take `lru_cache` from it: the cache
of a connection's statements. Where nobody has loaded `functools` yet, it is shown another room with such a function.
"""

from __future__ import annotations

import sys

from ...core import light

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sqlite3 import Error, connect
    from typing import Any
else:
    # A program of several threads has loaded it with `threading`: no other thread meets this by chance.
    alone = sys.modules.setdefault("functools", light) is light
    try:
        try:
            from _sqlite3 import Error, connect
        finally:
            if alone:
                del sys.modules["functools"]
    except AttributeError:  # one that takes more from there
        from _sqlite3 import Error, connect
    except ImportError:  # a Python built without it
        connect, Error = None, OSError


def storable(value: Any) -> Any:
    """A value as SQLite takes it: JSON may hold halves of characters."""
    return value if not isinstance(value, str) or value.isascii() else value.encode("utf-8", "replace").decode()


__all__ = ["Error", "connect", "storable"]
