"""The command line: find the board and who acts, call one verb, print its answer, exit with its status.

Only what the command needs is imported; a hot command loads the standard library alone.
"""

from __future__ import annotations

import gc
import os
import sys

from ...core.errors import Invalid, Refused
from ...core.light import SimpleNamespace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from .command import Command


INTERRUPTED = 130


def run() -> NoReturn:
    """The entry point of `taskwall` and `tw`."""
    gc.disable()  # a verb ends before there is anything to collect; commands that stay enable it again
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:  # closed by who called us: a file that we open would take its number
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115 - while we run
    for stream in (sys.stdout, sys.stderr):
        # Where the locale knows ASCII alone, Chinese is still UTF-8 to every terminal and pipe there is.
        encoding = "utf-8" if stream.encoding.lower() in ("ascii", "us-ascii", "ansi_x3.4-1968") else None
        stream.reconfigure(encoding=encoding, errors="backslashreplace")  # type: ignore[union-attr]
    try:
        status = main(sys.argv[1:])
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        if not LAST_WORDS & sys.modules.keys():
            os._exit(status)  # to take the interpreter down, piece by piece, takes a third as long as to start it
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


LAST_WORDS = {"atexit", "threading"}
"""Whoever has left something to do for the end of the interpreter has loaded one of these."""


def main(argv: list[str]) -> int:
    """Run one command line and return its exit status."""
    as_json = "--json" in _cut(argv)[0]
    try:
        return _run(argv)
    except Refused as error:
        if as_json:
            from ...envelope import dumps, refusal_envelope

            print(dumps(refusal_envelope(error)))
        else:
            from ...render import refusal

            print(refusal(error), file=sys.stderr)
        # Clients take a 2 from a hook as its veto; a slip in their settings is none.
        return 0 if _split(argv)[0] in ("hook", "prime") else error.exit


def _run(argv: list[str]) -> int:
    # Imported late, as all else here: `run` comes first.
    from ... import verbs  # noqa: F401 - importing verbs registers them
    from .daily import DAILY

    name, rest = _split(argv)
    if name == "help":
        name, rest = _split([*rest, "--help"])
    if name is None:
        return _without_command(rest)
    command = DAILY.get(name) or _seldom(name)
    rest, tail = _cut(rest) if command.tail else (rest, [])
    args = command.read(rest)
    if args is None:
        from .parsing import parser_of

        parser = parser_of(name)
        if {"-h", "--help"} & {*rest}:
            parser.print_help()
            return 0
        args = parser.parse_intermixed_args(rest, SimpleNamespace())
    if command.tail:
        setattr(args, command.tail, tail)
    if command.verb and not getattr(args, "git", None):
        from .running import call

        return call(command, args)
    from .own import OWN

    gc.enable()
    return OWN[name](command, args)


def _seldom(name: str) -> Command:
    """A command that no agent calls all day. Raises Invalid when there is none of this name."""
    from .commands import COMMANDS

    if name not in COMMANDS:
        raise _no_command(name)
    return COMMANDS[name]


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
    from ... import __version__
    from .commands import COMMANDS

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
    "add": "new create",
    "list": "tasks ls status",
    "list --text": "search",
    "show": "get",
    "next": "ready",
    "claim": "start take",
    "done": "complete finish close",
    "edit": "update",
    "note": "comment",
    "cancel": "delete rm remove",
    "beat": "heartbeat",
    "log": "history",
}
"""By command, what people type for it who come from elsewhere."""


def _no_command(name: str) -> Invalid:
    from difflib import get_close_matches  # imported late: only an error needs it

    from .commands import COMMANDS

    by_verb = [ours for ours, command in COMMANDS.items() if command.verb == name]
    by_habit = [ours for ours, theirs in MEANT.items() if name in theirs.split()]
    near = by_habit or by_verb or get_close_matches(name, COMMANDS, n=1)
    return Invalid(f"no command {name!r}", next=f"did you mean {near[0]}?" if near else "see `taskwall --help`")
