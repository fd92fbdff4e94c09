"""Kill points of the shipped command line: fresh processes, killed by `strace` at every system call they make on a board.

Each runs the interpreter itself, because a shim forks and eats the count. A change is wholly there or wholly not, whatever
was acknowledged before is kept, every file is whole, and the next command works.
"""

from __future__ import annotations

import itertools
import json
import os
import platform
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pytest

from taskwall.core.model import stored
from taskwall.stores.files.store import FileStore

CALLS = {
    # a command may spell a call in several ways; those that a machine does not have are left out by the question mark
    "rename": "?rename,renameat,?renameat2",
    "link": "?link,linkat",
    "unlink": "?unlink,unlinkat",
    "fsync": "fsync,?fdatasync",
    "write": "write,pwrite64",
    "openat": "?open,openat",
    "flock": "flock",
    "close": "close",
}
STEPS = {"openat": 3, "close": 3, "unlink": 2}
"""Of the calls that come in crowds, every so many are tried."""

PLAN = "a: first of three\nb: second <- a\nc: third <- b\n"


class Scene(NamedTuple):
    """A command on a board that these others made. again: repeating it after it was kept changes nothing."""

    words: tuple[str, ...]
    before: tuple[tuple[str, ...], ...] = ()
    again: bool = True


READY = (
    ("add", "kept", "--id", "t"),
    ("add", "after", "--id", "u", "-b", "t"),
    ("add", "last", "--id", "v", "-b", "u"),
)
CLAIMED = (*READY, ("claim", "t"))
SCENES = {
    "add": Scene(("add", "new", "--id", "n", "--key", "k"), READY),
    "plan": Scene(("plan", "{plan}"), READY, again=False),
    "claim": Scene(("claim", "t", "--ttl", "5"), READY),
    "done": Scene(("done", "t", "-m", "result"), CLAIMED),
    "release": Scene(("release", "t", "--reason", "why"), CLAIMED),
    "ask": Scene(("ask", "t", "which?"), CLAIMED, again=False),
    "cancel": Scene(("cancel", "t", "--cascade"), READY),
}


# A board, and what stands on it


class Stage:
    """One folder with a board that is set up again and again."""

    def __init__(self, folder, scene, program=("-m", "taskwall")):
        self.folder, self.board, self.template = folder, folder / ".tasks", folder / "template"
        self.program = [sys.executable, *program]
        self.words = [word.format(plan=folder / "plan.txt") for word in scene.words]
        self.board.mkdir(parents=True)
        (folder / "plan.txt").write_text(PLAN)
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("TASKWALL", "CLAUDE", "CODEX", "GEMINI"))}
        self.env |= {"TASKWALL_ACTOR": "agent", "TASKWALL_BOARD": str(self.board), "PYTHONDONTWRITEBYTECODE": "1"}
        for words in scene.before:
            assert self.run(*words).returncode == 0
        self.board.rename(self.template)
        self.set_up()
        self.before = self.state()
        assert self.run(*self.words).returncode == 0
        self.after = self.state()
        assert self.before != self.after

    def set_up(self):
        shutil.rmtree(self.board, ignore_errors=True)
        shutil.copytree(self.template, self.board)

    def run(self, *words, trace=()):
        command = [*trace, *self.program, *words]
        return subprocess.run(command, capture_output=True, text=True, env=self.env, cwd=self.folder, timeout=60)

    def state(self):
        """What the task files say, read without taskwall. Raises on one that is not whole."""
        return stood([json.loads(path.read_text()) for path in self.board.glob("*.json")])

    def seen(self):
        """What a reader of taskwall is shown."""
        return stood([stored(task) for task in FileStore(str(self.board)).read()])

    def traced(self, call, number):
        """Run the command and kill it before this call on the board; whether it came to that."""
        local = self.board / ".local"
        names = ("lock", "lock.next", "journal", "serial", "events.jsonl", "claims", ".gitignore", "claims/t.json")
        parts = [local / f"part-{n}.tmp" for n in range(8)]
        tasks = [self.board / path.name for path in self.template.glob("*.json")]
        on_board = [f"-P{path}" for path in (self.board, local, *(local / name for name in names), *parts, *tasks)]
        kill = ["-e", f"trace={CALLS[call]}", "-e", f"inject={CALLS[call]}:signal=KILL:when={number}"]
        ran = self.run(*self.words, trace=["strace", "-f", "-qq", "-o", os.devnull, *on_board, *kill])
        assert ran.returncode in (0, -9), ran.stderr
        return ran.returncode == -9


def stood(tasks):
    """The tasks of a board without what differs from run to run: random ids are replaced by subjects."""
    names = {task["id"]: task["subject"] for task in tasks}
    assert len(names) == len(tasks)
    return {
        task["subject"]: (
            *(task.get(key) for key in ("status", "owner", "epoch", "result", "question", "key")),
            [names[i] for i in task["blockedBy"]],
            [note["text"] for note in task.get("notes", ())],
        )
        for task in tasks
    }


def faults(stage, scene):
    """What is wrong on a board whose last command was killed."""
    shown = stage.seen()
    if shown not in (stage.before, stage.after):
        return f"a reader sees half of a change: {shown}"
    probe = stage.run("add", "probe", "--id", "probe")
    if probe.returncode:
        return f"the next command fails: {probe.stderr}"
    state = stage.state()
    state.pop("probe")
    if state not in (stage.before, stage.after):
        return f"half of a change: {state}"
    if state != shown:
        return f"a reader saw {shown}, and the next writer left {state}"
    left = {path.name for path in (stage.board / ".local").iterdir()} & {"journal", "part-0.tmp", "part-1.tmp"}
    if left:
        return f"left behind: {left}"
    if scene.again or state == stage.before:
        again = stage.run(*stage.words)
        state = stage.state()
        state.pop("probe")
        if again.returncode or state != stage.after:
            return f"repeated, it ends with {again.returncode} {again.stderr}: {state}"
    return None


def kill_everywhere(stage, scene, calls):
    """Kill a command at each of its calls; how many kills there were, and what was wrong after them."""
    tried, bad = 0, []
    for call in calls:
        for number in itertools.count(1, STEPS.get(call, 1)):
            stage.set_up()
            if not stage.traced(call, number):
                break
            tried += 1
            if fault := faults(stage, scene):
                bad.append(f"{' '.join(scene.words)} killed at {call} {number}: {fault}")
    return tried, bad


# strace


@pytest.fixture(scope="session")
def strace():
    """Skips where system calls cannot be traced, with the reason; as root, a missing strace is installed."""
    if platform.system() != "Linux":
        pytest.skip(f"strace is a program of Linux, this is {platform.system()}")
    if not shutil.which("strace") and os.geteuid() == 0 and shutil.which("apt-get"):
        subprocess.run(["apt-get", "install", "-y", "-q", "strace"], capture_output=True, timeout=120, check=False)
    if not shutil.which("strace"):
        pytest.skip("strace is not installed (apt-get install strace)")
    works = subprocess.run(
        ["strace", "-f", "-o", os.devnull, "-e", "inject=openat:signal=KILL:when=1", sys.executable, "-c", ""],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    if works.returncode != -9:
        pytest.skip(f"strace cannot trace here: {works.stderr.strip()[:200]}")


@pytest.mark.usefixtures("strace")
def test_a_command_killed_at_its_renames_is_all_or_nothing(tmp_path, figure):
    scene = SCENES["done"]
    tried, bad = kill_everywhere(Stage(tmp_path / "s", scene), scene, ["rename"])
    figure("kill points, shipped CLI, quick", tried=tried, bad=bad, at_least=2)


@pytest.mark.slow
@pytest.mark.usefixtures("strace")
def test_a_command_killed_at_any_call_is_all_or_nothing(tmp_path, figure):
    with ThreadPoolExecutor(3) as pool:
        runs = {
            n: pool.submit(lambda n, s: kill_everywhere(Stage(tmp_path / n, s), s, CALLS), n, s)
            for n, s in SCENES.items()
        }
    found = {name: run.result() for name, run in runs.items()}
    assert min(tried for tried, _ in found.values()) >= 10, found
    bad = [fault for _, faults in found.values() for fault in faults]
    figure("kill points, shipped CLI", tried=sum(tried for tried, _ in found.values()), bad=bad, at_least=60)


# The seeded bugs: the same command line with one step of the protocol taken out

NO_JOURNAL = """
from taskwall.stores.files.disk import write_all
from taskwall.stores.files.journal import Journal
def commit(self, writes, applied=bool):
    for write in writes:
        write_all(self.disk, [write], self.local, durable=True)
    return []
Journal.commit = commit
"""
NO_PARTS = """
from taskwall.stores.files import disk
def write_all(disk, writes, scratch, *, durable):
    for write in writes:
        with open(write.path, "wb", buffering=0) as file:
            file.write(write.text.encode()[:9])
            file.write(write.text.encode()[9:])
from taskwall.stores.files import store
store.write_all = write_all
"""
RUN = "\nfrom taskwall.faces.cli.main import run\nrun()\n"


@pytest.mark.slow
@pytest.mark.usefixtures("strace")
@pytest.mark.parametrize(
    ("bug", "name", "call"),
    [
        pytest.param(NO_JOURNAL, "cancel", "rename", id="no journal"),
        pytest.param(NO_PARTS, "done", "write", id="written in place", marks=pytest.mark.slow),
    ],
)
def test_a_protocol_without_one_of_its_steps_is_found_out(tmp_path, bug, name, call):
    program = tmp_path / "seeded.py"
    program.write_text(bug + RUN)
    scene = SCENES[name]
    stage = Stage(tmp_path / "s", scene, program=(str(program),))
    found = []
    for number in range(1, 5):
        stage.set_up()
        if stage.traced(call, number):
            stage.program = [sys.executable, "-m", "taskwall"]
            found.append(faults(stage, scene))
            stage.program = [sys.executable, str(program)]
    assert any(found), "the detector sees nothing"
