"""Markdown files with front matter: its fields, read from YAML as people write it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from ...core.rules.incoming import GUESSED, SKIPPED, UNREADABLE
from .source import Reading, Text, Unparsed, as_text


def front_matters(reading: Reading, texts: Iterable[Text]) -> Iterator[tuple[Text, str, dict[str, Any], str]]:
    """Each Markdown file with front matter: the file, where that stands, its fields, the body below it."""
    for source in texts:
        reading.records += 1
        where = f"{source.name}:1"
        match = _FRONT_MATTER.match(source.text)
        if not match:
            reading.tell(SKIPPED, where, "no front matter")
            continue
        try:
            fields, mended = _fields(match[1])
        except Unparsed as flaw:
            reading.tell(UNREADABLE, f"{source.name}:{flaw.line}", str(flaw))
            continue
        if mended:
            reading.tell(GUESSED, where, "its front matter is invalid YAML; read with `@name` as text")
        if as_text(fields.get("id")) and as_text(fields.get("status")):
            yield source, where, fields, source.text[match.end() :]
        else:
            reading.tell(SKIPPED, where, "no id and status")


_FRONT_MATTER = re.compile(r"---[ \t]*\r?\n(.*?)\n---[ \t]*(?:\r?\n|$)", re.DOTALL)


def _fields(text: str) -> tuple[dict[str, Any], bool]:
    """The fields in front matter, and whether it had to be mended: `@name` is written, which YAML keeps for itself.

    Every scalar is text: `1.10` and `007` are ids here, no numbers.
    """
    try:
        found, mended = _yaml(text), False
    except Unparsed:
        names = re.sub(r"(?m)^([\w-]+:[ \t]+|[ \t]*-[ \t]+)(@[^\n]*)$", _quoted, text)
        found, mended = _yaml(re.sub(r"([\[,][ \t]*)(@[^\s,\]]+)", _quoted, names)), True
    if not isinstance(found, dict):
        raise Unparsed("its front matter is no list of fields")
    return {key: None if value in _NOTHING and key not in _NAMES else value for key, value in found.items()}, mended


_NOTHING = ("null", "Null", "NULL", "~")
_NAMES = ("id", "title")
"""Fields whose text may be such a word."""


def _quoted(match: re.Match[str]) -> str:
    return match[1] + "'" + match[2].strip().replace("'", "''") + "'"


def _yaml(text: str) -> Any:
    import yaml  # imported late: only an import needs it

    try:
        return yaml.load(text, _loader())  # noqa: S506 - a base loader makes nothing but text, lists and dicts
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise Unparsed(f"invalid YAML: {getattr(error, 'problem', error)}", mark.line + 2 if mark else 1) from None
    except (RecursionError, ValueError) as error:
        raise Unparsed(f"invalid YAML: {error}") from None


@cache
def _loader() -> type:
    import yaml

    class Plain(yaml.BaseLoader):
        """Reads no aliases: a few lines of them can stand for a gigabyte."""

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise yaml.YAMLError("aliases are not read")
            return super().compose_node(parent, index)

    return Plain
