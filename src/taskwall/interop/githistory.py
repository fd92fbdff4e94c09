"""What git knows of a board, in task words: `taskwall diff` and `taskwall log ID --git`. Only asks."""

from __future__ import annotations

import os
from collections.abc import Iterator

from ..core.errors import Invalid, UnknownTask
from ..core.graph import natural
from ..core.model import Task, id_flaw
from ..core.record import Record
from ..results import PAGE, Report
from ..stores.files.disk import DISK, NotPlain
from ..stores.files.folder import SUFFIX
from ..stores.files.store import FileStore
from ..stores.files.view import FileView
from ..stores.whole import is_archived
from .git import Git, is_task_file, task_in
from .words import Word, changes

WORKTREE = "the worktree"
MAX_WORDS = 12
"""How many words of one task or commit are told."""


class TaskDiff(Record):
    """What became of one task."""

    task: str
    subject: str
    changes: tuple[Word, ...]


class Diff(Report):
    """What changed on the board between two commits, or a commit and the worktree."""

    long = True

    old: str
    new: str
    tasks: tuple[TaskDiff, ...]
    more: int = 0

    def lines(self) -> list[str]:
        """A line for each task and change."""
        found = [f"{self.old} → {self.new}"]
        for each in self.tasks:
            found += [f"{each.task}: {each.subject}".replace("\n", " "), *_told(each.changes)]
        found += [f"… {self.more} more tasks"] if self.more else []
        return found if self.tasks else [f"{found[0]}: no task changed"]


class Commit(Record):
    """A commit that changed a task. at: when it was written; commit: empty for what is not committed."""

    commit: str
    at: str
    by: str
    subject: str
    changes: tuple[Word, ...]


class GitHistory(Report):
    """The commits that changed one task, oldest first."""

    long = True

    task: str
    commits: tuple[Commit, ...]
    more: int = 0

    def lines(self) -> list[str]:
        """A line for each commit and change."""
        found = [f"… {self.more} earlier: taskwall log {self.task} --git -n {PAGE}"] if self.more else []
        for each in self.commits:
            head = f"{each.at} {each.commit[:10]} {each.by}: {each.subject}" if each.commit else "not committed:"
            found += [head.replace("\n", " "), *_told(each.changes)]
        return found or [f"git has no commit of {self.task}."]


def _told(words: tuple[Word, ...]) -> list[str]:
    shown = ["  " + word.text.replace("\n", "\\n") for word in words[:MAX_WORDS]]
    return shown + ([f"  … {len(words) - MAX_WORDS} more changes"] if len(words) > MAX_WORDS else [])


# Between two states of the board


def diff(board: str, asked: str = "", limit: int = PAGE) -> Diff:
    """What changed between `A..B`; `A`: since then, in the worktree; nothing: since HEAD. Raises Invalid."""
    git = _around(board)
    old, dots, new = asked.partition("..")
    if new.startswith("."):
        raise Invalid(f"{asked!r}: A...B is not understood", next="name two commits: A..B")
    old_commit = git.commit(old or "HEAD")
    before = git.files(old_commit)
    if dots:
        after = git.files(git.commit(new or "HEAD"))
        texts = {path: name for path, name in after.items() if before.get(path) != name}
        found = git.texts(texts.values())
        now: dict[str, bytes | None] = {path: found.get(name) for path, name in texts.items()}
    else:
        lying = _worktree(git, board)
        after = {path: _name(data, len(old_commit)) for path, data in lying.items()}
        now = {path: data for path, data in lying.items() if before.get(path) != after[path]}
    gone = [path for path, name in before.items() if path in now or path not in after]
    blobs = git.texts(before[path] for path in gone)
    tasks = _compared({path: blobs.get(before[path]) for path in gone}, now)
    page = tasks[: max(1, min(limit, PAGE))]
    return Diff(old or "HEAD", (new or "HEAD") if dots else WORKTREE, tuple(page), len(tasks) - len(page))


def _around(board: str) -> Git:
    git = Git.around(board)
    if git is None:
        raise Invalid(f"{board} is in no git worktree", next="`taskwall log` shows what is recorded without git")
    return git


def _worktree(git: Git, board: str) -> dict[str, bytes | None]:
    """The task files that lie in the board now, or do but for a sparse checkout; None: what cannot be read."""
    found: dict[str, bytes | None] = {}
    for folder, inner, names in os.walk(board):
        inner[:] = [name for name in inner if name != ".local"]
        for name in names:
            full = os.path.join(folder, name)
            path = os.path.relpath(full, os.path.realpath(git.top)).replace(os.sep, "/")
            if is_task_file(path):
                try:
                    found[path] = DISK.read(full)[0]
                except (OSError, NotPlain):
                    found[path] = None
    left_out = git.left_out()
    texts = git.texts(left_out.values())
    return found | {path: texts.get(name) for path, name in left_out.items()}


def _name(data: bytes | None, digits: int) -> str:
    """What git would call these bytes."""
    import hashlib

    kind = hashlib.sha256 if digits == 64 else hashlib.sha1
    return kind(b"blob %d\0" % len(data) + data).hexdigest() if data is not None else ""


def _compared(old: dict[str, bytes | None], new: dict[str, bytes | None]) -> list[TaskDiff]:
    """By id: a file that moved is still the task it was."""
    before, after = ({task.id: task for task in (task_in(p, d) for p, d in side.items())} for side in (old, new))
    found = []
    for task_id in sorted({*before, *after}, key=natural):
        was, now = before.get(task_id), after.get(task_id)
        if told := changes(was, now):
            shown = now or was
            assert shown is not None
            found.append(TaskDiff(task_id, shown.subject, told))
    return found


# Of one task


def history(board: str, asked: str, limit: int = PAGE) -> GitHistory:
    """The commits that changed a task, followed where its file got another name.

    Raises Invalid, UnknownTask.
    """
    git, view = _around(board), FileStore(board).read()
    try:
        task_id, unknown = view.find(asked).id, None
    except UnknownTask as error:  # git may know a task that is no longer there
        task_id, unknown = asked, error
    name = view.name_of(task_id) if isinstance(view, FileView) else task_id + SUFFIX
    found = [] if unknown and id_flaw(task_id) else list(_Past(git, task_id, name).commits())
    now = next((each for each in diff(board, "", PAGE).tasks if each.task == task_id), None) if found else None
    if unknown and not found:
        raise unknown
    page = found[: max(1, min(limit, PAGE))]
    latest = [Commit("", "", "", "", now.changes)] if now else []
    return GitHistory(task_id, (*reversed(page), *latest), more=len(found) - len(page))


class _Past:
    """What a task was in every commit that changed it, under whatever path its file lay then."""

    def __init__(self, git: Git, task_id: str, name: str) -> None:
        self._git, self._id = git, task_id
        # What git knows under the usual name may lie elsewhere since the last commit.
        self._paths = list(dict.fromkeys(map(git.path, (name.replace(os.sep, "/"), task_id + SUFFIX))))
        self._look()
        while others := self._other_paths():
            self._paths += sorted(others)
            self._look()

    def _look(self) -> None:
        self._heads = self._git.commits(self._paths)
        commits = {commit for head in self._heads for commit in (head.commit, *head.parents)}
        self._texts = self._git.texts(f"{commit}:{path}" for commit in commits for path in self._paths)

    def _at(self, commit: str) -> tuple[str, Task] | None:
        """The path and the task of a commit, None without one. A file in the archive gives way, as on the board."""
        for path in sorted(self._paths, key=self._is_archived):
            if (place := f"{commit}:{path}") in self._texts:
                task = task_in(path, self._texts[place])
                if task.id == self._id or task.flaw:
                    return path, task
        return None

    def _is_archived(self, path: str) -> bool:
        return is_archived(path.removeprefix(self._git.path("")))

    def _other_paths(self) -> set[str]:
        """From where its file came, or where it went, in the commits in which it seems to be made or removed."""
        found = set()
        for head in self._heads:
            now, before = self._at(head.commit), [self._at(parent) for parent in head.parents]
            if before and now and not any(before):
                found.add(self._moved(head.parents[0], head.commit))
            elif before and not now and all(before):
                found.add(self._moved(head.commit, head.parents[0]))
        return found - {"", *self._paths}

    def _moved(self, there: str, gone: str) -> str:
        """The path under which the one commit has the task, and the other one nothing; "" without."""
        paths, others = self._git.files(there), self._git.files(gone)
        only = {path: name for path, name in paths.items() if path not in others}
        texts = self._git.texts(only.values())
        return next((path for path, name in only.items() if task_in(path, texts.get(name)).id == self._id), "")

    def commits(self) -> Iterator[Commit]:
        """The commits that changed the task, the latest first."""
        for head in self._heads:
            now = self._at(head.commit)
            first, *others = [self._words(self._at(parent), now) for parent in head.parents] or [self._words(None, now)]
            # What a merge took from one of its parents, a commit there has told.
            if told := tuple(word for word in first if all(_is_among(word, words) for words in others)):
                yield Commit(head.commit, head.at, head.by, head.subject, told)

    def _words(self, was: tuple[str, Task] | None, now: tuple[str, Task] | None) -> tuple[Word, ...]:
        told = changes(was and was[1], now and now[1])
        archived = [self._is_archived(path) for path, _ in filter(None, (was, now))]
        if archived == [False, True]:
            told += (Word("archived", "archived"),)
        elif archived == [True, False] and not told:
            told = (Word("returned", "back from the archive"),)
        return told


SEVERAL = ("blocked_by", "labels", "products", "checks", "options", "note", "metadata", "other")
"""Words of which each tells of another item."""


def _is_among(word: Word, words: tuple[Word, ...]) -> bool:
    return any(word.what == each.what and (word.text == each.text or word.what not in SEVERAL) for each in words)
