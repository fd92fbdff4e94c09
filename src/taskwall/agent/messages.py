"""Messages of the chat completions protocol: which calls an answer makes, and what answers them."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Collection, Sequence
from typing import Any

from ..core.record import Record

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


def calls_of(
    message: Message, before: Sequence[Message], known: Collection[str] = (), *, cut: bool = False
) -> tuple[Message, list[Call]]:
    """The message as it can be sent back, and its calls; those that are written as text count when there are no others.

    It stays as it came, unknown fields included; only a call id that is missing or taken is replaced by a new one, and
    arguments that are no JSON object by one, for servers refuse to be sent them back. known: the tools that there are.
    cut: the answer ended before its end, so that empty arguments of the last call are no arguments at all.
    """
    raw = [call for call in message.get("tool_calls") or () if isinstance(call, dict)]
    if not raw:
        # An empty list is refused by endpoints when it comes back.
        message = {key: value for key, value in message.items() if key != "tool_calls"}
        rest, raw = written_calls(text_of(message), known)
        if not raw:
            return message, []
        message = {key: value for key, value in message.items() if key != "blocks"} | {"content": rest or None}
    taken = {str(call.get("id")) for earlier in before for call in earlier.get("tool_calls") or ()}
    calls, kept = [], []
    for number, call in enumerate(raw):
        call_id = call.get("id")
        if not isinstance(call_id, str) or not call_id or call_id in taken:
            call_id = _fresh(taken, f"call_{len(before)}_{number}")
        taken.add(call_id)
        found = _call({**call, "id": call_id}, cut=cut and number == len(raw) - 1)
        calls.append(found)
        kept.append({**call, "id": call_id, "function": _sendable(call.get("function"), found)})
    return {**message, "tool_calls": kept}, calls


def _fresh(taken: set[str], wanted: str) -> str:
    while wanted in taken:
        wanted += "x"
    return wanted


def _call(raw: dict[str, Any], *, cut: bool = False) -> Call:
    function = raw.get("function")
    function = function if isinstance(function, dict) else {}
    name, arguments = str(function.get("name") or ""), function.get("arguments")
    if cut and not arguments:
        return Call(raw["id"], name, arguments, flaw="they are empty")
    try:
        return Call(raw["id"], name, unwrapped(arguments))
    except (ValueError, RecursionError) as error:
        return Call(raw["id"], name, arguments, flaw=str(error))


def _sendable(function: Any, call: Call) -> dict[str, Any]:
    """The function of a call with arguments that are one JSON object as text."""
    kept: dict[str, Any] = function if isinstance(function, dict) else {"name": call.name}
    given = kept.get("arguments")
    with contextlib.suppress(ValueError, RecursionError):
        if isinstance(given, str) and isinstance(json.loads(given), dict):
            return kept
    return {**kept, "arguments": json.dumps(call.arguments if isinstance(call.arguments, dict) else {})}


_FENCE = re.compile(r"\A\s*```\w*\s*\n(.*)\n\s*```\s*\Z", re.DOTALL)


def unwrapped(arguments: Any) -> Any:
    """Arguments as the value they stand for, however often they were encoded, fenced or not.

    Words after an object are left out. Raises ValueError.
    """
    while isinstance(arguments, str) and arguments.strip():
        text = arguments.strip()
        if fenced := _FENCE.match(text):
            text = fenced[1].strip()
        arguments, end = json.JSONDecoder().raw_decode(text)
        if text[end:].strip() and not isinstance(arguments, dict):
            raise ValueError(f"there is more after {text[:end][:40]}")
    return arguments if arguments is not None and not isinstance(arguments, str) else {}


# Calls as text, from models that were not taught the protocol

_TAGGED = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.DOTALL)
_FENCED = re.compile(r"```(?:json|tool_call|tool_code)?\s*(.*?)(?:```|\Z)", re.DOTALL)
_ALONE = re.compile(r"\A(?:.*</think>)?(.*)\Z", re.DOTALL)
_BEGUN = re.compile(r'[\s\[]*\{\s*"name"\s*:\s*"([^"]*)"')
_ARGUMENTS = ("arguments", "parameters", "input")


def written_calls(text: str, known: Collection[str]) -> tuple[str, list[dict[str, Any]]]:
    """What is left of a text without the calls in it, and these in the shape of native ones.

    `<tool_call>…</tool_call>`, fenced JSON, or JSON alone: `{"name": …, "arguments": …}`, several, or a list. Only tags
    say for sure that a call is meant; other JSON must name a known tool. One that is broken or cut off is a call too,
    with its text for arguments, so that it is answered and not taken for words.
    """
    for pattern in (_TAGGED, _FENCED, _ALONE):
        found = [(match[0], _written(match[1], known, sure=pattern is _TAGGED)) for match in pattern.finditer(text)]
        calls = [call for _, written in found for call in written]
        if calls:
            for piece, written in found:
                text = text.replace(piece, "") if written else text
            return text.strip(), calls
    return text, []


def _written(text: str, known: Collection[str], *, sure: bool) -> list[dict[str, Any]]:
    """The calls that a piece of JSON stands for; none when it is anything else."""
    values = _objects(text)
    if not values:
        begun = _BEGUN.match(text)
        name = begun[1] if begun else ""
        return [_native(name, text)] if sure or name in known else []
    calls = []
    for value in values:
        inner = value.get("function", value)
        call = inner if isinstance(inner, dict) else {}
        name = call.get("name")
        key = next((key for key in _ARGUMENTS if key in call), None)
        if not isinstance(name, str) or not (sure or (name in known and key)):
            return []
        calls.append(_native(name, call[key] if key else {}))
    return calls


def _native(name: str, arguments: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "arguments": arguments}}


def _objects(text: str) -> list[dict[str, Any]]:
    """The JSON objects that a text consists of, those of lists too; none when there is anything before their end."""
    objects: list[dict[str, Any]] = []
    rest = text.strip()
    while rest.strip("}] \n"):  # one bracket too many is a common slip
        try:
            value, end = json.JSONDecoder().raw_decode(rest)
        except (ValueError, RecursionError):
            return []
        items = value if isinstance(value, list) else [value]
        if not all(isinstance(item, dict) for item in items):
            return []
        objects += items
        rest = rest[end:].lstrip()
    return objects


def unanswered(messages: Sequence[Message]) -> list[Call]:
    """The calls of the last answer that no tool message answers yet."""
    answered: set[str] = set()
    for message in reversed(messages):
        if message.get("role") == "tool":
            answered.add(str(message.get("tool_call_id")))
        elif message.get("role") == "assistant":
            return [_call(raw) for raw in message.get("tool_calls") or () if raw["id"] not in answered]
    return []
