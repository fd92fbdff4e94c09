"""The log of a run, `.local/runs/RUN.jsonl`: its header, then each message as it comes, so that a run can go on.

Beside it the folder `RUN/`: outputs too long for the conversation or of commands in the background, the logs of
helpers, and the lock of whoever runs it.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from typing import Any

from ..core.errors import Invalid, Locked
from ..stores.files.lock import lock
from .messages import Message

SUFFIX = ".jsonl"


def fresh_run_id() -> str:
    """Ids that sort by time."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{os.urandom(3).hex()}"


class RunLog:
    """One run's conversation, in memory and on disk. `header` says whose run it is."""

    def __init__(self, runs: str, run_id: str, header: Mapping[str, Any], messages: list[Message]) -> None:
        self.id, self.header, self.messages = run_id, header, messages
        self.path = os.path.join(runs, run_id + SUFFIX)
        self.folder = os.path.join(runs, run_id)
        # A link that came with a repository would lead what we write out of the board.
        if link := next((path for path in (runs, self.folder, self.path) if os.path.islink(path)), None):
            raise Invalid(f"{link} is a symbolic link", next="look at what put it there")
        os.makedirs(self.folder, exist_ok=True)

    @classmethod
    def start(cls, runs: str, run_id: str, header: Mapping[str, Any]) -> RunLog:
        """A new run."""
        log = cls(runs, run_id, header, [])
        log._write({"run": run_id, **header})
        return log

    @classmethod
    def resume(cls, runs: str, wanted: str) -> RunLog:
        """The run of this id, the latest when `wanted` is empty, as far as it was saved. Raises Invalid."""
        known = _run_ids(runs)
        found = [run_id for run_id in known if run_id.startswith(wanted)]
        if not found or (wanted and wanted not in known and len(found) > 1):
            latest = ", ".join(known[:5]) or "none"
            raise Invalid(f"no run {wanted}" if wanted else "there is no run to resume", next=f"runs here: {latest}")
        run_id = wanted if wanted in known else found[0]
        header, messages = _read(os.path.join(runs, run_id + SUFFIX))
        return cls(runs, run_id, header, messages)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep others from going on with this run meanwhile. Raises Invalid when somebody does."""
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(lock(os.path.join(self.folder, "lock"), deadline=0))
            except Locked:
                raise Invalid(f"run {self.id} is still going on", next="wait for it, or end that process") from None
            yield

    def add(self, message: Message) -> None:
        """Append a message. In memory first: what an interrupt leaves unsaved must not be answered twice."""
        self.messages.append(message)
        self._write({"message": message})

    def replace(self, messages: list[Message]) -> None:
        """Go on with a shorter conversation; what it leaves out stays in the file, above."""
        dropped = len(self.messages) - sum(any(old is new for new in messages) for old in self.messages)
        self.messages = messages
        self._write({"compacted": dropped, "messages": messages})

    def end(self, exit: int, why: str, used: str) -> None:
        """Note how the run ended and what it used."""
        self._write({"end": {"exit": exit, "why": why, "used": used}})

    def helper(self, header: Mapping[str, Any]) -> tuple[int, RunLog]:
        """A new log within this run's folder, for a helper; its number is used by no other."""
        number = 1 + len(_run_ids(self.folder))
        return number, RunLog.start(self.folder, f"helper-{number}", header)

    def spill(self, text: str) -> str:
        """Keep a text that is too long for the conversation; its path."""
        number = len(os.listdir(self.folder))
        path = os.path.join(self.folder, f"{number:03}.txt")
        with open(path, "x", encoding="utf-8", newline="") as file:
            file.write(text)
        return path

    def _write(self, entry: Mapping[str, Any]) -> None:
        # A lone surrogate becomes its JSON escape.
        line = json.dumps(entry, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"
        with open(self.path, "a+b", buffering=0) as file:
            if file.seek(0, os.SEEK_END):
                file.seek(-1, os.SEEK_END)
                # A line torn by a kill stays alone.
                line = line if file.read(1) == b"\n" else b"\n" + line
            file.write(line)


def _run_ids(runs: str) -> list[str]:
    """The runs of a board, the one that was active last first."""
    with contextlib.suppress(FileNotFoundError):
        logs = [e for e in os.scandir(runs) if e.name.endswith(SUFFIX) and e.is_file(follow_symlinks=False)]
        logs.sort(key=lambda entry: (entry.stat().st_mtime_ns, entry.name), reverse=True)
        return [entry.name.removesuffix(SUFFIX) for entry in logs]
    return []


def _read(path: str) -> tuple[dict[str, Any], list[Message]]:
    header: dict[str, Any] = {}
    messages: list[Message] = []
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if not isinstance(entry, dict):
                continue
            if isinstance(entry.get("message"), dict):
                messages.append(entry["message"])
            elif isinstance(entry.get("messages"), list):
                messages = entry["messages"]
            elif "run" in entry:
                header = {key: value for key, value in entry.items() if isinstance(value, str)}
    return header, messages
