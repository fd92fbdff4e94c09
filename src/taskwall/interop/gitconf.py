"""`taskwall setup git`: the lines of `.gitattributes` and git's config by which it merges task files by their fields.

Both are blocks between marks, so that what was around them stays byte for byte and comes back when they are taken out.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping

from .. import config
from ..core.errors import Invalid, Locked, Unwritable
from ..outcomes import SetUp
from . import blocks
from .blocks import Torn
from .git import Git
from .setup import Ask, Plan, carry_out, consented, plan
from .tree import Foreign, Tree

NAME = "taskwall"
DRIVER = f"merge.{NAME}.driver"
HASH = blocks.Marks("#")


def set_up_git(
    board: str, *, check: bool = False, remove: bool = False, yes: bool = False, ask: Ask | None = None
) -> SetUp:
    """Set git up for this board's repository, compare, or take it back. As `setup.set_up` does. Raises Refused."""
    made = plan_git(board, remove=remove)
    with contextlib.nullcontext() if check else _config_lock(made):
        return carry_out(made, check=check, yes=yes, ask=ask)


def plan_git(board: str, *, remove: bool = False) -> Plan:
    """What the set-up changes. Raises Invalid."""
    git = Git.around(board)
    repository = config.find_repository(os.path.dirname(board))
    if git is None or repository is None:
        raise Invalid(f"{board} is in no git worktree", next="`git init` there first, if it is to be merged by git")
    tree = Tree(os.path.commonpath([git.top, repository.common]))
    attributes, settings = (
        os.path.relpath(os.path.realpath(path), tree.root).replace(os.sep, "/")
        for path in (os.path.join(git.top, ".gitattributes"), os.path.join(repository.common, "config"))
    )
    notes: list[str] = []
    wanted = {attributes: attribute_lines(git.board), settings: config_lines()}
    if not remove and (current := git.setting(DRIVER)) and is_runnable(current):
        del wanted[settings]
        if not current.endswith(_ARGUMENTS):
            notes.append(f"{DRIVER} is {current}, which set-up did not write: it stays")
    for path, lines in wanted.items():
        _put(tree, path, None if remove else lines)
    changes = tree.changes()
    if not remove and attributes in [change.path for change in changes]:
        notes.append("commit .gitattributes; each clone runs `taskwall setup git` once, for config is not committed")
    return Plan(
        "remove" if remove else "set up", ("git",), tree, changes, tree.leftovers(wanted), set(), tuple(notes), ()
    )


def driver() -> str:
    """The command that git runs: by this interpreter, for PATH may name none; no module of the worktree is loaded."""
    return f"{shlex.quote(sys.executable).replace('%', '%%')} {_ARGUMENTS}"


_ARGUMENTS = "-P -m taskwall merge-driver -- %O %A %B %P %L"


def is_runnable(command: str) -> bool:
    """Whether the program that a driver names is there."""
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    return bool(words and shutil.which(words[0].replace("%%", "%")))


def attribute_lines(board: str) -> str:
    """The pattern for the task files of a board at this path of the worktree."""
    if any(ord(c) < 32 for c in board):
        raise Invalid(f"{board!r} cannot be named in .gitattributes", next="give the folder another name")
    literal = "".join(f"\\{c}" if c in "*?[\\" else c for c in f"/{board}" if board != ".")
    quoted = f"{literal}/**/*.json".replace("\\", "\\\\").replace('"', '\\"')
    return f'"{quoted}" merge={NAME}' if set(board) & set(' "\\*?[') else f"{literal}/**/*.json merge={NAME}"


def config_lines() -> str:
    """The section of git's config."""
    value = driver().replace("\\", "\\\\").replace('"', '\\"')
    return f'[merge "{NAME}"]\n\tname = task files of taskwall, by their fields\n\tdriver = "{value}"'


def _put(tree: Tree, path: str, lines: str | None) -> None:
    """A file with our block, or without it."""
    try:
        text = tree.read(path)
        tree.now[path] = blocks.put(text, lines, HASH) if lines else text and blocks.take(text, HASH)
    except Foreign as flaw:
        raise Invalid(f"{path}: {flaw}; nothing was written", next="mend that and run the same again") from None
    except Torn as flaw:
        way = f"take the lines that begin with `{HASH.open} {NAME}:` out of it and run the same again"
        raise Invalid(f"{path}: {flaw}; nothing was written", next=way) from None


@contextlib.contextmanager
def _config_lock(made: Plan) -> Iterator[None]:
    """git's own lock of its config, so that neither loses what the other writes. Raises Locked."""
    path = next((change.path for change in made.changes if change.path.endswith("config")), None)
    if path is None or made.clients != ("git",):
        yield
        return
    lock = made.tree.full(path) + ".lock"
    try:
        os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except FileExistsError:
        raise Locked(f"{lock} exists: git writes its config now", next="run the same again when it is done") from None
    except OSError as error:
        raise Unwritable(f"{lock} cannot be made: {error.strerror}", next="allow this process to write there") from None
    try:
        yield
    finally:
        os.unlink(lock)


def uninstall(board: str, env: Mapping[str, str], cwd: str, *, yes: bool = False, ask: Ask | None = None) -> SetUp:
    """Take back all that set-up wrote in this project, for git and for clients; tasks stay. Raises Refused."""
    plans = [plan([], env, cwd, remove=True)]
    if Git.around(board):
        plans.insert(0, plan_git(board, remove=True))
    answers = [made.answer(check=False) for made in plans]
    answer = SetUp(
        "remove",
        tuple(name for each in answers for name in each.clients),
        tuple(name for each in answers for name in each.files),
        "\n".join(each.diff for each in answers if each.diff),
        tuple(note for each in answers for note in each.notes),
    )
    if not answer.files:
        return answer
    agreed, answer = consented(answer, yes=yes, ask=ask)
    for made in plans if agreed else ():
        with _config_lock(made):
            made.write()
    return answer.replace(done=agreed)
