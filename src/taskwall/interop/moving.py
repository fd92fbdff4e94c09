"""A board is moved between files and PostgreSQL, whole, compared before it counts, and closed where it was."""

from __future__ import annotations

from .. import config
from ..config import Location
from ..core.errors import Invalid
from ..core.model import Actor
from ..process import this_host
from ..results import Report
from ..stores.files.moved import set_moved
from ..stores.files.store import FileStore
from ..stores.files.whole import held_whole, require_image, write_tasks, write_whole
from ..stores.whole import Whole, require_same


class Moved(Report):
    """A board was copied whole and compared. image: the files only show it; else it lies at `target` from now on."""

    source: str
    target: str
    tasks: int
    archived: int
    claims: int
    events: int
    image: bool = False
    changed: int = 0  # files of an image

    def lines(self) -> list[str]:
        """What was moved, and where to work from now on."""
        if self.image:
            files = f"{self.changed} file{'s' * (self.changed != 1)} changed"
            return [f"{self.target} shows {self.tasks} tasks of {self.source} ({files}); it is only read"]
        counts = {"task": self.tasks, "claim": self.claims, "event": self.events}
        told = ", ".join(f"{count} {what}{'s' * (count != 1)}" for what, count in counts.items())
        return [
            f"Moved {told}; {self.archived} of the tasks archived",
            f"from {self.source}",
            f"to {self.target}, read back and compared: the same",
            f"Next: work there: `--board` or TASKWALL_BOARD={self.target}; where it was it is only read",
        ]


def move(source: Location, target: Location, actor: Actor) -> Moved:
    """Move a board: afterwards it is only read where it was. Raises Invalid, Unwritable, Unreadable, Locked.

    Where it comes to is opened last, so that a move that was broken off can be made again and no task is done twice.
    """
    config.open_board(source, actor)  # a board that is not there is refused as everywhere
    if bool(source.url) == bool(target.url):
        way = "move it to files first, then on" if source.url else "copy the folder"
        raise Invalid("a board is moved from files to PostgreSQL or back", next=way)
    whole = _to_database(source, target) if target.url else _to_files(source, target)
    return _told(source, target, whole)


def mirror(source: Location, target: Location) -> Moved:
    """Write the files of a board that stays in the database, for git; again, it writes what has changed since."""
    if not source.url or target.url:
        raise Invalid("an image shows a board of PostgreSQL in files", next="name the board: --board postgresql://…")
    _require_image(target, source)
    whole = config.open_database(source).read_whole()
    changed = write_tasks(target.path, whole, moved=_place(source))
    return _told(source, target, whole).replace(image=True, changed=changed)


def _to_database(source: Location, target: Location) -> Whole:
    files, store = FileStore(source.path), config.open_database(target)
    files.bound_for = _place(target)  # the database takes nothing in where tasks are
    with held_whole(files) as whole:
        made = store.make()
        try:
            with store.taking_in(whole) as back:
                require_same(whole, back)
                set_moved(source.path, _place(target))
        except BaseException:
            # Raises when nobody can tell what became of it: then it is not opened again here.
            empty = store.is_empty()
            if empty:
                set_moved(source.path, "")
            if made and empty:
                store.unmake()
            raise
    return whole


def _to_files(source: Location, target: Location) -> Whole:
    _require_image(target, source)
    with config.open_database(source).giving_away(_place(target)) as whole:
        files = FileStore(target.path)
        files.bound_for = _place(source)
        write_whole(files, whole, moved=_place(source))
        with held_whole(files) as back:
            require_same(whole, back)
    set_moved(target.path, "")
    return whole


def _place(location: Location) -> str:
    """What is said, to anybody, of where a board lies."""
    return config.open_database(location).place if location.url else f"{location.path} on {this_host()}"


def _require_image(target: Location, source: Location) -> None:
    moved = config.read_settings(target.path).moved if target.exists else ""
    require_image(target.path, _place(source), moved)


def _told(source: Location, target: Location, whole: Whole) -> Moved:
    pieces = whole.pieces
    archived, claims = sum(piece.archived for piece in pieces), sum(piece.claim is not None for piece in pieces)
    return Moved(source.path, target.path, len(pieces), archived, claims, len(whole.events))
