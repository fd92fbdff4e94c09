"""Messages of the chat completions protocol: which calls an answer makes, and what answers them."""

from __future__ import annotations

import json

from ..core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Message = dict[str, Any]


class Call(Record):
    """One tool call. `arguments` are unwrapped; when they are no JSON they stay text, and `flaw` says why."""

    id: str
    name: str
    arguments: Any = {}
    flaw: str = ""


def system_message(text: str) -> Message:
    return {"role": "system", "content": text}


def user_message(text: str) -> Message:
    return {"role": "user", "content": text}


def tool_message(call: Call, text: str) -> Message:
    return {"role": "tool", "tool_call_id": call.id, "content": text}


def text_of(message: Message) -> str:
    """The words of an answer; some endpoints send them in parts."""
    content = message.get("content")
    if isinstance(content, list):
        content = "\n".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return content.strip() if isinstance(content, str) else ""


def calls_of(message: Message, before: Sequence[Message]) -> tuple[Message, list[Call]]:
    """The message as it can be sent back, and its calls.

    It stays as it came, unknown fields included; only a call id that is missing or taken is replaced by a new one.
    """
    raw = [call for call in message.get("tool_calls") or () if isinstance(call, dict)]
    if not raw:
        # An empty list is refused by endpoints when it comes back.
        return {key: value for key, value in message.items() if key != "tool_calls"}, []
    taken = {str(call.get("id")) for earlier in before for call in earlier.get("tool_calls") or ()}
    calls = []
    for number, call in enumerate(raw):
        call_id = call.get("id")
        if not isinstance(call_id, str) or not call_id or call_id in taken:
            call_id = _fresh(taken, f"call_{len(before)}_{number}")
        taken.add(call_id)
        calls.append({**call, "id": call_id})
    return {**message, "tool_calls": calls}, [_call(call) for call in calls]


def _fresh(taken: set[str], wanted: str) -> str:
    while wanted in taken:
        wanted += "x"
    return wanted


def _call(raw: dict[str, Any]) -> Call:
    function = raw.get("function") if isinstance(raw.get("function"), dict) else {}
    assert isinstance(function, dict)
    arguments = function.get("arguments")
    try:
        return Call(raw["id"], str(function.get("name") or ""), unwrapped(arguments))
    except (ValueError, RecursionError) as error:
        return Call(raw["id"], str(function.get("name") or ""), arguments, flaw=str(error))


def unwrapped(arguments: Any) -> Any:
    """Arguments as the value they stand for, however often they were encoded. Raises ValueError."""
    while isinstance(arguments, str) and arguments.strip():
        arguments = json.loads(arguments)
    return arguments if arguments is not None and not isinstance(arguments, str) else {}


def unanswered(messages: Sequence[Message]) -> list[Call]:
    """The calls of the last answer that no tool message answers yet."""
    answered: set[str] = set()
    for message in reversed(messages):
        if message.get("role") == "tool":
            answered.add(str(message.get("tool_call_id")))
        elif message.get("role") == "assistant":
            return [_call(raw) for raw in message.get("tool_calls") or () if raw["id"] not in answered]
    return []
