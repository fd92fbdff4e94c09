"""A real `taskwall web` on a free port, for tests: its link, and a client that has its token."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import subprocess
import sys
import threading

import httpx2
from mcp_process import clean_env

PATIENCE = 20


class Wall:
    """A server process on the board in `folder`. `ask` calls a verb; `stream` reads events until told to stop."""

    def __init__(self, folder, *words, port=("--port", "0"), **env):
        command = [sys.executable, "-m", "taskwall", "--board", str(folder), "web", "--json", *port, *words]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self.process = subprocess.Popen(command, cwd=folder, env=clean_env(**env), text=True, **pipes)
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read()
        self.served = json.loads(line)["data"]
        self.link = self.served["url"]
        self.origin, token = re.fullmatch(r"(http://.*)/#token=(.*)", self.link).groups()
        self.token = env.get(token.removeprefix("$"), token)
        self.port = int(self.origin.rpartition(":")[2])
        self.bare = httpx2.Client(base_url=self.origin, timeout=PATIENCE)
        self.client = httpx2.Client(
            base_url=self.origin, timeout=PATIENCE, headers={"Authorization": f"Bearer {self.token}"}
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.bare.close()
        self.client.close()
        self.process.kill()
        self.process.communicate()

    def ask(self, verb, **arguments):
        """The response to a verb."""
        return self.client.post(f"/api/verbs/{verb}", json=arguments)

    def get(self, path, **query):
        return self.client.get(f"/api/{path}", params=query).json()["data"]

    @contextlib.contextmanager
    def stream(self):
        """An iterator of (event, data, size in bytes); closed from outside when nothing comes for too long."""
        with self.client.stream("GET", "/api/events", timeout=PATIENCE) as response:
            assert response.status_code == 200
            late = threading.Timer(PATIENCE, self.process.kill)
            late.start()
            try:
                yield events(response.iter_lines())
            finally:
                late.cancel()


class Wire:
    """A port that leads to a wall and can be cut. Boards are reached through such things: tunnels, forwarded ports."""

    def __init__(self, port):
        self._to, self._open = port, []
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self.whole = True
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self):
        """Break every connection, and take no new one until it is `mend`ed."""
        self.whole = False
        for end in self._open:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        self._open.clear()

    def mend(self):
        self.whole = True

    def _accept(self):
        while True:
            near, _ = self._server.accept()
            if not self.whole:
                near.close()
                continue
            far = socket.create_connection(("127.0.0.1", self._to))
            self._open += [near, far]
            for ends in ((near, far), (far, near)):
                threading.Thread(target=self._carry, args=ends, daemon=True).start()

    @staticmethod
    def _carry(source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)


def events(lines):
    name = None
    for line in lines:
        key, _, value = line.partition(": ")
        if key == "event":
            name = value
        elif key == "data" and name:
            yield name, json.loads(value), len(value.encode())


def rows_of(told):
    return {row["id"]: row for row in told["tasks"]}
