"""A board in a folder with `taskwall work` on it, both as people run them, and shell scripts as agents."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from taskwall.core.model import Actor
from taskwall.board import Board
from taskwall.stores.files.store import FileStore

OTHERS = ("TASKWALL", "CLAUDE", "CODEX", "GEMINI", "XDG_", "GIT_")
DONE = 'taskwall done "$TASKWALL_TASK" -m "done by $TASKWALL_SESSION"\n'


class Site:
    """`folder/.tasks`, and commands in that folder."""

    def __init__(self, folder):
        self.folder, self.board_path, self.started = folder, folder / ".tasks", []
        self.board_path.mkdir(parents=True)
        self.set()
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(OTHERS)}

    def set(self, *settings):
        (self.board_path / "board.toml").write_text("\n".join(['durability = "fast"', *settings]))

    def script(self, body, name="agent.sh"):
        """The path of an executable; what still runs one of that name keeps the text it began with."""
        path, fresh = self.folder.parent / name, self.folder.parent / f"{name}.new"
        fresh.write_text(f"#!/bin/sh\n{body}")
        fresh.chmod(0o755)
        fresh.replace(path)
        return str(path)

    def command(self, *words):
        return [sys.executable, "-m", "taskwall", *map(str, words)]

    def run(self, *words, status=0, **more):
        """What a command of a person prints."""
        done = subprocess.run(
            self.command(*words), cwd=self.folder, env=self.env, capture_output=True, text=True, timeout=60, **more
        )
        assert done.returncode == status, (words, done.stdout, done.stderr)
        return done.stdout

    def add(self, task_id, *words):
        self.run("add", f"task {task_id}", "--id", task_id, *words)
        return task_id

    def start(self, *words, agent=DONE, **more):
        """A worker as a process; agent: the body of its script, or a command."""
        command = [self.script(agent)] if isinstance(agent, str) else agent
        process = subprocess.Popen(
            self.command("work", *words, "--", *command),
            cwd=self.folder,
            env=self.env | more.pop("env", {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            **more,
        )
        self.started.append(process)
        return process

    def work(self, *words, status=0, **more):
        """What a worker printed until it ended."""
        process = self.start(*words, **more)
        out, _ = process.communicate(timeout=60)
        assert process.returncode == status, out
        return out

    def hear(self, process, words):
        """The next line of a worker that has these words."""
        return next(line for line in process.stdout if words in line)

    def board(self, name="other", session=None):
        return Board(FileStore(str(self.board_path)), Actor(name, session or name), root=str(self.folder))

    def task(self, task_id):
        return json.loads((self.board_path / f"{task_id}.json").read_text())

    def events(self, *verbs):
        return [event for event in self.board().store.events() if event["verb"] in verbs]

    def log(self):
        """What all agents have written."""
        return "".join(path.read_text() for path in sorted((self.board_path / ".local" / "runs").glob("*.log")))

    def close(self):
        for process in self.started:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGKILL)
            process.wait(10)
            process.stdout.close()


@pytest.fixture
def site(tmp_path):
    made = Site(tmp_path / "site")
    yield made
    made.close()


def until(condition, seconds=20, of=None):
    """Wait for a condition and return what it gave. of: a process whose end would make the wait vain."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "it never came"
        assert of is None or of.poll() is None, of.stdout.read()
        time.sleep(0.02)
    return found


def runs(pid):
    """Whether a process is alive and no zombie."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False
