"""The four screens of the wall. Each shows a sight of the board and tells which task is chosen on it."""

from __future__ import annotations

from typing import Any

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widgets import Static

from .drawing import branch, card, matter, named, one_line
from .items import Item, Items
from .lanes import lane_lines, session_lines
from .sight import COLUMN_OF, COLUMNS, Row, Sight

PITCH = 4
"""Lines of a card."""


class View(Vertical):
    """One screen: `sight` is what it shows."""

    sight: Sight
    list: Items

    @property
    def chosen(self) -> str:
        """The id of the chosen task, or nothing."""
        return self.list.chosen

    def show(self, sight: Sight) -> None:
        """Show the board as it is now."""
        raise NotImplementedError

    def take(self) -> None:
        """Take the keys."""
        self.list.focus()

    def on_items_moved(self) -> None:
        """What is said of the chosen task follows the cursor."""


class Column(Vertical):
    """One column of the board: its head, and its cards."""

    def __init__(self, name: str, view: BoardView) -> None:
        super().__init__(id=f"column-{name}", classes="column")
        self.name_, self._view = name, view
        self.cards = Items(lambda row, width: card(view.sight, row, width), PITCH)
        self._head = Static(markup=False, classes="head")
        self._none = Static(markup=False, classes="none")

    def compose(self) -> ComposeResult:
        yield self._head
        yield self._none
        yield self.cards

    def show(self, sight: Sight) -> None:
        """Show the tasks of this column."""
        rows = sight.columns[self.name_]
        self._head.update(f"{sight.t(f'column.{self.name_}')} {len(rows)}")
        self._none.update(sight.t(f"column.empty.{self.name_}"))
        self._none.display = not rows
        self.cards.show([(row["id"], row) for row in rows])


class BoardView(View):
    """Blocked, Ready, In progress, Waiting on a person, Done (folded until it is gone to)."""

    def __init__(self) -> None:
        super().__init__(id="board")
        self.columns = [Column(name, self) for name in COLUMNS]
        self.list = self.columns[1].cards

    def compose(self) -> ComposeResult:
        yield Static(markup=False, id="nothing")
        yield Horizontal(*self.columns)

    def show(self, sight: Sight) -> None:
        """Show the board; the cursor follows its task into another column."""
        self.sight, chosen = sight, self.chosen
        nothing = self.query_one("#nothing", Static)
        nothing.update(f"{sight.t('board.empty')}\n{sight.t('board.empty.hint')}")
        nothing.display = not sight.rows
        for column in self.columns:
            column.show(sight)
        if chosen in sight.rows and self.chosen != chosen:
            name = COLUMN_OF[sight.rows[chosen]["state"]]
            column = next(column for column in self.columns if column.name_ == name)
            if column.cards.choose(chosen):
                self._turn(column)
        if not self.chosen:
            # Where work can move, else where there is any.
            order = [self.columns[n] for n in (1, 2, 3, 0, 4)]
            self._turn(next((column for column in order if sight.columns[column.name_]), order[0]))

    def _turn(self, column: Column) -> None:
        had = self.list.has_focus
        self.list = column.cards
        self.query_one("#column-done").set_class(column.name_ == "done", "unfolded")
        if had:
            self.take()

    def across(self, step: int) -> None:
        """To the next column on this side that has cards."""
        at = next(n for n, column in enumerate(self.columns) if column.cards is self.list)
        beside = self.columns[at + 1 :] if step > 0 else self.columns[:at][::-1]
        if target := next((column for column in beside if self.sight.columns[column.name_]), None):
            self._turn(target)

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """A click into another column."""
        if isinstance(event.widget, Items) and event.widget is not self.list:
            self._turn(next(column for column in self.columns if column.cards is event.widget))


class ListView(View):
    """A screen that is one list with a line of words above it."""

    def __init__(self, name: str, pitch: int = 1) -> None:
        super().__init__(id=name)
        self.list = Items(self.draw, pitch)
        self.words = Static(markup=False, classes="words")

    def compose(self) -> ComposeResult:
        yield self.words
        yield self.list

    def draw(self, item: Any, width: int) -> Any:
        """The lines of one item."""
        raise NotImplementedError


class GraphView(ListView):
    """The open work as a tree, and of the chosen task how much lies before and behind it."""

    def __init__(self) -> None:
        super().__init__("graph")
        self._folded: set[str] = set()

    def show(self, sight: Sight) -> None:
        """Show the tree."""
        self.sight = sight
        self.list.show([(one.row["id"], one) for one in sight.tree(self._folded)])
        self.on_items_moved()

    def draw(self, item: Any, width: int) -> Any:
        """One branch of it."""
        return branch(self.sight, item, width)

    def fold(self, how: str) -> None:
        """plus: unfold what hangs on the chosen task; minus: fold it; 0: unfold everything."""
        if how == "0":
            self._folded.clear()
        elif self.chosen:
            (self._folded.add if how == "minus" else self._folded.discard)(self.chosen)
        self.show(self.sight)

    def on_items_moved(self) -> None:
        """The chain of the chosen task."""
        t = self.sight.t
        if not self.chosen:
            self.words.update(t("graph.empty"))
            return
        opened, total, behind = self.sight.counts(self.chosen)
        told = f"{t('graph.up', open=opened, all=total)} · {t('graph.down', open=behind)} · ┃ {t('graph.path')}"
        self.words.update(one_line(told, self.size.width or 80))


class AgentsView(ListView):
    """Who is at work on what, with the leases; and who worked when."""

    def __init__(self) -> None:
        super().__init__("agents")
        self._lanes: list[dict[str, Any]] = []

    def show(self, sight: Sight) -> None:
        """Show the sessions."""
        self.sight = sight
        t = sight.t
        self.words.update(f"{t('agents.now')} {len(sight.sessions)}" if sight.sessions else t("agents.nobody"))
        self._fill()

    def tell(self, lanes: list[dict[str, Any]]) -> None:
        """Show these lanes below the sessions."""
        self._lanes = lanes
        self._fill()

    def _fill(self) -> None:
        lines: list[Item] = [item for rows in self.sight.sessions for item in session_lines(self.sight, rows)]
        self.list.show(lines + lane_lines(self.sight, self._lanes))

    def draw(self, item: Any, width: int) -> Any:
        """One line of it."""
        return [item(width)]


class InboxView(ListView):
    """What waits on whoever looks, then what waits on others."""

    def __init__(self) -> None:
        super().__init__("inbox", PITCH)

    def show(self, sight: Sight) -> None:
        """Show what waits."""
        self.sight = sight
        t, mine = sight.t, sight.inbox
        others = [row for row in sight.columns["person"] if not row.get("you")]
        head = f"{t('inbox.title')} {len(mine)}" if mine else t("inbox.empty")
        self.words.update(head + (f" · {t('inbox.others')} {len(others)}" if others else ""))
        self.list.show([(row["id"], row) for row in (*mine, *others)])

    def draw(self, item: Row, width: int) -> Any:
        """One matter; of one for others, for whom it is."""
        if item.get("you"):
            return matter(self.sight, item, width)
        t = self.sight.t
        whose = t("card.for", name=item["reserved"]) if item.get("reserved") else t("inbox.others")
        return [(("  ", ""), *named(item, item["id"], width - 2, [(whose, "soft")]))]
