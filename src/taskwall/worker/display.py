"""What a person sees of a worker: on a terminal a live line for each agent, elsewhere a line for what has happened."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TextIO

from ..core.model import COMPLETED, Task
from ..lengths import shortened
from ..render import text
from ..wording import safe
from .attempt import Attempt, last_words
from .outcome import FAILED, GONE, RELEASED, Outcome, Worked, unread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rich.console import Group
    from rich.live import Live

STYLES = {COMPLETED: "green", FAILED: "red", RELEASED: "yellow"}
WIDEST_ID = 24
MAX_TOLD = 300
"""How much of a result is repeated."""


class Display:
    """Prints to `out`; on a terminal the agents at work stand below what was printed."""

    def __init__(self, out: TextIO) -> None:
        self.terminal = out.isatty() and os.environ.get("TERM") != "dumb"
        self._out = out
        self._live: Live | None = None

    def begun(self, number: int, task: Task) -> None:
        """An agent starts on a task."""
        self.say(f"[{number}] {task.token} started: {task.subject}")

    def ended(self, number: int, outcome: Outcome) -> None:
        """An agent has ended, and this came of it."""
        told = (shortened(outcome.told, MAX_TOLD), outcome.work, f"log: {outcome.log}" * (outcome.kind != COMPLETED))
        words = "; ".join(filter(None, [f"after {lasted(outcome.seconds)}", *told]))
        self.say(f"[{number}] {outcome.task} {outcome.kind} {words}", outcome.kind)

    def say(self, line: str, kind: str = "") -> None:
        """Print a line."""
        if self._live:
            from rich.text import Text

            self._live.console.print(Text(safe(line), style=STYLES.get(kind, "")), soft_wrap=True)
        else:
            print(safe(line), file=self._out, flush=True)

    def show(self, attempts: Mapping[int, Attempt], outcomes: Iterable[Outcome]) -> None:
        """Show who is at work."""
        if not self.terminal:
            return
        if self._live is None:
            from rich.console import Console
            from rich.live import Live

            console = Console(file=self._out, highlight=False, markup=False)
            self._live = Live(console=console, auto_refresh=False, transient=True, redirect_stderr=False)
            self._live.start()
        self._live.update(_shown(attempts, f"{len(attempts)} at work; {counted(outcomes)}"), refresh=True)

    def close(self) -> None:
        """Leave the terminal as it was."""
        if self._live:
            self._live.stop()
            self._live = None


def _shown(attempts: Mapping[int, Attempt], counts: str) -> Group:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=False, expand=True)
    table.add_column(no_wrap=True, style="bold")
    table.add_column(no_wrap=True, overflow="ellipsis", max_width=WIDEST_ID)
    table.add_column(no_wrap=True, justify="right")
    table.add_column(no_wrap=True, overflow="ellipsis", ratio=3)
    table.add_column(no_wrap=True, overflow="ellipsis", ratio=2, style="dim")
    for number, attempt in sorted(attempts.items()):
        told = (str(number), attempt.task.id, lasted(attempt.seconds), attempt.task.subject, last_words(attempt.log))
        table.add_row(*(Text(safe(word)) for word in told))
    return Group(table, Text(counts, style="dim"))


def lasted(seconds: float) -> str:
    """`2:03`, `1:02:03`."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"


def counted(outcomes: Iterable[Outcome]) -> str:
    """`3 completed, 1 failed`."""
    kinds = [outcome.kind for outcome in outcomes]
    names = [COMPLETED, FAILED, *sorted({*kinds} - {COMPLETED, FAILED})]
    return ", ".join(f"{kinds.count(name)} {name}" for name in names)


def summary(worked: Worked) -> str:
    """What was done, what was left where, and who must act."""
    lines = [f"{counted(worked.outcomes)} in {lasted(worked.seconds)}"]
    lines += [safe(f"work: {o.work}") for o in worked.outcomes if o.work]
    if worked.interrupted:
        lost = any(outcome.kind == GONE for outcome in worked.outcomes)
        return "\n".join([*lines, "Asked to end." if lost else "Asked to end; everything was given back."])
    return "\n".join([*lines, text(worked.offer), *map(safe, unread(worked.untrusted))])
