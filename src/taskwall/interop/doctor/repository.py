"""What git would do with the board: merge its files, take what is machine-local, copy it into worktrees."""

from __future__ import annotations

import os
from collections.abc import Iterator
from shlex import quote

from ..gitconf import DRIVER, NAME, is_runnable
from .findings import Found, found
from .sight import Sight

SET_UP = "`taskwall setup git` shows what it writes, and writes it when you say yes"


def driver(sight: Sight) -> Iterator[Found]:
    """Whether task files are merged by their fields in this clone."""
    if sight.git is None:
        return
    attribute = sight.git.attribute("merge", sight.git.path("any.json"))
    command = sight.git.setting(DRIVER)
    if attribute == "union":
        yield found("driver_union", "git's attributes say merge=union for task files", f"take that out; {SET_UP}")
    elif attribute != NAME:
        yield found("driver_absent", "git has no merge driver for task files", SET_UP)
    elif command is None:
        yield found("driver_inert", f".gitattributes names a driver, and this clone has no {DRIVER}", SET_UP)
    elif not is_runnable(command):
        yield found("driver_inert", f"{DRIVER} names a program that is not there: {command}", SET_UP)


def tracked(sight: Sight) -> Iterator[Found]:
    """Whether git has files of `.local`."""
    if sight.git is None:
        return
    local = sight.git.path(".local")
    if sight.git.run("ls-files", "-z", "--", local):
        way = f"`git rm -r --cached {quote(local)}` takes it out of git and leaves the files"
        yield found("local_in_git", f"git has files of {local}", way, file=local)


def left_out(sight: Sight) -> Iterator[Found]:
    """Whether a sparse checkout keeps tasks away from this worktree."""
    if sight.git and (missing := sorted(sight.git.left_out())):
        others = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        way = f"`git sparse-checkout add {quote(sight.git.board)}`"
        yield found("left_out", f"a sparse checkout leaves out {missing[0]}{others}", way, file=missing[0])


def worktrees(sight: Sight) -> Iterator[Found]:
    """Copies of the board in linked worktrees. What worked on one has left a folder of its own there."""
    if sight.git is None:
        return
    for line in sight.git.run("worktree", "list", "--porcelain", "-z").split(b"\0"):
        key, _, value = line.partition(b" ")
        top = os.fsdecode(value)
        copy = os.path.join(top, *sight.git.board.split("/"))
        if key != b"worktree" or not os.path.isdir(copy) or os.path.samefile(top, sight.git.top):
            continue
        worked = os.path.isdir(os.path.join(copy, ".local"))
        code, way = "worktree_copy", "nothing to do; what you change there reaches the board by a merge alone"
        if worked:
            code = "worktree_work"
            way = f"look at `git -C {quote(top)} diff -- {quote(sight.git.board)}`, and do it on the board"
        yield found(code, f"{copy} is a copy of the board" + (", and was worked on" if worked else ""), way, file=copy)


CHECKS = (driver, tracked, left_out, worktrees)
