"""Commands in the background: their output lies in a file, and their end is told once."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping

from ..core.errors import Invalid
from ..lengths import shortened
from .processes import Groups, end_group, watch
from .tool import Tool, flag, number, own

LONGEST_WAIT = 600
"""Seconds for which one call waits for a job."""
SHOWN = 2_000
"""Characters of its output that are shown, the last ones."""


class Job:
    """A command in the background. `end` says how it ended, empty while it runs."""

    def __init__(self, number: int, command: str, path: str) -> None:
        self.number, self.command, self.path = number, command, path
        self.began, self.end = time.monotonic(), ""

    def start(self, groups: Groups, folder: str, env: Mapping[str, str], limit: float) -> None:
        """Run it; a thread waits for its end."""
        self._output = open(self.path, "xb")  # noqa: SIM115 - the thread closes it
        self._process = groups.start(self.command, folder, env, self._output)
        self._thread = threading.Thread(target=self._watch, args=(limit,), daemon=True)
        self._thread.start()

    def _watch(self, limit: float) -> None:
        with self._output:
            self.end = watch(self._process, self._output, limit)

    def wait(self, seconds: float) -> None:
        self._thread.join(seconds)

    def stop(self) -> None:
        if not self.end:
            end_group(self._process)
            self._thread.join()

    def told(self) -> str:
        """How it stands, and the end of its output."""
        state = self.end or f"running for {time.monotonic() - self.began:.0f} s"
        with open(self.path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 4 * SHOWN))
            text = file.read().decode("utf-8", "replace").strip("\n")
        # The end matters, not the middle.
        text = f"…{text[-SHOWN:]}" if len(text) > SHOWN else text
        return f"Job {self.number} ({shortened(self.command, 200)}): {state}. Output in {self.path}\n{text}".rstrip()


class Jobs:
    """The jobs of a run."""

    def __init__(self, groups: Groups, folder: str) -> None:
        """folder: where their output goes."""
        self._groups, self._folder = groups, folder
        self._jobs: dict[int, Job] = {}
        self._told: set[int] = set()

    def start(self, command: str, folder: str, env: Mapping[str, str], limit: float) -> Job:
        """Start one. A number is never used again, in a resumed run either."""
        number = 1 + sum(name.startswith("job-") for name in os.listdir(self._folder))
        job = Job(number, command, os.path.join(self._folder, f"job-{number}.txt"))
        job.start(self._groups, folder, env, limit)
        self._jobs[number] = job
        return job

    def ended(self) -> list[str]:
        """A notice of each that ended since this was last asked, unless the model saw that already."""
        ended = [job for job in self._jobs.values() if job.end and job.number not in self._told]
        self._told.update(job.number for job in ended)
        return [job.told() for job in ended]

    def tool(self) -> Tool:
        """`job`: look at one, wait for it, stop it."""

        def job(job: int, wait: int = 0, stop: bool = False) -> str:
            if (found := self._jobs.get(job)) is None:
                known = ", ".join(map(str, self._jobs)) or "none"
                raise Invalid(f"no job {job} in this run", next=f"jobs: {known}; bash with background starts one")
            if stop:
                found.stop()
            found.wait(max(0, min(wait, LONGEST_WAIT)))
            if found.end:
                self._told.add(job)
            return found.told()

        return own(
            job,
            "See how a background command stands and the end of its output.",
            number("job", "its number", required=True),
            number("wait", f"seconds to wait for its end, at most {LONGEST_WAIT}"),
            flag("stop", "end it"),
        )
