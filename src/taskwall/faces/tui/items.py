"""A list of which only the lines in sight are built, however long it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from .drawing import KINDS, Line

Item = tuple[str, Any]
"""The id of the task that it is about, or nothing; and what is drawn."""


class Items(ScrollView, can_focus=True):
    """Items of `pitch` lines each. draw: the lines of one item in so many columns."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", show=False),
        Binding("down", "move(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("home", "go(0)", show=False),
        Binding("end", "go(-1)", show=False),
        Binding("enter", "open", show=False),
    ]
    COMPONENT_CLASSES: ClassVar[set[str]] = {"items--cursor", *(f"items--{kind}" for kind in KINDS)}

    class Moved(Message):
        """The cursor stands elsewhere."""

    class Opened(Message):
        """A task is to be shown."""

        def __init__(self, task_id: str) -> None:
            super().__init__()
            self.task_id = task_id

    def __init__(self, draw: Callable[[Any, int], Sequence[Line]], pitch: int = 1, **more: Any) -> None:
        super().__init__(**more)
        self._draw, self._pitch = draw, pitch
        self._items: Sequence[Item] = ()
        self._drawn: dict[tuple[int, int], Sequence[Line]] = {}
        self._at = 0

    @property
    def chosen(self) -> str:
        """The id of the task under the cursor; empty where there is none."""
        return self._items[self._at][0] if self._items else ""

    @property
    def columns(self) -> int:
        """How wide a line is, beside a scrollbar where there is one."""
        return self.scrollable_content_region.width

    def show(self, items: Sequence[Item]) -> None:
        """Show these items; the cursor stays on its task, wherever that went."""
        kept = self.chosen
        moved = [n for n, (task_id, _) in enumerate(items) if task_id == kept] if kept else []
        self._items = items
        self._at = min(moved, key=lambda n: abs(n - self._at), default=max(0, min(self._at, len(items) - 1)))
        self.virtual_size = Size(1, len(items) * self._pitch)
        self.redraw()
        self.call_after_refresh(self._follow)

    def redraw(self) -> None:
        """Draw what is in sight again."""
        self._drawn.clear()
        self.refresh()

    def choose(self, task_id: str) -> bool:
        """Put the cursor on a task, where it is among the items."""
        found = next((n for n, item in enumerate(self._items) if item[0] == task_id), None)
        if found is not None:
            self.action_go(found)
        return found is not None

    def render_line(self, y: int) -> Strip:
        """One line on the screen."""
        width, base = self.columns, self.rich_style
        at, line = divmod(y + round(self.scroll_offset.y), self._pitch)
        if at >= len(self._items):
            return Strip.blank(width, base)
        if (at, width) not in self._drawn:
            self._drawn[at, width] = self._draw(self._items[at][1], width)
        lines = self._drawn[at, width]
        if at == self._at and self.has_focus and line < max(1, self._pitch - 1):
            base += self._style("cursor")
        parts = lines[line] if line < len(lines) else ()
        strip = Strip([Segment(text, base + self._style(kind) if kind else base) for text, kind in parts])
        return strip.adjust_cell_length(width, base)

    def _style(self, kind: str) -> Style:
        return self.get_component_rich_style(f"items--{kind}", partial=True)

    def action_move(self, step: int) -> None:
        """One item up or down."""
        self.action_go(max(0, self._at + step))

    def action_page(self, step: int) -> None:
        """A page up or down."""
        self.action_move(step * max(1, self.size.height // self._pitch - 1))

    def action_go(self, at: int) -> None:
        """To this item; -1 is the last one."""
        last = len(self._items) - 1
        self._at = max(0, last if at < 0 else min(at, last))
        self._follow()
        self.refresh()
        self.post_message(self.Moved())

    def action_open(self) -> None:
        """Show the task under the cursor."""
        if self.chosen:
            self.post_message(self.Opened(self.chosen))

    def _follow(self) -> None:
        region = Region(0, self._at * self._pitch, 1, self._pitch)
        self.scroll_to_region(region, animate=False, force=True)

    def on_click(self, event: events.Click) -> None:
        """The first click chooses, the second one opens."""
        at = (event.y + round(self.scroll_offset.y)) // self._pitch
        if at < len(self._items):
            self.action_go(at)
            if event.chain > 1:
                self.action_open()

    def on_resize(self) -> None:
        """Lines are as wide as the list."""
        self.redraw()
