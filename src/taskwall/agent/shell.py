"""Commands in a shell: asked for, limited in time and size, and ended together with all that they started."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time

from ..core.errors import Invalid
from .tool import Tool, needed, number, own

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import IO

    from ..board import Board

TIME_LIMIT, LONGEST = 120, 1_800
"""Seconds a command may take, and may be allowed to take."""
MAX_OUTPUT = 32 * 1024 * 1024
"""Bytes of output at which a command is ended."""
GLANCE = 0.2
"""Seconds between looks at a running command's output."""


class Consent:
    """Whether commands may run. ask: puts a question to the person at the terminal, None when nobody is there."""

    def __init__(self, *, always: bool, ask: Callable[[str], str] | None) -> None:
        self.always, self._ask = always, ask

    def require(self, command: str) -> None:
        """Raises Invalid when this command may not run."""
        if self.always:
            return
        if self._ask is None:
            raise Invalid(
                "bash was refused: there is no terminal at which a person could allow it",
                next="go on without commands; a person allows them with `taskwall agent --yes`",
            )
        reply = self._ask(f"{command}\nRun this? [y/N, a = always in this run] ")
        self.always = reply in ("a", "always")
        if not self.always and reply not in ("y", "yes"):
            raise Invalid("the person at the terminal refused this command", next="go on without it, or say why not")


def shell_tools(board: Board, folder: str, consent: Consent) -> list[Tool]:
    """bash in this folder, with the board and who acts in its environment."""
    # A board that only memory holds has no path.
    path = getattr(board.store, "path", "")
    env = {"TASKWALL_BOARD": path, "TASKWALL_ACTOR": board.actor.name, "TASKWALL_SESSION": board.actor.session}

    def bash(command: str, timeout: int = TIME_LIMIT) -> str:
        consent.require(command)
        return run_command(command, folder, {**os.environ, **env}, max(1, min(timeout, LONGEST)))

    return [
        own(
            bash,
            "Run a shell command in the workspace; its exit code and output come back.",
            needed("command", "command line"),
            number("timeout", f"seconds until it is ended, {TIME_LIMIT} when left out"),
        )
    ]


def run_command(command: str, folder: str, env: Mapping[str, str], limit: float) -> str:
    """How a command ended, then what it wrote."""
    # A file, not a pipe: what a command leaves running may keep a pipe open for ever.
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            ["bash", "-c", command],
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            end = _wait(process, output, limit)
        finally:
            if process.returncode is None:
                end_group(process)
        return f"{end}\n{_read(output)}".rstrip("\n")


def _wait(process: subprocess.Popen[bytes], output: IO[bytes], limit: float) -> str:
    deadline = time.monotonic() + limit
    while (left := deadline - time.monotonic()) > 0:
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = process.wait(min(left, GLANCE))
            return f"exit code {code}" if code >= 0 else f"ended by signal {-code}"
        if os.fstat(output.fileno()).st_size > MAX_OUTPUT:
            return f"ended, with all that it started: it wrote more than {MAX_OUTPUT} bytes"
    return f"timed out after {limit:g} seconds and was ended, with all that it started"


def end_group(process: subprocess.Popen[bytes]) -> None:
    """End a command that was started in a session of its own, and its children."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _read(output: IO[bytes]) -> str:
    output.seek(0)
    return output.read(MAX_OUTPUT).decode("utf-8", "replace") or "(no output)"
