"""Whole processes, measured in turns: what disturbs the machine disturbs all of them alike."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import time

BARE = [sys.executable, "-c", "pass"]
LONGEST = 60  # seconds that one process may take


class Clock:
    """Runs commands, and keeps under the name of each its seconds, and those of a processor."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = {}
        self.processor: dict[str, list[float]] = {}

    def run(self, name: str, words, cwd=None, env=None, ok=(0,)) -> str:
        """The output of a command. Raises when it takes too long or ends with another status than those in `ok`."""
        used, began = processor_seconds(), time.perf_counter()
        done = subprocess.run(words, cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=LONGEST)
        self.seconds.setdefault(name, []).append(time.perf_counter() - began)
        self.processor.setdefault(name, []).append(processor_seconds() - used)
        if done.returncode not in ok:
            raise RuntimeError(f"{' '.join(map(str, words))}: {done.returncode}: {done.stderr.decode()[-500:]}")
        return done.stdout.decode()

    def median(self, name: str) -> float:
        return statistics.median(self.seconds[name])

    def ratio(self, name: str, to: str = "bare") -> float:
        return self.median(name) / self.median(to)

    def processor_ratio(self, name: str) -> float:
        return statistics.median(self.processor[name]) / statistics.median(self.processor["bare"])

    def bare(self) -> None:
        self.run("bare", BARE)


def processor_seconds() -> float:
    """What all children that have ended have used."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def rounds(most: int, budget: float):
    """At most so many rounds, as long as seconds are left; two at least."""
    until = time.monotonic() + budget
    for n in range(most):
        if n >= 2 and time.monotonic() > until:
            return
        yield n


PEAK = (
    "import resource as r, subprocess as s, sys; s.run(sys.argv[1:], stdout=s.DEVNULL); "
    "print(r.getrusage(r.RUSAGE_CHILDREN).ru_maxrss)"
)


def peak_megabytes(words, cwd) -> float:
    """The most memory that a command takes, told by a small process of its own: a child begins as large as its parent."""
    done = subprocess.run([sys.executable, "-S", "-E", "-c", PEAK, *words], cwd=cwd, capture_output=True, check=True)
    return int(done.stdout) / 1024
