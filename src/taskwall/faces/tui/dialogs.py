"""What is asked: a form for an act, a menu of acts, the keys. Each covers the wall until it is answered or left."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, ClassVar

from rich.cells import cell_len
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Button, Checkbox, Input, Select, Static, TextArea

from ...wording import safe
from ..words import Words
from .acts import KEYS, Act, Field, Question
from .drawing import named
from .items import Items
from .sight import CLOSED, Sight

Send = Callable[[dict[str, Any]], Awaitable[str]]
"""Does it with what was given; says why it was refused, nothing when it was done."""

MOST_FOUND = 6
"""How many tasks a search in a form offers."""


class Form(ModalScreen[None]):
    """Asks a question and sends the answer; what was left as it was is not sent. A refusal is shown, and all stays."""

    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss"), Binding("ctrl+s", "send", priority=True)]

    def __init__(self, sight: Sight, question: Question, send: Send) -> None:
        super().__init__()
        self._sight, self._question, self._send = sight, question, send
        self._inputs: dict[str, Widget] = {}
        self._busy = False
        self._refusal = Static(markup=False, classes="refusal")
        self._refusal.display = False

    def compose(self) -> ComposeResult:
        t, question = self._sight.t, self._question
        with VerticalScroll(classes="dialog", can_focus=False):
            yield Static(safe(question.title), markup=False, classes="title")
            for text in (question.about, question.text):
                if text and text != question.title:
                    yield Static(safe(text), markup=False)
            for field in question.fields:
                yield from self._asked(field)
            yield self._refusal
            with Horizontal(classes="buttons"):
                for n, (label, _) in enumerate(question.choices):
                    yield Button(label, id=f"choice-{n}", compact=True, variant="error")
                if question.submit:
                    yield Button(question.submit, id="send", compact=True, variant="primary")
                yield Static(t("form.send"), markup=False, classes="soft")

    def _asked(self, field: Field) -> Iterator[Widget]:
        label = self._sight.t(f"field.{field.name}")
        for n, option in enumerate(field.options):
            yield Button(Content(safe(option)), id=f"option-{n}", compact=True, classes="option")
        if field.kind != "flag":
            yield Static(label, markup=False, classes="label")
        self._inputs[field.name] = made = self._input(field, label)
        yield made

    def _input(self, field: Field, label: str) -> Widget:
        if field.kind == "flag":
            return Checkbox(label, compact=True)
        if field.kind == "text":
            return TextArea(field.value, compact=True)
        if field.kind == "priority":
            names = [(self._sight.t(f"priority.{n}"), str(n)) for n in range(5)]
            return Select(names, value=field.value, allow_blank=False, compact=True)
        if field.kind == "task":
            return Picker(self._sight, self._question.task_id)
        return Input(field.value, compact=True, select_on_focus=False)

    def on_mount(self) -> None:
        """The first field has the keys, else a button: what is offered is not chosen by a hasty Enter."""
        for first in [*self._inputs.values(), *self.query(Button)][:1]:
            (first.words if isinstance(first, Picker) else first).focus()

    def _given(self) -> dict[str, Any]:
        given = {}
        for field in self._question.fields:
            value = _value(self._inputs[field.name])
            if value != (field.value or type(value)()):
                given[field.name] = value
        return given

    async def action_send(self, more: dict[str, Any] | None = None) -> None:
        """Send it, once."""
        given = self._given() | (more or {})
        missing = [
            field for field in self._question.fields if field.required and not given.get(field.name, field.value)
        ]
        if self._busy or missing:
            return
        self._busy = True
        self.app.run_worker(self._sending(given))  # which goes on when the form is closed

    async def _sending(self, given: dict[str, Any]) -> None:
        refused = await self._send(given)
        self._busy = False
        if not refused and self.is_attached:
            self.dismiss()
        elif self.is_attached:
            self._refusal.update(refused)
            self._refusal.display = True
            self._refusal.scroll_visible()

    async def on_button_pressed(self, event: Button.Pressed) -> None:
        """A choice, an answer of those offered, or what was typed."""
        kind, _, at = str(event.button.id).partition("-")
        if kind == "choice":
            await self.action_send(self._question.choices[int(at)][1])
        elif kind == "option":
            field = next(field for field in self._question.fields if field.options)
            await self.action_send({field.name: field.options[int(at)]})
        else:
            await self.action_send()

    async def on_input_submitted(self) -> None:
        """Enter in a line sends."""
        await self.action_send()


def _value(widget: Widget) -> Any:
    if isinstance(widget, TextArea):
        return widget.text.strip()
    if isinstance(widget, (Checkbox, Select)):
        return widget.value
    return widget.value.strip() if isinstance(widget, (Input, Picker)) else ""


class Picker(Vertical):
    """Finds an open task by some words of it."""

    def __init__(self, sight: Sight, but: str) -> None:
        super().__init__()
        self._sight, self._but = sight, but
        self.words = Input(compact=True)
        self._found = Items(lambda row, width: [named(row, row["id"], width)])

    @property
    def value(self) -> str:
        """The id of the task that stands first or was chosen; what was typed where none was found."""
        return self._found.chosen or self.words.value

    def compose(self) -> ComposeResult:
        yield self.words
        yield self._found

    def on_input_changed(self, event: Input.Changed) -> None:
        """Look for it."""
        words = event.value.strip()
        found = Sight(self._sight.rows, self._sight.t, words).found if words else []
        rows = [row for row in found if row["id"] != self._but and row["state"] not in CLOSED][:MOST_FOUND]
        self._found.show([(row["id"], row) for row in rows])

    def on_key(self, event: events.Key) -> None:
        """Up and down choose among what was found."""
        if event.key in ("up", "down"):
            self._found.action_move(1 if event.key == "down" else -1)
            event.stop()


class Menu(ModalScreen[str]):
    """What can be done with a task now; answers with the act."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss('')")]

    def __init__(self, t: Words, title: str, acts: Sequence[Act]) -> None:
        super().__init__()
        self._t, self._title, self._acts = t, title, acts
        self._list = Items(lambda act, _: [((f"{act.key or ' '}  ", "accent"), (t(f"act.{act.name}"), ""))])

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(safe(self._title), markup=False, classes="title")
            if not self._acts:
                yield Static(self._t("act.none"), markup=False)
            yield self._list

    def on_mount(self) -> None:
        """As high as it must be."""
        self._list.styles.height = len(self._acts)
        self._list.show([(act.name, act) for act in self._acts])
        self._list.focus()

    def on_items_opened(self, event: Items.Opened) -> None:
        """An act was chosen."""
        event.stop()
        self.dismiss(event.task_id)

    def on_key(self, event: events.Key) -> None:
        """The key of an act chooses it."""
        if KEYS.get(event.key) in {act.name for act in self._acts}:
            event.stop()
            self.dismiss(KEYS[event.key])


HELP = (
    ("1 2 3 4", "screens"),
    ("← ↑ → ↓", "move"),
    ("Enter", "open"),
    (".", "menu"),
    ("c d r a k b h m", "acts"),
    ("/", "search"),
    ("n", "new"),
    ("+ - 0", "fold"),
    ("R", "all"),
    ("t l", "look"),
    ("Ctrl+S", "send"),
    ("Esc", "back"),
    ("q", "quit"),
    ("?", "help"),
)


class Help(ModalScreen[None]):
    """The keys."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,question_mark,enter,q", "dismiss")]

    def __init__(self, t: Words) -> None:
        super().__init__()
        self._t = t

    def compose(self) -> ComposeResult:
        width = max(cell_len(keys) for keys, _ in HELP)
        lines = [f"{keys}{' ' * (width - cell_len(keys) + 3)}{self._t(f'help.{name}')}" for keys, name in HELP]
        with Vertical(classes="dialog"):
            yield Static(self._t("help.title"), markup=False, classes="title")
            yield Static("\n".join(lines), markup=False)
