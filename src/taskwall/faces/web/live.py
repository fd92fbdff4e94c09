"""What the board looks like now, and each change as it comes, for all pages that are open.

One thread looks at the board, and only while somebody does; a page gets the whole board once, then changed rows.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from ...board import Board
from ...core.errors import Refused
from ...envelope import dumps, refusal_envelope
from .rows import LONGEST_WAIT, TRY_AGAIN, Look, look, next_lapse

Message = dict[str, Any]

MOST_WAITING = 64
"""Messages that may wait for one page; a slower one is sent away and comes back for the whole board."""


class Page:
    """One open page: the loop that serves it, and what it has not been sent yet. None ends it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[Message | None] = asyncio.Queue()
        self.greeted = False

    def put(self, message: Message | None) -> None:
        """From any thread."""
        with suppress(RuntimeError):  # its loop is over
            self._loop.call_soon_threadsafe(self._put, message)

    def _put(self, message: Message | None) -> None:
        slow = self._queue.qsize() >= MOST_WAITING
        self._queue.put_nowait(None if slow else message)

    async def messages(self) -> AsyncIterator[Message]:
        """What comes, until the page is sent away."""
        while (message := await self._queue.get()) is not None:
            yield message


class Live:
    """open_board: the board for this thread alone. about: what every page is told of it."""

    def __init__(self, open_board: Callable[[], Board], about: Message) -> None:
        self._open, self._about = open_board, about
        self._pages: set[Page] = set()
        self._seen = Look()
        self._version = 0
        self._troubled = False
        self._woken = threading.Event()
        self._over = False
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Send every page away."""
        self._over = True
        self._woken.set()
        for page in list(self._pages):
            page.put(None)

    @asynccontextmanager
    async def page(self) -> AsyncIterator[Page]:
        """A page that is told of everything for as long as the block lasts."""
        page = Page()
        self._pages.add(page)
        self._woken.set()
        if self._over:
            page.put(None)
        try:
            yield page
        finally:
            self._pages.discard(page)

    def _run(self) -> None:
        try:
            board = self._open()
            watch = board.store.watch()
            while not self._over:
                self._woken.clear()
                if self._pages:
                    self._tell(self._look(board))
                    longest = TRY_AGAIN if self._troubled else LONGEST_WAIT
                    watch.wait(next_lapse(self._seen, _now(), longest), pause=self._woken.wait)
                else:
                    self._woken.wait()
        finally:
            self.stop()  # no page is to look live when nobody looks at the board any more

    def _look(self, board: Board) -> Message | None:
        """Read the board again: the message that says what changed, None when nothing did."""
        now = _now()
        try:
            seen = look(board.store.read(), board.actor, now, self._seen)
        except Refused as error:
            self._troubled = True
            return _message("trouble", refusal_envelope(error))
        before = self._seen.rows
        changed = [row for i, row in seen.rows.items() if before.get(i) != row]
        gone = [i for i in before if i not in seen.rows]
        self._seen = seen
        if not changed and not gone and not self._troubled:
            return None
        self._troubled = False
        self._version += 1
        return _message("change", {"version": self._version, "now": now, "tasks": changed, "gone": gone})

    def _tell(self, message: Message | None) -> None:
        pages = list(self._pages)
        new = [page for page in pages if not page.greeted]
        told = pages if self._troubled else [page for page in pages if page.greeted]
        for page in told if message else ():
            page.put(message)
        if new and not self._troubled:
            whole = self._whole()
            for page in new:
                page.greeted = True
                page.put(whole)

    def _whole(self) -> Message:
        rows = [*self._seen.rows.values()]
        return _message("board", {"version": self._version, "now": _now(), "about": self._about, "tasks": rows})


def _now() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def _message(event: str, data: Any) -> Message:
    return {"event": event, "data": dumps(data)}
