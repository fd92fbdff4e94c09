"""Other boards, given the same tasks in their own form: those that are here or can be had, the others with the reason.

Taskwarrior, Backlog.md, seeds and beads are run as their users run them; nothing of them is kept here.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import uuid
from pathlib import Path

from boards import CACHE, Task, cached, graph

HERE = Path(__file__).parent
NPM_SECONDS = 240


class Absent(Exception):
    """This rival cannot be measured here; the message says why."""


class Rival:
    """name; how its board of a size is made (`fill`), and its commands for what can be begun and for beginning it."""

    name = ""
    most = 10_000  # tasks; above, making or reading its board takes minutes

    def __init__(self) -> None:
        self.env = dict(os.environ)

    def board(self, size: int) -> Path:
        source = cached(f"{self.name}-{size}", lambda folder: self.fill(folder, graph(size)))
        target = CACHE / "work" / f"{self.name}-{size}"
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target, symlinks=True)
        return target

    def fill(self, folder: Path, tasks: list[Task]) -> None:
        raise NotImplementedError

    def next(self, folder: Path) -> list[str]:
        raise NotImplementedError

    def claim(self, folder: Path, task: Task, number: int) -> list[str] | None:
        """None where it has no such thing."""


class Naive(Rival):
    name, most = "naive scan", 100_000

    def fill(self, folder, tasks):
        from boards import as_file

        for n, task in enumerate(tasks):
            (folder / f"{task.id}.json").write_text(as_file(task, n))

    def next(self, folder):
        return [sys.executable, str(HERE / "naive.py"), "next", str(folder)]

    def claim(self, folder, task, number):
        return [sys.executable, str(HERE / "naive.py"), "claim", str(folder), task.id]


class Taskwarrior(Rival):
    name = "Taskwarrior"

    def __init__(self):
        super().__init__()
        if not shutil.which("task"):
            raise Absent("`task` is not installed (Debian: taskwarrior)")

    def words(self, folder, *more):
        return ["task", f"rc:{folder}/rc", f"rc.data.location:{folder}", *more]

    def fill(self, folder, tasks):
        (folder / "rc").write_text("confirmation=off\nverbose=nothing\nrecurrence=off\n")
        known = {task.id: str(uuid.uuid5(uuid.NAMESPACE_URL, task.id)) for task in tasks}
        moment = "20260922T120000Z"
        told = [
            {"uuid": known[t.id], "description": t.subject, "entry": moment, "priority": "HMMLL"[t.priority],
             "depends": [known[i] for i in t.blockers]}
            | ({"status": "completed", "end": moment} if t.done else {"status": "pending"})
            for t in tasks
        ]  # fmt: skip
        subprocess.run(self.words(folder, "import", "-"), input=json.dumps(told).encode(), check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=300)  # fmt: skip
        subprocess.run(self.words(folder, "ready", "limit:3"), stdout=subprocess.DEVNULL, check=True)

    def next(self, folder):
        return self.words(folder, "ready", "limit:3")

    def claim(self, folder, task, number):
        return self.words(folder, str(uuid.uuid5(uuid.NAMESPACE_URL, task.id)), "start")


def from_npm(*packages: str) -> str:
    """The folder of commands of these npm packages, installed into the cache."""
    if not shutil.which("npm"):
        raise Absent("npm is not installed")
    folder = CACHE / "npm" / packages[0].replace("/", "-")
    commands = folder / "node_modules" / ".bin"
    if not commands.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        try:
            done = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--prefix", folder, *packages],
                                  capture_output=True, text=True, timeout=NPM_SECONDS)  # fmt: skip
        except subprocess.TimeoutExpired:
            raise Absent(f"npm did not install {packages[0]} in {NPM_SECONDS} s") from None
        if done.returncode:
            shutil.rmtree(folder, ignore_errors=True)
            told = [
                line
                for line in done.stderr.splitlines()
                if "rror" in line and "code" not in line and "path" not in line
            ]
            why = next(
                (line for line in told if "ENOTFOUND" in line or "404" in line), (told or ["no reason told"])[-1]
            )
            raise Absent(f"npm cannot install {packages[0]}: {why.removeprefix('npm error ')}")
    return str(commands)


class Backlog(Rival):
    name = "Backlog.md"

    def __init__(self):
        super().__init__()
        self.env["PATH"] = f"{from_npm('backlog.md')}{os.pathsep}{self.env['PATH']}"

    def fill(self, folder, tasks):
        run = {
            "cwd": folder,
            "env": self.env,
            "check": True,
            "stdout": subprocess.DEVNULL,
            "stderr": subprocess.DEVNULL,
        }
        subprocess.run(["git", "init", "-q", "."], **run)
        subprocess.run(["backlog", "init", "bench", "--defaults", "--agent-instructions", "none"], **run)
        subprocess.run(["backlog", "config", "set", "remoteOperations", "false"], **run)
        number = {task.id: n + 1 for n, task in enumerate(tasks)}
        for task in tasks:
            n = number[task.id]
            head = {
                "id": f"TASK-{n}", "title": task.subject, "status": "Done" if task.done else "To Do", "assignee": "[]",
                "created_date": "'2026-09-22 12:00'", "labels": "[]",
                "dependencies": json.dumps([f"TASK-{number[i]}" for i in task.blockers]),
                "priority": ("high", "high", "medium", "low", "low")[task.priority],
            }  # fmt: skip
            lines = "\n".join(f"{key}: {value}" for key, value in head.items())
            (folder / f"backlog/tasks/task-{n} - {task.subject.replace(' ', '-')}.md").write_text(
                f"---\n{lines}\n---\n"
            )

    def next(self, folder):
        return ["backlog", "task", "list", "--ready", "--limit", "3", "--plain"]

    def claim(self, folder, task, number):
        return ["backlog", "task", "edit", f"TASK-{number}", "-s", "In Progress", "-a", "bench", "--plain"]


class Seeds(Rival):
    name, most = "seeds-cli", 100_000

    def __init__(self):
        super().__init__()
        self.env["PATH"] = f"{from_npm('@os-eco/seeds-cli', 'bun')}{os.pathsep}{self.env['PATH']}"
        if subprocess.run(["sd", "--version"], env=self.env, capture_output=True).returncode:
            raise Absent("it needs bun, which does not run here")

    def fill(self, folder, tasks):
        run = {"cwd": folder, "env": self.env, "check": True, "stdout": subprocess.DEVNULL}
        subprocess.run(["git", "init", "-q", "."], **run)
        subprocess.run(["sd", "init"], **run)
        names = {task.id: f"sd-{n:05x}" for n, task in enumerate(tasks)}
        with open(folder / ".seeds/issues.jsonl", "w") as file:
            for task in tasks:
                told = {"id": names[task.id], "title": task.subject, "status": "closed" if task.done else "open",
                        "type": "task", "priority": task.priority, "createdAt": "2026-09-22T12:00:00.000Z",
                        "updatedAt": "2026-09-22T12:00:00.000Z", "blockedBy": [names[i] for i in task.blockers]}  # fmt: skip
                file.write(json.dumps(told) + "\n")

    def next(self, folder):
        return ["sd", "ready", "--limit", "3"]

    def claim(self, folder, task, number):
        return ["sd", "update", f"sd-{number - 1:05x}", "--status", "in_progress"]


class Beads(Rival):
    name = "beads"

    def __init__(self):
        super().__init__()
        self.env["PATH"] = f"{from_npm('@beads/bd')}{os.pathsep}{self.env['PATH']}"

    def fill(self, folder, tasks):
        raise Absent("its board would have to be filled by its own import, which was never tried")


def all_rivals() -> tuple[list[Rival], dict[str, str]]:
    """Those that can be measured, and why the others cannot."""
    found, absent = [], {}
    for kind in (Naive, Taskwarrior, Seeds, Backlog, Beads):
        try:
            found.append(kind())
        except Absent as why:
            absent[kind.name] = str(why)
    return found, absent


def python_with(*packages: str) -> tuple[str, list[str]]:
    """A Python of the bench's own that has what of these can be installed, and what cannot."""
    folder = CACHE / "venv"
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    missing = [
        name for name in packages
        if subprocess.run([python, "-c", f"import {name.partition('[')[0]}"], capture_output=True).returncode
        and subprocess.run([python, "-m", "pip", "install", "-q", name], capture_output=True, timeout=120).returncode
    ]  # fmt: skip
    return str(python), missing


if __name__ == "__main__":
    began = time.monotonic()
    print([rival.name for rival in all_rivals()[0]], all_rivals()[1], f"{time.monotonic() - began:.1f} s")
