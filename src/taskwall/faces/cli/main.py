"""The command line: find the board and who acts, call one verb, print its answer, exit with its status.

Only what the command needs is imported; a hot command loads the standard library alone.
"""

from __future__ import annotations

import argparse
import os
import sys

from ... import __version__, config, render, verbs  # noqa: F401 - importing verbs registers them
from ...core.errors import Invalid, Locked, Refused
from ...lengths import cut
from ...registry import VERBS
from ...results import Graph, History, Listing, Offer, Place, Why
from .commands import COMMANDS, Command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Iterable
    from typing import Any, NoReturn

    from ...config import Location
    from ...results import Answer, Trusted
    from .tending import Ask

INTERRUPTED = 130


def run() -> NoReturn:
    """The entry point of `taskwall` and `tw`."""
    for stream in (sys.stdout, sys.stderr):
        # Where the locale knows ASCII alone, Chinese is still UTF-8 to every terminal and pipe there is.
        encoding = "utf-8" if stream.encoding.lower() in ("ascii", "us-ascii", "ansi_x3.4-1968") else None
        stream.reconfigure(encoding=encoding, errors="backslashreplace")  # type: ignore[union-attr]
    try:
        status = main(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 0
    except KeyboardInterrupt:
        status = INTERRUPTED
    except Exception as error:  # the last resort of a program that people run
        if os.environ.get("TASKWALL_DEBUG"):
            raise
        print(f"internal error: {error!r}; TASKWALL_DEBUG=1 shows where", file=sys.stderr)
        status = 1
    sys.exit(status)


def main(argv: list[str]) -> int:
    """Run one command line and return its exit status."""
    as_json = "--json" in _cut(argv)[0]
    try:
        name, rest = _split(argv)
        if name == "help":
            name, rest = _split([*rest, "--help"])
        if name is None:
            return _without_command(rest)
        command = COMMANDS.get(name)
        if command is None:
            raise _no_command(name)
        rest, tail = _cut(rest) if command.tail else (rest, [])
        parser = parser_of(command)
        if {"-h", "--help"} & {*rest}:
            parser.print_help()
            return 0
        args = parser.parse_intermixed_args(rest)
        if command.tail:
            setattr(args, command.tail, tail)
        return _run(command, args)
    except Refused as error:
        if as_json:
            from ...envelope import dumps, refusal_envelope

            print(dumps(refusal_envelope(error)))
        else:
            print(render.refusal(error), file=sys.stderr)
        # Clients take a 2 from a hook as its veto; a slip in their settings is none.
        return 0 if _split(argv)[0] in ("hook", "prime") else error.exit


# Parsing


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


def _split(argv: list[str]) -> tuple[str | None, list[str]]:
    """The name of the command and everything else, in order."""
    at = 0
    while at < len(argv):
        if argv[at] in ("--board", "--as"):
            at += 2
        elif argv[at].startswith("-"):
            at += 1
        else:
            return argv[at], argv[:at] + argv[at + 1 :]
    return None, argv


def _cut(argv: list[str]) -> tuple[list[str], list[str]]:
    """What stands before the first `--`, and what behind it."""
    at = argv.index("--") if "--" in argv else len(argv)
    return argv[:at], argv[at + 1 :]


def _without_command(rest: list[str]) -> int:
    if "--version" in rest:
        print(f"taskwall {__version__}")
        return 0
    if rest and not {"-h", "--help"} & set(rest):
        raise Invalid("no command was given", next="see `taskwall --help`")
    width = max(map(len, COMMANDS))
    lines = [f"  {name:{width}}  {command.help.partition('. ')[0].rstrip('.')}" for name, command in COMMANDS.items()]
    print("taskwall: a task board for coding agents\n\nusage: taskwall [--board PATH] [--as NAME] [--json] COMMAND …\n")
    print("\n".join(lines) + "\n\n`taskwall COMMAND --help` says more.")
    return 0


MEANT = {
    "new": "add",
    "create": "add",
    "tasks": "list",
    "ls": "list",
    "search": "list --text",
    "status": "list",
    "get": "show",
    "ready": "next",
    "start": "claim",
    "take": "claim",
    "complete": "done",
    "finish": "done",
    "close": "done",
    "update": "edit",
    "comment": "note",
    "delete": "cancel",
    "rm": "cancel",
    "remove": "cancel",
    "heartbeat": "beat",
    "history": "log",
}
"""What people type who come from elsewhere."""


def _no_command(name: str) -> Invalid:
    from difflib import get_close_matches  # imported late: only an error needs it

    by_verb = [command.name for command in COMMANDS.values() if command.verb == name]
    meant = [MEANT[name]] if name in MEANT else by_verb[:1]
    near = meant or get_close_matches(name, COMMANDS, n=1)
    return Invalid(f"no command {name!r}", next=f"did you mean {near[0]}?" if near else "see `taskwall --help`")


# Running


def _run(command: Command, args: Namespace) -> int:
    return _OWN.get(command.name, _call)(command, args)


def _here() -> str:
    """The current folder. Raises Invalid when it is gone: an agent may tidy its worktree away before its last words."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise Invalid("the folder that this was called in is gone", next="change to one that exists") from None


def _located(args: Namespace) -> Location:
    location = config.find_board(args.board, os.environ, _here())
    for warning in location.warnings:
        print(f"note: {render.safe(warning)}", file=sys.stderr)
    return location


def _call(command: Command, args: Namespace) -> int:
    """Most commands: one verb, with those of the words that are its parameters."""
    location, verb = _located(args), VERBS[command.verb]
    params = {param.name for param in verb.params}
    values = {name: value for name, value in command.values(args).items() if name in params}
    board = config.open_board(location, config.find_actor(args.actor, os.environ), make=verb.makes_board)
    answer = verb.run(board, **values)
    for notice in board.store.notices:
        print(f"note: {render.safe(notice)}", file=sys.stderr)
    if not location.exists:
        print(f"note: made the board {render.safe(location.path)} ({location.why})", file=sys.stderr)
    if command.empty and isinstance(answer, Listing) and not answer.rows and not args.json:
        print(command.empty)
    else:
        _print(answer, args)
    return answer.exit


def _print(answer: Answer, args: Namespace) -> None:
    if args.json:
        from ...envelope import dumps, envelope

        print(dumps(envelope(answer)))
    elif isinstance(answer, Graph) and args.mermaid:
        print(render.mermaid(answer))
    elif isinstance(answer, (Listing, Offer)) and answer.rows and sys.stdout.isatty():
        from .tables import print_table

        print_table(answer)
    elif isinstance(answer, (Graph, Why, History)) and sys.stdout.isatty():
        import shutil

        width = shutil.get_terminal_size().columns
        print("\n".join(cut(line, width) for line in render.text(answer).split("\n")))
    else:
        print(render.text(answer))


# Commands that are no verb


def _place(command: Command, args: Namespace) -> int:
    location = _located(args)
    made = command.name == "init" and config.make_board(location)
    actor = config.find_actor(args.actor, os.environ)
    clients = _clients(location) if made else ()
    exists = location.exists or made
    answer = Place(location.path, location.why, exists, made, actor.name, actor.session, clients)
    if command.name == "init" and args.git:
        from .tending import with_git

        answer = with_git(answer, _asking(args), yes=bool(args.yes))
    _print(answer, args)
    return answer.exit


def _clients(location: Location) -> tuple[str, ...]:
    from ...interop.clients import in_use

    return tuple(in_use(location.root, os.environ))


def _selftest(_: Command, args: Namespace) -> int:
    from ... import selftest

    answer = selftest.run(_located(args).path)
    _print(answer, args)
    return answer.exit


def _agent(command: Command, args: Namespace) -> int:
    from ...agent import run as run_agent

    return run_agent(_located(args), actor=args.actor, **command.values(args))


def _work(command: Command, args: Namespace) -> int:
    from ...worker import run as run_worker
    from ...worker.display import summary

    values = command.values(args) | {"command": args.command}
    worked = run_worker(_located(args), actor=args.actor, out=sys.stderr if args.json else sys.stdout, **values)
    if args.json:
        _print(worked, args)
    else:
        print(summary(worked))
    return worked.exit


def _trust(command: Command, args: Namespace) -> int:
    from .trusting import trust

    ask = _asking(args)
    question = "Let these run as you, whenever a task of this board that has them is to be done?"

    def approved(asked: Trusted) -> bool:
        return ask is not None and ask([f"- {render.safe(command)}" for command in asked.commands], question)

    values = command.values(args)
    answer = trust(_located(args), args.actor, values.pop("names", []), ask=approved if ask else None, **values)
    _print(answer, args)
    return answer.exit


def _tend(command: Command, args: Namespace) -> int:
    """Set-up, doctor and git: what tends a board has a room of its own."""
    from .tending import ANSWERS

    if command.name == "log" and not args.git:
        return _call(command, args)
    answer = ANSWERS[command.name](command.values(args), lambda: _located(args), _asking(args))
    _print(answer, args)
    return answer.exit


def _asking(args: Namespace) -> Ask | None:
    """How to show something and ask, where a person sits at the terminal."""
    return _agree if sys.stdin.isatty() and sys.stdout.isatty() and not args.json else None


def _agree(lines: Iterable[str], question: str) -> bool:
    print(render.safe("\n".join(lines), lines=True))
    print(f"{question} [y/N] ", end="", flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _merge_driver(_: Command, args: Namespace) -> int:
    from ...interop.driver import run as run_driver

    if args.path is None:
        raise Invalid("git calls this with %O %A %B %P", next="`taskwall setup git` tells git to")
    return run_driver(args.base, args.ours, args.theirs, args.path, args.size or "7")


def _mcp(_: Command, args: Namespace) -> int:
    from ..mcp import Server

    return Server(args.board, args.actor, args.tools).serve()


def _hook(_: Command, args: Namespace) -> int:
    from ..hook import run as run_hook

    return run_hook(args.event, given=args.board, actor=args.actor, strict=bool(args.strict))


def _prime(_: Command, args: Namespace) -> int:
    """What an agent is told at its start. A board that is absent or cannot be read is no reason to stop it."""
    from ..prime import SLOW, glance, told

    try:
        location = config.find_board(args.board, os.environ, _here())
        actor = config.find_actor(args.actor, os.environ)
        if not location.exists and not args.json:
            print(f"taskwall: no task board here yet; adding a task makes {render.safe(location.path)}")
            return 0
        found = glance(location, actor)
        if not args.json:
            print(told(location, found))
        elif found is None:
            raise Locked(f"the board {location.path} is slow", next=SLOW)
        else:
            _print(found, args)
    except Refused as error:
        if args.json:
            raise
        print(f"taskwall: {render.refusal(error)}")
    return 0


def _import(command: Command, args: Namespace) -> int:
    from ...interop.importing import import_board

    answer = import_board(_located(args), config.find_actor(args.actor, os.environ), **command.values(args))
    _print(answer, args)
    return answer.exit


def _export(command: Command, args: Namespace) -> int:
    from ...interop.exporting import export_board

    board = config.open_board(_located(args), config.find_actor(args.actor, os.environ))
    answer = export_board(board, **command.values(args))
    if answer.path or args.json:
        _print(answer, args)
    else:
        sys.stdout.write(answer.text)
        print(render.text(answer), end="\n" if answer.left_out else "", file=sys.stderr)
    return answer.exit


def _completion(_: Command, args: Namespace) -> int:
    import shtab

    if args.shell not in shtab.SUPPORTED_SHELLS:
        raise Invalid(f"no completion for {args.shell!r}", next=f"one of {', '.join(shtab.SUPPORTED_SHELLS)}")
    print(shtab.complete(full_parser(), args.shell))
    return 0


_OWN: dict[str, Callable[[Command, Namespace], int]] = {
    "init": _place,
    "where": _place,
    "import": _import,
    "export": _export,
    "selftest": _selftest,
    "setup": _tend,
    "uninstall": _tend,
    "doctor": _tend,
    "log": _tend,
    "diff": _tend,
    "merge-driver": _merge_driver,
    "trust": _trust,
    "agent": _agent,
    "work": _work,
    "mcp": _mcp,
    "prime": _prime,
    "hook": _hook,
    "completion": _completion,
}
