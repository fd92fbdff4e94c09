"""The shell: which screen is shown, the keys that work everywhere, what is said, and what is done in threads."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, ClassVar, TypeVar

from rich.cells import cell_len
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import ContentSwitcher, Input, Static

from ... import registry, verbs  # noqa: F401 - importing verbs registers them
from ...board import Board
from ...core.errors import Refused
from ...signals import ENDING
from ...stores.base import Outdated
from ...wording import safe
from ..web.lanes import lanes
from ..web.rows import Look
from ..words import LANGUAGES, words_of
from .acts import (
    ACTS,
    CREATE,
    KEYS,
    RELEASE_ALL,
    Act,
    Question,
    about_dependents,
    about_session,
    arguments,
    explained,
    offered,
    question,
    told,
)
from .dialogs import Form, Help, Menu
from .drawing import one_line
from .items import Items
from .live import follow
from .sight import Row, Sight
from .task import TaskScreen, told_of
from .themes import DARK, THEMES
from .views import AgentsView, BoardView, GraphView, InboxView, View

Found = TypeVar("Found")

TABS = ("board", "graph", "agents", "inbox")
STAYS, STAYS_REFUSED = 6.0, 20.0
"""Seconds for which it is said what was done, and what was refused."""
TICK = 5.0
"""Seconds between two looks at the clock, for ages and leases."""
LONGEST_NAME = 16


class Seen(Message):
    """The board looks like this now, or cannot be read."""

    def __init__(self, look: Look | Refused) -> None:
        super().__init__()
        self.look = look


class Wall(App[None]):
    """The board of `open_board`, which opens it for one thread alone; called `name`, in this language."""

    CSS_PATH = "wall.tcss"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(str(n), f"tab('{name}')") for n, name in enumerate(TABS, 1)),
        *(Binding(key, f"act('{name}')") for key, name in KEYS.items()),
        Binding("full_stop", "menu"),
        Binding("slash", "search"),
        Binding("n", "new"),
        Binding("R", "release_all"),
        Binding("left", "across(-1)"),
        Binding("right", "across(1)"),
        *(Binding(key, f"fold('{key}')") for key in ("plus", "minus", "0")),
        Binding("t", "turn"),
        Binding("l", "speak"),
        Binding("escape", "leave"),
        Binding("question_mark", "help"),
        Binding("q,ctrl+c", "quit"),
    ]

    def __init__(
        self, open_board: Callable[[], Board], name: str, language: str, clock: Callable[[], float] = time.time
    ) -> None:
        super().__init__()
        self._clock = clock
        self._board_of, self._called, self._language = open_board, name, language
        self._actor = open_board().actor.name
        self._over = threading.Event()
        self._state = "loading"
        self.sight = Sight({}, words_of(language), clock=clock)
        self.board, self.graph, self.agents, self.inbox = BoardView(), GraphView(), AgentsView(), InboxView()
        self.views: dict[str, View] = dict(zip(TABS, (self.board, self.graph, self.agents, self.inbox), strict=True))
        self.tab = "board"

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """The colours of states, which other themes do not name."""
        return DARK.variables

    def compose(self) -> ComposeResult:
        yield Static(markup=False, classes="bar", id="head")
        yield Input(id="search", compact=True)
        yield ContentSwitcher(*self.views.values(), initial="board")
        yield Static(markup=False, id="said")
        yield Static(markup=False, classes="bar", id="hint")

    def on_mount(self) -> None:
        """Begin to look at the board."""
        self.title = safe(self._called)
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = THEMES[0].name
        self.query_one("#search").display = False
        self.board.take()
        self._head()
        for number in ENDING:
            with suppress(NotImplementedError, RuntimeError):  # Windows; not the main thread
                asyncio.get_running_loop().add_signal_handler(number, self.exit, None, 128 + number)
        self.run_worker(self._follow, thread=True)
        self.set_interval(TICK, self._tick)

    def on_unmount(self) -> None:
        """Look no longer."""
        self._over.set()

    # What is seen

    def _follow(self) -> None:
        follow(self._board_of, lambda look: self.post_message(Seen(look)), self._over, self._clock)

    def on_seen(self, event: Seen) -> None:
        """The board has changed, or cannot be read."""
        if isinstance(event.look, Refused):
            self._state = "trouble"
            self._head()
            self.say(safe(f"{event.look.message}\n→ {event.look.next}", lines=True), good=False)
        else:
            self._state = "line.online"
            self._see(rows=event.look.rows)

    def _see(self, *, rows: dict[str, Row] | None = None, query: str | None = None) -> None:
        """Show other rows, or search for something else."""
        before = self.sight
        rows, query = before.rows if rows is None else rows, before.query if query is None else query
        self.sight = Sight(rows, words_of(self._language), query, self._clock)
        self._show()
        for screen in self.screen_stack:
            if isinstance(screen, TaskScreen):
                self._load(screen)

    def _show(self) -> None:
        self.views[self.tab].show(self.sight)
        base = self.screen_stack[0]
        base.query_one("#hint", Static).update(self.sight.t(f"hint.{self.tab}"))
        base.query_one("#search", Input).placeholder = self.sight.t("head.search")
        self._head()
        if self.tab == "agents":
            self.run_worker(self._lanes(), group="lanes", exclusive=True)

    def _head(self) -> None:
        t, waiting = self.sight.t, len(self.sight.inbox)
        parts: list[tuple[str, str]] = [(f"{one_line(self._called, LONGEST_NAME)} ", "bold")]
        for n, name in enumerate(TABS, 1):
            count = f" {waiting}" if name == "inbox" and waiting else ""
            parts += [
                (" ", ""),
                (f" {n} {t(f'nav.{name}')}{count} ", "bold $wall-paper on $wall-accent" if name == self.tab else ""),
            ]
        signs = {"loading": "…", "trouble": "✗", "line.online": "●"}
        state = f"{signs[self._state]} {t(self._state)} · {one_line(t('head.as', name=self._actor), LONGEST_NAME)}"
        gap = self.size.width - 2 - sum(cell_len(text) for text, _ in parts) - cell_len(state)
        head = Content.assemble(*parts, " " * max(2, gap), (state, "$wall-soft"))
        self.screen_stack[0].query_one("#head", Static).update(head)

    def on_resize(self) -> None:
        """The line above is as wide as the terminal."""
        self._head()

    def _tick(self) -> None:
        """Ages and leases go on, though nothing changes."""
        for items in self.screen.query(Items):
            items.redraw()

    # What is asked of the board, in threads

    async def _ask_board(self, job: Callable[[Board], Found]) -> Found | None:
        """Do this with the board; None when it was refused, which is said."""

        def answer() -> Found:
            board = self._board_of()
            try:
                return job(board)
            except Outdated:
                return job(board)

        try:
            return await asyncio.to_thread(answer)
        except Refused as error:
            self.say(explained(self.sight, error), good=False)
            return None

    async def _lanes(self) -> None:
        found = await self._ask_board(lambda board: lanes(board.lately(), board.store.read()))
        self.agents.tell(found or [])

    def _load(self, screen: TaskScreen) -> None:
        self.run_worker(self._loading(screen), group=f"task {id(screen)}", exclusive=True)

    async def _loading(self, screen: TaskScreen) -> None:
        told = await self._ask_board(lambda board: told_of(board, screen.task_id))
        if told and screen.is_attached:
            screen.show(self.sight, told)

    # What is said

    def say(self, text: str, *, good: bool = True) -> None:
        """Tell what was done, or why not, on the screen that is seen."""
        screens = [screen for screen in self.screen_stack if not isinstance(screen, ModalScreen)]
        said = screens[-1].query_one("#said", Static)
        said.update(text)
        said.set_class(not good, "refused")
        said.display = True
        shown = said.visual

        def unsay() -> None:
            if said.is_attached and said.visual is shown:
                said.display = False

        self.set_timer(STAYS if good else STAYS_REFUSED, unsay)

    # Acts

    @property
    def chosen(self) -> str:
        """The id of the task that is looked at."""
        return self.screen.task_id if isinstance(self.screen, TaskScreen) else self.views[self.tab].chosen

    def action_act(self, name: str) -> None:
        """Do this with the chosen task, once what must be known was asked."""
        if row := self.sight.rows.get(self.chosen):
            self.run_worker(self._acting(ACTS[name], row))

    async def _acting(self, act: Act, row: Row) -> None:
        task_id, task = row["id"], None
        if act.fields is None:
            if refused := await self._attempt(act, {"task_id": task_id}):
                self.say(refused, good=False)
            return
        if act.name == "edit":
            task = await self._ask_board(lambda board: board.store.read().find(task_id))
        if task or act.name != "edit":
            self._ask(act, question(self.sight, act, row, task), {"task_id": task_id})

    def _ask(self, act: Act, asked: Question, about: dict[str, Any]) -> None:
        async def send(given: dict[str, Any]) -> str:
            if act.name == "edit" and not given:
                return ""
            refused = await self._attempt(act, about | arguments(given))
            if refused and not form.is_attached:  # it was closed meanwhile
                self.say(refused, good=False)
            return refused

        form = Form(self.sight, asked, send)
        self.push_screen(form)

    async def _attempt(self, act: Act, args: dict[str, Any]) -> str:
        """Call the verb of an act in a thread: why it was refused, nothing when it was done."""
        try:
            answer = await asyncio.to_thread(lambda: registry.call(self._board_of(), act.verb, act.fixed | args))
        except Refused as error:
            if error.code != "open_dependents":
                return explained(self.sight, error)
            about = {"task_id": args["task_id"]}
            # After the form that asked for this has closed.
            self.call_later(self._ask, act, about_dependents(self.sight, args["task_id"], error), about)
            return ""
        self.say(told(self.sight, answer))
        return ""

    def action_new(self) -> None:
        """Ask for a new task."""
        t = self.sight.t
        self._ask(CREATE, Question(t("ask.new"), fields=CREATE.fields or (), submit=t("head.new")), {})

    def action_release_all(self) -> None:
        """Ask before all that the holder of the chosen task holds is given back."""
        row = self.sight.rows.get(self.chosen, {})
        if self.tab == "agents" and "claim" in row:
            self._ask(RELEASE_ALL, about_session(self.sight, row), {"session": row["claim"]["session"]})

    def action_menu(self) -> None:
        """Offer what is legal now."""
        if row := self.sight.rows.get(self.chosen):
            self.run_worker(self._offering(row))

    async def _offering(self, row: Row) -> None:
        if told := await self._ask_board(lambda board: told_of(board, row["id"])):
            name = await self.push_screen_wait(Menu(self.sight.t, row["subject"], offered(told.actions)))
            if name:
                await self._acting(ACTS[name], self.sight.rows.get(row["id"], row))

    # Going around

    def on_items_opened(self, event: Items.Opened) -> None:
        """Show a task whole."""
        if event.task_id in self.sight.rows:
            screen = TaskScreen(event.task_id)
            self.push_screen(screen)
            self._load(screen)

    def action_tab(self, name: str) -> None:
        """Go to one of the four screens."""
        while isinstance(self.screen, TaskScreen):
            self.pop_screen()
        self.tab = name
        self.screen_stack[0].query_one(ContentSwitcher).current = name
        self._show()
        self.views[name].take()

    def action_across(self, step: int) -> None:
        """To the column beside."""
        if self.tab == "board":
            self.board.across(step)

    def action_fold(self, how: str) -> None:
        """Fold or unfold the tree."""
        if self.tab == "graph" and not isinstance(self.screen, TaskScreen):
            self.graph.fold(how)

    def action_search(self) -> None:
        """Search the tasks."""
        if not isinstance(self.screen, TaskScreen):
            search = self.query_one("#search", Input)
            search.display = True
            search.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show what holds the words."""
        if event.input.id == "search":
            self._see(query=event.value.strip())

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Back among what was found."""
        if event.input.id == "search":
            self.views[self.tab].take()

    def action_leave(self) -> None:
        """Leave the search."""
        search = self.screen_stack[0].query_one("#search", Input)
        search.value = ""
        search.display = False
        self.views[self.tab].take()

    def action_turn(self) -> None:
        """Light or dark."""
        self.theme = next(theme.name for theme in THEMES if theme.name != self.theme)

    def action_speak(self) -> None:
        """The other language."""
        self._language = next(name for name in LANGUAGES if name != self._language)
        self._see()

    def action_help(self) -> None:
        """The keys."""
        self.push_screen(Help(self.sight.t))
