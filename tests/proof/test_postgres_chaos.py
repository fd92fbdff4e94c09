"""Agents as processes, killed -9 at random, on a server that is restarted under them: the work gets done, once.

Run as a script, this file is one agent: `test_postgres_chaos.py URL NAME LOG [BUG]`. It writes a JSON line into LOG for
everything that was acknowledged to it. BUG: one of those below.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip("psycopg", reason="the extra `postgres` is not installed")

from crowd import no_locks_in_postgres

from taskwall import registry, verbs  # noqa: F401 - importing verbs registers them
from taskwall.board import Board
from taskwall.core.errors import Refused
from taskwall.core.model import Actor, Settings
from taskwall.stores.postgres.database import Address, Database, Session
from taskwall.stores.postgres.store import PostgresStore

RULES = Settings(max_attempts=100_000)
AGENTS = 4
TTL = 0.01  # minutes


def open_at(url, name):
    return Board(PostgresStore(Database(Address(url)), RULES), Actor(name, name))


class Agent:
    """What one process does."""

    def __init__(self, url, name, log):
        self.board, self.name, self.random = open_at(url, name), name, random.Random(name)
        self.log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def run(self, verb, **given):
        try:
            return registry.VERBS[verb].run(self.board, **given)
        except Refused:
            return None

    def acknowledged(self, verb, token):
        os.write(self.log, f"{json.dumps([self.name, verb, token])}\n".encode())

    def work(self):
        while True:
            if not (claimed := self.run("claim_task", ttl=TTL)):
                time.sleep(0.05)
                continue
            token = claimed.row.task.token
            self.acknowledged("claim", token)
            time.sleep(self.random.uniform(0, 0.1))  # the work itself
            if (done := self.run("complete_task", task_id=token, result=token)) and not done.already:
                self.acknowledged("done", token)


def kept_later():
    """The seeded bug: what is acknowledged is not yet on the server's disk."""
    script = Session.script
    Session.script = lambda self, text: script(self, text.replace("SET LOCAL", f"{LATER}; SET LOCAL"))


LATER = "SET LOCAL synchronous_commit = off"
BUGS = {"kept-later": kept_later, "no-lock": no_locks_in_postgres}


class Chaos:
    """A board on a server of its own, with agents at work on it."""

    def __init__(self, server, url, folder, tasks, *bug):
        from test_postgres_cuts import graph_of

        self.server, self.url, self.log, self.bug = server, url, folder / "log", bug
        self.random, self.living, self.started = random.Random(11), {}, 0
        self.kills = self.restarts = 0
        self.board = open_at(url, "user")
        self.board.store.make()
        self.waits, drafts = graph_of(tasks)
        self.board.create(drafts)

    def start(self):
        name, self.started = f"agent{self.started}", self.started + 1
        command = [sys.executable, __file__, self.url, name, str(self.log), *self.bug]
        self.living[name] = subprocess.Popen(command)

    def kill(self, name):
        process = self.living.pop(name)
        process.send_signal(signal.SIGKILL)
        process.wait(10)
        self.kills += 1

    def unfinished(self):
        return [task for task in self.board.store.read() if not task.closed]

    def run(self, restarts, seconds=120):
        """Kill agents, and restart the server, until everything is done; at least so many restarts."""
        until = time.monotonic() + seconds
        for _ in range(AGENTS):
            self.start()
        while (self.unfinished() or self.restarts < restarts) and time.monotonic() < until:
            time.sleep(self.random.uniform(0.2, 0.6))
            self.start()
            self.kill(self.random.choice(list(self.living)))
            if self.restarts < restarts and self.kills >= 3 * (self.restarts + 1):
                self.server.restart("fast" if self.restarts % 3 == 1 else "immediate")
                self.restarts += 1
        return self

    def close(self):
        for name in list(self.living):
            self.kill(name)

    def faults(self):
        from test_postgres_cuts import Host, faults

        hosts = {}
        with contextlib.suppress(FileNotFoundError):
            for line in self.log.read_text().splitlines():
                name, verb, token = json.loads(line)
                host = hosts.setdefault(name, Host(None, 0))
                (host.claimed if verb == "claim" else host.done).append(token)
        return faults(self.board.store, self.waits, list(hosts.values()))


def chaos(tmp_path, tasks, restarts, *bug, seconds=120):
    """How it went: kills, restarts, and what is wrong at the end."""
    from postgres import board_url, new_database, own_server

    server = own_server(f"chaos-{os.getpid()}")  # no other process of the run has to bear its restarts
    name = f"chaos{time.time_ns()}"
    played = Chaos(server, board_url("main", new_database(server.uri, name, migrated=True)), tmp_path, tasks, *bug)
    try:
        played.run(restarts, seconds)
    finally:
        played.close()
    return played.kills, played.restarts, played.faults()


@pytest.mark.slow
def test_agents_killed_on_a_server_that_is_restarted_do_every_task_once_quickly(tmp_path, figure):
    kills, restarts, bad = chaos(tmp_path, 20, 2)
    figure(f"chaos in PostgreSQL: kill -9, {restarts} restarts of the server, quick", tried=kills, bad=bad, at_least=6)


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS)
def test_chaos_finds_a_store_without_one_of_its_steps(tmp_path, bug):
    for attempt in range(3):  # of so few kills none need fall where it shows
        (place := tmp_path / str(attempt)).mkdir()
        found = chaos(place, 60, 4, bug, seconds=8)[-1]
        if [fault for fault in found if " is pending" not in fault]:
            return
    pytest.fail("the detector sees nothing")


@pytest.mark.skipif(not os.environ.get("TASKWALL_LONG"), reason="takes minutes: TASKWALL_LONG=1")
def test_agents_killed_on_a_server_that_is_restarted_do_every_task_once(tmp_path, figure):
    kills, restarts, bad = chaos(tmp_path, 1_000, 12, seconds=400)
    figure(f"chaos in PostgreSQL: kill -9, {restarts} restarts of the server", tried=kills, bad=bad, at_least=40)


if __name__ == "__main__":
    url, name, log, *bug = sys.argv[1:]
    if bug:
        BUGS[bug[0]]()
    Agent(url, name, log).work()
