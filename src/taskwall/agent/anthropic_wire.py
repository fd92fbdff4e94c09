"""Anthropic's messages. An answer is kept twice: in the shape of chat completions, and as the blocks that came."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from .answers import Answer, Schemas, count
from .messages import Message, text_of
from .models import Endpoint
from .wire import Wire

Block = dict[str, Any]

MAX_OUTPUT = 16_000
"""Tokens of one answer; the protocol insists on a limit."""
CACHED = {"cache_control": {"type": "ephemeral"}}
"""Up to here a request begins like the last one, and need not be paid in full again."""


def wire(endpoint: Endpoint) -> Wire:
    """The protocol, at this endpoint. Raises Invalid when its SDK is not installed."""
    try:
        import anthropic
    except ImportError:
        from ..core.errors import Invalid

        told = f"{endpoint.name} needs the package anthropic"
        raise Invalid(told, next="pip install 'taskwall[anthropic]'") from None
    client = anthropic.Anthropic(base_url=endpoint.base_url, api_key=endpoint.key, max_retries=0)
    return Wire(anthropic, client.messages.with_streaming_response.create, request, Assembly, whole, {"stream": True})


def request(model: str, name: str, messages: Sequence[Message], tools: Schemas) -> dict[str, Any]:
    """The body of a request: what is said by our side is one message between two of the model's."""
    system = [{"type": "text", "text": m["content"]} for m in messages if m["role"] == "system"]
    turns: list[dict[str, Any]] = []
    for message in messages:
        if message["role"] == "system":
            continue
        role = "assistant" if message["role"] == "assistant" else "user"
        blocks = _said(message, name) if role == "assistant" else [_told(message)]
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        elif blocks:
            turns.append({"role": role, "content": blocks})
    turns[-1]["content"][-1] |= CACHED
    system[-1] |= CACHED
    offered = [{"name": t["name"], "description": t["description"], "input_schema": t["parameters"]} for t in tools]
    return {"model": model, "max_tokens": MAX_OUTPUT, "system": system, "messages": turns, "tools": offered}


def _told(message: Message) -> Block:
    """A block of our side."""
    if message["role"] == "tool":
        return {"type": "tool_result", "tool_use_id": _id(message["tool_call_id"]), "content": message["content"]}
    return {"type": "text", "text": message["content"]}


def _said(message: Message, name: str) -> list[Block]:
    """The blocks of an answer: as they came when this model gave it, else its words and calls alone."""
    calls = message.get("tool_calls") or ()
    if message.get("blocks") and message.get("from") == name:
        # The ids are those that the results name: missing and repeated ones were replaced.
        ids = iter([_id(call["id"]) for call in calls])
        return [_sound(block, ids) if block.get("type") == "tool_use" else block for block in message["blocks"]]
    text = text_of(message)
    words: list[Block] = [{"type": "text", "text": text}] if text else []
    return words + [_use(call) for call in calls]


def _sound(use: Block, ids: Iterator[str]) -> Block:
    given = use.get("input")
    return {**use, "id": next(ids), "input": given if isinstance(given, dict) else {}}


def _use(call: dict[str, Any]) -> Block:
    function = call["function"]
    return {
        "type": "tool_use",
        "id": _id(call["id"]),
        "name": re.sub(r"[^\w-]", "_", function["name"] or "unnamed", flags=re.ASCII)[:64],
        "input": _object(function["arguments"]),
    }


def _id(text: str) -> str:
    """A call's id in the letters that this protocol allows."""
    return re.sub(r"[^\w-]", "_", text, flags=re.ASCII)


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {}


def whole(body: Any) -> Answer:
    """The answer in a body. Raises ValueError when there is none."""
    blocks = body.get("content") if isinstance(body, dict) else None
    if not isinstance(blocks, list):
        raise ValueError(f"there is no content in {json.dumps(body)[:300]}")  # noqa: TRY004 - a value, not a type
    arguments = [json.dumps(block.get("input")) for block in blocks if block.get("type") == "tool_use"]
    return _answer(blocks, arguments, body.get("stop_reason"), body.get("usage"))


def _answer(blocks: list[Block], arguments: list[str], stop: Any, usage: Any) -> Answer:
    """arguments: of each call, as text. An answer that does not say why it stopped was cut."""
    cut = stop in (None, "max_tokens", "model_context_window_exceeded")
    uses = [block for block in blocks if block.get("type") == "tool_use"]
    if cut and uses and uses[-1] is blocks[-1]:
        arguments = [*arguments[:-1], ""]  # it may be half of what was meant, however whole it looks
    calls = [
        {"id": use.get("id"), "type": "function", "function": {"name": use.get("name"), "arguments": given}}
        for use, given in zip(uses, arguments, strict=True)
    ]
    text = "".join(str(block.get("text") or "") for block in blocks if block.get("type") == "text")
    kept = [block for block in blocks if block.get("type") != "text" or str(block.get("text")).strip()]
    return Answer(
        {"role": "assistant", "content": text or None, "blocks": kept} | ({"tool_calls": calls} if calls else {}),
        cut=cut,
        refused=stop == "refusal",
        tokens_in=count(usage, "input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"),
        tokens_out=count(usage, "output_tokens"),
    )


class Assembly:
    """A streamed answer."""

    def __init__(self) -> None:
        self.blocks: dict[Any, Block] = {}
        self.inputs: dict[Any, str] = {}
        self.usage: dict[str, Any] = {}
        self.stop: Any = None

    def add(self, event: dict[str, Any]) -> str:
        """Take an event; its words."""
        kind, index = event.get("type"), event.get("index")
        if kind == "message_start":
            self.usage |= event["message"].get("usage") or {}
        elif kind == "content_block_start":
            self.blocks[index] = dict(event["content_block"])
        elif kind == "content_block_delta":
            return self._grow(self.blocks.setdefault(index, {"type": "text"}), index, event["delta"])
        elif kind == "message_delta":
            self.stop = event["delta"].get("stop_reason") or self.stop
            self.usage |= {key: told for key, told in (event.get("usage") or {}).items() if told is not None}
        return ""

    def _grow(self, block: Block, index: Any, delta: dict[str, Any]) -> str:
        for key, value in delta.items():
            if key == "partial_json":
                self.inputs[index] = self.inputs.get(index, "") + value
            elif key == "citation":
                block["citations"] = [*(block.get("citations") or ()), value]
            elif key != "type":
                block[key] = (block.get(key) or "") + value
        return str(delta.get("text") or "")

    def answer(self) -> Answer:
        """All that came. Raises ValueError when nothing came."""
        if not self.blocks and not self.stop:
            raise ValueError("the stream ended before anything came")
        arguments = []
        for index, block in self.blocks.items():
            if block.get("type") == "tool_use":
                arguments.append(self.inputs.get(index) or json.dumps(block.get("input") or {}))
                block["input"] = _object(arguments[-1])
        return _answer(list(self.blocks.values()), arguments, self.stop, self.usage)
