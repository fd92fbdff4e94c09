"""`taskwall hook EVENT`: what a client's hooks call. The client's JSON comes on standard input.

A hook is a guest in somebody else's loop: it takes two seconds at most, never fails, and where there is no board it
does nothing. Only with `--strict` does a refusal reach the client, as exit status 2.
"""

from __future__ import annotations

import json
import os
import re
import sys

from .. import config, render
from ..core.errors import Invalid, Refused
from ..core.model import MAX_SUBJECT
from ..core.record import Record
from ..core.rules import Draft
from ..lengths import clipped
from ..wording import safe
from .prime import SECONDS, prime, within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..board import Board
    from ..config import Location
    from ..core.model import Actor

MAX_INPUT = 8 * 1024 * 1024
MAX_DESCRIPTION = 10_000
REFUSED = 2
GLANCE = SECONDS - 0.3
"""How long a board may take at the start of a session, so that there is time to say that it is slow."""


class Call(Record):
    """One call of a hook: what the client sent, on which board, for whom."""

    event: str
    body: dict[str, Any]
    location: Location
    actor: Actor

    @property
    def board(self) -> Board:
        return config.open_board(self.location, self.actor)

    @property
    def is_driven(self) -> bool:
        """Whether a worker started the client: it judges what became of the claim, and would take mirrored tasks."""
        return bool(os.environ.get("TASKWALL_TASK"))

    def told(self, *names: str) -> str:
        """The first of these keys that holds text or a number."""
        values = (self.body.get(name) for name in names)
        return next((str(v) for v in values if isinstance(v, (str, int)) and not isinstance(v, bool) and v != ""), "")


def run(event: str | None, *, given: str | None = None, actor: str | None = None, strict: bool = False) -> int:
    """Do what the event asks for and print what the client should be told. given: a --board. Returns 0, or 2."""
    try:
        said = within(SECONDS, lambda: answer(event, _input(), given=given, actor=actor))
    except Refused as error:
        print(render.refusal(error), file=sys.stderr)
        return REFUSED if strict else 0
    except Exception as error:  # noqa: BLE001 - whatever is wrong with us, the client's work goes on
        print(f"taskwall hook: {error!r}", file=sys.stderr)
        return 0
    if said:
        print(said)
    return 0


def _input() -> dict[str, Any]:
    """The client's JSON; nothing when there is none. Not through sys.stdin, whose lock must be free when we give up."""
    data = b""
    try:
        while not os.isatty(0) and len(data) < MAX_INPUT and (more := os.read(0, 65536)):
            data += more
        body = json.loads(data)
    except (OSError, ValueError, RecursionError):  # OSError: standard input is closed
        return {}
    return body if isinstance(body, dict) else {}


def answer(event: str | None, body: dict[str, Any], *, given: str | None = None, actor: str | None = None) -> str:
    """What the client is to be told, nothing where there is no board. Raises Refused."""
    named = event or str(body.get("hook_event_name", ""))
    found = _EVENTS.get(re.sub(r"[^a-z]", "", named.lower()))
    if found is None:
        raise Invalid(f"no hook for {named!r}", next=f"one of {', '.join(name for name, _ in _EVENTS.values())}")
    name, act = found
    cwd = body.get("cwd")
    here = cwd if isinstance(cwd, str) and os.path.isdir(cwd) else os.getcwd()
    location = config.find_board(given, os.environ, here)
    if not location.exists:
        return ""
    said = act(Call(name, body, location, _actor(actor, body)))
    return json.dumps(said) if said else ""


def _actor(given: str | None, body: dict[str, Any]) -> Actor:
    """Who acts, in the session that the client names: its environment may still name the one before."""
    actor = config.find_actor(given, os.environ)
    if not actor.named:
        actor = actor.replace(name=_client(body), named=True)
    session = os.environ.get("TASKWALL_SESSION") or body.get("session_id") or body.get("conversation_id")
    if not session and actor.session in (actor.name, "user"):
        session = f"unnamed-{os.getpid()}"  # nobody's, so that nothing of somebody else's is given back
    return config.find_actor(actor.name, {"TASKWALL_SESSION": str(session or actor.session)})


def _client(body: dict[str, Any]) -> str:
    """The client that keeps its transcripts there: its hooks need not have the environment of its shells."""
    path = str(body.get("transcript_path") or "")
    return next((name for _, name, _ in config.CLIENTS if f"/.{name}/" in path), "agent")


# Events


def _session_start(call: Call) -> dict[str, Any]:
    text = prime(call.location, call.actor, seconds=GLANCE)
    if "cursor_version" in call.body:
        return {"additional_context": text}
    return {"hookSpecificOutput": {"hookEventName": call.event, "additionalContext": text}}


def _session_end(call: Call) -> None:
    if call.is_driven:
        return
    why = call.told("reason")
    reason = f"the session ended ({why})" if why else "the session ended"
    call.board.release_session(call.actor.session, reason=reason, agents=True)


def _subagent_stop(call: Call) -> None:
    if agent := call.told("agent_id"):
        call.board.release_session(f"{call.actor.session}/{agent}", reason="the sub-agent ended")


def _tool_used(call: Call) -> None:
    """A claim that a sub-agent made is recorded as that sub-agent's."""
    agent = call.told("agent_id")
    if agent and call.told("tool_name").endswith("claim_task"):
        text = json.dumps(call.body.get("tool_response"), ensure_ascii=False)
        for token in dict.fromkeys(_TOKEN.findall(text)[:1]):
            call.board.attribute(token, agent)


_TOKEN = re.compile(r"token: ([\w.-]+#\d+)")


def _task_created(call: Call) -> None:
    """A task of the client's own list is mirrored on the board, where others see it but do not take it."""
    subject = " ".join(call.told("task_subject").split())[:MAX_SUBJECT]
    if subject and not call.is_driven and (key := _key(call)):
        description = call.told("task_description")[:MAX_DESCRIPTION]
        call.board.create([Draft(subject=subject, description=description, key=key, owner=call.actor.name)])


def _task_completed(call: Call) -> None:
    board = call.board
    task = board.store.read().by_key(_key(call)) if _key(call) else None
    if task and not task.closed:
        board.claim(task.id)
        board.complete(task.id, result="completed in the list of the client that made it")


def _key(call: Call) -> str:
    """What keeps a task of the client's own list and its mirror on the board together."""
    task = call.told("task_id")
    return f"{call.actor.session}:{task}"[:MAX_SUBJECT] if task else ""


def _stop(call: Call) -> dict[str, Any] | None:
    if call.body.get("stop_hook_active"):
        return None
    held = call.board.store.read().held_by(call.actor)
    names = ", ".join(f"{task.token} ({clipped(safe(task.subject), 30)})" for task in held[:5])
    more = f" and {len(held) - 5} more" if len(held) > 5 else ""
    reason = (
        f"You still hold {names}{more}. Complete or release each (taskwall done ID, taskwall release ID), then stop."
    )
    return {"decision": "block", "reason": reason} if held else None


_EVENTS: dict[str, tuple[str, Callable[[Call], dict[str, Any] | None]]] = {
    name.lower(): (name, act)
    for name, act in (
        ("SessionStart", _session_start),
        ("SessionEnd", _session_end),
        ("SubagentStop", _subagent_stop),
        ("PostToolUse", _tool_used),
        ("TaskCreated", _task_created),
        ("TaskCompleted", _task_completed),
        ("Stop", _stop),
    )
}
