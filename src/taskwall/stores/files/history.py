"""A board's history, `.local/events.jsonl`: one JSON object a line, appended after the change that it tells of.

It is read from its end, so that what happened lately costs the same after a year as on the first day.
"""

from __future__ import annotations

import json
from contextlib import suppress

from .disk import NotPlain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from .disk import Disk

    Event = dict[str, Any]

BLOCK = 256 * 1024
MAX_BYTES = 1024 * 1024 * 1024
"""How much of a log is read at most, the latest of it."""
MAX_LINE = 1024 * 1024


def read_events(disk: Disk, path: str, since: str | None = None) -> list[Event]:
    """The events of a log at or after `since`, oldest first; lines that cannot be read are left out.

    Lines are a little out of order, for a time is taken before its writer waits for the lock: reading ends with the
    first block all of whose events are older.
    """
    found: list[Event] = []
    with suppress(OSError, NotPlain):
        for lines in _lines(disk.read_back(path, BLOCK, MAX_BYTES)):
            events = [event for line in reversed(lines) if (event := _event(line))]
            late = [event for event in events if since is None or event["at"] >= since]
            found += late
            if events and not late:
                break
    return found[::-1]


def _lines(blocks: Iterable[bytes]) -> Iterator[list[bytes]]:
    """The lines that begin in each block, the last block first."""
    rest = b""
    for block in blocks:
        rest, *lines = (block + rest).split(b"\n")
        yield lines
        if len(rest) > MAX_LINE:  # no event is so long: not to be carried on for ever
            rest = b""
    yield [rest]


def _event(line: bytes) -> Event | None:
    try:
        event = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    fits = isinstance(event, dict) and isinstance(event.get("at"), str) and "verb" in event
    return event if fits else None
