"""What lies around the tasks: settings, `.local`, what merges and killed processes left, who may read and write."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator

from ...stores.files.disk import DISK, NotPlain, read_text
from ...stores.files.folder import SUFFIX
from ...stores.files.strict import NotStrict, parse
from ..driver import PARKED
from .findings import Found, found
from .repairs import Repair
from .sight import Sight

OLD = 600
"""Seconds after which nobody is still writing a temporary file."""
TEMPORARY = re.compile(r"part-\d+\.tmp|.*\.taskwall-tmp|.*\.json.*\.tmp")


def settings(sight: Sight) -> Iterator[Found]:
    if sight.settings_flaw:
        flaw = sight.settings_flaw
        yield found("settings_unreadable", flaw.message, flaw.next, file=sight.shown("board.toml"))


def journal(sight: Sight) -> Iterator[Found]:
    if sight.flaw and "newer taskwall" in sight.flaw.message:
        yield found("newer_board", sight.flaw.message, sight.flaw.next, file=sight.shown(".local/journal"))
    elif sight.flaw:
        yield found("not_examined", sight.flaw.message, sight.flaw.next)
    elif DISK.exists(os.path.join(sight.local, "journal")):
        shown = sight.shown(".local/journal")
        told = f"{shown} holds a change that was begun"
        yield found("unfinished_change", told, "any command that writes finishes it", file=shown)


def own_folder(sight: Sight) -> Iterator[Found]:
    """`.local` is a folder that git does not take."""
    shown = sight.shown(".local")
    if not DISK.exists(sight.local):
        return
    for name in ("", "claims"):
        path = os.path.join(sight.local, name) if name else sight.local
        if DISK.exists(path) and not DISK.is_folder(path):
            file = f"{shown}/{name}".rstrip("/")
            yield found("local_not_folder", f"{file} is a link or a file", f"move {file} away", file=file)
    if not DISK.is_folder(sight.local):
        return
    ignore = os.path.join(sight.local, ".gitignore")
    seen = DISK.seen(ignore)
    if sight.git and not (seen and seen[2]):
        repair = Repair("writes .local/.gitignore, which keeps .local out of git", ignore, b"" if seen else None, "*\n")
        yield found("local_in_git", f"{shown}/.gitignore is missing or empty", "", file=shown, repair=repair)


def temporary(sight: Sight) -> Iterator[Found]:
    for folder in (sight.path, sight.local, os.path.join(sight.local, "conflicts")):
        if not DISK.is_folder(folder):
            continue
        for name, seen in DISK.names(folder):
            path = os.path.join(folder, name)
            if TEMPORARY.fullmatch(name) and sight.now - seen[0] / 1e9 > OLD:
                shown = sight.shown(os.path.relpath(path, sight.path))
                repair = _aside(path)
                yield found("old_tmp", shown, f"delete {shown}", file=shown, repair=repair)


def _aside(path: str) -> Repair | None:
    try:
        return Repair(f"sets {os.path.basename(path)} aside", path, DISK.read(path)[0], aside=True)
    except (OSError, NotPlain):
        return None


def parked(sight: Sight) -> Iterator[Found]:
    """What merges and recoveries could not keep in the task files."""
    folder = os.path.join(sight.local, "conflicts")
    for name, _ in DISK.names(folder) if DISK.is_folder(folder) else ():
        if not name.endswith(SUFFIX):
            continue
        shown = sight.shown(f".local/conflicts/{name}")
        task, fields = _fields(os.path.join(folder, name)) if name.startswith(PARKED) else (None, [])
        told = f"{shown} is a change that was unfinished when somebody edited the file; the edit was kept"
        if task:
            both = f"both sides of a merge changed {', '.join(fields)}"
            told = f"{task}: {both}; the file kept one, {shown} has the other"
        way = f"take over what is missing (`taskwall edit {task or 'ID'}`, `taskwall note`), then delete {shown}"
        yield found("parked", told, way, file=shown, task=task)


def _fields(path: str) -> tuple[str | None, list[str]]:
    try:
        held = parse(read_text(path)[0])
    except (OSError, NotPlain, NotStrict):
        return None, []
    task, fields = held.get("task"), held.get("fields")
    return (task, list(fields)) if isinstance(task, str) and isinstance(fields, dict) else (None, [])


def ledger(sight: Sight) -> Iterator[Found]:
    """Entries of the claim ledger that cannot be read, or whose task is gone."""
    folder = os.path.join(sight.local, "claims")
    for name, _ in DISK.names(folder) if DISK.is_folder(folder) else ():
        if not name.endswith(SUFFIX):
            continue
        shown, task_id = sight.shown(f".local/claims/{name}"), name.removesuffix(SUFFIX)
        try:
            whole = isinstance(parse(read_text(os.path.join(folder, name))[0]).get("claim"), dict | None)
        except (OSError, NotPlain, NotStrict):
            whole = False
        claim = sight.view.claim(task_id) if whole else None
        if not whole:
            yield found("ledger_unreadable", shown, f"delete {shown}", file=shown, task=task_id)
        elif claim and claim.open and task_id not in sight.view:
            file = sight.shown(task_id + SUFFIX)
            told = f"{file} was removed while {claim.actor} held {task_id} (since {claim.since})"
            log = f"git log -1 --diff-filter=D -- {file}"
            way = f"`git restore {file}`, or, when a commit removed it, `{log}` names that"
            yield found("gone_while_claimed", told, way, file=file, task=task_id)


def permissions(sight: Sight) -> Iterator[Found]:
    """The folder may be written by this user, and by nobody else than its owner and group."""
    for folder in (sight.path, sight.local):
        if DISK.is_folder(folder) and not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            shown = _shown(sight, folder)
            yield found("permissions", f"{shown} cannot be written by this user", f"its owner: `chmod u+rwx {shown}`")
    if os.name != "posix":
        return
    paths = [sight.path, *(file.path for file in sight.files)]
    for path in paths:
        mode = os.lstat(path).st_mode
        if mode & stat.S_IWOTH and not stat.S_ISLNK(mode) and not mode & stat.S_ISVTX:
            shown = _shown(sight, path)
            words = f"takes from others the right to write {shown}"
            repair = Repair(words, path, mode=stat.S_IMODE(mode) & ~stat.S_IWOTH)
            yield found("permissions", f"anybody may write {shown}", "", file=shown, repair=repair)


def _shown(sight: Sight, path: str) -> str:
    return os.path.normpath(sight.shown(os.path.relpath(path, sight.path)))


CHECKS = (settings, journal, own_folder, temporary, parked, ledger, permissions)
