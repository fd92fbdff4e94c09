"""Agents and a planner as fresh processes of the shipped command line, killed -9 at random: the work gets done, once.

Run as a script, this file is one of them: `test_chaos.py agent|planner NAME LOG TTL PROGRAM…`. It uses the board that
the environment names, by `PROGRAM…` alone, and writes a JSON line into LOG for everything that was acknowledged to it.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict

import pytest

from taskwall.stores.files.store import FileStore

AGENTS, PLANNED = 4, 4
TTL = 0.015  # minutes


# What one process does


class Worker:
    def __init__(self, name, log, ttl, *program):
        self.name, self.ttl, self.program, self.random = name, ttl, program, random.Random(name)
        self.log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def run(self, *words, given=None):
        """What a command answered, None when it was refused."""
        command = [sys.executable, *self.program, *words, "--json"]
        done = subprocess.run(command, input=given, capture_output=True, text=True)
        return json.loads(done.stdout)["data"] if done.returncode == 0 else None

    def acknowledged(self, verb, token):
        os.write(self.log, f"{json.dumps([self.name, verb, token])}\n".encode())

    def agent(self):
        lease = ["--ttl", self.ttl] if self.ttl != "0" else []
        while True:
            if not (claimed := self.run("claim", *lease)):
                time.sleep(0.05)
                continue
            token = claimed["task"]["token"]
            self.acknowledged("claim", token)
            time.sleep(self.random.uniform(0, 0.15))  # the work itself
            if (done := self.run("done", token, "-m", f"{self.name} {token}")) and not done["already"]:
                self.acknowledged("done", token)

    def planner(self):
        for number in range(1_000_000):
            names = [f"plan-{self.name}-{number}-{part}" for part in range(PLANNED)]
            tasks = [
                {"id": name, "subject": name, "owner": "planner", "blockedBy": [first] if name != first else []}
                for first in names[:1]
                for name in names
            ]
            if self.run("plan", "-", given=json.dumps(tasks)):
                self.acknowledged("plan", names[0])
            if self.run("cancel", names[0], "--cascade"):
                self.acknowledged("cancel", names[0])
            time.sleep(0.1)


# The killing


class Chaos:
    """A board with processes at work on it. program: the command line that they use, if not the shipped one."""

    def __init__(self, folder, *program, tasks):
        self.folder, self.board, self.tasks = folder, folder / ".tasks", tasks
        self.sound, self.program = not program, program or ("-m", "taskwall")
        self.board.mkdir()
        (self.board / "board.toml").write_text("max_attempts = 1000\n")
        self.random, self.living, self.started, self.rounds = random.Random(7), {}, 0, 0
        self.kills, self.looks, self.orphans, self.bad = 0, 0, 0, []
        self.blockers = {}

    def env(self, name):
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("TASKWALL", "CLAUDE", "CODEX", "GEMINI"))}
        return clean | {"TASKWALL_ACTOR": name, "TASKWALL_SESSION": name, "TASKWALL_BOARD": str(self.board)}

    def person(self, *words, given=None):
        command = [sys.executable, "-m", "taskwall", *words]
        done = subprocess.run(command, input=given, env=self.env("user"), capture_output=True, text=True, timeout=60)
        assert done.returncode == 0 or not self.sound, (words, done.stderr)

    def add_round(self):
        """Dependent tasks, all in one transaction."""
        names = [f"r{self.rounds}-{number}" for number in range(self.tasks)]
        waits = {
            name: self.random.sample(names[:at], min(at, self.random.choice((0, 1, 2))))
            for at, name in enumerate(names)
        }
        plan = [{"id": name, "subject": name, "blockedBy": blockers} for name, blockers in waits.items()]
        self.person("plan", "-", given=json.dumps(plan))
        self.blockers |= waits
        self.rounds += 1

    def start(self, role):
        name, self.started = f"{role}{self.started}", self.started + 1
        # Every other agent claims by hand: its claims never lapse, and are given back when it is found dead.
        ttl = TTL if role == "agent" and self.started % 2 else 0
        command = [sys.executable, __file__, role, name, str(self.folder / "log"), str(ttl), *self.program]
        self.living[name] = subprocess.Popen(command, env=self.env(name), start_new_session=True)

    def kill(self, name):
        """Kill a process together with the command that it is waiting for."""
        process = self.living.pop(name)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(10)
        self.person("release", "--session", name)
        # Killed between the file of its claim and the ledger: owned by a session of which nothing is known.
        for task in FileStore(str(self.board)).read():
            if task.owner == name and task.status == "in_progress":
                self.orphans += 1
                self.person("claim", task.id, "--steal", "--reason", f"{name} is dead")
                self.person("release", task.id)

    def run(self, seconds, kills=0):
        """Let them work and kill them for so long and so often; then, on a sound board, let them finish."""
        until = time.monotonic() + seconds
        self.add_round()
        for role in ["agent"] * AGENTS + ["planner"]:
            self.start(role)
        with self.watching():
            while (time.monotonic() < until or self.kills < kills) and (self.sound or not self.faults()):
                time.sleep(self.random.uniform(0.05, 0.3))
                for name in self.random.sample(list(self.living), self.random.randint(1, 3)):
                    self.start(name.rstrip("0123456789"))
                    self.kill(name)
                    self.kills += 1
                if self.sound and not self.unfinished():
                    self.add_round()
            until = time.monotonic() + 60
            while self.sound and self.unfinished() and time.monotonic() < until:
                time.sleep(0.1)
        return self

    def close(self):
        for process in self.living.values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)

    def unfinished(self):
        return [i for i in self.blockers if self.file(i)["status"] != "completed"]

    def file(self, task_id):
        return json.loads((self.board / f"{task_id}.json").read_text())

    @contextlib.contextmanager
    def watching(self):
        """A reader that looks at the board all the time."""
        over = threading.Event()

        def look():
            while not over.is_set():
                self.bad += halves(FileStore(str(self.board)).read())
                self.looks += 1
                time.sleep(0.02)  # leaves the others something of the machine

        watcher = threading.Thread(target=look)
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join()

    # What is wrong

    def acknowledged(self):
        """By verb, the tokens of what was acknowledged, each with whom."""
        found = defaultdict(list)
        with contextlib.suppress(FileNotFoundError):
            for line in (self.folder / "log").read_text().splitlines():
                name, verb, token = json.loads(line)
                found[verb].append((token, name))
        return found

    def faults(self):
        """What no sound board shows, at any moment."""
        found, said, store = list(self.bad), self.acknowledged(), FileStore(str(self.board))
        found += [
            f"{token} was granted {n} times" for token, n in Counter(t for t, _ in said["claim"]).items() if n > 1
        ]
        done = Counter(token.partition("#")[0] for token, _ in said["done"])
        found += [f"{task} was done {n} times" for task, n in done.items() if n > 1]
        events = Counter(event["task"] for event in store.events() if event["verb"] == "complete")
        found += [f"{task} was completed {n} times in the log" for task, n in events.items() if n > 1]
        found += [f"{task} was done and is in no log" for task in done if not events[task]]
        return found

    def faults_at_the_end(self):
        """What is wrong when nothing runs any more: in the files themselves, without our reader."""
        self.person("add", "probe")
        found, said = self.faults(), self.acknowledged()
        files = {path.stem: json.loads(path.read_text()) for path in self.board.glob("*.json")}
        for name, blockers in self.blockers.items():
            task = files[name]
            if task["status"] != "completed" or task["result"] != f"{task['owner']} {name}#{task['epoch']}":
                found.append(f"not done, or not by who finished it: {task}")
                continue
            early = [
                b for b in blockers if not files[b].get("completedAt", "~") < task["startedAt"] < task["completedAt"]
            ]
            found += [f"{name} was begun before its blocker {blocker} was done" for blocker in early]
        for token, name in said["done"]:
            task = files[token.partition("#")[0]]
            if (task["owner"], f"{task['id']}#{task['epoch']}") != (name, token):
                found.append(f"{name} did {token}, but the file says {task}")
        for name in [token for token, _ in said["plan"]]:
            if name not in files:
                found.append(f"{name} was planned and is gone")
        found += [
            f"{name} was cancelled and is not" for name, _ in said["cancel"] if files[name]["status"] != "cancelled"
        ]
        silent = set(self.blockers) - {
            e["task"] for e in FileStore(str(self.board)).events() if e["verb"] == "complete"
        }
        if len(silent) > self.kills:  # a process killed between its change and the log of it leaves no event
            found.append(f"{len(silent)} completions without an event, {self.kills} kills")
        left = [
            path.name for path in (self.board / ".local").iterdir() if path.name == "journal" or path.suffix == ".tmp"
        ]
        return found + [f"left behind: {name}" for name in left]


def halves(view):
    """Plans of which a reader sees a part, or a part in another state than the rest; and files that are not whole."""
    plans = defaultdict(list)
    for task in view:
        if task.id.startswith("plan-"):
            plans[task.id.rpartition("-")[0]].append(task.status)
    found = [f"{plan}: {seen}" for plan, seen in plans.items() if len(seen) != PLANNED or len(set(seen)) != 1]
    return found + [str(task.flaw) for task in view if task.flaw]


@pytest.fixture
def chaos(tmp_path):
    """`chaos(program, tasks=60)`: a board and processes, all ended afterwards."""
    with contextlib.ExitStack() as stack:

        def start(*program, tasks=60):
            made = Chaos(tmp_path, *program, tasks=tasks)
            stack.callback(made.close)
            return made

        yield start


def report(figure, chaos, name, *, kills, looks):
    chaos.close()
    bad = chaos.faults_at_the_end()
    told = f"{len(chaos.blockers)} tasks, {chaos.orphans} claims without a ledger entry"
    figure(f"chaos{name}: kill -9 ({told})", tried=chaos.kills, bad=bad, at_least=kills)
    figure(f"chaos{name}: looks of a reader", tried=chaos.looks, bad=chaos.bad, at_least=looks)


@pytest.mark.slow
def test_agents_killed_at_random_do_every_task_once_quickly(chaos, figure):
    report(figure, chaos(tasks=10).run(2, kills=3), ", quick", kills=3, looks=10)


@pytest.mark.slow
def test_agents_killed_at_random_for_half_a_minute_do_every_task_once(chaos, figure):
    report(figure, chaos().run(30, kills=40), "", kills=40, looks=100)


SEEDED = {
    "no journal": """
from taskwall.stores.files.disk import write_all
from taskwall.stores.files.journal import Journal
def commit(self, writes, applied=bool):
    for write in writes:
        write_all(self.disk, [write], self.local, durable=True)
    return []
Journal.commit = commit
""",
    "no lock": """
import contextlib, os, time
from taskwall.stores.files import disk, lock as room, store
@contextlib.contextmanager
def lock(path, deadline=0):
    yield lambda: time.sleep(0.05) is None  # asked between the decision and the write: here a machine may be slow
def write_all(disk_, writes, scratch, *, durable):
    scratch = os.path.join(scratch, f"scratch-{os.getpid()}")
    os.makedirs(scratch, exist_ok=True)
    disk.write_all(disk_, writes, scratch, durable=durable)
room.lock, store.write_all = lock, write_all
""",
}


@pytest.mark.slow
@pytest.mark.parametrize("bug", ["no journal", pytest.param("no lock", marks=pytest.mark.slow)])
def test_chaos_finds_a_protocol_without_one_of_its_steps(chaos, tmp_path, bug):
    program = tmp_path / "seeded.py"
    program.write_text(SEEDED[bug] + "\nfrom taskwall.faces.cli.main import run\nrun()\n")
    found = chaos(str(program)).run(20).faults()
    assert found, "the detector sees nothing"


if __name__ == "__main__":
    role, *arguments = sys.argv[1:]
    getattr(Worker(*arguments), role)()
