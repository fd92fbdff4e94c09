"""What a person sees of a run: each call on a line, results and words as they come."""

from __future__ import annotations

import shutil
import sys

from ..lengths import cut
from ..render import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .messages import Call

FIRST = ("subject", "task_id", "title", "id", "path", "command")


class Screen:
    """Prints to standard output. On a terminal a call's line is cut to its width, elsewhere never."""

    def __init__(self) -> None:
        self.terminal = sys.stdout.isatty()

    def echo(self, call: Call) -> None:
        """`> create_task subject=setup database schema`."""
        line = call_line(call)
        if self.terminal:
            line = cut(line, shutil.get_terminal_size().columns)
        print(line, flush=True)

    def say(self, text: str) -> None:
        """Text of a model or a tool, with nothing in it that could steer a terminal."""
        print(safe(text, lines=True), flush=True)

    def complain(self, text: str) -> None:
        """Say why a run stopped early."""
        print(safe(text, lines=True), file=sys.stderr, flush=True)

    def ask(self, question: str) -> str:
        """A person's answer to a question; none when there is nobody."""
        try:
            return input(safe(question, lines=True)).strip().lower()
        except EOFError:
            return ""


def call_line(call: Call) -> str:
    """A call on one line: the task it is about first, plans and lists by their length."""
    if not isinstance(call.arguments, dict):
        return safe(f"> {call.name} {'' if call.arguments is None else call.arguments}".rstrip())
    keys = sorted(call.arguments, key=lambda key: FIRST.index(key) if key in FIRST else len(FIRST))
    return safe(" ".join([f"> {call.name}", *(f"{key}={_brief(call.arguments[key])}" for key in keys)]))


def _brief(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ",".join(value)
    return str(len(value)) if isinstance(value, list) else str(value)
