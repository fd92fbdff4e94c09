"""Boards of real files for tests: made from texts, looked at byte by byte."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

import pytest

from conftest import Clock, open_board
from taskwall.core.model import Settings
from taskwall.stores.files.store import FileStore

SAMPLES = Path(__file__).resolve().parents[2] / "shared" / "boards" / "dialects"

needs_samples = pytest.mark.skipif(not SAMPLES.is_dir(), reason=f"the sample boards are not at {SAMPLES}")


class Files:
    """A `.tasks` folder made of `{name: text}`, its store, and what changed in it since it was last looked at."""

    def __init__(self, folder: Path, texts: dict[str, str | bytes] | None = None, **settings):
        self.folder = folder
        self.path = folder / ".tasks"
        self.path.mkdir(parents=True, exist_ok=True)
        for name, text in (texts or {}).items():
            (self.path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        self.clock = Clock()
        self.store = FileStore(str(self.path), Settings(durability="fast", **settings), self.clock.monotonic)
        self.seen = self.texts()

    def board(self, name="agent", session=None):
        return open_board(self.store, name, session, clock=self.clock, root=self.folder)

    def reread(self):
        """What another process would see."""
        return FileStore(str(self.path), self.store.settings, self.clock.monotonic).read()

    def texts(self):
        """The bytes of every regular file, without what belongs to this machine."""
        found = {}
        for name in sorted(os.listdir(self.path)):
            path = self.path / name
            if path.is_file() and not path.is_symlink():
                found[name] = path.read_bytes()
        return found

    def diff(self):
        """The changed lines of every file since the last look: `{name: ["-old", "+new"]}`, "added" or "removed"."""
        before, self.seen = self.seen, self.texts()
        changes = {}
        for name in sorted({*before, *self.seen}):
            old, new = before.get(name), self.seen.get(name)
            if old is None or new is None:
                changes[name] = "added" if old is None else "removed"
            elif old != new:
                changes[name] = lines_changed(old.decode(), new.decode())
        return changes


def lines_changed(old: str, new: str) -> list[str]:
    """The lines of a diff without context, line ends and all but a final newline included."""
    lines = difflib.unified_diff(old.split("\n"), new.split("\n"), n=0, lineterm="")
    return [line for line in lines if not line.startswith(("---", "+++", "@@"))]
