"""Which commands out of a board's files may run as this user: those that a person has seen and trusted.

Remembered outside every repository, in `$XDG_STATE_HOME/taskwall/trust.json`: the hash of each command under the real
path of the board, with a random number that lies in its `.local/`. A clone, a copy or a moved board has another path,
and a repository that takes the place of a removed one another number: none of them can run anything by itself.
"""

from __future__ import annotations

import json
import os

from .core.errors import Invalid, Unwritable
from .stores.files.disk import NotPlain, read_text
from .stores.files.lock import lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any


def state_folder(env: Mapping[str, str]) -> str:
    """Where this user's own state lies, outside of every repository."""
    home = env.get("XDG_STATE_HOME", "")
    return os.path.join(home if os.path.isabs(home) else os.path.expanduser("~/.local/state"), "taskwall")


class Trust:
    """What this user trusts on the board in the folder `board`. env: tells where the user's state lies."""

    def __init__(self, board: str, env: Mapping[str, str]) -> None:
        self._board = os.path.realpath(board)
        self._folder = state_folder(env)
        self.path = os.path.join(self._folder, "trust.json")
        user = os.getuid() if hasattr(os, "getuid") else 0
        self._mark = os.path.join(self._board, ".local", f"identity-{user}")

    def allows(self, command: str) -> bool:
        """Whether exactly this command was trusted on exactly this board."""
        try:
            return _hash(command) in self._of(self._read())
        except Invalid:  # whoever is then asked to trust it is told
            return False

    def commands(self) -> list[str]:
        """What is trusted here, the latest last. Raises Invalid."""
        return list(self._of(self._read()).values())

    def grant(self, commands: Iterable[str]) -> None:
        """Trust these as well; the board has its `.local`. Raises Unwritable, Locked, Invalid."""
        self._change({_hash(command): command for command in commands}, ())

    def revoke(self, commands: Iterable[str]) -> None:
        """Trust these no longer. Raises Unwritable, Locked, Invalid."""
        self._change({}, list(map(_hash, commands)))

    def _change(self, more: dict[str, str], gone: Iterable[str]) -> None:
        try:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            with lock(f"{self.path}.lock"):
                boards = self._read()
                known = self._of(boards)
                # A number that we did not write may have come with the repository.
                identity = self._identity() if known else self._new_identity()
                kept = {digest: command for digest, command in (known | more).items() if digest not in gone}
                boards[self._board] = {"identity": identity, "commands": kept}
                _replace(self.path, json.dumps({"v": 1, "boards": boards}, ensure_ascii=False, indent=2) + "\n")
        except OSError as error:
            where = error.filename or self.path
            raise Unwritable(f"{where} cannot be written: {error.strerror}", next="allow this process to") from None

    def _read(self) -> dict[str, Any]:
        try:
            found = json.loads(read_text(self.path)[0])
            if all(isinstance(entry["commands"], dict) for entry in found["boards"].values()):
                return dict(found["boards"])
        except FileNotFoundError:
            return {}
        except (OSError, NotPlain, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            pass
        told = f"{self.path} cannot be read, so nothing is trusted"
        raise Invalid(told, next="look at it, move it away, and trust anew")

    def _of(self, boards: dict[str, Any]) -> dict[str, str]:
        entry = boards.get(self._board, {})
        identity = self._identity()
        return entry["commands"] if identity and entry.get("identity") == identity else {}

    def _identity(self) -> str:
        try:
            return read_text(self._mark)[0].strip()
        except (OSError, NotPlain):
            return ""

    def _new_identity(self) -> str:
        identity = os.urandom(16).hex()
        _replace(self._mark, identity + "\n")
        return identity


def _hash(command: str) -> str:
    import hashlib  # imported late: few tasks have checks

    return hashlib.sha256(command.encode("utf-8", "surrogatepass")).hexdigest()


def _replace(path: str, text: str) -> None:
    """A file that only this user reads, in place of what was there, whole after any crash."""
    part = f"{path}.{os.urandom(4).hex()}"
    fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o600)
    with open(fd, "w", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)
