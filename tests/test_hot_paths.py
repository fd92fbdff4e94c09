"""What agents call all day does the same work on a large board as on a small one.

Counted, not timed: the files that a command opens on the board, and the Python functions that it calls. Neither shakes
with the machine, so that a command that begins to look at everything is noticed on the day it does.
"""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from taskwall.faces.cli import main as cli
from taskwall.stores.files.folder import RACY_NS

sys.path.insert(0, str(Path(__file__).parent.parent / "bench"))

from boards import as_file, graph

SIZES = (300, 1_200, 3_600)
"""Small enough to look at every file's signature, then twice too large for that."""


class Cost(NamedTuple):
    opened: int
    calls: int


class Counter:
    """Counts for the length of a block. The hook that hears of opened files cannot be taken out again, only silenced."""

    def __init__(self):
        self.listening = None
        self.opened = self.calls = 0
        sys.addaudithook(self._hear)

    def _hear(self, event, args):
        if self.listening and event == "open" and isinstance(args[0], (str, bytes)):
            self.opened += os.fsdecode(args[0]).startswith(self.listening)

    def _called(self, frame, event, argument):
        self.calls += event == "call"

    def cost(self, folder, work) -> Cost:
        self.listening, self.opened, self.calls = str(folder), 0, 0
        sys.setprofile(self._called)
        try:
            work()
        finally:
            sys.setprofile(None)
            self.listening = None
        return Cost(self.opened, self.calls)


@pytest.fixture(scope="module")
def costs(tmp_path_factory):
    """`{command: [its cost at each of SIZES]}`, on boards at rest whose index has been made."""
    counter = Counter()
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(("TASKWALL", "CLAUDE", "CODEX", "GEMINI"))]:
            patch.delenv(name)
        folders = {size: tmp_path_factory.mktemp(f"board{size}") for size in SIZES}
        for size, folder in folders.items():
            write_board(folder, size)
        for size, folder in folders.items():
            wait_until_settled(folder)
            patch.chdir(folder)
            measured(counter, folder, size)  # imports and the index
            wait_until_settled(folder)
            for command, cost in measured(counter, folder, size).items():
                found.setdefault(command, []).append(cost)
    return found


def write_board(folder, size):
    (folder / ".tasks").mkdir()
    (folder / ".tasks/board.toml").write_text('durability = "fast"')
    for n, task in enumerate(graph(size)):
        (folder / ".tasks" / f"{task.id}.json").write_text(as_file(task, n))


def wait_until_settled(folder):
    """A file that changed this moment may change again without a new time stamp, and is looked at each time."""
    newest = max(path.stat().st_ctime_ns for path in (folder / ".tasks").glob("*.json"))
    while time.time_ns() < newest + 1.2 * RACY_NS:
        time.sleep(0.01)


def measured(counter, folder, size):
    done = {task.id for task in graph(size) if task.done}
    waiting = {task.parent for task in graph(size) if not task.done}
    one, two, *_ = (t.id for t in graph(size) if not t.done and done.issuperset(t.blockers) and t.id not in waiting)
    steps = {
        "next": ["next"], "list": ["list"], "show": ["show", one], "add": ["add", "one more", "-b", one],
        "claim ID": ["claim", one], "beat": ["beat", one], "release": ["release", one], "claim": ["claim"],
        "done": ["done", two], "reopen": ["reopen", two],
    }  # fmt: skip
    run("claim", two)
    found = {name: counter.cost(folder / ".tasks", lambda words=words: run(*words)) for name, words in steps.items()}
    for path in Path(".tasks").glob("*.json"):  # what `claim` without an id took
        if '"in_progress"' in path.read_text():
            run("release", path.stem)
    return found


def run(*words):
    assert cli.main(list(words)) == 0, words


pytestmark = pytest.mark.slow
COMMANDS = ("next", "list", "show", "add", "claim ID", "beat", "release", "claim", "done", "reopen")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_larger_board_opens_no_more_files(costs, command):
    small, *larger = (cost.opened for cost in costs[command])
    assert max(larger) <= small + 2, costs[command]
    assert small < 40


@pytest.mark.parametrize("command", COMMANDS)
def test_a_larger_board_takes_no_more_steps(costs, command):
    _, middle, large = (cost.calls for cost in costs[command])
    assert large <= middle * 1.1 + 500, costs[command]


START = """
import sys
calls = 0
def called(frame, event, argument):
    global calls
    calls += event == "call"
sys.setprofile(called)
from taskwall.faces.cli.main import main
main(sys.argv[1:])
sys.setprofile(None)
print("COUNTED", calls)
"""
MOST = {"next": 6_900, "list": 10_600, "show": 6_900}
"""Python functions that a whole command calls on a board with an index, imports included: a tenth more than it does."""


@pytest.mark.parametrize("command", MOST)
def test_a_command_that_looks_starts_in_few_steps(costs, tmp_path_factory, command):
    folder = next(tmp_path_factory.getbasetemp().glob(f"board{SIZES[-1]}*"))
    first = next(task.id for task in graph(SIZES[-1]) if not task.done)
    words = [command, *([first] if command == "show" else [])]
    env = {name: value for name, value in os.environ.items() if not name.startswith("TASKWALL")}
    env["PYTHONPATH"] = str(Path(__file__).parent.parent / "src")
    run = [sys.executable, "-S", "-c", START, *words]
    outputs = [subprocess.run(run, cwd=folder, env=env, capture_output=True, text=True).stdout for _ in range(2)]
    assert min(int(output.rpartition("COUNTED ")[2]) for output in outputs) <= MOST[command], "the second is compiled"
