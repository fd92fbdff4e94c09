"""A git worktree and a branch for each claim, so that what a superseded agent still writes meets nobody else's work.

They lie in `.tasks/.local/worktrees/`: git ignores that folder, a sandbox that lets an agent write the board lets it
write there, and nothing appears beside the repository. Nothing is ever forced: what is uncommitted, ignored by git or
unmerged stays where it is, and its place is named.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from collections.abc import Iterator
from itertools import chain, count

from .. import config
from ..config import Location
from ..core.errors import Invalid, Refused
from ..core.model import COMPLETED, Task
from ..core.record import Record
from ..core.view import View
from ..stores.files.lock import lock

SECONDS = 600
"""How long a git command may take."""
MAX_COMMITS = 20
"""How many commits of a branch are named."""


class Tree(Record):
    """The worktree of one claim. base: the commit it began at. earlier: branches of earlier claims of the task."""

    path: str
    branch: str
    base: str
    earlier: tuple[str, ...] = ()


class GitFailed(Exception):
    """A git command did not do what it was for; what it said first. code: its exit status."""

    def __init__(self, message: str, code: int = 0) -> None:
        super().__init__(message)
        self.code = code


def git(folder: str, *words: str) -> str:
    """What a git command printed. Raises GitFailed."""
    clean = {name: value for name, value in os.environ.items() if name not in _BOUND}
    env = clean | {"GIT_TERMINAL_PROMPT": "0", "GIT_EDITOR": "true", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            ["git", "-C", folder, *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=env,
            timeout=SECONDS,
            check=False,
            start_new_session=True,  # Ctrl-C at the terminal is for us
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GitFailed(f"git {words[0]}: {error}") from None
    if done.returncode:
        said = (done.stderr or done.stdout).decode("utf-8", "replace").strip().split("\n")
        raise GitFailed(f"git {words[0]}: {said[0].removeprefix('fatal: ')}", done.returncode)
    return done.stdout.decode("utf-8", "surrogateescape").rstrip("\n")


_BOUND = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_PREFIX")
"""What git sets for its hooks, and what would lead us into another worktree."""


class Forest:
    """The worktrees of a worker. merge: what was completed is merged into the branch of the main worktree."""

    def __init__(self, location: Location, base: str = "HEAD", *, merge: bool = False) -> None:
        """Raises Invalid where there is no repository, no such base, or nothing to merge into."""
        repository = config.find_repository(location.root)
        if repository is None:
            raise Invalid(f"{location.root} is in no git repository", next="leave out --worktree, or `git init`")
        if merge and repository.main is None:
            raise Invalid(f"{repository.common} is bare: nothing to merge into", next="leave out --merge")
        self.main = repository.main or repository.common
        self._inner = os.path.relpath(location.root, repository.top)
        board = os.path.relpath(location.folder, self.main)
        self._board = config.FOLDER if location.url or board.startswith(os.pardir) else board
        self.merge, self._base, self._root = merge, base, location.root
        self._local = location.local
        self.folder = os.path.join(self._local, "worktrees")
        if os.path.islink(self.folder):
            raise Invalid(f"{self.folder} is a symbolic link", next="look at what put it there")
        try:
            self._commit(base)
        except GitFailed:
            raise Invalid(f"no commit {base!r} to begin at", next="commit something, or give --base") from None

    def _commit(self, name: str) -> str:
        return git(self.main, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")

    def left(self) -> list[str]:
        """The worktrees that earlier claims have left."""
        with contextlib.suppress(OSError):
            return sorted(os.listdir(self.folder))
        return []

    def grow(self, task: Task) -> Tree:
        """A new worktree on a new branch for a claim. Raises GitFailed."""
        os.makedirs(self.folder, exist_ok=True)
        base, stem = self._commit(self._base), branch_stem(task.id)
        said = git(self.main, "for-each-ref", "--format=%(refname:lstrip=2)", f"refs/heads/task/{stem}-e*")
        earlier = re.findall(rf"^task/{re.escape(stem)}-e\d+(?:\.\d+)?$", said, re.MULTILINE)
        first = f"{stem}-e{task.epoch}"  # there already where a board began anew
        names = chain([first], (f"{first}.{number}" for number in count(2)))
        places = ((os.path.join(self.folder, name), f"task/{name}") for name in names)
        path, branch = next((p, b) for p, b in places if b not in earlier and not os.path.lexists(p))
        git(self.main, "worktree", "add", "--quiet", "-b", branch, path, base)
        return Tree(path, branch, base, tuple(earlier))

    def unmerged(self, view: View) -> list[tuple[Task, str]]:
        """The completed tasks whose work is on a branch that is not merged, though no note says why; with the branch.

        Another worker is about to merge it, or was killed before it could. Raises GitFailed.
        """
        how = ("--no-merged=HEAD", "--format=%(refname:lstrip=3)")
        waiting = set(git(self.main, "for-each-ref", *how, "refs/heads/task/").split())
        found = [match for name in waiting.union(self.left()) if (match := _NAME.fullmatch(name))]
        latest: dict[str, tuple[Task, str]] = {}  # a board that began anew found others of these names there
        for match in sorted(found, key=lambda match: int(match[3] or 1)):
            task = view.get(match[1])
            if task and task.status == COMPLETED and task.epoch == int(match[2]) and not _is_told(task):
                latest[task.id] = task, match[0]
        return [(task, f"task/{name}") for task, name in latest.values() if name in waiting]

    def settle(self, task: Task, branch: str) -> str:
        """What `close` does and says, for a completed task whose worker is gone."""
        try:
            base = git(self.main, "merge-base", "HEAD", f"refs/heads/{branch}")
        except GitFailed as error:
            why = "it has nothing in common with the main worktree" if error.code == 1 else str(error)
            return f"branch {branch}, not merged: {why}"
        place = os.path.join(self.folder, branch.removeprefix("task/"))
        return self.close(Tree(place, branch, base), task, completed=True)

    def folder_in(self, tree: Tree) -> str:
        """Where an agent begins: the board's own folder as the worktree has it, for what is promised lies there."""
        inner = os.path.normpath(os.path.join(tree.path, self._inner))
        return inner if os.path.isdir(inner) else tree.path

    def close(self, tree: Tree, task: Task, *, completed: bool) -> str:
        """Merge what was completed, remove a worktree that holds nothing of its own; in words, what is where."""
        try:
            commits = self._commits(tree)
            merged = self._merged(tree, task) if completed and commits and self.merge else ""
            kept = self._left_in(tree, empty=not commits)
        except GitFailed as error:
            return f"branch {tree.branch}, worktree {self._shown(tree)} ({error})"
        if not commits and not kept:
            return ""
        named = f"{len(commits)} commit{'s' * (len(commits) != 1)}"
        more = f" ({', '.join(commits[:MAX_COMMITS])}{', …' * (len(commits) > MAX_COMMITS)})" if commits else ""
        return "".join([f"branch {tree.branch}: {named}{more}", merged, kept and f"; {kept} in {self._shown(tree)}"])

    def _shown(self, tree: Tree) -> str:
        return os.path.relpath(tree.path, self._root)

    def _commits(self, tree: Tree) -> list[str]:
        """The commits of the branch, latest first."""
        try:
            self._commit(f"refs/heads/{tree.branch}")
        except GitFailed:
            raise GitFailed("there is no such branch any more") from None
        found = git(self.main, "rev-list", "--abbrev-commit", f"{tree.base}..refs/heads/{tree.branch}")
        return found.split("\n") if found else []

    def _kept(self, tree: Tree) -> str:
        """What the worktree holds that is nowhere else; empty when it can go."""
        held = []
        # Ignored files count: a result may be among them, and nobody else has them.
        if git(tree.path, "status", "--porcelain", "--ignored", "--untracked-files=normal"):
            held.append("uncommitted or ignored files")
        # Of its branch and of wherever the agent left HEAD.
        for name in (f"refs/heads/{tree.branch}", git(tree.path, "rev-parse", "HEAD")):
            if git(self.main, "rev-list", "--max-count=1", name, "--not", "HEAD", tree.base):
                held.append("unmerged commits")
                break
        return " and ".join(held)

    def _left_in(self, tree: Tree, *, empty: bool) -> str:
        """What a worktree holds; one that holds nothing goes. empty: nothing is on its branch, which then goes too."""
        try:
            if os.path.isdir(tree.path):  # or its agent has tidied up
                if kept := self._kept(tree):
                    return kept
                git(self.main, "worktree", "remove", tree.path)
        except GitFailed as error:
            return "submodules" if "submodules" in str(error) else f"a worktree that stays ({error})"
        if empty:
            with contextlib.suppress(GitFailed):  # somebody has put it elsewhere
                git(self.main, "update-ref", "-d", f"refs/heads/{tree.branch}", tree.base)
        return ""

    # Merging

    def _merged(self, tree: Tree, task: Task) -> str:
        """Merge a branch into that of the main worktree, which is never left half-merged, or say why not."""
        try:
            with lock(os.path.join(self._local, "merge.lock"), deadline=SECONDS):
                into = self._target()
                self._try(tree)
                message = f"Merge {tree.branch}: {task.subject}"
                words = ("--quiet", "--no-ff", "--no-edit", "-m", message, f"refs/heads/{tree.branch}")
                with self._undone():
                    git(self.main, "merge", *words)
        except (GitFailed, Refused) as error:
            return f", not merged: {error}"
        return f", merged into {into}"

    def _target(self) -> str:
        """The branch of the main worktree, which is clean: files of the board may differ, they change all the time."""
        try:
            branch = git(self.main, "symbolic-ref", "--quiet", "--short", "HEAD")
        except GitFailed:
            raise GitFailed("the main worktree is on no branch") from None
        if os.path.exists(git(self.main, "rev-parse", "--path-format=absolute", "--git-path", "MERGE_HEAD")):
            raise GitFailed("somebody merges in the main worktree")  # taking ours back would take theirs back
        ours = [".", f":(exclude,literal){self._board}"]
        if git(self.main, "status", "--porcelain", "--untracked-files=no", "--", *ours):
            raise GitFailed("the main worktree has uncommitted changes")
        return branch

    def _try(self, tree: Tree) -> None:
        """Merge in memory alone. Raises GitFailed where there are conflicts, or git is too old to say (before 2.38)."""
        theirs = f"{tree.base}...refs/heads/{tree.branch}"
        if git(self.main, "diff", "--name-only", theirs, "--", f":(literal){self._board}"):
            raise GitFailed("it changes files of the board")
        try:
            git(self.main, "merge-tree", "--write-tree", "--name-only", "HEAD", f"refs/heads/{tree.branch}")
        except GitFailed as error:
            raise GitFailed("there are conflicts" if error.code == 1 else str(error)) from None

    @contextlib.contextmanager
    def _undone(self) -> Iterator[None]:
        """A merge that fails half-way (a hook, a file in the way) is taken back."""
        try:
            yield
        except GitFailed:
            with contextlib.suppress(GitFailed):
                git(self.main, "merge", "--abort")
            raise


_NAME = re.compile(r"(.+)-e(\d+)(?:\.(\d+))?")
"""The names of worktrees and branches; but for what git takes in no name (`branch_stem`), an id is its stem."""


def _is_told(task: Task) -> bool:
    """Whether a note tells of the branch of a task's last claim."""
    named = re.compile(rf"\bbranch task/{re.escape(task.id)}-e{task.epoch}(\.\d+)?[:,]")
    return any(named.search(note["text"]) for note in task.notes)


def branch_stem(task_id: str) -> str:
    """The id as git lets a part of a branch's name be: dots neither first nor two in a row."""
    return re.sub(r"^\.|(?<=\.)\.", "_", task_id)
