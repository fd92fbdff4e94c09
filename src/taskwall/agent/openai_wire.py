"""OpenAI's chat completions, as every compatible server speaks them, each a little differently."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from .answers import Answer, Schemas, count
from .messages import Message
from .models import Endpoint
from .wire import Wire


def wire(endpoint: Endpoint) -> Wire:
    """The protocol, at this endpoint."""
    import openai

    client = openai.OpenAI(base_url=endpoint.base_url, api_key=endpoint.key, max_retries=0)
    create = client.chat.completions.with_streaming_response.create
    streaming = {"stream": True, "stream_options": {"include_usage": True}}
    return Wire(openai, create, request, Assembly, whole, streaming)


def request(model: str, name: str, messages: Sequence[Message], tools: Schemas) -> dict[str, Any]:
    """The body of a request. Fields that only another model understands are left out."""
    functions = [{"type": "function", "function": tool} for tool in tools]
    history = [_own(message, name) for message in messages]
    return {"model": model, "messages": history, "tools": functions, "tool_choice": "auto"}


def _own(message: Message, name: str) -> Message:
    if message.get("from") in (None, name):
        return {key: value for key, value in message.items() if key != "from"}
    plain = {key: message[key] for key in ("role", "content") if key in message}
    calls = [{key: call.get(key) for key in ("id", "type", "function")} for call in message.get("tool_calls") or ()]
    return plain | ({"tool_calls": [_plain(call) for call in calls]} if calls else {})


def _plain(call: dict[str, Any]) -> dict[str, Any]:
    function = call["function"]
    return {**call, "type": "function", "function": {key: function.get(key) for key in ("name", "arguments")}}


def whole(body: Any) -> Answer:
    """The answer in a body. Raises ValueError when there is none."""
    try:
        choice = body["choices"][0]
        message = choice["message"]
    except (LookupError, TypeError):
        choice, message = {}, None
    if not isinstance(message, dict):
        raise ValueError(f"there is no message in {json.dumps(body)[:300]}")  # noqa: TRY004 - a value, not a type
    return _answer(message, choice.get("finish_reason"), body.get("usage"), told="finish_reason" in choice)


def _answer(message: Message, finish: Any, usage: Any, *, told: bool) -> Answer:
    """told: the endpoint is one that says how answers finish. Raises ValueError when this one did not."""
    if finish == "error":
        raise ValueError("it broke off with an error")
    return Answer(
        {"role": "assistant", **message},
        cut=finish == "length" or (told and not finish),
        refused=finish == "content_filter" or bool(message.get("refusal")),
        tokens_in=count(usage, "prompt_tokens"),
        tokens_out=count(usage, "completion_tokens"),
    )


class Assembly:
    """A streamed answer. Every field is kept: some must be sent back as they came."""

    def __init__(self) -> None:
        self.message: Message = {}
        self.calls: list[dict[str, Any]] = []
        self.finish: Any = None
        self.usage: Any = None

    def add(self, event: dict[str, Any]) -> str:
        """Take a chunk; its words."""
        self.usage = event.get("usage") or self.usage
        for choice in (event.get("choices") or ())[:1]:
            delta = dict(choice.get("delta") or {})
            self.finish = choice.get("finish_reason") or self.finish
            for part in delta.pop("tool_calls", None) or ():
                grow(self._call(part), {key: value for key, value in part.items() if key != "index"})
            grow(self.message, delta)
            return delta["content"] if isinstance(delta.get("content"), str) else ""
        return ""

    def _call(self, part: dict[str, Any]) -> dict[str, Any]:
        """The call that a part belongs to. Some servers give no index, or one index to every call."""
        call_id, name = part.get("id"), (part.get("function") or {}).get("name")
        last = self.calls[-1] if self.calls else None
        if (index := part.get("index")) is not None:
            last = next((call for call in reversed(self.calls) if call["index"] == index), None)
        elif call_id or name:
            last = None
        other = last and call_id and last["call"].get("id") not in (None, "", call_id)
        if last is None or other or (name and _is_complete(last["call"])):
            last = {"index": index, "call": {}}
            self.calls.append(last)
        found: dict[str, Any] = last["call"]
        return found

    def answer(self) -> Answer:
        """All that came; cut when nothing said that it is finished. Raises ValueError when nothing came."""
        if not self.message and not self.calls:
            raise ValueError("the stream ended before anything came")
        calls = {"tool_calls": [call["call"] for call in self.calls]} if self.calls else {}
        return _answer(self.message | calls, self.finish, self.usage, told=True)


def _is_complete(call: dict[str, Any]) -> bool:
    function = call.get("function") or {}
    try:
        return bool(function.get("name")) and isinstance(json.loads(function.get("arguments") or ""), dict)
    except (ValueError, RecursionError):
        return False


ONCE = {"id", "type", "role", "name", "format", "signature", "thought_signature", "model", "object", "index"}
"""Texts that come whole; every other text comes in pieces."""


def grow(whole: dict[str, Any], delta: dict[str, Any]) -> None:
    """Add a piece of a message to what came before."""
    for key, value in delta.items():
        before = whole.get(key)
        if isinstance(value, str) and isinstance(before, str):
            whole[key] = (value or before) if key in ONCE else before + value
        elif isinstance(value, dict) and isinstance(before, dict):
            grow(before, value)
        elif isinstance(value, list) and isinstance(before, list):
            _grow_list(before, value)
        elif value is not None or key not in whole:
            whole[key] = value


def _grow_list(whole: list[Any], items: list[Any]) -> None:
    """Items with an index belong to the one that has it already; all others are new."""
    for item in items:
        index = item.get("index") if isinstance(item, dict) else None
        same = next((i for i in whole if index is not None and isinstance(i, dict) and i.get("index") == index), None)
        if same is None:
            whole.append(item)
        else:
            grow(same, item)
