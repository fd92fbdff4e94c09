"""Each kind of part of a set-up: how it is put into the files of a tree, and how it is taken out again.

Nothing is remembered beside the files: what is ours in them can be told from what is not (`jsonc`, `blocks`), and our
skill carries a check sum, by which a changed copy is known, and the folders that were there before it and empty.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Sequence
from typing import Any

from ..core.errors import Invalid
from ..core.record import Record
from ..stores.files.strict import NotStrict
from . import blocks, jsonc
from .blocks import MARKDOWN, TOML, Torn
from .clients import SERVER, Json, Part, Skill, Text, Toml
from .tree import Foreign, Tree, above

PROJECT_FILES = ("AGENTS.md", "CLAUDE.md")
# A comment in the front matter: clients take a skill's name and description from there and show a model the body.
_MARK = re.compile(r"(?m)^# taskwall ([0-9a-f]{8})((?: \S+)*)\n(?=---\n)")


class Note(Record):
    """Something to tell. amiss: the file that is not as it should be and that set-up leaves so."""

    text: str
    amiss: str = ""


class Stuck(ValueError):
    """A file into which a part cannot be put."""

    def __init__(self, part: Part, message: str) -> None:
        super().__init__(message)
        self.part = part


def where(tree: Tree, part: Part) -> str | None:
    """The file a part goes into, None when another part does for it."""
    if isinstance(part, Json):
        there = (path for path in (part.path, *part.others) if os.path.lexists(tree.full(path)))
        return next(there, part.path)
    return _instructions(tree, part.path) if isinstance(part, Text) else part.path


# Putting


def put_all(tree: Tree, parts: Sequence[Part]) -> list[Note]:
    """Put these parts into a tree. Raises Stuck."""
    hollow = {folder for part in parts for folder in above(part.path) if tree.hollow(folder)}
    notes: list[Note] = []
    for part in parts:
        if (path := where(tree, part)) is None:
            continue
        try:
            notes += _put(tree, path, part, hollow)
        except Foreign as flaw:
            raise Stuck(part, str(flaw)) from None
        except (NotStrict, Torn) as flaw:
            raise Stuck(part, f"{path} cannot be read: {_told(flaw)}") from None
    return notes


def _told(flaw: Exception) -> str:
    line = getattr(flaw, "line", None)
    return f"{flaw} (line {line})" if line else str(flaw)


def _put(tree: Tree, path: str, part: Part, hollow: set[str]) -> list[Note]:
    if isinstance(part, Text):
        return _put_text(tree, path, part)
    if isinstance(part, Skill):
        return _put_skill(tree, part, hollow)
    return _put_toml(tree, part) if isinstance(part, Toml) else _put_json(tree, path, part)


def _put_text(tree: Tree, path: str, part: Text) -> list[Note]:
    text = tree.read(path)
    around = blocks.without(text, MARKDOWN) if text else ""
    if not (part.lines.startswith("@") and re.search(r"(?m)(?:^|\s)@(?:\./)?AGENTS\.md\b", around)):
        tree.now[path] = blocks.put(text, part.lines, MARKDOWN)
    return []


def _instructions(tree: Tree, path: str) -> str | None:
    """Where instructions go: AGENTS.md and CLAUDE.md may be one file under two names."""
    if path not in PROJECT_FILES:
        return path
    agents, claude = map(tree.full, PROJECT_FILES)
    linked = (os.path.islink(agents) or os.path.islink(claude)) and os.path.exists(agents) and os.path.exists(claude)
    if not linked or not os.path.samefile(agents, claude):
        return path
    if path == "CLAUDE.md":
        return None
    return "CLAUDE.md" if os.path.islink(agents) else "AGENTS.md"


def _put_skill(tree: Tree, part: Skill, hollow: set[str]) -> list[Note]:
    text = tree.read(part.path)
    ours, kept = _skill(text)
    if text is not None and not ours:
        told = f"{part.path} is not the skill that set-up wrote: delete it and run set-up again, or keep your own"
        return [Note(told, part.path)]
    head, fence, body = part.text.partition("\n---\n")
    mark = " ".join(["# taskwall", _sum(part.text), *sorted(hollow | kept)])
    new = f"{head}\n{mark}{fence}{body}"
    tree.now[part.path] = new.replace("\n", "\r\n") if text and "\r\n" in text else new
    return []


def _skill(text: str | None) -> tuple[bool, set[str]]:
    """Whether a skill is one that set-up wrote, unchanged, and the folders that it says were there before it."""
    text = (text or "").replace("\r\n", "\n")
    found = _MARK.search(text)
    if not found:
        return False, set()
    return found[1] == _sum(text[: found.start()] + text[found.end() :]), set(found[2].split())


def _sum(text: str) -> str:
    return f"{zlib.crc32(text.encode()):08x}"


def _put_toml(tree: Tree, part: Toml) -> list[Note]:
    text = tree.read(part.path)
    around = blocks.without(text or "", TOML)
    if (own := _table(around, part.table)) is not None:
        return [_own_server(part.path, own)]
    notes = []
    lines = part.lines + part.extra
    if part.extra and not _fits(blocks.put(around, lines, TOML)):
        folder = part.extra.rpartition("=")[2].strip()
        notes = [Note(f"{part.path} has its own settings of the sandbox: add {folder} to them")]
        lines = part.lines
    new = blocks.put(text, lines, TOML)
    if not _fits(new):
        raise NotStrict(f"a table {'.'.join(part.table)} cannot be added to it")
    tree.now[part.path] = new
    return notes


def _table(text: str, path: tuple[str, ...]) -> Any:
    """What stands at a path of keys, None when nothing does. Raises NotStrict."""
    import tomllib

    if text.startswith(jsonc.BOM):
        raise NotStrict(jsonc.NO_BOM)
    try:
        found: Any = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise NotStrict(str(error)) from None
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
    return found


def _fits(text: str) -> bool:
    try:
        return _table(text, ()) is not None
    except NotStrict:
        return False


def _put_json(tree: Tree, path: str, part: Json) -> list[Note]:
    text = tree.read(path)
    if text is None:
        tree.now[path] = jsonc.create(part.entries, part.extras)
        return []
    notes = []
    for entry in part.entries:
        if entry.path[-1] is None:
            there = jsonc.items(text, entry.path[:-1])
            if entry.value in there or any(_same_command(item, entry.value) for item in there):
                continue
        elif (found := jsonc.lookup(text, entry.path)) is not None:
            own = json.loads(found)
            if entry.path[-1] == SERVER and own != entry.value:
                notes.append(_own_server(path, own))
            elif entry.raw and "AGENTS.md" not in (own if isinstance(own, list) else [own]):
                notes.append(Note(f"Gemini will not read AGENTS.md: add it to context.fileName in {path}"))
            continue
        text = jsonc.insert(text, entry)
    tree.now[path] = text
    return notes


def _own_server(path: str, server: Any) -> Note:
    """What is told of a server under our name that set-up did not write: it may start taskwall in its own way."""
    if _starts_taskwall(server):
        return Note(f"the server taskwall in {path} is not as set-up writes it, but starts taskwall: it stays as it is")
    return Note(
        f"the board is not connected: {path} has another server called taskwall; rename it and run set-up again", path
    )


def _starts_taskwall(server: Any) -> bool:
    if not isinstance(server, dict) or server.get("enabled") is False:
        return False
    command, args = server.get("command"), server.get("args")
    words = [str(word) for part in (command, args) for word in (part if isinstance(part, list) else [part])]
    return "mcp" in words and any(re.fullmatch(r"(.*[/\\])?taskwall(\.exe)?", word) for word in words)


def _same_command(item: object, ours: object) -> bool:
    """Whether a group of hooks is ours with other details, such as a timeout that somebody chose."""
    command = re.search(r'"taskwall hook \w+"', json.dumps(ours))
    return bool(command and command[0] in json.dumps(item))


# Taking


def take_all(tree: Tree, parts: Sequence[Part]) -> tuple[list[Note], set[str]]:
    """Take everything of ours out; what is to be told, and the folders that stay. Raises Invalid."""
    notes: list[Note] = []
    keep: set[str] = set()
    for part in parts:
        if (path := where(tree, part)) is None:
            continue
        try:
            if (text := tree.read(path)) is None:
                continue
            keep |= _skill(text)[1] if isinstance(part, Skill) else set()
            notes += _take(tree, path, text, part)
        except Foreign:
            continue  # we never write there, so nothing of ours is there
        except (NotStrict, Torn) as flaw:
            if "taskwall" in (tree.now.get(path) or ""):
                told = f"{path} cannot be read: {_told(flaw)}; nothing was removed"
                raise Invalid(told, next="mend that and repeat") from None
    return notes, keep


def _take(tree: Tree, path: str, text: str, part: Part) -> list[Note]:
    if isinstance(part, Json):
        return _take_json(tree, path, text, part)
    if isinstance(part, Skill):
        if not _skill(text)[0]:
            return [Note(f"left {path}: it is not the skill that set-up wrote; delete it if nobody needs it")]
        tree.now[path] = None
    else:
        tree.now[path] = blocks.take(text, MARKDOWN if isinstance(part, Text) else TOML)
    return []


def _take_json(tree: Tree, path: str, was: str, part: Json) -> list[Note]:
    text: str | None = was
    # What only its layout tells from somebody's own goes last, and only from a file in which something else was ours.
    for entry in sorted(part.entries, key=lambda entry: bool(entry.raw)):
        if text is not None and not (entry.raw and text == was):
            text = jsonc.remove(text, entry, part.extras)
    tree.now[path] = text
    left = text is not None and any(
        entry.path[-1] == SERVER and jsonc.lookup(text, entry.path) is not None for entry in part.entries
    )
    return [Note(f"left {path}: its server taskwall is not the one that set-up writes")] if left else []
