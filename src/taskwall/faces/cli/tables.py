"""Lists as tables for a person at a terminal. Everywhere else, lists are the plain lines of `render`."""

from __future__ import annotations

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ...wording import after, safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...results import Listing, Offer, Row

STYLES = {
    "ready": "green",
    "in_progress": "cyan",
    "waiting": "magenta",
    "stale": "yellow",
    "held": "yellow",
    "broken": "red",
    "blocked": "dim",
    "completed": "dim",
    "cancelled": "dim",
}


WIDEST_ID, WIDEST_WORDS, NARROWEST_SUBJECT = 24, 28, 30
GAP = "  "
WAITS = "waits on"


def print_table(answer: Listing | Offer) -> None:
    """Print the rows as wide as the terminal. An id cut with an ellipsis is still found."""
    console = Console(highlight=False, markup=False)
    cells = [
        (row.state.replace("_", " "), safe(row.task.id), str(row.task.priority), _words(row)) for row in answer.rows
    ]
    needed = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
    state, task_id = max(needed[0], len("state")), min(needed[1], WIDEST_ID)
    room = max(console.width, 60) - state - task_id - 1 - 4 * len(GAP)
    words = max(len(WAITS), min(needed[3], WIDEST_WORDS, room - NARROWEST_SUBJECT))
    table = Table(box=None, padding=(0, len(GAP), 0, 0), pad_edge=False, header_style="bold")
    for title, width in (("state", state), ("id", task_id), ("P", 1), ("subject", room - words), (WAITS, words)):
        table.add_column(title, no_wrap=True, overflow="ellipsis", width=width, style="dim" if title == WAITS else "")
    for row, (name, name_of_task, priority, more) in zip(answer.rows, cells, strict=True):
        told = Text(safe(row.task.flaw or row.task.subject))
        table.add_row(Text(name, style=STYLES[row.state]), Text(name_of_task), priority, told, Text(more))
    console.print(table)
    for line in after(answer):
        print(line)


def _words(row: Row) -> str:
    """What a task waits on: blockers, a person, its holder, whoever it is reserved for."""
    if row.task.closed:
        return ""
    if row.state in ("held", "stale"):
        return safe(row.reasons[0].text)
    if row.state == "in_progress":
        return safe(row.task.owner or "")
    if row.waits:
        return safe(row.waits[0]) + (f" +{len(row.waits) - 1}" if len(row.waits) > 1 else "")
    return safe(row.reserved or "")
