"""What a board of files says when it lies elsewhere now: `moved` in its `board.toml`. Here it is only read then."""

from __future__ import annotations

import os

from ...core.light import suppress
from .disk import DISK, NotPlain, Write, read_text, write_all
from .strict import encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .disk import Disk, Signature

SETTINGS, KEY = "board.toml", "moved"


def settings_text(board: str, disk: Disk = DISK) -> str:
    """What `board.toml` holds, empty where there is none. Raises OSError, NotPlain."""
    path = os.path.join(board, SETTINGS)
    return read_text(path, disk)[0] if disk.exists(path) else ""


def without_moved(text: str) -> str:
    """The text of settings without that line."""
    return "".join(line for line in text.splitlines(keepends=True) if not _is_moved(line))


def _is_moved(line: str) -> bool:
    name, mark, _ = line.partition("=")
    return bool(mark) and name.strip() == KEY


def set_moved(board: str, moved: str) -> None:
    """Say where a board lies now; empty: here."""
    text = (f"{KEY} = {encode(moved)}\n" if moved else "") + without_moved(settings_text(board))
    path = os.path.join(board, SETTINGS)
    if text:
        write_all(DISK, [Write(path, text)], os.path.join(board, ".local"), durable=True)
    elif os.path.exists(path):
        os.unlink(path)


class Moved:
    """Where the board lies, looked at again whenever its settings have changed: it may be moved while it is open."""

    def __init__(self, board: str, disk: Disk) -> None:
        self._board, self._disk = board, disk
        self._seen: Signature | None = None
        self._where = ""

    def __call__(self) -> str:
        """Empty when it lies here."""
        seen = self._disk.seen(os.path.join(self._board, SETTINGS))
        if seen != self._seen:
            self._seen, self._where = seen, ""
            with suppress(OSError, NotPlain):
                self._where = self._read()
        return self._where

    def _read(self) -> str:
        line = next(filter(_is_moved, settings_text(self._board, self._disk).splitlines()), "")
        if not line:
            return ""
        import tomllib  # imported late: few boards are moved

        with suppress(tomllib.TOMLDecodeError):
            return str(tomllib.loads(line)[KEY])
        return ""
