"""git, asked by its plumbing commands. Nothing here changes a repository."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator

from .. import config
from ..core.errors import Invalid
from ..core.model import Task
from ..core.record import Record
from ..stores.files.dialects import read
from ..stores.files.disk import MAX_BYTES, NotPlain, decode
from ..stores.files.folder import SUFFIX
from ..stores.files.plain import NotATask
from ..stores.files.strict import NotStrict, parse

TIMEOUT = 60


class GitFailed(Invalid):
    """git could not answer."""


class Head(Record):
    """A commit: its name, those of its parents, who wrote it and when, and the first line of what they said."""

    commit: str
    parents: tuple[str, ...]
    by: str
    at: str
    subject: str


class Git:
    """The repository around a board. `top`: its worktree. `board`: the board's folder in it, with /; `.` at the top."""

    def __init__(self, top: str, board: str) -> None:
        self.top, self.board = top, board

    @classmethod
    def around(cls, board: str) -> Git | None:
        """The repository that a board's folder lies in, None when that is none or has no worktree there."""
        holder = os.path.dirname(os.path.abspath(board))
        repository = config.find_repository(holder)
        if repository is None or repository.top == repository.common:
            return None
        relative = os.path.relpath(os.path.realpath(board), os.path.realpath(repository.top))
        return cls(repository.top, relative.replace(os.sep, "/"))

    def run(self, *words: str, ok: tuple[int, ...] = (0,), given: bytes = b"") -> bytes:
        """What a command prints. Raises GitFailed."""
        # Nothing that a repository's config names may run, and asking must not refresh its index.
        off = ("core.fsmonitor", "log.showSignature", "log.follow")
        quiet = [word for setting in off for word in ("-c", f"{setting}=false")]
        own = {k: v for k, v in os.environ.items() if not k.startswith("GIT_") or k.startswith("GIT_CONFIG")}
        command = ["git", "-C", self.top, "--no-optional-locks", "--literal-pathspecs", *quiet, *words]
        try:
            done = subprocess.run(
                command, input=given, capture_output=True, env=own | {"LC_ALL": "C"}, timeout=TIMEOUT, check=False
            )
        except FileNotFoundError:
            raise GitFailed("git is not installed", next="install git, or look at the board without it") from None
        except (OSError, subprocess.TimeoutExpired) as error:
            raise GitFailed(f"git {words[0]} did not answer: {error}", next="try it by hand in that folder") from None
        if done.returncode not in ok:
            told = done.stderr.decode("utf-8", "replace").strip().partition("\n")[0]
            raise GitFailed(f"git {words[0]} failed: {told}", next="try it by hand in that folder")
        return done.stdout

    def commit(self, revision: str) -> str:
        """The full name of a commit. Raises Invalid."""
        if not revision or revision.startswith("-") or "\0" in revision or "\n" in revision:
            raise Invalid(f"{revision!r} is no revision", next="name commits, branches or tags, such as HEAD~5..HEAD")
        asked = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        found = self.run(*asked, ok=(0, 1)).decode().strip()
        if not found and revision == "HEAD":
            raise Invalid("nothing is committed in this repository yet", next="commit the board, then ask again")
        if not found:
            raise Invalid(f"no commit {revision!r} in this repository", next="`git log --oneline` names commits")
        return found

    def files(self, commit: str) -> dict[str, str]:
        """The task files of a commit: the names of their blobs by path."""
        found = {}
        for (mode, kind, name), path in self._listed("ls-tree", "-r", "--full-tree", commit, "--", *self.within):
            if kind == "blob" and mode != "120000" and is_task_file(path):
                found[path] = name
        return found

    def _listed(self, command: str, *words: str) -> Iterator[tuple[list[str], str]]:
        """What git tells of each file, and its path."""
        for entry in _split(self.run(command, "-z", *words)):
            told, _, path = entry.partition("\t")
            yield told.split(" "), path

    def knows_board(self) -> bool:
        """Whether git has, or is about to have, a file of the board."""
        return bool(self.run("ls-files", "-z", "--", *(self.within or ["."])))

    def path(self, name: str) -> str:
        """The path of a file of the board in the worktree."""
        return name if self.board == "." else f"{self.board}/{name}"

    @property
    def within(self) -> list[str]:
        """The pathspec of the board."""
        return [] if self.board == "." else [self.board]

    def texts(self, names: Iterable[str]) -> dict[str, bytes | None]:
        """The bytes of those of these blobs that are there, by name or COMMIT:PATH; None: too large for a task."""
        asked = [name for name in dict.fromkeys(names) if "\n" not in name]
        if not asked:
            return {}
        how = "--batch-check=%(objecttype) %(objectname) %(objectsize)"
        told = self.run("cat-file", how, given=_lines(asked)).split(b"\n")
        heads = ((name, os.fsdecode(line).split(" ")) for name, line in zip(asked, told, strict=False))
        blobs = {name: (words[1], int(words[2])) for name, words in heads if words[0] == "blob"}
        wanted = {blob: size for blob, size in blobs.values() if size <= MAX_BYTES}
        data = self.run("cat-file", "--batch", given=_lines(wanted))
        found, at = {}, 0
        for blob, size in wanted.items():
            start = data.index(b"\n", at) + 1
            found[blob] = data[start : start + size]
            at = start + size + 1
        return {name: found.get(blob) for name, (blob, _) in blobs.items()}

    def committed(self, path: str, commit: str = "HEAD") -> bytes:
        """The bytes of a file in a commit; none where that has no such file."""
        return self.run("cat-file", "blob", f"{commit}:{path}", ok=(0, 128))

    def commits(self, paths: Iterable[str]) -> list[Head]:
        """Every commit that changed one of these paths, over all parents of merges, the latest first."""
        try:
            self.commit("HEAD")
        except Invalid:  # nothing is committed yet
            return []
        how = ("-z", "--format=%H%x00%P%x00%an%x00%aI%x00%s", "--full-history", "--date-order")
        tokens = _split(self.run("log", *how, "HEAD", "--", *paths))
        return [
            Head(commit, tuple(parents.split()), by, at, subject)
            for commit, parents, by, at, subject in zip(*[iter(tokens)] * 5, strict=True)
        ]

    def stages(self) -> dict[str, dict[int, str]]:
        """The files of the board that a merge left in conflict: the blobs of their stages 1 to 3 by path."""
        found: dict[str, dict[int, str]] = {}
        for (_, name, stage), path in self._listed("ls-files", "-u", "--full-name", "--", *(self.within or ["."])):
            found.setdefault(path, {})[int(stage)] = name
        return found

    def left_out(self) -> dict[str, str]:
        """The task files that git knows and keeps out of the worktree (a sparse checkout): their blobs by path."""
        found = {}
        listed = self._listed("ls-files", "-s", "-t", "--full-name", "--", *(self.within or ["."]))
        for (tag, _, name, _), path in listed:
            if tag == "S" and is_task_file(path) and not os.path.lexists(os.path.join(self.top, path)):
                found[path] = name
        return found

    def attribute(self, name: str, path: str) -> str:
        """The value of an attribute of a file."""
        return _split(self.run("check-attr", "-z", name, "--", path))[2]

    def setting(self, key: str) -> str | None:
        """A value of git's configuration, None when it has none."""
        found = self.run("config", "-z", "--get", key, ok=(0, 1))
        return os.fsdecode(found).rstrip("\0") if found else None


def is_task_file(path: str) -> bool:
    """Whether a path in a board is one of its tasks, or of its archive."""
    return path.endswith(".json") and "/.local/" not in f"/{path}"


def task_in(path: str, data: bytes | None) -> Task:
    """The task in the bytes of a file, or one that says why there is none."""
    name = os.path.basename(path)
    flaw = "cannot be read"
    if data is not None:
        try:
            return read(parse(decode(data)))
        except (NotPlain, NotStrict, NotATask) as error:
            flaw = str(error)
    return Task(name.removesuffix(SUFFIX), subject=name, flaw=flaw)


def _lines(names: Iterable[str]) -> bytes:
    return os.fsencode("".join(f"{name}\n" for name in names))


def _split(output: bytes) -> list[str]:
    return [os.fsdecode(part) for part in output.split(b"\0")[:-1]]
