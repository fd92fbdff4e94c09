"""Commands in a shell: asked for, limited in time and size, and ended together with all that they started."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Mapping

from ..board import Board
from ..core.errors import Invalid
from .jobs import Jobs
from .processes import MAX_OUTPUT, Groups, end_group, watch
from .tool import Tool, flag, needed, number, own

TIME_LIMIT, LONGEST = 120, 1_800
"""Seconds a command may take, and may be allowed to take."""


class Consent:
    """Whether commands may run. ask: puts a question to the person at the terminal, None when nobody is there."""

    def __init__(self, *, always: bool, ask: Callable[[str], str] | None) -> None:
        self.always, self._ask = always, ask

    def require(self, command: str) -> None:
        """Raises Invalid when this command may not run."""
        if self.always:
            return
        if self._ask is None:
            way = "go on without commands; a person allows them with `taskwall agent --yes`"
            raise Invalid("bash was refused: there is no terminal at which a person could allow it", next=way)
        reply = self._ask(f"{command}\nRun this? [y/N, a = always in this run] ")
        self.always = reply in ("a", "always")
        if not self.always and reply not in ("y", "yes"):
            raise Invalid("the person at the terminal refused this command", next="go on without it, or say why not")


def bash_tool(
    board: Board, folder: str, consent: Consent, groups: Groups, jobs: Jobs, deadline: float = float("inf")
) -> Tool:
    """bash in this folder, with the board and who acts in its environment. deadline: of the run, monotonic."""
    actor = board.actor
    env = {"TASKWALL_BOARD": board.store.address, "TASKWALL_ACTOR": actor.name, "TASKWALL_SESSION": actor.session}

    def bash(command: str, timeout: int = 0, background: bool = False) -> str:
        consent.require(command)
        left = max(1.0, deadline - time.monotonic())
        limit = min(left, timeout if timeout > 0 else left if background else TIME_LIMIT)
        if background:
            job = jobs.start(command, folder, {**os.environ, **env}, limit)
            return f"Job {job.number} runs; you are told when it ends. Its output goes to {job.path}; see also: job"
        return run_command(command, folder, {**os.environ, **env}, min(limit, LONGEST), groups)

    return own(
        bash,
        "Run a shell command in the workspace; its exit code and output come back.",
        needed("command", "command line"),
        number("timeout", f"seconds until it is ended, {TIME_LIMIT} when left out"),
        flag("background", "return at once; it ends with this run"),
    )


def run_command(command: str, folder: str, env: Mapping[str, str], limit: float, groups: Groups) -> str:
    """How a command ended, then what it wrote."""
    # A file, not a pipe: what a command leaves running may keep a pipe open for ever.
    with tempfile.TemporaryFile() as output:
        process = groups.start(command, folder, env, output)
        try:
            end = watch(process, output, limit)
        finally:
            if process.returncode is None:
                end_group(process)
        output.seek(0)
        text = output.read(MAX_OUTPUT).decode("utf-8", "replace") or "(no output)"
        return f"{end}\n{text}".rstrip("\n")
