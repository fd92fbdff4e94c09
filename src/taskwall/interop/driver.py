"""The merge driver that git calls for a task file: it writes our side's file, and parks texts it could not keep."""

from __future__ import annotations

import os
import subprocess
import sys

from .. import config
from ..stores.files.disk import DISK, NotPlain, read_text
from ..stores.files.store import LOCAL
from ..stores.files.strict import encode
from ..wording import safe
from .merge import DifferentTasks, MadeApart, Merged, Unmergeable, merge

MERGED, CONFLICT = 0, 1
PARKED = "merge-"
"""How the names of files begin that hold what a merge did not take."""


def run(base: str, ours: str, theirs: str, path: str, size: str = "7") -> int:
    """Merge three files, of which `ours` is written. path: where the file lies in the worktree, which is here.

    1 and git's own conflict markers when a person must decide. Takes no lock: git holds none of ours either.
    """
    try:
        merged = merge(*(read_text(name)[0] for name in (base, ours, theirs)))
        if merged.parked:
            park(board_of(path, os.getcwd()), path, merged)
        with open(ours, "wb") as file:
            file.write(merged.text.encode())
    except (OSError, NotPlain, Unmergeable) as flaw:
        apart = "`taskwall doctor --fix` gives theirs an id of its own"
        way = apart if isinstance(flaw, MadeApart) else "git merges its lines"
        print(f"taskwall: {safe(f'{path}: {flaw}')}; {way}", file=sys.stderr)
        return _by_lines(os.devnull if isinstance(flaw, DifferentTasks) else base, ours, theirs, path, size)
    if merged.parked:
        told = safe(f"{path}: both sides changed {', '.join(merged.parked)}")
        print(f"taskwall: {told}; `taskwall doctor` shows what was parked", file=sys.stderr)
    return MERGED


def board_of(path: str, top: str) -> str:
    """The board that a file of this worktree is of; of a linked worktree's copy it is that of the main worktree."""
    parts = path.split("/")
    if config.FOLDER not in parts:
        return os.path.join(top, os.path.dirname(path))
    inner = parts[: parts.index(config.FOLDER) + 1]
    repository = config.find_repository(top)
    places = [os.path.join(root, *inner) for root in (repository and repository.main, top) if root]
    return next((place for place in places if os.path.isdir(place)), places[-1])


def park(board: str, path: str, merged: Merged) -> str:
    """Keep what a merge did not take. Raises OSError."""
    name, text = parking(board, path, merged)
    make_local(board, "conflicts")
    part = f"{name}.{os.getpid()}.tmp"
    DISK.write_new(part, text.encode(), durable=True)
    DISK.rename(part, name)
    return name


def parking(board: str, path: str, merged: Merged) -> tuple[str, str]:
    """Where what a merge did not take is kept, under a name made of it: a repeated merge keeps it once; its text."""
    from hashlib import sha256

    text = encode({"v": 1, "task": merged.task, "file": path, "fields": merged.parked}, indent="  ") + "\n"
    name = f"{PARKED}{sha256(text.encode()).hexdigest()[:12]}-{merged.task}.json"
    return os.path.join(board, LOCAL, "conflicts", name), text


def make_local(board: str, *names: str) -> str:
    """A folder below the board's `.local`, with those above it. Raises OSError: a link would lead our writes out."""
    local = os.path.join(board, LOCAL)
    new = not DISK.exists(local)
    for depth in range(len(names) + 1):
        path = os.path.join(local, *names[:depth])
        DISK.make_folder(path)
        if not DISK.is_folder(path):
            raise OSError(f"{path} is not a folder of its own")
    if new:
        DISK.write_new(os.path.join(local, ".gitignore"), b"*\n", durable=False)
    return path


def _by_lines(base: str, ours: str, theirs: str, path: str, size: str) -> int:
    """What git does without a driver; without a base, every difference is a conflict. A task must stay one."""
    tasks = config.is_task(ours) or config.is_task(theirs)
    labels = [word for side in ("ours", "base", "theirs") for word in ("-L", f"{side} {path}")]
    size = size if size.isdecimal() else "7"
    try:
        words = ["git", "merge-file", "-q", f"--marker-size={size}", *labels, "--", ours, base, theirs]
        done = subprocess.run(words, check=False, capture_output=True)
    except OSError:
        return CONFLICT
    if done.returncode:
        return CONFLICT
    return MERGED if config.is_task(ours) or not tasks else CONFLICT
