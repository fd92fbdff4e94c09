"""The export of a board: its tasks by age in one of the formats, as text or into a file."""

from __future__ import annotations

import os
import tempfile

from ..board import Board
from ..core.errors import Invalid, Unwritable
from ..core.view import View
from ..outcomes import Exported
from ..render import near
from ..stores.files.disk import DISK, Write, write_all
from .exporters import EXPORTERS, tasks_of
from .page import Words, html


def export_board(
    board: Board, *, format: str = "jsonl", path: str = "-", force: bool = False, words: Words = str
) -> Exported:
    """The whole board; `-` for the text itself, else a file that appears whole. force: it may replace one.

    words: what a page for persons says for a key, in their language. Raises Invalid, Unwritable.
    """

    def page(view: View) -> str:
        return html(view, os.path.basename(os.path.abspath(board.root)), words)

    exporters = EXPORTERS | {"html": page}
    exporter = exporters.get(format.lower())
    if exporter is None:
        raise Invalid(f"no format {format!r}", next=near(format, exporters))
    view = board.store.read()
    # The page shows what cannot be read, too; a record of it there is none.
    left_out = () if exporter is page else tuple(sorted(task.flaw for task in view if task.flaw))
    count = len(tasks_of(view))
    text = exporter(view)
    if path == "-":
        return Exported(format, None, count, left_out, text)
    _write(os.path.abspath(path), text, force=force)
    return Exported(format, path, count, left_out)


def _write(path: str, text: str, *, force: bool) -> None:
    folder = os.path.dirname(path)
    try:
        # On the same file system, and nobody else's names are in it.
        with tempfile.TemporaryDirectory(prefix=".taskwall-", dir=folder) as scratch:
            write_all(DISK, [Write(path, text, exclusive=not force)], scratch, durable=True)
    except FileExistsError:
        raise Invalid(f"{path} exists already", next="name a new file, or --force to replace it") from None
    except OSError as error:
        told = f"{path} cannot be written: {error.strerror}"
        raise Unwritable(told, next="name a file in a folder of yours") from None
