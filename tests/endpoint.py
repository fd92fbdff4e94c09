"""A scripted endpoint that speaks both protocols, streaming or not, commits any fault, and is as strict as real ones.

Steps are those of `taskwall.agent.scripted`, in the shape of chat completions; this translates them. Around a step:
`cut`, `unfinished`, `torn`; instead of one: `refuse`, `error_in_200`, `dropped`, `events`. A request that a provider
would answer with 400 gets that here, so that every test that ends well shows sound conversations too.
"""

from __future__ import annotations

import contextlib
import json

from taskwall.agent.scripted import ScriptedModel, fail, send

WIRES = ["openai-stream", "openai-whole", "anthropic-stream", "anthropic-whole"]


def cut(reply):
    """The limit of output was reached."""
    return {**reply, "_finish": "length"}


def unfinished(reply):
    """It ends without saying that it is finished."""
    return {**reply, "_finish": None}


def torn(reply):
    """The connection breaks in the middle."""
    return {**reply, "_torn": True}


def refuse(status, message, **headers):
    """An error, with headers."""
    return {**fail(status, message), "_headers": {name.replace("_", "-"): value for name, value in headers.items()}}


def error_in_200(error, reply=None):
    """An error with status 200: the body, or an event of the stream after what is there of the reply."""
    return {**(reply or {"content": None}), "_error": error}


def dropped():
    """The connection is closed without a word."""
    return {"_dropped": True}


def events(*data):
    """A stream of just these events."""
    return {"_events": data}


class Endpoint(ScriptedModel):
    """Answers in the protocol that a wire of WIRES names. `flaws`: what was wrong with requests."""

    def __init__(self, steps, wire="openai-stream", *, strict=()):
        """strict: names of fields without which an answer that calls tools is not taken back."""
        super().__init__(steps)
        self.protocol, _, mode = wire.partition("-")
        self.streams, self.strict = mode == "stream", strict
        self.flaws = []

    @property
    def url(self):
        return super().url if self.protocol == "openai" else super().url.replace("/v1", "/anthropic")

    def respond(self, handler, body):
        flaw = (openai_flaw if self.protocol == "openai" else anthropic_flaw)(body, self.strict)
        if flaw:
            self.flaws.append(flaw)
            return send(handler, 400, {"error": {"message": flaw, "type": "invalid_request_error"}})
        reply = self.answer(body)
        if reply.get("_dropped"):
            return hang_up(handler)
        if "status" in reply:
            return send(handler, reply["status"], {"error": reply["error"]}, reply.get("_headers"))
        sound = {key: value for key, value in reply.items() if not key.startswith("_")}
        finish = reply.get("_finish", "tool_calls" if reply.get("tool_calls") else "stop")
        made = OPENAI if self.protocol == "openai" else ANTHROPIC
        if "_events" in reply or (self.streams and body.get("stream")):
            pieces = list(reply.get("_events") or made.stream(sound, finish))
            if reply.get("_error") is not None:
                pieces = [*pieces[: len(pieces) // 2], made.error_event(reply["_error"])]
            return stream(handler, pieces, torn=reply.get("_torn", False))
        if reply.get("_torn"):
            return stream(handler, [], torn=True)
        return send(handler, 200, {"error": reply["_error"]} if "_error" in reply else made.whole(sound, finish))


def hang_up(handler):
    handler.close_connection = True
    handler.connection.close()


def stream(handler, pieces, *, torn):
    handler.send_response(200)
    handler.send_header("Content-Type", "text/event-stream")
    handler.send_header("Connection", "close")
    handler.send_header("Transfer-Encoding", "chunked")
    lines = [f"data: {piece if isinstance(piece, str) else json.dumps(piece)}\n\n".encode() for piece in pieces]
    with contextlib.suppress(ConnectionError):
        handler.end_headers()
        for line in lines[: len(lines) // 2] if torn else lines:
            handler.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
        if not torn:
            handler.wfile.write(b"0\r\n\r\n")
    hang_up(handler)


def halves(text):
    return [text[: len(text) // 2], text[len(text) // 2 :]]


class OPENAI:
    def whole(message, finish):
        choice = {"index": 0, "message": message, "finish_reason": finish}
        return {
            "object": "chat.completion",
            "choices": [choice],
            "usage": {"prompt_tokens": 100, "completion_tokens": 10},
        }

    def stream(message, finish):
        more = {k: v for k, v in message.items() if k not in ("content", "tool_calls")}
        deltas = [{**more, "content": None if message.get("content") is None else ""}]
        deltas += [{"content": half} for half in halves(message.get("content") or "")]
        for index, call in enumerate(message.get("tool_calls") or ()):
            deltas.append({"tool_calls": [{**call, "index": index, "function": {**call["function"], "arguments": ""}}]})
            for half in halves(call["function"]["arguments"]):
                deltas.append({"tool_calls": [{"index": index, "function": {"arguments": half}}]})
        chunks = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
        if finish:
            chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
        return [*chunks, {"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 10}}, "[DONE]"]

    def error_event(error):
        return {"error": error, "choices": [{"index": 0, "delta": {}, "finish_reason": "error"}]}


class ANTHROPIC:
    STOPS = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", None: None}

    def blocks(message):
        blocks = list(message.get("blocks") or ())
        if message.get("content"):
            blocks.append({"type": "text", "text": message["content"]})
        for call in message.get("tool_calls") or ():
            function = call["function"]
            blocks.append({"type": "tool_use", "id": call.get("id"), "name": function["name"], "input": {}})
        return blocks

    def texts(message):
        return [call["function"]["arguments"] for call in message.get("tool_calls") or ()]

    def whole(message, finish):
        blocks = ANTHROPIC.blocks(message)
        given = iter(ANTHROPIC.texts(message))
        for block in blocks:
            if block["type"] == "tool_use":
                with contextlib.suppress(ValueError):
                    block["input"] = json.loads(next(given))
        usage = {"input_tokens": 90, "cache_read_input_tokens": 10, "output_tokens": 10}
        stop = ANTHROPIC.STOPS[finish]
        return {"type": "message", "role": "assistant", "content": blocks, "stop_reason": stop, "usage": usage}

    def stream(message, finish):
        usage = {"input_tokens": 90, "cache_read_input_tokens": 10, "output_tokens": 1}
        made = [{"type": "message_start", "message": {"usage": usage}}, {"type": "ping"}]
        given = iter(ANTHROPIC.texts(message))
        for index, block in enumerate(ANTHROPIC.blocks(message)):
            deltas = []
            if block["type"] == "text":
                deltas = [{"type": "text_delta", "text": half} for half in halves(block["text"])]
                block = {**block, "text": ""}
            elif block["type"] == "thinking":
                deltas = [{"type": "thinking_delta", "thinking": half} for half in halves(block["thinking"])]
                deltas.append({"type": "signature_delta", "signature": block["signature"]})
                block = {**block, "thinking": "", "signature": ""}
            elif block["type"] == "tool_use":
                deltas = [{"type": "input_json_delta", "partial_json": half} for half in halves(next(given))]
            made.append({"type": "content_block_start", "index": index, "content_block": block})
            made += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
            made.append({"type": "content_block_stop", "index": index})
        if finish:
            ended = {"stop_reason": ANTHROPIC.STOPS[finish]}
            made.append({"type": "message_delta", "delta": ended, "usage": {"output_tokens": 10}})
            made.append({"type": "message_stop"})
        return made

    def error_event(error):
        return {"type": "error", "error": error}


def openai_flaw(body, strict=()):
    """What a provider would refuse in a request of chat completions."""
    waiting, ids = [], []
    for message in body["messages"]:
        if message["role"] == "tool":
            if not waiting or message["tool_call_id"] != waiting.pop(0):
                return f"an unexpected tool message for {message['tool_call_id']}"
        elif waiting:
            return f"An assistant message with 'tool_calls' must be followed by tool messages: {waiting}"
        if message["role"] == "assistant":
            if not message.get("tool_calls") and not message.get("content"):
                return "an assistant message is empty"
            unknown = set(message) & {"from", "blocks"}
            if unknown:
                return f"unknown fields {unknown}"
            calls = message.get("tool_calls") or ()
            if calls and (missing := [name for name in strict if name not in message]):
                return f"The {missing} in the thinking mode must be passed back to the API"
            for call in calls:
                try:
                    assert isinstance(json.loads(call["function"]["arguments"]), dict)
                except (AssertionError, TypeError, ValueError):
                    return f"the arguments {call['function']['arguments']!r} are no JSON object"
            waiting = [call["id"] for call in calls]
            ids += waiting
        elif not message["content"]:
            return f"an empty {message['role']} message"
    if waiting:
        return f"no answer to {waiting}"
    return "a call id occurs twice" if len(ids) != len(set(ids)) else None


def anthropic_flaw(body, strict=()):
    """What Anthropic would refuse in a request."""
    if not body.get("max_tokens") or any(m["role"] not in ("user", "assistant") for m in body["messages"]):
        return "max_tokens, or a role"
    roles = [message["role"] for message in body["messages"]]
    if roles != (["user", "assistant"] * len(roles))[: len(roles)]:
        return f"roles must alternate: {roles}"
    waiting, ids = [], []
    for message in body["messages"]:
        kinds = [block["type"] for block in message["content"]]
        if any(block["type"] == "text" and not block["text"].strip() for block in message["content"]):
            return "text content blocks must be non-empty"
        if message["role"] == "user":
            answered = [block["tool_use_id"] for block in message["content"] if block["type"] == "tool_result"]
            if answered != waiting:
                return f"`tool_use` ids {waiting} were found without `tool_result` blocks immediately after: {answered}"
            if kinds != sorted(kinds, key=lambda kind: kind != "tool_result"):
                return "tool results must come first"
            waiting = []
        else:
            uses = [block for block in message["content"] if block["type"] == "tool_use"]
            if uses and any(kind not in kinds for kind in strict):
                return f"Expected {strict} blocks, found {kinds}"
            if any(not isinstance(use["input"], dict) for use in uses):
                return "input must be an object"
            waiting = [use["id"] for use in uses]
            ids += waiting
    if waiting:
        return f"no answer to {waiting}"
    return "a call id occurs twice" if len(ids) != len(set(ids)) else None


# Looking at requests of either protocol


def told(request):
    """The texts of our side, in order, results of calls among them."""
    texts = []
    for message in request["messages"]:
        content = message["content"]
        if message["role"] in ("user", "tool"):
            blocks = [content] if isinstance(content, str) else [b.get("text") or b.get("content") for b in content]
            texts += blocks
    return texts


def results(request):
    """The answers to calls, in order."""
    found = []
    for message in request["messages"]:
        if message["role"] == "tool":
            found.append(message["content"])
        elif message["role"] == "user" and isinstance(message["content"], list):
            found += [block["content"] for block in message["content"] if block["type"] == "tool_result"]
    return found
