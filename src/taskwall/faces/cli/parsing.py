"""The parsers of commands, made from their table."""

from __future__ import annotations

import argparse
import os

from ...core.errors import Invalid
from .commands import COMMANDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from .command import Command


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
        raise Invalid(f"{self.prog}: {message}", next=f"see `{self.prog} --help`")


def parser_of(command: Command) -> Parser:
    """The parser of one command; the options of all commands may stand before or after its name."""
    parser = Parser(f"taskwall {command.name}", description=command.help, allow_abbrev=False, formatter_class=Formatter)
    _add_globals(parser)
    command.add_to(parser)
    return parser


def full_parser() -> Parser:
    """The parser of every command, for completions and documentation."""
    parser = Parser("taskwall", description="A task board for coding agents.")
    _add_globals(parser)
    commands = parser.add_subparsers(dest="command")
    for command in COMMANDS.values():
        command.add_to(
            commands.add_parser(command.name, help=command.help.partition(". ")[0], description=command.help)
        )
    return parser


def _add_globals(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--board", metavar="PATH", help="the board: a .tasks folder, or the folder that holds it")
    parser.add_argument("--as", dest="actor", metavar="NAME", help="who acts")
    parser.add_argument("--json", action="store_true", help="answer as JSON")
