"""A whole board of files, read under its lock or written at once, as it is moved to another store or from one."""

from __future__ import annotations

import os
from contextlib import contextmanager

from ...core.errors import Invalid, Unreadable
from ..whole import Piece, Whole, renewed
from .disk import DISK, Write, read_text, write_all
from .folder import ARCHIVE, SUFFIX
from .moved import SETTINGS, set_moved, settings_text, without_moved
from .strict import encode
from .view import FileView

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from ...core.model import Task
    from .store import FileStore

EVENTS = "events.jsonl"
BATCH = 500


@contextmanager
def held_whole(store: FileStore) -> Iterator[Whole]:
    """All of a board, on which nobody writes as long as the block lasts. Raises Unreadable when a file is no task."""
    with store.write() as txn:
        view = txn.below
        assert isinstance(view, FileView)
        tasks = [*view, *filter(None, map(view.get, view.archived_ids()))]
        if flawed := [task.id for task in tasks if task.flaw]:
            told = f"{len(flawed)} files of {store.path} hold no task, such as {flawed[0]}"
            way = "`taskwall doctor` says what helps; then repeat the command"
            raise Unreadable(told, by=tuple(flawed[:5]), next=way)
        if astray := [task.id for task in tasks if not task.closed and view.name_of(task.id).startswith(ARCHIVE)]:
            told = f"{len(astray)} unfinished tasks lie in the archive of {store.path}, such as {astray[0]}"
            way = "`taskwall doctor --fix` brings them back; then repeat the command"
            raise Unreadable(told, by=tuple(astray[:5]), next=way)
        numeric = {task.id for task in tasks if task.numeric}
        pieces = [_piece(view, store.path, task, numeric) for task in tasks]
        yield Whole(tuple(pieces), tuple(store.events()), without_moved(settings_text(store.path)))


def _piece(view: FileView, board: str, task: Task, numeric: set[str]) -> Piece:
    name, _ = view.in_file(task.id)
    text = renewed(read_text(os.path.join(board, name))[0], task, numeric.__contains__)
    return Piece(name, text, task, view.claim(task.id))


def write_whole(store: FileStore, whole: Whole, *, moved: str) -> None:
    """Make a board of these files, claims and events. moved: where it lies until all is done."""
    write_tasks(store.path, whole, moved=moved)
    with store.write() as txn:  # makes what is machine-local
        view = txn.below
        assert isinstance(view, FileView)
        claims = {piece.task.id: piece.claim for piece in whole.pieces if piece.claim}
        foreign = {piece.task.id: piece.task for piece in whole.pieces if not piece.task.gated}
        local = os.path.join(store.path, ".local")
        events = "".join(encode(event) + "\n" for event in whole.events)
        write_all(DISK, [*view.ledger.writes(claims, foreign, {}, {}).values()], local, durable=True)
        write_all(DISK, [Write(os.path.join(local, EVENTS), events)], local, durable=True)


def write_tasks(board: str, whole: Whole, *, moved: str) -> int:
    """Write what is not there yet of the task files, and remove those of tasks that lie elsewhere now.

    moved: where the board itself lies; here it is only read. Returns how many files were changed.
    """
    wanted = {piece.name: piece.text for piece in whole.pieces}
    scratch = os.path.join(board, ".local")
    for folder in {scratch, *(os.path.dirname(os.path.join(board, name)) for name in wanted)}:
        os.makedirs(folder, exist_ok=True)
    if not os.path.exists(ignore := os.path.join(scratch, ".gitignore")):
        write_all(DISK, [Write(ignore, "*\n")], scratch, durable=True)
    write_all(DISK, [Write(os.path.join(board, SETTINGS), whole.settings)], scratch, durable=True)
    set_moved(board, moved)
    writes = [Write(os.path.join(board, n), text) for n, text in wanted.items() if _text(board, n) != text]
    for start in range(0, len(writes), BATCH):
        write_all(DISK, writes[start : start + BATCH], scratch, durable=True)
    gone = _elsewhere(board, wanted.keys())
    for name in gone:
        os.unlink(os.path.join(board, name))
    return len(writes) + len(gone)


def _text(board: str, name: str) -> str | None:
    path = os.path.join(board, name)
    return read_text(path)[0] if os.path.exists(path) else None


def _elsewhere(board: str, wanted: Collection[str]) -> list[str]:
    """Files of tasks that have gone to the archive, or come back from there."""
    found, basenames = [], {os.path.basename(name) for name in wanted}
    for folder, below, names in os.walk(board):
        below[:] = [name for name in below if name != ".local"]
        found += [os.path.relpath(os.path.join(folder, name), board) for name in names if name.endswith(SUFFIX)]
    return [name for name in found if name not in wanted and os.path.basename(name) in basenames]


def require_image(board: str, of: str, moved: str) -> None:
    """Let a folder be written over only when it is empty or the image of that board. Raises Invalid.

    moved: what its settings say of where its board lies.
    """
    holds = os.path.isdir(board) and any(name != ".local" for name in os.listdir(board))
    if holds and moved != of:
        raise Invalid(f"{board} holds a board of its own", next="name another folder, one that is not there yet")
