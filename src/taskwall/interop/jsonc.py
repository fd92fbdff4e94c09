"""Entries put into a JSON text and taken out again; every other byte of it stays, comments too.

What we add can be told from what was there by its layout, so that taking it out needs no memory: into a container that
was empty an entry goes directly after the bracket, while in one that we made white space stands between them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any

from ..core.record import Record
from ..stores.files.strict import NotStrict, encode, parse

Path = tuple[str | None, ...]

UNIT = "  "
BOM = "\ufeff"
NO_BOM = "it begins with a byte order mark, which some clients refuse: save it as UTF-8 without one"


class Entry(Record):
    """A value at a path of keys; a last step of None means an item of the list there."""

    path: Path
    value: Any
    raw: str = ""  # the value's text, where its layout alone tells that it is ours


class Member(Record):
    """Where one entry of an object or list stands. key: None in a list."""

    key: str | None
    first: int
    start: int
    end: int


_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/|,(?=(?:\s|//[^\n]*|/\*.*?\*/)*[}\]])', re.DOTALL)
_SPACE = re.compile(r"[ \t\r\n]*")


def plain(text: str) -> str:
    """The text with comments and trailing commas blanked, every other character in its place. Raises NotStrict."""
    if text.startswith(BOM):
        raise NotStrict(NO_BOM)
    found = _TOKEN.sub(lambda m: m[0] if m[0][0] == '"' else re.sub(r"[^\n]", " ", m[0]), text)
    parse(found)
    return found


def lookup(text: str, path: Path) -> str | None:
    """The text of the value at a path, None when there is none. Raises NotStrict when something else is in its way."""
    bare = plain(text)
    at = bare.index("{")
    for depth, step in enumerate(path):
        if bare[at] != "{":
            raise NotStrict(f"{'.'.join(map(str, path[:depth]))} is not an object")
        member = next((m for m in _members(bare, at) if m.key == step), None)
        if member is None:
            return None
        at, end = member.start, member.end
    return bare[at:end]


def items(text: str, path: Path) -> list[Any]:
    """The items of the list at a path. Raises NotStrict when that is no list."""
    found = lookup(text, path)
    value = json.loads(found) if found is not None else []
    if not isinstance(value, list):
        raise NotStrict(f"{'.'.join(map(str, path))} is not a list")
    return value


def create(entries: Sequence[Entry], extras: dict[str, Any]) -> str:
    """A file of these entries; `extras`: keys that only a file that we make gets, after the first of ours."""
    first, *rest = entries
    text = _wrapped(first.path, first.raw or encode(first.value, UNIT), UNIT) + "\n"
    for key, value in extras.items():
        text = insert(text, Entry((key,), value))
    for entry in rest:
        text = insert(text, entry)
    return text


def insert(text: str, entry: Entry) -> str:
    """The text with an entry that it lacks, in the layout of what is there."""
    bare = plain(text)
    at = bare.index("{")
    unit = _indent(text, _members(bare, at)) or None
    for depth, step in enumerate(entry.path):
        members = _members(bare, at)
        member = next((m for m in members if step is not None and m.key == step), None)
        if member is None:
            return _added(text, at, members, entry, depth, unit)
        at = member.start
    return text


def _added(text: str, at: int, members: list[Member], entry: Entry, depth: int, unit: str | None) -> str:
    indent = _indent(text, members)
    unit = None if indent is None else unit or UNIT
    step = entry.path[depth]
    body = _wrapped(entry.path[depth + 1 :], entry.raw or encode(entry.value, unit), unit)
    whole = body if step is None else f"{encode(step)}: {body}"
    newline = "\r\n" if "\r\n" in text else "\n"
    whole = whole.replace("\n", newline + (indent or ""))
    if not members:
        return text[: at + 1] + whole + text[at + 1 :]
    end = members[-1].end
    return text[:end] + "," + (" " if indent is None else newline + indent) + whole + text[end:]


def _wrapped(path: Path, text: str, unit: str | None) -> str:
    """A value inside the containers of a path, white space after each opening bracket; on one line without a unit."""
    for key in reversed(path):
        inner = text if key is None else f"{encode(key)}: {text}"
        inner = f" {inner} " if unit is None else "\n" + unit + inner.replace("\n", f"\n{unit}") + "\n"
        text = f"[{inner}]" if key is None else f"{{{inner}}}"
    return text


def _indent(text: str, members: list[Member]) -> str | None:
    """The white space before a member that begins its line, None when none does."""
    before = (text[: m.first].rpartition("\n") for m in members)
    return next((line for _, newline, line in before if newline and not line.strip()), None)


def remove(text: str, entry: Entry, extras: dict[str, Any]) -> str | None:
    """The text without an entry, None when the whole file is one that we made. As it is when that is not there."""
    bare = plain(text)
    chain: list[tuple[int, list[Member], int]] = []
    at = bare.index("{")
    for step in entry.path:
        if bare[at] not in "{[":  # another value stands where ours would be
            return text
        members = _members(bare, at)
        here = [n for n, m in enumerate(members) if _is(bare, m, step, entry)]
        if not here:
            return text
        chain.append((at, members, here[-1]))
        at = members[here[-1]].start
    last = members[here[-1]]
    ours = f"{encode(last.key)}: {entry.raw}"  # the space counts: texts without spaces have none here either
    if text[last.first : last.end] != ours if entry.raw else not _equal(bare, last, entry):
        return text
    while chain:
        at, members, number = chain.pop()
        made = number == 0 and members[0].first > at + 1 and text[at + 1 : members[0].first].isspace()
        if not chain and made and _others(bare, members) == extras:
            return None
        if not chain or not made or len(members) > 1:
            break
    return _cut(text, bare, members, number)


def _is(bare: str, member: Member, step: str | None, entry: Entry) -> bool:
    return member.key == step if step is not None else member.key is None and _equal(bare, member, entry)


def _equal(bare: str, member: Member, entry: Entry) -> bool:
    return bool(json.loads(bare[member.start : member.end]) == entry.value)


def _others(bare: str, members: list[Member]) -> dict[str, Any]:
    return {str(m.key): json.loads(bare[m.start : m.end]) for m in members[1:]}


def _cut(text: str, bare: str, members: list[Member], number: int) -> str:
    """Without one member and one comma; comments that somebody put beside it stay."""
    member = members[number]
    if number:
        before = members[number - 1].end
        comma = bare.index(",", before, member.first)
        between = text[comma + 1 : member.first]
        return text[:comma] + ("" if not between.strip() else between) + text[member.end :]
    if len(members) > 1:
        comma = bare.index(",", member.end, members[1].first)
        return text[: member.first] + text[comma + 1 :].lstrip(" \t\r\n")
    return text[: member.first] + text[member.end :]


def _members(bare: str, at: int) -> list[Member]:
    """The entries of the object or list whose bracket stands at `at`."""
    decoder = json.JSONDecoder()
    closing = {"{": "}", "[": "]"}[bare[at]]
    found = []
    at = _skip(bare, at + 1)
    while bare[at] != closing:
        first, key = at, None
        if closing == "}":
            key, after = scanstring(bare, at + 1)
            at = _skip(bare, _skip(bare, after) + 1)
        _, end = decoder.raw_decode(bare, at)
        found.append(Member(key, first, at, end))
        at = _skip(bare, end)
        if bare[at] == ",":
            at = _skip(bare, at + 1)
    return found


def _skip(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return space.end() if space else at
