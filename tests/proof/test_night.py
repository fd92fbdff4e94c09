"""A night of sixty dependent tasks: agents crash, hang and lie, workers are killed -9 and restarted; each is done once.

The agents are shell scripts, eight at a time under two workers. What is to go wrong with the first attempt at a task is
drawn once, from a fixed seed; so are the tasks' work and what they wait for.
"""

from __future__ import annotations

import json
import random
import signal
import sys
import time
from collections import Counter

import pytest

from taskwall.core.graph import longest_chains
from worker_process import Site, runs

TASKS, WORKERS, AGENTS = 60, 2, 4
FAULTS = ("crash", "killed", "hang", "lie", "no product", "half done")
LIMIT = 0.08  # minutes that an agent may take
MOST_KILLS = 8  # on a busy machine, killing more often than agents get done would never end

AGENT = """
echo $$ >> pids
fault=none
mv "faults/$TASKWALL_TASK" "taken/$TASKWALL_SESSION" 2>/dev/null && fault=$(cat "taken/$TASKWALL_SESSION")
case $fault in
  crash) exit 1 ;;
  killed) kill -9 $$ ;;
  hang) trap "" HUP; sleep 600 ;;
  lie) echo "I have completed the task."; exit 0 ;;
  "no product") exec taskwall done "$TASKWALL_TASK" ;;
  "half done") echo half > "made/$TASKWALL_TASK"; exit 0 ;;
esac
sleep "$(cat "work/$TASKWALL_TASK")"
echo "$TASKWALL_SESSION" > "made/$TASKWALL_TASK"
taskwall done "$TASKWALL_TASK" -m "$TASKWALL_SESSION" && echo "$TASKWALL_TASK" >> done
"""


class Night(Site):
    """A plan drawn from a seed, workers on it, and what is wrong with how it went."""

    def __init__(self, folder, tasks, seed=11):
        super().__init__(folder)
        self.set("max_attempts = 1000")
        chance = random.Random(seed)
        for name in ("faults", "taken", "work", "made"):
            (folder / name).mkdir()
        names = [f"t{number:02}" for number in range(tasks)]
        self.waits = {n: chance.sample(names[:at], min(at, chance.choice((0, 1, 1, 2)))) for at, n in enumerate(names)}
        self.seconds = {name: round(chance.uniform(0.2, 1.4), 2) for name in names}
        self.faults = {name: chance.choice(FAULTS) for name in chance.sample(names, tasks // 2)}
        for name, fault in self.faults.items():
            (folder / "faults" / name).write_text(fault)
        for name, seconds in self.seconds.items():
            (folder / "work" / name).write_text(str(seconds))
        plan = [
            {"id": name, "subject": f"task {name}", "blockedBy": blockers, "products": [f"made/{name}"]}
            for name, blockers in self.waits.items()
        ]
        self.run("plan", "-", input=json.dumps(plan))
        self.chance, self.kills, self.makespan = chance, 0, 0.0

    def go(self, seconds, program=("-m", "taskwall"), workers=WORKERS, kill=True):
        """Let workers work until everything is finished, and kill one every other second for a while."""
        self.program = program
        began = time.monotonic()
        living = [self.start("--agents", AGENTS, "--timeout", LIMIT, agent=AGENT) for _ in range(workers)]
        due = began + 2
        while any(worker.poll() is None for worker in living) and time.monotonic() < began + seconds:
            time.sleep(0.05)
            if kill and self.kills < MOST_KILLS and time.monotonic() > due and self.open():
                victim = self.chance.randrange(len(living))
                living[victim].kill()
                living[victim].wait()
                living[victim] = self.start("--agents", AGENTS, "--timeout", LIMIT, agent=AGENT)
                self.kills, due = self.kills + 1, time.monotonic() + 2
        self.makespan = time.monotonic() - began
        for worker in living:
            worker.send_signal(signal.SIGTERM)
            worker.communicate(timeout=30)
        return self

    def command(self, *words):
        return [sys.executable, *getattr(self, "program", ("-m", "taskwall")), *map(str, words)]

    def open(self):
        return [name for name in self.waits if self.task(name)["status"] != "completed"]

    def bound(self):
        """The least that honest work can take: its longest chain, or all of it on all agents."""
        after = {name: [d for d, blockers in self.waits.items() if name in blockers] for name in self.waits}
        chain = {}
        for name in sorted(self.waits, key=longest_chains(after).get):
            chain[name] = self.seconds[name] + max((chain[d] for d in after[name]), default=0)
        return max(chain.values()), sum(self.seconds.values()) / (WORKERS * AGENTS)

    def wrong(self):
        """Everything that no sound night shows."""
        files = {name: self.task(name) for name in self.waits}
        found = [f"{name} is {task['status']}" for name, task in files.items() if task["status"] != "completed"]
        said = (self.folder / "done").read_text().split() if (self.folder / "done").exists() else []
        found += [f"{name} was done {n} times" for name, n in Counter(said).items() if n > 1]
        events = Counter(event["task"] for event in self.events("complete"))
        found += [f"{name} was completed {n} times in the log" for name, n in events.items() if n > 1]
        for name, task in files.items():
            made = self.folder / "made" / name
            if task["status"] == "completed" and (not made.exists() or made.read_text().strip() != task.get("result")):
                found.append(f"{name} is completed, and its work is not that of whoever completed it")
        ends = {name: task.get("completedAt", "~") for name, task in files.items()}
        for claim in self.events("claim"):
            found += [
                f"{claim['task']} was begun before {blocker} was done"
                for blocker in self.waits[claim["task"]]
                if not ends[blocker] < claim["at"]
            ]
        pids = (self.folder / "pids").read_text().split()
        return found + [f"agent {pid} still runs" for pid in pids if runs(pid)]


@pytest.fixture
def night(tmp_path):
    """`night(tasks)`: a night that is over when the test is."""
    made = []

    def start(tasks):
        made.append(Night(tmp_path / "site", tasks))
        return made[-1]

    yield start
    for each in made:
        each.close()


@pytest.mark.slow
def test_sixty_tasks_are_each_done_once_whatever_agents_and_workers_do(night, figure):
    over = night(TASKS).go(85)
    chain, share = over.bound()
    told = f"{over.makespan:.1f} s; longest chain {chain:.1f} s, all work on 8 agents {share:.1f} s"
    figure(f"night: tasks done ({told})", tried=TASKS - len(over.open()), bad=over.wrong(), at_least=TASKS)
    figure("night: kill -9 of workers", tried=over.kills, bad=0, at_least=3)
    left = list((over.folder / "faults").iterdir())
    figure("night: agents that crashed, hung or lied", tried=len(over.faults) - len(left), bad=left, at_least=30)


TRUSTING = """
from taskwall.worker.attempt import Attempt
close = Attempt.close
def trusting(self, status, forest, **more):
    self._heartbeat.stop()
    if status == 0:  # the agent says that it is done, and nobody looks
        from taskwall.core.errors import Refused
        try:
            self.board.complete(self.task.token)
        except Refused:
            pass
    return close(self, status, forest, **more)
Attempt.close = trusting
from taskwall.faces.cli.main import run
run()
"""


@pytest.mark.slow
def test_the_night_finds_a_worker_that_believes_an_exit_status(night, tmp_path):
    program = tmp_path / "trusting.py"
    program.write_text(TRUSTING)
    found = night(16).go(60, (str(program),), workers=1, kill=False).wrong()
    assert any("its work is not that of whoever completed it" in fault for fault in found), found
