"""The screen of one task."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Static

from ...board import Board
from ...core.actions import legal_actions
from .detail import Told, detail
from .items import Items
from .sight import Sight


class TaskScreen(Screen[None]):
    """One task, whole."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss"), Binding("left", "dismiss")]

    def __init__(self, task_id: str) -> None:
        super().__init__()
        self.task_id = task_id
        self._told: tuple[Sight, Told] | None = None
        self.lines = Items(lambda line, _: [line])

    def compose(self) -> ComposeResult:
        yield Static(markup=False, classes="bar", id="head")
        yield self.lines
        yield Static(markup=False, id="said")
        yield Static(markup=False, classes="bar", id="hint")

    def on_mount(self) -> None:
        """The lines have the keys."""
        self.lines.focus()

    def show(self, sight: Sight, told: Told) -> None:
        """Show all that is known of it."""
        self._told = sight, told
        self.query_one("#head", Static).update(f"‹ {sight.t('task.back')} (Esc)")
        self.query_one("#hint", Static).update(sight.t("hint.task"))
        self.on_resize()

    def on_resize(self) -> None:
        """Lines are broken anew."""
        if self._told and self.lines.size.width:
            self.lines.show(detail(*self._told, self.lines.size.width - 1))  # room for a scrollbar


def told_of(board: Board, task_id: str) -> Told:
    """All that is told of a task. Raises Refused."""
    view = board.store.read()
    task = view.find(task_id)
    # An unreadable file has no history.
    events = () if task.flaw else board.history(task_id).events
    return Told(board.get(task_id), events, legal_actions(view, task, board.actor))
