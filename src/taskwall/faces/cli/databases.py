"""`taskwall db` and `taskwall move`: boards in PostgreSQL, seen by who keeps them."""

from __future__ import annotations

import os
import sys

from ... import config
from ...core.errors import Invalid
from ...interop import moving
from ...lengths import cut
from ...results import Report
from ...settings import parse_settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ...config import Location
    from ...stores.postgres.check import State


class Checked(Report):
    """How a database stands."""

    address: str
    state: State

    @property
    def exit(self) -> int:
        return 4 if self.state.problems else 0

    def lines(self) -> list[str]:
        """The server, the tables, each board, then what is wrong."""
        state = self.state
        link = "encrypted" if state.encrypted else "not encrypted"
        boards = [
            f"board {cut(b.name, 40)}: {b.unfinished} open of {b.tasks}" + (f", moved to {b.moved}" if b.moved else "")
            for b in state.boards
        ]
        return [
            f"{self.address}: PostgreSQL {state.server}, {link}; this role may {state.may}",
            f"tables: step {state.step} of {state.latest}",
            *boards,
            *(f"! {problem}" for problem in state.problems or ()),
            *([] if state.problems else ["all is as it should be"]),
        ]


class Migrated(Report):
    """Steps that were applied, or would be."""

    steps: tuple[str, ...]
    dry_run: bool

    def lines(self) -> list[str]:
        """One line a step."""
        if not self.steps:
            return ["The tables are up to date."]
        return [f"{'Would apply' if self.dry_run else 'Applied'} {name}" for name in self.steps]


class Said(Report):
    """Text to be read, or to be given to another program."""

    text: str

    def lines(self) -> list[str]:
        """It as it is."""
        return self.text.rstrip("\n").split("\n")


def db(location: Location, action: str, name: str = "", *, dry_run: bool = False) -> Report:
    """What `taskwall db ACTION` answers. Raises Invalid."""
    known = ACTIONS.get(action)
    if known is None:
        raise Invalid(f"no action {action!r}", next=f"one of {', '.join(ACTIONS)}")
    if not location.url:
        raise Invalid(f"{location.path} is no database", next="name one: --board postgresql://USER@HOST/DATABASE")
    return known(location, name, dry_run)


def move(location: Location, target: str, actor: str | None) -> Report:
    """What `taskwall move TARGET` answers."""
    return moving.move(location, _target(target), config.find_actor(actor, os.environ))


def _target(given: str) -> Location:
    """Where a board is to go; a folder is made when the one that holds it is there. Raises Invalid."""
    if not given.strip():
        raise Invalid("where the board is to go has no name", next="name postgresql://…?board=NAME, or a folder")
    try:
        if "://" not in given:
            os.makedirs(given, exist_ok=True)
    except OSError as error:
        raise Invalid(f"{given} cannot be made: {error.strerror}", next="name another folder") from None
    return config.find_board(given, {}, os.getcwd())


def _check(location: Location, _: str, __: bool) -> Report:
    store = config.open_database(location)  # first, for it tells when there is no driver
    from ...stores.postgres.check import check

    found = check(store.database)
    problems = [*found.problems, *filter(None, (_flaw_of(board.settings, board.name) for board in found.boards))]
    return Checked(store.database.address.server, found.replace(problems=tuple(problems)))


def _flaw_of(settings: str, board: str) -> str:
    try:
        parse_settings(settings, f"the settings of board {board}")
    except Invalid as error:
        return error.message
    return ""


def _migrate(location: Location, _: str, dry_run: bool) -> Report:
    store = config.open_database(location)
    from ...stores.postgres.schema import migrate

    return Migrated(tuple(step.name for step in migrate(store.database, dry_run=dry_run)), dry_run)


def _role(location: Location, name: str, _: bool) -> Report:
    config.open_database(location)
    from ...stores.postgres.schema import role_script

    return Said(role_script(name or "taskwall_agents"))


def _settings(location: Location, file: str, _: bool) -> Report:
    """What `board.toml` is for a board of files; from a file, or standard input, when one is given."""
    store = config.open_database(location)
    if file:
        text = sys.stdin.read() if file == "-" else _read(file)
        parse_settings(text, file, strict=True)
        store.set_settings(text)
    return Said(store.settings_text() or "# no settings: all is as by default")


def _read(file: str) -> str:
    try:
        with open(file, encoding="utf-8") as opened:
            return opened.read()
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid(f"{file} cannot be read: {error}", next="name a file like board.toml") from None


def _mirror(location: Location, folder: str, _: bool) -> Report:
    if not folder:
        raise Invalid("no folder was named", next="taskwall db mirror FOLDER")
    return moving.mirror(location, _target(folder))


ACTIONS: dict[str, Callable[[Location, str, bool], Report]] = {
    "check": _check,
    "migrate": _migrate,
    "role": _role,
    "settings": _settings,
    "mirror": _mirror,
}
