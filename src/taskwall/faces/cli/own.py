"""The commands that are no verb of the board."""

from __future__ import annotations

import os
import sys
from functools import partial

from ... import config, render
from ...core.errors import Invalid, Locked, Refused
from ...outcomes import Place
from ...wording import safe
from .running import here, located, print_answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import SimpleNamespace

    from ...config import Location
    from ...outcomes import Trusted
    from .command import Command
    from .tending import Ask


def _where(_: Command, args: SimpleNamespace) -> int:
    return print_answer(_place(located(args), args), args)


def _init(_: Command, args: SimpleNamespace) -> int:
    location = located(args)
    if args.git:
        config.require_files(location)
    answer = _place(location, args, made=config.make_board(location))
    if args.git:
        from .tending import with_git

        answer = with_git(answer, _asking(args), yes=bool(args.yes))
    return print_answer(answer, args)


def _place(location: Location, args: SimpleNamespace, *, made: bool = False) -> Place:
    """Where the board lies and who acts; once it is made, also which clients could be set up for it."""
    from ...interop.clients import in_use

    actor = config.find_actor(args.actor, os.environ)
    clients = tuple(in_use(location.root, os.environ)) if made else ()
    return Place(location.path, location.why, config.is_there(location), made, actor.name, actor.session, clients)


def _selftest(_: Command, args: SimpleNamespace) -> int:
    from ... import selftest

    return print_answer(selftest.run(config.require_files(located(args))), args)


def _agent(command: Command, args: SimpleNamespace) -> int:
    from ...agent import run as run_agent

    return run_agent(located(args), actor=args.actor, **command.values(args))


def _work(command: Command, args: SimpleNamespace) -> int:
    from ...worker import run as run_worker
    from ...worker.display import summary

    values = command.values(args) | {"command": args.command}
    worked = run_worker(located(args), actor=args.actor, out=sys.stderr if args.json else sys.stdout, **values)
    if args.json:
        return print_answer(worked, args)
    print(summary(worked))
    return worked.exit


def _trust(command: Command, args: SimpleNamespace) -> int:
    from .trusting import trust

    ask = _asking(args)
    question = "Let these run as you, whenever a task of this board that has them is to be done?"

    def approved(asked: Trusted) -> bool:
        return ask is not None and ask([f"- {safe(command)}" for command in asked.commands], question)

    values = command.values(args)
    answer = trust(located(args), args.actor, values.pop("names", []), ask=approved if ask else None, **values)
    return print_answer(answer, args)


def _tend(name: str, command: Command, args: SimpleNamespace) -> int:
    """Set-up, doctor and git: what tends a board has a room of its own."""
    from .tending import ANSWERS

    answer = ANSWERS[name](command.values(args), lambda: located(args), _asking(args))
    return print_answer(answer, args)


def _asking(args: SimpleNamespace) -> Ask | None:
    """How to show something and ask, where a person sits at the terminal."""
    return _agree if sys.stdin.isatty() and sys.stdout.isatty() and not args.json else None


def _agree(lines: Iterable[str], question: str) -> bool:
    print(safe("\n".join(lines), lines=True))
    print(f"{question} [y/N] ", end="", flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _merge_driver(_: Command, args: SimpleNamespace) -> int:
    from ...interop.driver import run as run_driver

    if args.path is None:
        raise Invalid("git calls this with %O %A %B %P", next="`taskwall setup git` tells git to")
    return run_driver(args.base, args.ours, args.theirs, args.path, args.size or "7")


def _web(command: Command, args: SimpleNamespace) -> int:
    from ..web.serve import serve

    return serve(located(args), actor=args.actor, as_json=args.json, **command.values(args))


def _watch(_: Command, args: SimpleNamespace) -> int:
    from ..watch import watch

    board = config.open_board(located(args), config.find_actor(args.actor, os.environ))
    return watch(board, partial(print, end="", flush=True), as_json=args.json)


def _tui(_: Command, args: SimpleNamespace) -> int:
    from ..tui import run as run_wall

    return run_wall(located(args), args.actor)


def _mcp(_: Command, args: SimpleNamespace) -> int:
    from ..mcp import Server

    return Server(args.board, args.actor, args.tools).serve()


def _hook(_: Command, args: SimpleNamespace) -> int:
    from ..hook import run as run_hook

    return run_hook(args.event, given=args.board, actor=args.actor, strict=bool(args.strict))


def _prime(_: Command, args: SimpleNamespace) -> int:
    """What an agent is told at its start. A board that is absent or cannot be read is no reason to stop it."""
    from ..prime import SLOW, glance, told

    try:
        location = config.find_board(args.board, os.environ, here())
        actor = config.find_actor(args.actor, os.environ)
        if not location.exists and not args.json:
            print(f"taskwall: no task board here yet; adding a task makes {safe(location.path)}")
            return 0
        found = glance(location, actor)
        if not args.json:
            print(told(location, found))
        elif found is None:
            raise Locked(f"the board {location.path} is slow", next=SLOW)
        else:
            print_answer(found, args)
    except Refused as error:
        if args.json:
            raise
        print(f"taskwall: {render.refusal(error)}")
    return 0


def _import(command: Command, args: SimpleNamespace) -> int:
    from ...interop.importing import import_board

    answer = import_board(located(args), config.find_actor(args.actor, os.environ), **command.values(args))
    return print_answer(answer, args)


def _export(command: Command, args: SimpleNamespace) -> int:
    from ...interop.exporting import export_board
    from ..words import language_of, words_of

    board = config.open_board(located(args), config.find_actor(args.actor, os.environ))
    answer = export_board(board, **command.values(args), words=words_of(language_of(os.environ)))
    if answer.path or args.json:
        return print_answer(answer, args)
    sys.stdout.write(answer.text)
    print(render.text(answer), end="\n" if answer.left_out else "", file=sys.stderr)
    return answer.exit


def _db(command: Command, args: SimpleNamespace) -> int:
    from .databases import db

    return print_answer(db(located(args), **command.values(args)), args)


def _move(command: Command, args: SimpleNamespace) -> int:
    from .databases import move

    return print_answer(move(located(args), actor=args.actor, **command.values(args)), args)


def _completion(_: Command, args: SimpleNamespace) -> int:
    import shtab

    from .parsing import full_parser

    if args.shell not in shtab.SUPPORTED_SHELLS:
        raise Invalid(f"no completion for {args.shell!r}", next=f"one of {', '.join(shtab.SUPPORTED_SHELLS)}")
    print(shtab.complete(full_parser(), args.shell))
    return 0


OWN: dict[str, Callable[[Command, SimpleNamespace], int]] = {
    "init": _init,
    "where": _where,
    "import": _import,
    "export": _export,
    "selftest": _selftest,
    **{name: partial(_tend, name) for name in ("setup", "uninstall", "doctor", "log", "diff")},
    "merge-driver": _merge_driver,
    "trust": _trust,
    "agent": _agent,
    "work": _work,
    "web": _web,
    "watch": _watch,
    "tui": _tui,
    "db": _db,
    "move": _move,
    "mcp": _mcp,
    "prime": _prime,
    "hook": _hook,
    "completion": _completion,
}
