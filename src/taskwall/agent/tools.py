"""The tools of a run: those of the board, those for files and commands, and the note. Each call gets one answer."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from .. import envelope, registry, render, verbs  # noqa: F401 - importing verbs registers them
from ..board import Board
from ..core.errors import Invalid, Refused
from ..core.model import stored
from ..lengths import shortened
from ..outcomes import Created
from ..signals import deferred
from .files import Workspace, file_tools
from .jobs import Jobs
from .messages import Call
from .processes import Groups
from .runs import RunLog
from .shell import Consent, bash_tool
from .todo import todo_tool
from .tool import Tool

MAX_RESULT = 8_000
"""Characters of a result that a model is shown; all of a longer one is kept in a file."""


class Toolbox:
    """Every tool of a run by name, until it is closed."""

    def __init__(
        self,
        board: Board,
        workspace: Workspace,
        consent: Consent,
        log: RunLog,
        *,
        deadline: float = float("inf"),
        more: Sequence[Tool] = (),
        without: Collection[str] = (),
    ) -> None:
        """deadline: of the run, on the monotonic clock. without: tools that it has no use for."""
        self.log, self.groups = log, Groups()
        self.jobs = Jobs(self.groups, log.folder)
        bash = bash_tool(board, workspace.root, consent, self.groups, self.jobs, deadline)
        own = [bash, self.jobs.tool(), *file_tools(workspace), todo_tool(), *more]
        self.tools = {tool.name: tool for tool in [*own, *board_tools(board)] if tool.name not in without}

    def close(self) -> None:
        """End the commands that still run."""
        self.groups.close()

    def notices(self) -> list[str]:
        """What happened since this was last asked, beside the calls."""
        return self.jobs.ended()

    def schemas(self) -> list[dict[str, Any]]:
        """What a model is told of the tools."""
        return [{"name": t.name, "description": t.doc, "parameters": t.schema} for t in self.tools.values()]

    def run(self, call: Call) -> str:
        """Carry out a call. Whatever goes wrong is its answer; only an interrupt leaves."""
        try:
            text = self._find(call).run(call.arguments)
        except Refused as error:
            text = render.refusal(error)
        except Exception as error:  # noqa: BLE001 - a call without an answer would end the conversation
            text = f"{call.name} failed: {type(error).__name__}: {error}"
        text = text.encode("utf-8", "backslashreplace").decode()
        if len(text) > MAX_RESULT:
            text = shortened(text, MAX_RESULT, f"; all {len(text)} are in {self.log.spill(text)}")
        return text if text.strip() else "(no output)"

    def _find(self, call: Call) -> Tool:
        if call.name not in self.tools:
            raise Invalid(f"no tool {call.name!r}", next=render.near(call.name, self.tools))
        if call.flaw:
            told = f"{call.name} was not run: its arguments were cut off or are not JSON: {call.flaw}"
            raise Invalid(told, next="send them again as one JSON object, shorter if need be")
        return self.tools[call.name]


def board_tools(board: Board) -> list[Tool]:
    """The verbs that agents are offered, on this board."""

    def run(name: str) -> Tool:
        offered = registry.tools((name,))[0]
        return Tool(name, offered["description"], offered["inputSchema"], lambda given: on_board(board, name, given))

    return [run(tool["name"]) for tool in registry.tools()]


def on_board(board: Board, name: str, arguments: Any) -> str:
    """A verb's answer in words; that of `create_task` goes on with the task as one line of JSON."""
    with deferred():
        answer = registry.call(board, name, arguments)
    text = render.text(answer)
    if name == "create_task" and isinstance(answer, Created):
        return "\n".join([text, *(envelope.dumps(stored(row.task)) for row in answer.rows)])
    return text
