"""Tells a person what needs one: by a command or a webhook out of the user's own settings, never out of a board's.

`$XDG_CONFIG_HOME/taskwall/config.toml`, `[notify]`: `command` (a list; the event as JSON on its standard input),
`webhook` (the same by POST), `events` (those wanted of EVENTS). What was told leaves a mark in `.tasks/.local/told/`
for as long as it waits, so that one event is told once, whoever else works on the board and however often they start.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import queue
import re
import subprocess
import threading
from collections.abc import Callable, Mapping
from typing import Any

from ..core.errors import Invalid
from ..core.model import Task
from ..core.record import Record
from ..core.state import HELD, WAITING, state
from ..core.view import View
from ..stores.files.disk import NotPlain, read_text

EVENTS = ("decision", "hold", "attempts", "finished")
"""A decision waits for a person, a task was held, its last attempt failed, every task is finished."""
SECONDS = 10.0
"""How long a command or a webhook may take."""


class Notify(Record):
    """The user's settings."""

    command: tuple[str, ...] = ()
    webhook: str = ""
    events: tuple[str, ...] = EVENTS


def read_notify(env: Mapping[str, str]) -> Notify | None:
    """The settings of this user, None where there are none. Raises Invalid."""
    home = env.get("XDG_CONFIG_HOME", "")
    folder = home if os.path.isabs(home) else os.path.join(os.path.expanduser("~"), ".config")
    path = os.path.join(folder, "taskwall", "config.toml")
    if not os.path.exists(path):
        return None
    import tomllib

    try:
        found = tomllib.loads(read_text(path)[0]).get("notify")
    except (OSError, NotPlain, tomllib.TOMLDecodeError, RecursionError) as error:
        raise Invalid(f"{path} cannot be read: {error}", next=f"mend {path}") from None
    if found is None:
        return None
    wrong = [key for key, fits in _FITS.items() if isinstance(found, dict) and key in found and not fits(found[key])]
    wrong += [key for key in found if key not in _FITS] if isinstance(found, dict) else ["notify"]
    if wrong:
        raise Invalid(f"{path}: [notify] {wrong[0]} is not as it must be", next=_SHAPE)
    known: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in found.items()}
    return Notify(**known)


_SHAPE = f'command = ["program", …], webhook = "https://…", events = [some of {", ".join(EVENTS)}]'
_FITS: dict[str, Callable[[Any], bool]] = {
    "command": lambda v: isinstance(v, list) and bool(v) and all(isinstance(word, str) for word in v),
    "webhook": lambda v: isinstance(v, str) and v.startswith(("http://", "https://")),
    "events": lambda v: isinstance(v, list) and all(name in EVENTS for name in v),
}


class Notices:
    """Looks at the board after each change and tells what is new.

    local: where to remember what was told. complain: is told what did not arrive.
    """

    def __init__(self, wanted: Notify, board: str, local: str, complain: Callable[[str], None]) -> None:
        self._wanted, self._board, self._complain = wanted, board, complain
        self._marks = os.path.join(local, "told")
        if os.path.islink(self._marks):  # it came with a repository, and leads to files that are not ours to remove
            raise Invalid(f"{self._marks} is a symbolic link", next="look at what put it there")
        self._queue: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._deliver, name="notices", daemon=True)
        self._thread.start()

    def look(self, view: View) -> None:
        """Tell what waits for a person and has not been told. What a board's first worker finds waiting is not news."""
        found = {_mark(told): told for told in events(view)}
        first = not os.path.isdir(self._marks)
        with contextlib.suppress(OSError):  # a board that cannot be written: what is new would be told for ever
            os.makedirs(self._marks, exist_ok=True)
            for mark in filter(_MARK.fullmatch, set(os.listdir(self._marks)) - found.keys()):
                os.unlink(os.path.join(self._marks, mark))
            for mark, told in found.items():
                if self._is_first_to_mark(mark) and not first and told["event"] in self._wanted.events:
                    self._queue.put(told | {"board": self._board})

    def _is_first_to_mark(self, mark: str) -> bool:
        try:
            os.close(os.open(os.path.join(self._marks, mark), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            return False
        return True

    def close(self) -> None:
        """Wait for what is being told, but not for long."""
        self._queue.put(None)
        self._thread.join(2 * SECONDS)

    def _deliver(self) -> None:
        ways = (("command", self._wanted.command, _run), ("webhook", self._wanted.webhook, _post))
        while (told := self._queue.get()) is not None:
            body = json.dumps(told, ensure_ascii=False).encode("utf-8", "backslashreplace")
            for name, wanted, send in ways:
                try:
                    if wanted:
                        send(self._wanted, body)
                except Exception as error:  # noqa: BLE001 - work goes on, whatever is wrong with a hook
                    # Its kind alone: an address may hold a secret.
                    self._complain(f"the {name} of [notify] failed: {type(error).__name__}")


def events(view: View) -> list[dict[str, Any]]:
    """What needs a person now. That a task waits for other tasks is none of it."""
    found = [told for task in view.by_age() if (told := _event(view, task))]
    unfinished, total = view.counts()
    if total and not unfinished:
        text = f"all {total} tasks are finished"
        found.append({"event": "finished", "text": text, "reason": text})
    return found


def _event(view: View, task: Task) -> dict[str, Any] | None:
    now = state(view, task)
    if now.name not in (WAITING, HELD):
        return None
    reason = now.reasons[0]
    kind = "decision" if now.name == WAITING else "attempts" if reason.kind == "attempts" else "hold"
    told = {"id": task.id, "subject": task.subject, "question": task.question, "options": list(task.options)}
    text = f"{task.id} ({task.subject}): {task.question or reason.text}"
    task_told = {key: value for key, value in told.items() if value}
    return {"event": kind, "text": text, "reason": reason.text, "task": task_told}


_MARK = re.compile("[0-9a-f]{32}")


def _mark(told: Mapping[str, Any]) -> str:
    """What makes an event the same: not the words of a subject, which somebody may mend."""
    same = [told["event"], told["reason"], told.get("task", {}).get("id")]
    return hashlib.sha256(json.dumps(same).encode()).hexdigest()[:32]


def _run(wanted: Notify, body: bytes) -> None:
    subprocess.run(
        wanted.command,
        input=body,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=SECONDS,
        check=True,
        start_new_session=True,
    )


def _post(wanted: Notify, body: bytes) -> None:
    import urllib.request  # one small request: not worth a library of its own

    request = urllib.request.Request(  # noqa: S310 - the settings allow http and https alone
        wanted.webhook, body, {"Content-Type": "application/json", "User-Agent": "taskwall"}
    )
    with urllib.request.urlopen(request, timeout=SECONDS):  # noqa: S310
        pass
