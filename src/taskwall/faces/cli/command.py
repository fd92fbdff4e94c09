"""What a command of the command line is, and how its words become the arguments of a verb."""

from __future__ import annotations

import sys

from ...core.errors import Invalid
from ...core.light import SimpleNamespace
from ...registry import VERBS, integer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


# No records: a hundred of these are made at every start, which takes records as long as all that a command does.


class Argument:
    """One word or option. to: the verb's parameter. kind: how its text is read (see SHAPES).

    doc: what it is for, where the verb has no such parameter.
    """

    def __init__(self, flags: str, to: str, kind: str = "one", doc: str = "") -> None:
        self.flags, self.to, self.kind, self.doc = flags, to, kind, doc

    @property
    def is_option(self) -> bool:
        return self.flags.startswith("-")

    @property
    def shape(self) -> dict[str, Any]:
        """How many words it takes and what becomes of them, as argparse says that."""
        shape = SHAPES[self.kind]
        return shape | {"nargs": "*" if "nargs" in shape else "?"} if self.flags.startswith("[") else shape

    def take(self, words: list[str], found: dict[str, Any]) -> None:
        """Move its own words from the front of these to what was found. Raises LookupError, ValueError, TypeError."""
        shape = self.shape
        if shape.get("action") == "store_true":
            found[self.to] = True
            return
        several, needed = shape.get("nargs") in ("+", "*"), shape.get("nargs") in (None, "+")
        free = next((n for n, word in enumerate(words) if _is_flag(word)), len(words))
        taken = words[: free if several else min(free, 1)]
        if needed and not taken:
            raise LookupError(self.flags)
        del words[: len(taken)]
        if several:
            found[self.to] = [*(found[self.to] or ()), *taken]
        else:
            found[self.to] = shape.get("type", str)(taken[0]) if taken else shape.get("const")


class Command:
    """One command of the synopsis. verb: what it calls on the board, where it is one.

    doc: what it does, where that is not what its verb says. tail: what all that stands behind `--` is for.
    """

    def __init__(self, *arguments: Argument, verb: str = "", doc: str = "", tail: str = "") -> None:
        self.arguments, self.verb, self.doc, self.tail = arguments, verb, doc, tail

    @property
    def help(self) -> str:
        """What it does, in the words of its verb."""
        return self.doc or VERBS[self.verb].doc

    def read(self, words: Sequence[str]) -> SimpleNamespace | None:
        """What argparse reads from a line on which each word has one plain meaning; None for a line that is not plain.

        To load argparse takes half as long as to start Python. What is unusual, and all that is wrong, stays with it.
        """
        arguments = (*GLOBALS, *self.arguments)
        options = {flag: argument for argument in arguments if argument.is_option for flag in argument.flags.split()}
        found: dict[str, Any] = {argument.to: None for argument in arguments}
        loose: list[str] = []
        todo = [*words]
        try:
            while todo:
                word = todo.pop(0)
                if _is_flag(word):
                    options[word].take(todo, found)
                else:
                    loose.append(word)
            for argument in self.arguments:
                if not argument.is_option:
                    argument.take(loose, found)
        except (LookupError, ValueError, TypeError):
            return None
        return None if loose else SimpleNamespace(**found)

    def values(self, args: SimpleNamespace) -> dict[str, Any]:
        """The arguments of the verb that were given. Raises Invalid."""
        given = {argument.to: (argument.kind, getattr(args, argument.to)) for argument in self.arguments}
        return {
            to: _READ[kind](value) if kind in _READ else value
            for to, (kind, value) in given.items()
            if value is not None
        }


GLOBALS = (
    Argument("--board", "board", doc="the board: a .tasks folder, the one that holds it, or postgresql://…?board=NAME"),
    Argument("--as", "actor", doc="who acts"),
    Argument("--json", "json", "flag", "answer as JSON"),
)
"""What every command takes."""

SHAPES: dict[str, dict[str, Any]] = {
    "one": {},
    "id": {},
    "text": {},
    "words": {"nargs": "+"},
    "ids": {"nargs": "+", "action": "extend"},
    "many": {"nargs": "+", "action": "extend"},
    "flag": {"action": "store_true"},
    "int": {"type": integer},
    "float": {"type": float},
    "plan": {},
    "run": {"nargs": "?", "const": "", "metavar": "RUN"},
}


def _is_flag(word: str) -> bool:
    return word.startswith("-") and word != "-"


def _text(value: str) -> str:
    """The text itself, or what comes on standard input for `-`."""
    return sys.stdin.read().rstrip("\n") if value == "-" else value


def _ids(values: list[str]) -> list[str]:
    return [name for value in values for part in value.split(",") if (name := part.strip())]


def _plan(path: str) -> Any:
    from .plan import read_plan  # imported late: only `plan` needs it

    if path == "-":
        return read_plan(sys.stdin.read())
    try:
        with open(path, encoding="utf-8") as file:
            return read_plan(file.read())
    except OSError as error:
        raise Invalid(f"{path}: {error.strerror}", next="name a file, or - for standard input") from None
    except UnicodeDecodeError:
        raise Invalid(f"{path} is not UTF-8 text", next="save it as UTF-8") from None


def _one(value: str) -> str:
    if not value.strip():  # an unset variable of a script; it must not mean "any task"
        raise Invalid("ID is empty", next="name a task")
    return value


_READ: dict[str, Any] = {
    "id": _one,
    "text": _text,
    "words": lambda words: _text(" ".join(words)),
    "ids": _ids,
    "many": lambda values: [value for value in values if value],
    "plan": _plan,
}
