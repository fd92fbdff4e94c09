"""Our own JSON Lines, as `taskwall export` writes them: a task a line, in the keys of its file."""

from __future__ import annotations

from collections.abc import Sequence

from .folder import add_object
from .source import Batch, Reading, Text, json_lines


def read(texts: Sequence[Text]) -> Batch:
    """The tasks of one or more files."""
    reading = Reading()
    for where, raw in (found for source in texts for found in json_lines(reading, source)):
        add_object(reading, raw, where)
    return reading.batch()
