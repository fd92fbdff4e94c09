"""A block of lines of ours between two marks, at the end of a text that is otherwise somebody's own."""

from __future__ import annotations

import re
from re import Match

from ..core.record import Record

BEGIN = "taskwall:begin, kept by taskwall setup"
END = "taskwall:end"


class Marks(Record):
    """How comments are written in a kind of file."""

    open: str
    close: str = ""

    def line(self, words: str) -> str:
        return f"{self.open} {words} {self.close}".rstrip()


MARKDOWN = Marks("<!--", "-->")
TOML = Marks("#")


class Torn(ValueError):
    """The marks of a block do not stand in a pair."""


def block(lines: str, marks: Marks) -> str:
    """The lines between their marks."""
    return f"{marks.line(BEGIN)}\n{lines.strip()}\n{marks.line(END)}\n"


def put(text: str | None, lines: str, marks: Marks) -> str:
    """The text with this block: in place of the one there, else at the end. None: there is no text yet."""
    new = block(lines, marks)
    if text is None:
        return new
    if found := find(text, marks):
        new = new.replace("\n", _newline(found[1]))
        return text[: found.start()] + new + text[found.end() :]
    newline = _newline(text)
    new = new.replace("\n", newline)
    # One line break goes before it always, so that taking the block out gives the text back, ended or not.
    return text + newline + new


def take(text: str, marks: Marks) -> str | None:
    """The text without its block, None when it was nothing else."""
    found = find(text, marks)
    if not found:
        return text
    before, after = text[: found.start()], text[found.end() :]
    if not before and not after:
        return None
    bare = before.removesuffix(_newline(found[1]))
    glues = after and not bare.endswith("\n")
    return (before if glues else bare) + after


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def without(text: str, marks: Marks) -> str:
    """The text around the block."""
    found = find(text, marks)
    return text[: found.start()] + text[found.end() :] if found else text


def find(text: str, marks: Marks) -> Match[str] | None:
    """The block in a text. Raises Torn."""
    begin, end = re.escape(marks.line(BEGIN)), re.escape(marks.line(END))
    counts = [len(re.findall(rf"^{mark}[ \t]*\r?$", text, re.MULTILINE)) for mark in (begin, end)]
    found = re.search(rf"^({begin}[ \t]*\r?\n).*?^{end}[ \t]*(?:\r?\n|\Z)", text, re.MULTILINE | re.DOTALL)
    if counts != [1 if found else 0] * 2:
        raise Torn("the marks of taskwall's block do not stand in one pair")
    return found
