"""Reading, writing and editing text files, inside the workspace."""

from __future__ import annotations

import itertools
import os

from ..core.errors import Invalid
from ..core.record import Record
from .tool import Tool, needed, number, own

MAX_LINES, MAX_CHARACTERS = 500, 7_500
"""How much of a file one call shows."""


class Workspace(Record):
    """The folder that a run may change. board: the folder that only verbs change. readable: one it may read too."""

    root: str
    board: str
    readable: str
    outside: bool = False

    def find(self, path: str, *, to_write: bool = False) -> str:
        """The real path that is meant. Raises Invalid when it lies outside, through a link too."""
        found = os.path.realpath(os.path.join(self.root, os.path.expanduser(path)))
        if to_write and _is_in(found, self.board):
            raise Invalid(f"{path} belongs to the board", next="change tasks with the task tools")
        if self.outside or _is_in(found, self.root) or (not to_write and _is_in(found, self.readable)):
            return found
        raise Invalid(f"{path} lies outside the workspace {self.root}", next="name a path inside it")


def _is_in(path: str, folder: str) -> bool:
    folder = os.path.realpath(folder)
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def _replace(found: str, path: str, old: str, new: str) -> int:
    """Put one piece of text in the place of another; returns its line."""
    text = _text(found, path)
    line = _line_of(old, text, path)
    _write(found, text.replace(old, new))
    return line


def file_tools(workspace: Workspace) -> list[Tool]:
    """read_file, write_file and edit_file in this workspace."""

    def read_file(path: str, offset: int = 1, limit: int = MAX_LINES) -> str:
        return read(workspace.find(path), path, max(offset, 1), max(min(limit, MAX_LINES), 1))

    def write_file(path: str, content: str) -> str:
        found = workspace.find(path, to_write=True)
        os.makedirs(os.path.dirname(found), exist_ok=True)
        _write(found, content)
        return f"Wrote {path}: {len(content)} characters"

    def edit_file(path: str, old: str, new: str) -> str:
        return f"Edited {path} at line {_replace(workspace.find(path, to_write=True), path, old, new)}"

    where = "path inside the workspace"
    return [
        own(
            read_file,
            "Read a text file, or some lines of it.",
            needed("path", where),
            number("offset", "first line, from 1"),
            number("limit", f"how many lines, at most {MAX_LINES}"),
        ),
        own(
            write_file,
            "Write a whole text file; what was in it is replaced.",
            needed("path", where),
            needed("content", "all of the new text"),
        ),
        own(
            edit_file,
            "Replace one piece of a text file.",
            needed("path", where),
            needed("old", "text to replace; must occur exactly once"),
            needed("new", "text in its place"),
        ),
    ]


def _line_of(old: str, text: str, path: str) -> int:
    """The line in which the one place begins where this stands. Raises Invalid when it does not stand there once."""
    if (times := text.count(old) if old else 0) != 1:
        told = f"old occurs {times} times in {path}" if old else "old is empty"
        raise Invalid(f"{told}, must be once", next="read_file, then give more of the text around it")
    return text[: text.index(old)].count("\n") + 1


def read(found: str, path: str, offset: int, limit: int) -> str:
    """Lines of a file as far as one result holds them, and how to read on."""
    _require_file(found, path)
    lines: list[str] = []
    room = MAX_CHARACTERS
    with open(found, encoding="utf-8", errors="replace", newline="") as file:
        following = itertools.islice(file, offset - 1, None)
        for line in following:
            if lines and (len(lines) == limit or len(line) > room):
                last = offset + len(lines) - 1
                return "".join(lines) + f"… lines {offset} to {last}; go on with offset={last + 1}"
            lines.append(line)
            room -= len(line)
    return "".join(lines) or ("(the file is empty)" if offset == 1 else f"(no line {offset})")


def _text(found: str, path: str) -> str:
    _require_file(found, path)
    try:
        # Line ends stay as they are.
        with open(found, encoding="utf-8", newline="") as file:
            return file.read()
    except UnicodeDecodeError:
        raise Invalid(f"{path} is no UTF-8 text", next="change it with a command") from None


def _require_file(found: str, path: str) -> None:
    if not os.path.exists(found):
        raise Invalid(f"{path} does not exist", next="list the folder, or write it")
    if not os.path.isfile(found):
        raise Invalid(f"{path} is no plain file", next="name a file")


def _write(found: str, text: str) -> None:
    if os.path.exists(found) and not os.path.isfile(found):
        raise Invalid(f"{found} is no plain file", next="name a file")
    # Encoded first: a text that is no Unicode must not empty the file.
    data = text.encode()
    with open(found, "wb") as file:
        file.write(data)
