"""What a command of the command line is, and how its words become the arguments of a verb."""

from __future__ import annotations

import sys

from ...core.errors import Invalid
from ...core.record import Record
from ...registry import VERBS, integer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any


class Argument(Record):
    """One word or option. to: the verb's parameter. kind: how its text is read (see `_SHAPES`)."""

    flags: str
    to: str
    kind: str = "one"
    doc: str = ""  # where the verb has no such parameter

    def shape(self) -> dict[str, Any]:
        """What argparse wants to know of it besides its names."""
        shape = dict(_SHAPES[self.kind])
        if not self.flags.startswith("-"):
            several = "*" if "nargs" in shape else "?"
            return shape | {"metavar": self.flags.strip("[]")} | ({"nargs": several} if self.flags[0] == "[" else {})
        if self.kind not in ("flag", "run"):
            shape["metavar"] = METAVARS.get(self.to, self.to.rstrip("s").upper())
        return shape


class Command(Record):
    """One command of the synopsis. fixed: arguments that it always gives to its verb. empty: said of an empty list.

    tail: what all that stands behind `--` is for, word by word.
    """

    name: str
    verb: str
    arguments: tuple[Argument, ...] = ()
    fixed: dict[str, Any] = {}
    doc: str = ""
    empty: str = ""
    tail: str = ""

    @property
    def help(self) -> str:
        """What it does, in the words of its verb."""
        return self.doc or VERBS[self.verb].doc

    def add_to(self, parser: ArgumentParser) -> None:
        """Declare its words and options."""
        docs = {param.name: param.doc for param in VERBS[self.verb].params} if self.verb else {}
        for argument in self.arguments:
            shape = argument.shape() | {"help": argument.doc or docs[argument.to]}
            if argument.flags.startswith("-"):
                parser.add_argument(*argument.flags.split(), dest=argument.to, default=None, **shape)
            else:
                parser.add_argument(argument.to, default=None, **shape)

    def values(self, args: Namespace) -> dict[str, Any]:
        """The arguments of the verb that were given. Raises Invalid."""
        given = {argument.to: (argument.kind, getattr(args, argument.to)) for argument in self.arguments}
        found = {
            to: _READ[kind](value) if kind in _READ else value
            for to, (kind, value) in given.items()
            if value is not None
        }
        return self.fixed | found


METAVARS = {
    "blocked_by": "ID",
    "description": "TEXT",
    "result": "TEXT",
    "owner": "NAME",
    "limit": "N",
    "priority": "N",
    "ttl": "MINUTES",
    "max_turns": "N",
    "max_tokens": "N",
    "max_seconds": "SECONDS",
    "max_cost": "SUM",
    "prices": "IN/OUT",
    "task": "ID",
    "fallback": "MODEL",
    "agents": "N",
    "base": "COMMIT",
    "minutes": "MINUTES",
    "id_glob": "GLOB",
    "products": "GLOB",
    "metadata": "KEY=VALUE",
    "base_url": "URL",
    "tools": "NAMES",
    "after": "ID",
    "older_than": "DAYS",
}
"""How the value of an option is called in its help, where not like the parameter."""

_SHAPES: dict[str, dict[str, Any]] = {
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
