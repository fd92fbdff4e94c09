"""The import of another program's board, and the loss report at its end."""

from __future__ import annotations

import os

from ..config import Location, open_board, open_for_trial
from ..core.errors import Invalid, Unreadable
from ..core.model import READ_ONLY_DIALECTS, Actor
from ..core.rules.incoming import GONE, KINDS, UNREADABLE, Finding
from ..outcomes import Imported
from .importers import FORMATS, Source, conversion, find_source, format_named, read_source
from .importers.source import Batch

MAX_TOLD = 10
"""How many findings a refusal names."""


def import_board(location: Location, actor: Actor, *, path: str, format: str = "", dry_run: bool = False) -> Imported:
    """Bring the tasks that lie at a path onto the board, all or none. dry_run: only say what would happen.

    Raises Invalid when it is not certain what lies there or no task does, Unreadable when none could be read.
    """
    source = find_source(path, format_named(format) if format else None, location.path)
    batch = read_source(source)
    if source.path == location.path:
        batch = _read_only(batch)
    if not batch.items:
        raise _nothing_read(path, source, batch)
    # Read first: where nothing is imported, no board is made.
    board = open_for_trial(location, actor) if dry_run else open_board(location, actor, make=True)
    where = "" if source.form.worldwide else _name_of(source.path, board.root)
    brought = board.bring_in(batch.items, format=source.form.name, board=where, dry_run=dry_run)
    order = {kind: place for place, kind in enumerate(KINDS)}
    told = (*batch.findings, *brought.findings)
    if any(finding.kind == UNREADABLE for finding in told):  # then what is not there may be what could not be read
        told = tuple(finding for finding in told if finding.kind != GONE)
    findings = sorted(told, key=lambda finding: order[finding.kind])
    done = (brought.created, brought.updated, brought.unchanged)
    rest = (tuple(findings), tuple(board.store.notices))
    return Imported(source.form.name, source.path, dry_run, batch.records, *done, *rest)


def _read_only(batch: Batch) -> Batch:
    """Of the board's own folder, the tasks that are never written where they are."""
    return batch.replace(items=tuple(item for item in batch.items if item.task.dialect in READ_ONLY_DIALECTS))


def _name_of(path: str, root: str) -> str:
    """What a board is called whose ids mean nothing elsewhere: its path in the project, else the end of its path."""
    root = os.path.realpath(root)
    inside = path.startswith(os.path.join(root, ""))
    parts = os.path.relpath(path, root).split(os.sep) if inside else path.split(os.sep)[-OUTER_PARTS:]
    return "/".join(parts)


OUTER_PARTS = 4
"""How much of a path names a board outside of the project: `shop/.taskmaster/tasks/tasks.json`."""


def _nothing_read(path: str, source: Source, batch: Batch) -> Invalid | Unreadable:
    broken = any(finding.kind == UNREADABLE for finding in batch.findings)
    more = len(batch.findings) - MAX_TOLD
    return (Unreadable if broken else Invalid)(
        f"no task in {path} could be read as one of the format {source.form.name}; nothing was imported",
        lines=(*map(_told, batch.findings[:MAX_TOLD]), *([f"… {more} more"] if more > 0 else [])),
        next=conversion(batch.findings) or f"mend it, or name another file or format: {', '.join(FORMATS)}",
    )


def _told(finding: Finding) -> str:
    """A finding on one line."""
    return f"- {finding.where}: {finding.text}"
