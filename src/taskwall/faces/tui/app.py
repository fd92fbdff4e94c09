"""The shell: which screen is shown, the keys that work everywhere, what is said, and what is done in threads."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

from textual.app import App
from textual.binding import Binding
from textual.message import Message
from textual.screen import ModalScreen, Screen
from textual.widgets import ContentSwitcher, Input, Static

from ... import (
    registry,
    verbs,  # noqa: F401 - importing verbs registers them
)
from ...core.actions import legal_actions
from ...core.errors import Refused
from ...render import safe
from ..web.lanes import lanes
from .acts import ACTS, CREATE, KEYS, arguments, asked, explained, offered, told
from .detail import Told, detail
from .dialogs import Form, Help, Menu, Question
from .drawing import one_line
from .items import Items
from .live import follow
from .sight import Sight
from .themes import DARK, THEMES
from .views import AgentsView, BoardView, GraphView, InboxView
from .words import LANGUAGES, words_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, ClassVar

    from textual.app import ComposeResult
    from textual.binding import BindingType

    from ...board import Board
    from ...results import Answer
    from ..web.rows import Look
    from .acts import Act
    from .sight import Row

TABS = ("board", "graph", "agents", "inbox")
STAYS, STAYS_REFUSED = 6.0, 20.0
"""Seconds for which it is said what was done, and what was refused."""
TICK = 5.0
"""Seconds between two looks at the clock, for ages and leases."""


class Seen(Message):
    """The board looks like this now, or cannot be read."""

    def __init__(self, look: Look | Refused) -> None:
        super().__init__()
        self.look = look


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
        self.query_one("#head", Static).update(safe(f"‹ {sight.t('task.back')} (Esc) · {told.shown.row.task.id}"))
        self.query_one("#hint", Static).update(sight.t("hint.task"))
        self.on_resize()

    def on_resize(self) -> None:
        """Lines are broken anew."""
        if self._told and self.lines.size.width:
            self.lines.show(detail(*self._told, self.lines.size.width - 1))


class Wall(App[None]):
    """The board of `open_board`, which gives a board to one thread alone; called `name`, in this language."""

    CSS_PATH = "wall.tcss"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(str(n), f"tab('{name}')") for n, name in enumerate(TABS, 1)),
        *(Binding(key, f"act('{name}')") for key, name in KEYS.items()),
        Binding("full_stop", "menu"),
        Binding("slash", "search"),
        Binding("n", "new"),
        Binding("left", "across(-1)"),
        Binding("right", "across(1)"),
        *(Binding(key, f"fold('{key}')") for key in ("plus", "minus", "0")),
        Binding("t", "turn"),
        Binding("l", "speak"),
        Binding("escape", "back"),
        Binding("question_mark", "help"),
        Binding("q,ctrl+c", "quit"),
    ]

    def __init__(self, open_board: Callable[[], Board], name: str, language: str) -> None:
        super().__init__()
        self._board_of, self._named, self._language = open_board, name, language
        self._actor = open_board().actor.name
        self._over = threading.Event()
        self._trouble = ""
        self._line = ""
        self.sight = Sight({}, words_of(language))
        self.views = {"board": BoardView(), "graph": GraphView(), "agents": AgentsView(), "inbox": InboxView()}
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
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = THEMES[0].name
        self.query_one("#search").display = False
        self.views["board"].take()
        self.run_worker(lambda: follow(self._board_of, lambda seen: self.post_message(Seen(seen)), self._over), thread=True)
        self.set_interval(TICK, self._tick)

    def on_unmount(self) -> None:
        """Look no longer."""
        self._over.set()

    # What is seen

    def on_seen(self, event: Seen) -> None:
        """The board has changed."""
        self._line = "online"
        if isinstance(event.look, Refused):
            self._trouble = safe(f"{self.sight.t('trouble')}: {event.look.message}", lines=True)
            self.say(f"{self._trouble}\n→ {safe(event.look.next)}", good=False)
        else:
            self._trouble = ""
            self._see(event.look.rows)

    def _see(self, rows: dict[str, Row] | None = None, query: str | None = None) -> None:
        """Show other rows, or search for something else."""
        before = self.sight
        self.sight = Sight(
            before.rows if rows is None else rows, words_of(self._language), before.query if query is None else query
        )
        self._show()
        if rows is not None:
            for screen in self._tasks():
                self._load(screen)

    def _show(self) -> None:
        self.views[self.tab].show(self.sight)
        base = self.screen_stack[0]
        base.query_one("#hint", Static).update(self.sight.t("hint.board"))
        base.query_one("#search", Input).placeholder = self.sight.t("head.search")
        self._head()
        if self.tab == "agents":
            self.run_worker(self._lanes, thread=True, group="lanes", exclusive=True)

    def _head(self) -> None:
        t, waiting = self.sight.t, len(self.sight.inbox)
        tabs = [f"{'[' if name == self.tab else ' '}{n} {t(f'nav.{name}')}" for n, name in enumerate(TABS, 1)]
        tabs[-1] += f" {waiting}" if waiting else ""
        closed = [tab + ("]" if name == self.tab else " ") for tab, name in zip(tabs, TABS, strict=True)]
        state = f"✗ {t('trouble')}" if self._trouble else f"● {t('line.online')}" if self._line else t("loading")
        who = f"{state} · {t('head.as', name=self._actor)}"
        head = self.screen_stack[0].query_one("#head", Static)
        head.update(one_line(f"{self._named}  {''.join(closed)}  {who}", self.size.width - 2))

    def _tick(self) -> None:
        """Ages and leases go on, though nothing changes."""
        for items in self.screen.query(Items):
            items.redraw()

    def _lanes(self) -> None:
        board = self._board_of()
        found = lanes(board.store.events(), board.store.read())
        self.call_from_thread(self.views["agents"].tell, found)

    def _tasks(self) -> list[TaskScreen]:
        return [screen for screen in self.screen_stack if isinstance(screen, TaskScreen)]

    def _load(self, screen: TaskScreen) -> None:
        self.run_worker(self._loading(screen), group=f"task {id(screen)}", exclusive=True)

    async def _loading(self, screen: TaskScreen) -> None:
        try:
            told = await asyncio.to_thread(self._told, screen.task_id)
        except Refused as error:
            self.say(explained(self.sight, error), good=False)
        else:
            if screen.is_attached:
                screen.show(self.sight, told)

    def _told(self, task_id: str) -> Told:
        board = self._board_of()
        view = board.store.read()
        task = view.find(task_id)
        events = () if task.flaw else board.history(task_id).events
        return Told(board.get(task_id), events, legal_actions(view, task, board.actor))

    # What is said

    def say(self, text: str, *, good: bool = True) -> None:
        """Tell what was done, or why not, on the screen that is seen."""
        screens = [screen for screen in self.screen_stack if not isinstance(screen, ModalScreen)]
        said = screens[-1].query_one("#said", Static)
        said.update(text)
        said.set_class(not good, "refused")
        said.display = True

        def unsay() -> None:
            if said.is_attached and said.visual is shown:
                said.display = False

        shown = said.visual
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
        if act.fields is None:
            if refused := await self._attempt(act, {"task_id": row["id"]}):
                self.say(refused, good=False)
            return
        task = None
        if act.name == "edit":
            try:
                task = (await asyncio.to_thread(self._told, row["id"])).shown.row.task
            except Refused as error:
                self.say(explained(self.sight, error), good=False)
                return
        t = self.sight.t
        title = row.get("question") or row["subject"] if act.name == "answer" else t(f"ask.{act.name}", name=row.get("owner"))
        text = t(f"ask.{act.name}.text")
        self._ask(
            act,
            Question(
                title,
                row["subject"],
                "" if text.startswith("ask.") else text,
                asked(act, row, task),
                t(f"act.{act.name}"),
                task_id=row["id"],
            ),
        )

    def _ask(self, act: Act, question: Question) -> None:
        about = {"task_id": question.task_id} if question.task_id else {}

        async def send(given: dict[str, Any]) -> str:
            if act.name == "edit" and not given:
                return ""
            return await self._attempt(act, about | arguments(given))

        self.push_screen(Form(self.sight, question, send))

    async def _attempt(self, act: Act, args: dict[str, Any]) -> str:
        """Call the verb of an act in a thread: why it was refused, nothing when it was done."""
        try:
            answer = await asyncio.to_thread(self._call, act.verb, act.fixed | args)
        except Refused as error:
            if error.code == "open_dependents":
                self._ask_about_dependents(act, args, error)
                return ""
            return explained(self.sight, error)
        self.say(told(self.sight, answer))
        return ""

    def _call(self, verb: str, args: dict[str, Any]) -> Answer:
        return registry.call(self._board_of(), verb, args)

    def _ask_about_dependents(self, act: Act, args: dict[str, Any], error: Refused) -> None:
        t = self.sight.t
        text = t("ask.dependents.text", names=self.sight.named(error.by))
        choices = ((t("ask.drop"), {"drop_edges": True}), (t("ask.cascade"), {"cascade": True}))
        about = self.sight.called(args["task_id"])
        self._ask(act, Question(t("ask.dependents"), about, text, choices=choices, task_id=args["task_id"]))

    def action_new(self) -> None:
        """Ask for a new task."""
        t = self.sight.t
        self._ask(CREATE, Question(t("ask.new"), fields=CREATE.fields or (), submit=t("head.new")))

    def action_menu(self) -> None:
        """Offer what is legal now."""
        if self.chosen in self.sight.rows:
            self.run_worker(self._offering(self.chosen))

    async def _offering(self, task_id: str) -> None:
        try:
            actions = (await asyncio.to_thread(self._told, task_id)).actions
        except Refused as error:
            self.say(explained(self.sight, error), good=False)
            return
        menu = Menu(self.sight.t, self.sight.called(task_id), offered(actions))
        if name := await self.push_screen_wait(menu):
            await self._acting(ACTS[name], self.sight.rows[task_id])

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
            self.views["board"].across(step)

    def action_fold(self, how: str) -> None:
        """Fold or unfold the tree."""
        if self.tab == "graph" and not isinstance(self.screen, TaskScreen):
            self.views["graph"].fold(how)

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

    def action_back(self) -> None:
        """Leave the search."""
        search = self.query_one("#search", Input)
        search.value = ""
        search.display = False
        self.views[self.tab].take()

    def action_turn(self) -> None:
        """Light or dark."""
        self.theme = next(theme.name for theme in THEMES if theme.name != self.theme)

    def action_speak(self) -> None:
        """The other language."""
        self._language = next(name for name in LANGUAGES if name != self._language)
        self._see(self.sight.rows)

    def action_help(self) -> None:
        """The keys."""
        self.push_screen(Help(self.sight.t))
