"""A scripted model for demos and tests: an OpenAI-compatible endpoint on loopback that answers from a list of steps.

A step is an answer, or a function of the conversation so far that returns one: ids are random, so a script picks them
out of earlier results with `task_id`. An answer is made by `say`, `calls` or `fail`.
"""

from __future__ import annotations

import contextlib
import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Reply = dict[str, Any]
Step = Reply | Callable[[list[dict[str, Any]]], Reply]


def say(text: str | None, **fields: Any) -> Reply:
    """An answer in words."""
    return {"role": "assistant", "content": text, **fields}


def calls(*wanted: tuple[str, Any], **fields: Any) -> Reply:
    """An answer that calls tools: pairs of a name and arguments, which are encoded unless they are text."""
    made = [
        {
            "id": f"call_{number}",
            "type": "function",
            "function": {"name": name, "arguments": given if isinstance(given, str) else json.dumps(given)},
        }
        for number, (name, given) in enumerate(wanted)
    ]
    return {"role": "assistant", "content": None, "tool_calls": made, **fields}


def fail(status: int, message: str) -> Reply:
    """An error of the endpoint."""
    return {"status": status, "error": {"message": message}}


def task_id(messages: Sequence[dict[str, Any]], subject: str) -> str:
    """The id of the task of this subject, out of what the conversation says of it."""
    for message in reversed(messages):
        found = re.search(rf"\b(task_[0-9a-z]{{10}})(?:: | \(){re.escape(subject)}", str(message.get("content")))
        if found:
            return found[1]
    raise LookupError(f"no task {subject!r} in the conversation")


class ScriptedModel:
    """Serves each step once, in order, while the block lasts; `requests` holds what was asked."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.requests: list[dict[str, Any]] = []
        self._steps = iter(steps)
        self._turn = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True

    @property
    def url(self) -> str:
        """The base URL for a client."""
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> Self:
        # Looked at often, so that leaving the block does not wait.
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, body: dict[str, Any]) -> Reply:
        """The next step's answer to a request."""
        with self._turn:
            self.requests.append(body)
            step = next(self._steps, say("The script is over."))
        return step(body["messages"]) if callable(step) else step

    def respond(self, handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        """Answer a request over HTTP."""
        reply = self.answer(body)
        if "status" in reply:
            send(handler, reply["status"], {"error": reply["error"]})
        else:
            send(handler, 200, {"object": "chat.completion", "choices": [{"index": 0, "message": reply}]})

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        scripted = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                scripted.respond(self, json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        return Handler


def send(handler: BaseHTTPRequestHandler, status: int, body: Any, headers: Mapping[str, str] | None = None) -> None:
    """Send a response of JSON."""
    data = json.dumps(body).encode()
    handler.send_response(status)
    told = {"Content-Type": "application/json", "Content-Length": str(len(data)), **(headers or {})}
    for name, value in told.items():
        handler.send_header(name, value)
    with contextlib.suppress(ConnectionError):  # whoever asked may be gone
        handler.end_headers()
        handler.wfile.write(data)
