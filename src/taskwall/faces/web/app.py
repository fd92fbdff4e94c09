"""The routes: the page, its live events, and the verbs. Who acts is the server's actor, whatever a request says."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

from sse_starlette import EventSourceResponse
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from ... import registry, verbs  # noqa: F401 - importing verbs registers them
from ...board import Board
from ...core.actions import legal_actions
from ...core.errors import Invalid, ReadOnly, Refused
from ...envelope import dumps, envelope, refusal_envelope
from ...registry import VERBS
from .lanes import lanes
from .live import Live
from .metrics import MEDIA_TYPE, metrics
from .openapi import description
from .runs import tail
from .security import MAX_BODY, Guard

STATIC = os.path.join(os.path.dirname(__file__), "static")
STATUSES = {
    "invalid": 400,
    "read_only": 403,
    **dict.fromkeys(("unknown_task", "ambiguous_id"), 404),
    **dict.fromkeys(("locked", "unwritable"), 503),
}
"""The HTTP status of a refusal; every other one is a conflict with the board as it is."""
READERS, WRITERS = 2, 4
WEEK = 7
"""Days that lanes reach back."""
PING = 15
"""Seconds after which a silent stream says that it lives."""


class Clerks:
    """Threads, each with a board of its own, for a store belongs to one thread; as many as are busy at once."""

    def __init__(self, open_board: Callable[[], Board], most: int) -> None:
        self._open = open_board
        self._own = threading.local()
        self._threads = ThreadPoolExecutor(most)

    async def run(self, job: Callable[[Board], Any]) -> Response:
        """Do this with the board, and answer with its response, or with its JSON. Raises Refused."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._answer, job)

    def _answer(self, job: Callable[[Board], Any]) -> Response:
        if not hasattr(self._own, "board"):
            self._own.board = self._open()
        answer = job(self._own.board)
        return answer if isinstance(answer, Response) else _json(answer)


class Wall:
    """The application on one board. local: where its runs are logged. writable: whether it may change anything."""

    def __init__(self, open_board: Callable[[], Board], path: str, local: str, *, writable: bool) -> None:
        board = open_board()
        person = board.store.settings.is_person(board.actor.name)
        about = {"board": path, "actor": board.actor.name, "person": person, "writable": writable}
        self._live = Live(open_board, about)
        # Apart, so that a write that waits for the lock, or for what it verifies, does not keep a read.
        self._reads, self._writes = Clerks(open_board, READERS), Clerks(open_board, WRITERS)
        self._runs, self._writable = os.path.join(local, "runs"), writable

    def app(self, token: str, *, remote: bool = False, name: str = "") -> Guard:
        """The guarded ASGI application."""
        routes = [
            Route("/api/events", self._events),
            Route("/api/verbs/{name}", self._verb, methods=["POST"]),
            Route("/api/verbs/{name}", self._no_post, methods=["DELETE", "GET", "PATCH", "PUT"]),
            Route("/api/actions", self._actions),
            Route("/api/lanes", self._lanes),
            Route("/api/log", self._log),
            Route("/api/openapi.json", self._openapi),
            Route("/metrics", self._metrics),
            Mount("/", StaticFiles(directory=STATIC, html=True)),
        ]
        inner = Starlette(routes=routes, lifespan=self._lifespan, exception_handlers={Refused: _refused})
        return Guard(inner, token, remote, name)

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        self._live.start()
        yield
        self._live.stop()

    async def _events(self, _: Request) -> Response:
        async def stream() -> AsyncIterator[dict[str, Any]]:
            async with self._live.page() as page:
                async for message in page.messages():
                    yield message

        return EventSourceResponse(stream(), ping=PING)

    async def _verb(self, request: Request) -> Response:
        """Any verb, with the arguments that it takes as a JSON object."""
        name = request.path_params["name"]
        verb = VERBS.get(name)
        arguments = await _body(request)

        def run(board: Board) -> Any:
            if verb and verb.writes and not self._writable:
                raise ReadOnly("this page was opened for reading only", next="`taskwall web` without --read-only acts")
            return envelope(registry.call(board, name, arguments))

        return await (self._writes if verb and verb.writes else self._reads).run(run)

    async def _no_post(self, request: Request) -> Response:
        """A verb that is asked for in another way than it is called."""
        name = request.path_params["name"]
        if name not in VERBS:
            return _json(refusal_envelope(Invalid(f"no verb {name!r}", next="/api/openapi.json names them")), 404)
        way = "POST its arguments as one JSON object, with the header Content-Type: application/json"
        told = _json(refusal_envelope(Invalid(f"{name} is called by POST, not by {request.method}", next=way)), 405)
        told.headers["Allow"] = "POST"
        return told

    async def _actions(self, request: Request) -> Response:
        """What this actor may do with `task` now; nothing on a page for reading."""
        name = request.query_params.get("task", "")

        def run(board: Board) -> Any:
            view = board.store.read()
            legal = legal_actions(view, view.find(name), board.actor) if self._writable else ()
            return _ok({"task": name, "actions": list(legal)})

        return await self._reads.run(run)

    async def _lanes(self, _: Request) -> Response:
        return await self._reads.run(lambda board: _ok({"lanes": lanes(board.lately(WEEK), board.store.read())}))

    async def _log(self, request: Request) -> Response:
        session = request.query_params.get("session", "")
        return await self._reads.run(lambda _: _ok({"session": session, "lines": tail(self._runs, session)}))

    async def _metrics(self, _: Request) -> Response:
        def scrape(board: Board) -> Response:
            try:
                told = metrics(board.fleet())
            except Refused:
                told = metrics(None)
            # What a host calls itself is read from a file, and need not be valid text.
            return Response(told.encode(errors="replace"), media_type=MEDIA_TYPE)

        return await self._reads.run(scrape)

    async def _openapi(self, _: Request) -> Response:
        return _json(description())


async def _refused(_: Request, error: Any) -> Response:
    return _json(refusal_envelope(error), STATUSES.get(error.code, 409))


async def _body(request: Request) -> str:
    """The text of a request. Raises Invalid when it does not say that it is JSON, or when it is too long."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    if kind != "application/json":
        told = f"the request says that it is {kind[:80]!r}" if kind else "the request does not say what it is"
        raise Invalid(f"{told}; it must be JSON", next="send the header Content-Type: application/json")
    data = b""
    async for chunk in request.stream():
        data += chunk
        if len(data) > MAX_BODY:
            way = "say less in one request: long text belongs into a file that the task names"
            raise Invalid(f"a request has at most {MAX_BODY} bytes, and this one is longer", next=way)
    return data.decode("utf-8", "replace")


def _ok(data: dict[str, Any]) -> dict[str, Any]:
    return {"v": 1, "ok": True, "data": data}


def _json(value: Any, status: int = 200) -> Response:
    return Response(dumps(value), status, media_type="application/json")
