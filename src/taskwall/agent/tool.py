"""A tool of our own: described and its arguments repaired by the same machinery as a verb of the board."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.record import Record
from ..registry import Param, Verb, bind, schema

SYNONYMS = {
    "cmd": "command",
    **dict.fromkeys(("file", "file_path", "filename"), "path"),
    **dict.fromkeys(("text", "contents"), "content"),
    **dict.fromkeys(("old_string", "old_str"), "old"),
    **dict.fromkeys(("new_string", "new_str"), "new"),
}
"""What other harnesses call the parameters of such tools."""


class Tool(Record):
    """What a model may call. `run` takes the arguments as they came; it may raise anything."""

    name: str
    doc: str
    schema: dict[str, Any]
    run: Callable[[Any], str]


def own(run: Any, doc: str, *params: Param) -> Tool:
    """The tool that calls this function by its name."""
    verb = Verb(run, doc, params)
    return Tool(verb.name, doc, schema(verb), lambda given: str(run(**arguments(verb, given))))


def arguments(verb: Verb, given: Any) -> dict[str, Any]:
    """The keyword arguments of a call. Raises Invalid."""
    if isinstance(given, dict):
        names = {param.public for param in verb.params}
        given = {key if key in names else SYNONYMS.get(key, key): value for key, value in given.items()}
    return bind(verb, given)


def needed(name: str, doc: str) -> Param:
    """A text that a tool cannot do without."""
    return Param(name, name, "str", required=True, doc=doc)


def number(name: str, doc: str, *, required: bool = False) -> Param:
    """A whole number."""
    return Param(name, name, "int", required=required, doc=doc)


def flag(name: str, doc: str) -> Param:
    """Yes or no; no when left out."""
    return Param(name, name, "bool", required=False, doc=doc)
