"""The files of a project as set-up sees them: read strictly, changed in thought, written whole one after the other.

A run that is killed leaves whole files and at most one temporary name, which the next run takes away.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable

from ..core.errors import Invalid, Unwritable
from ..core.record import Record
from ..stores.files.disk import DISK, NotPlain

MOST = 32 * 1024 * 1024
SUFFIX = ".taskwall-tmp"


class Foreign(ValueError):
    """What lies at a path is not a file that set-up touches."""


class Change(Record):
    """A file of the tree as it was and as it shall be; None: no file. Paths are relative and use /."""

    path: str
    before: str | None
    after: str | None


class Tree:
    """Files below one folder, by relative path. `now` is what they shall be."""

    def __init__(self, root: str) -> None:
        self.root = os.path.realpath(root)
        self.was: dict[str, str | None] = {}
        self.now: dict[str, str | None] = {}

    def full(self, path: str) -> str:
        return os.path.join(self.root, *path.split("/"))

    def link(self, path: str) -> str | None:
        """The first part of a path that is a symbolic link."""
        return next((part for part in (*above(path), path) if os.path.islink(self.full(part))), None)

    def read(self, path: str) -> str | None:
        """The text at a path, with what was changed in thought. Raises Foreign."""
        if path not in self.was:
            self.was[path] = self.now[path] = self._load(path)
        return self.now[path]

    def _load(self, path: str) -> str | None:
        if link := self.link(path):
            raise Foreign(f"{link} is a symbolic link")
        for part in above(path):
            if os.path.lexists(self.full(part)) and not os.path.isdir(self.full(part)):
                raise Foreign(f"{part} is not a folder")
        try:
            return DISK.read(self.full(path), MOST)[0].decode()
        except FileNotFoundError:
            return None
        except NotPlain as flaw:
            raise Foreign(f"{path}: {flaw}") from None
        except UnicodeDecodeError:
            raise Foreign(f"{path} is not UTF-8 text") from None

    def changes(self) -> list[Change]:
        """What is to be written."""
        return [Change(p, was, self.now[p]) for p, was in self.was.items() if was != self.now[p]]

    def hollow(self, folder: str) -> bool:
        """Whether a folder is there and no file is anywhere in it."""
        full = self.full(folder)
        if not os.path.isdir(full) or os.path.islink(full):
            return False
        return not any(
            file for at, _, files in os.walk(full) if SUFFIX not in at for file in files if not file.endswith(SUFFIX)
        )

    def leftovers(self, paths: Iterable[str]) -> list[str]:
        """The temporary names that a killed run has left."""
        names = dict.fromkeys(part + SUFFIX for path in paths for part in (*above(path), path))
        return [name for name in names if not self.link(name) and os.path.lexists(self.full(name))]

    # Writing

    def write(self, changes: list[Change], leftovers: list[str], keep: set[str]) -> None:
        """Bring these changes to the disk, in this order. keep: folders that stay when they become empty."""
        for change in changes:
            self._require_writable(change.path)
        for name in leftovers:
            self._clear(self.full(name))
        for change in changes:
            if self._load(change.path) != change.before:
                raise Invalid(f"{change.path} was changed just now by another program", next="run the same again")
            try:
                if change.after is None:
                    self._drop(change.path, keep)
                else:
                    self._place(change.path, change.after.encode())
            except OSError as error:
                raise _unwritable(change.path, error.strerror or "") from None

    def _require_writable(self, path: str) -> None:
        folder = next((p for p in reversed(above(path)) if os.path.isdir(self.full(p))), "")
        if not os.access(os.path.join(self.root, folder), os.W_OK | os.X_OK):
            raise _unwritable(path, f"{folder or self.root} is read-only")

    def _place(self, path: str, data: bytes) -> None:
        """A file, together with the folders that it lacks, under its name in one step."""
        top = next((part for part in above(path) if not os.path.isdir(self.full(part))), path)
        part = self.full(top) + SUFFIX
        self._clear(part)
        inner = os.path.join(part, *path.removeprefix(top).strip("/").split("/")) if top != path else part
        os.makedirs(os.path.dirname(inner), exist_ok=True)
        DISK.write_new(inner, data, like=self.full(path), durable=True)
        os.replace(part, self.full(top))

    def _drop(self, path: str, keep: set[str]) -> None:
        """A file gone, together with the folders that held nothing else, in one step."""
        top = path
        for folder in reversed(above(path)):
            if folder in keep or os.listdir(self.full(folder)) != [top.rpartition("/")[2]]:
                break
            top = folder
        part = self.full(top) + SUFFIX
        self._clear(part)
        os.replace(self.full(top), part)
        inner = part if top == path else os.path.join(part, *path.removeprefix(top + "/").split("/"))
        os.unlink(inner)
        with contextlib.suppress(OSError):  # something came into a folder just now: it stays, under its name
            while inner != part:
                inner = os.path.dirname(inner)
                os.rmdir(inner)
        if os.path.isdir(part):
            os.replace(part, self.full(top))

    def _clear(self, full: str) -> None:
        if os.path.isdir(full) and not os.path.islink(full):
            shutil.rmtree(full)
        elif os.path.lexists(full):
            os.unlink(full)


def above(path: str) -> list[str]:
    """The folders of a relative path, from the top."""
    parts = path.split("/")
    return ["/".join(parts[:n]) for n in range(1, len(parts))]


def _unwritable(path: str, why: str) -> Unwritable:
    return Unwritable(f"{path} cannot be written: {why}", next="mend that and repeat this; it goes on from there")
