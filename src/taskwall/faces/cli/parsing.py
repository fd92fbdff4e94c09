"""The parsers of commands, made from their table."""

from __future__ import annotations

import argparse
import os

from ...core.errors import Invalid
from ...registry import VERBS
from .command import GLOBALS
from .commands import COMMANDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, NoReturn

    from .command import Argument

_CALLED = {
    "ID": "blocked_by task after",
    "N": "limit priority max_turns max_tokens agents",
    "TEXT": "description result",
    "NAME": "actor owner",
    "NAMES": "tools",
    "GLOB": "products id_glob",
    "PATH": "board",
    "URL": "base_url",
    "MODEL": "fallback",
    "COMMIT": "base",
    "KEY=VALUE": "metadata",
    "SECONDS": "max_seconds",
    "MINUTES": "ttl minutes",
    "DAYS": "older_than",
    "SUM": "max_cost",
    "IN/OUT": "prices",
}
METAVARS = {to: called for called, names in _CALLED.items() for to in names.split()}
"""How the value of an option is called in its help, where not like the parameter."""


class Formatter(argparse.HelpFormatter):
    """As wide as the terminal; the width that is looked up by default costs an import of `shutil`, at every start."""

    def __init__(self, prog: str, **more: Any) -> None:
        try:
            columns = os.get_terminal_size().columns
        except OSError:
            columns = 80
        super().__init__(prog, width=columns - 2, **more)


class Parser(argparse.ArgumentParser):
    """Wrong usage is refused like anything else, so that it has a code and can be JSON."""

    def format_usage(self) -> str:
        """Nothing: `parse_intermixed_args` wants it for messages that are written here, at the price of a tenth."""
        return ""

    def error(self, message: str) -> NoReturn:
        raise Invalid(f"{self.prog}: {message}", next=f"{self._way(message)}see `{self.prog} --help`")

    def _way(self, message: str) -> str:
        """What helps with the words that are wrong most often."""
        ours = [action for action in self._actions if action.help is not None and action.dest not in _EVERYWHERE]
        if message.startswith("unrecognized arguments:") and len(ours) <= MAX_TAKEN:
            takes = [
                max(action.option_strings, key=len) if action.option_strings else str(action.metavar) for action in ours
            ]
            return f"it takes {', '.join(takes)}; " if takes else "it takes nothing more; "
        greedy = [action.option_strings[0] for action in ours if action.option_strings and action.nargs == "+"]
        if "arguments are required" in message and greedy:
            return f"put it before {', '.join(greedy)}, which take every word behind them; "
        return ""


MAX_TAKEN = 15
"""How many words and options of a command are named to whoever gave another."""
_EVERYWHERE = ("help", *(argument.to for argument in GLOBALS))


def parser_of(name: str) -> Parser:
    """The parser of one command; the options of all commands may stand before or after its name."""
    command = COMMANDS[name]
    parser = Parser(f"taskwall {name}", description=command.help, allow_abbrev=False, formatter_class=Formatter)
    _add(parser, GLOBALS)
    _add(parser, command.arguments, command.verb)
    return parser


def full_parser() -> Parser:
    """The parser of every command, for completions and documentation."""
    parser = Parser("taskwall", description="A task board for coding agents.")
    _add(parser, GLOBALS)
    commands = parser.add_subparsers(dest="command")
    for name, command in COMMANDS.items():
        inner = commands.add_parser(name, help=command.help.partition(". ")[0], description=command.help)
        _add(inner, command.arguments, command.verb)
    return parser


def _add(parser: argparse.ArgumentParser, arguments: Iterable[Argument], verb: str = "") -> None:
    """Declare words and options; what they are for, their verb knows."""
    docs = {param.name: param.doc for param in VERBS[verb].params} if verb else {}
    for argument in arguments:
        shape = argument.shape | {"help": argument.doc or docs[argument.to]}
        if argument.is_option:
            if argument.kind not in ("flag", "run"):
                shape["metavar"] = METAVARS.get(argument.to, argument.to.rstrip("s").upper())
            parser.add_argument(*argument.flags.split(), dest=argument.to, default=None, **shape)
        else:
            parser.add_argument(argument.to, default=None, metavar=argument.flags.strip("[]"), **shape)
