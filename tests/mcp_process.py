"""A real `taskwall mcp` over pipes, for tests."""

import contextlib
import json
import os
import re
import select
import subprocess
import sys

PATIENCE = 20


def clean_env(**more):
    kept = {k: v for k, v in os.environ.items() if not re.match("TASKWALL|CLAUDE|CODEX|GEMINI", k)}
    return kept | {k: str(v) for k, v in more.items()}


def run(folder, *words, input="", **env):
    """One `taskwall` command line: the finished process."""
    command = [sys.executable, "-m", "taskwall", *words]
    return subprocess.run(
        command, cwd=folder, input=input, capture_output=True, text=True, env=clean_env(**env), timeout=60
    )


class McpServer:
    """A server process. `ask` sends a request and returns its response; responses to others are kept."""

    def __init__(self, folder, *words, hello="opencode", version="2025-06-18", **env):
        command = [sys.executable, "-m", "taskwall", "mcp", *words]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self.process = subprocess.Popen(command, cwd=folder, env=clean_env(**env), **pipes)
        self.number, self.answers, self.rest = 0, {}, b""
        if hello:
            self.hello = self.ask("initialize", protocolVersion=version, capabilities={}, clientInfo={"name": hello})
            self.tell("notifications/initialized")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            with contextlib.suppress(BrokenPipeError):
                pipe.close()

    def send(self, data):
        text = data if isinstance(data, bytes) else json.dumps(data).encode()
        self.process.stdin.write(text + b"\n")
        self.process.stdin.flush()

    def tell(self, method, **params):
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def begin(self, method, **params):
        """Send a request without waiting; its id."""
        self.number += 1
        self.send({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
        return self.number

    def line(self):
        while b"\n" not in self.rest:
            ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE)
            assert ready, "no answer"
            more = os.read(self.process.stdout.fileno(), 65536)
            assert more, f"the server ended: {self.process.stderr.read()}"
            self.rest += more
        line, _, self.rest = self.rest.partition(b"\n")
        return json.loads(line)

    def answer(self, number):
        while number not in self.answers:
            found = self.line()
            self.answers[found["id"]] = found
        return self.answers.pop(number)

    def ask(self, method, **params):
        return self.answer(self.begin(method, **params))

    def call(self, tool, /, **arguments):
        """A tool's answer: (text, whether it is an error)."""
        return told(self.ask("tools/call", name=tool, arguments=arguments))

    def end(self, number=None):
        """End it by a signal, or by the end of its input: its exit status, and what else it printed."""
        self.process.send_signal(number) if number else self.process.stdin.close()
        status = self.process.wait(PATIENCE)
        return status, self.rest + self.process.stdout.read()


def told(response):
    result = response["result"]
    (block,) = result["content"]
    assert block["type"] == "text" and "structuredContent" not in result
    assert 0 < len(block["text"]) < 8000
    return block["text"], result["isError"]
