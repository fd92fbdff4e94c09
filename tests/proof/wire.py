"""A wire between clients and a PostgreSQL server that can be cut: all of it, or exactly while a change is being kept."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import tempfile
import threading
from urllib.parse import parse_qs, quote, urlsplit

import pytest

BEFORE, AFTER, MEANWHILE = "before the server hears of it", "after the server did it", "while nobody knows"
CUTS = (BEFORE, AFTER, MEANWHILE)


class Wire:
    """Listens in a folder of its own; `url` leads through it to the same database.

    armed: where the next COMMIT of a transaction that changed something is cut, once. exchanges: how often a client has
    asked for answers.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        if "host" not in (given := parse_qs(parts.query)):
            pytest.skip("the server named is not on a socket of this machine")
        self._server = os.path.join(given["host"][0], ".s.PGSQL.5432")
        self._folder = tempfile.mkdtemp(prefix="twwire-")
        self.url = parts._replace(query=f"host={quote(self._folder, safe='')}").geturl()
        self.armed, self.cuts, self.down = "", 0, False
        self.exchanges = 0
        self._pairs: set[tuple[socket.socket, socket.socket]] = set()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(os.path.join(self._folder, ".s.PGSQL.5432"))
        self._listener.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                try:
                    if self.down:
                        raise OSError
                    server.connect(self._server)
                except OSError:
                    client.close()
                    server.close()
                    continue
                pair = (client, server)
                self._pairs.add(pair)
                for work in (self._ask, self._answer):
                    threading.Thread(target=self._until_cut, args=(work, pair), daemon=True).start()

    def _until_cut(self, work, pair) -> None:
        with contextlib.suppress(OSError, _Cut):
            work(*pair)
        self._cut(pair)

    def _cut(self, pair) -> None:
        for end in pair:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        self._pairs.discard(pair)

    def cut_all(self) -> None:
        """Cut what is open now."""
        for pair in list(self._pairs):
            self.cuts += 1
            self._cut(pair)

    def close(self) -> None:
        self._listener.close()
        self.cut_all()

    def _answer(self, client, server) -> None:
        while data := server.recv(65536):
            client.sendall(data)

    def _ask(self, client, server) -> None:
        """Pass on message by message what a client says."""
        names: dict[bytes, bytes] = {}
        changed, first = False, True
        file = client.makefile("rb")
        while head := file.read(4 if first else 5):
            body = file.read(struct.unpack("!i", head[-4:])[0] - 4)
            self.exchanges += not first and head[:1] in (b"Q", b"S")
            text = b"" if first else _text(head[:1], body, names)
            first = False
            changed = changed or b"INTO taskwall.events" in text
            if text == b"COMMIT" and head[:1] != b"P":  # a Parse alone does nothing yet
                if changed and self.armed:
                    where, self.armed = self.armed, ""
                    self.cuts += 1
                    self._cut_commit(where, head + body, client, server)
                changed = False
            server.sendall(head + body)

    def _cut_commit(self, where: str, message: bytes, client, server) -> None:
        if where != BEFORE:
            client.shutdown(socket.SHUT_WR if where == AFTER else socket.SHUT_RDWR)
            # A statement of the extended protocol is carried out at the next Execute and Sync.
            extended = b"" if message[:1] == b"Q" else b"E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04"
            server.sendall(message + extended)
            if where == AFTER:
                server.settimeout(0.3)
                with contextlib.suppress(TimeoutError):
                    while server.recv(65536):
                        pass
        raise _Cut


class _Cut(Exception):
    pass


def _text(kind: bytes, body: bytes, names: dict[bytes, bytes]) -> bytes:
    """The statement that a message is about."""
    if kind == b"Q":
        return body.rstrip(b"\0")
    if kind == b"P":
        name, text = body.split(b"\0", 2)[:2]
        names[name] = text
        return text
    return names.get(body.split(b"\0", 2)[1], b"") if kind == b"B" else b""
