"""What a person sees of a run: each call on a line, results and words as they come.

On a terminal words are broken at its width as they stream in, results are dim, indented and cut short; elsewhere every
line is printed whole, for whoever reads it later.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..lengths import cut
from ..wording import safe
from .messages import Call

FIRST = ("subject", "task_id", "title", "id", "path", "command")
MAX_SHOWN = 10
"""Lines of a result that are shown on a terminal."""
DIM, BOLD, PLAIN = "\x1b[2m", "\x1b[1m", "\x1b[0m"


class Screen:
    """Prints to standard output. prefix: before each call and result, to tell helpers from the run itself."""

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix
        self.terminal = sys.stdout.isatty()
        plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
        self._colours = self.terminal and not plain
        self._width = shutil.get_terminal_size().columns
        self._column, self._held, self._streamed = 0, "", False

    def echo(self, call: Call) -> None:
        """`> create_task subject=setup database schema`."""
        line = self.prefix + call_line(call)
        self._print(self._in(BOLD, cut(line, self._width) if self.terminal else line))

    def result(self, text: str) -> None:
        """What a call came to."""
        lines = [self.prefix + line for line in safe(text, lines=True).split("\n")]
        if not self.terminal:
            return self._print("\n".join(lines))
        shown = lines if len(lines) <= MAX_SHOWN + 1 else [*lines[:MAX_SHOWN], f"… {len(lines) - MAX_SHOWN} more lines"]
        return self._print("\n".join(self._in(DIM, cut(f"  {line}", self._width)) for line in shown))

    def said(self, text: str) -> None:
        """The words of an answer, whole: printed, unless they were as they came."""
        if text and not self._streamed:
            if self.terminal and not self.prefix:
                self.stream(text)
            else:
                self._print("\n".join(self.prefix + line for line in safe(text, lines=True).split("\n")))
        self._end_line()

    def say(self, text: str) -> None:
        """A line of our own."""
        self._print(safe(text, lines=True))

    def note(self, text: str) -> None:
        """Something beside the work, such as why it takes longer."""
        self._end_line()
        print(self._in(DIM, safe(text, lines=True)), file=sys.stderr, flush=True)

    def complain(self, text: str) -> None:
        """Say why a run stopped early."""
        self._end_line()
        print(safe(text, lines=True), file=sys.stderr, flush=True)

    def ask(self, question: str) -> str:
        """A person's answer to a question; none when there is nobody."""
        try:
            return input(safe(question, lines=True)).strip().lower()
        except EOFError:
            return ""

    @contextlib.contextmanager
    def thinking(self) -> Iterator[Callable[[str], None]]:
        """Show that a model is at work until it says something, which what this gives prints."""
        if self._colours:
            print(self._in(DIM, "…"), end="", flush=True)
            self._column = 1
        try:
            yield self.stream if self.terminal and not self.prefix else lambda _: None
        finally:
            self._clear()

    def stream(self, text: str) -> None:
        """A piece of the model's words. The last word is held back until it is whole, for it may need the next line."""
        if not text:
            return
        self._clear()
        self._streamed = True
        pieces = _PIECES.findall(self._held + safe(text.replace("\r", ""), lines=True))
        self._held = pieces.pop() if pieces and not pieces[-1].isspace() else ""
        self._put(pieces)

    def _put(self, pieces: Sequence[str]) -> None:
        from rich.cells import cell_len  # imported late: only a terminal needs it

        for piece in pieces:
            # The line ends before what no longer fits on it; the space between goes.
            full = self._column and self._column + cell_len(piece.rstrip()) > self._width
            shown = "\n" + piece.lstrip() if full else piece
            print(shown, end="", flush=True)
            self._column = (0 if shown[0] == "\n" else self._column) + cell_len(shown.lstrip("\n"))

    def _clear(self) -> None:
        if self._colours and not self._streamed and self._column:
            print("\r\x1b[K", end="", flush=True)
            self._column = 0

    def _end_line(self) -> None:
        self._clear()
        self._put([self._held] if self._held else [])
        if self._column:
            print(flush=True)
        self._column, self._held, self._streamed = 0, "", False

    def _print(self, text: str) -> None:
        self._end_line()
        print(text, flush=True)

    def _in(self, style: str, text: str) -> str:
        return f"{style}{text}{PLAIN}" if self._colours else text


_PIECES = re.compile(r"\n|[^\S\n]*[\u2e80-\uffef]|[^\S\n]*[^\s\u2e80-\uffef]+|[^\S\n]+")
"""Where a line may be broken: words with the space before them, line ends, wide characters."""


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
