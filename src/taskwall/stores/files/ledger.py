"""The claim ledger, `.local/claims/`: one small file per task that was ever claimed on this machine.

`{"claim": …, "lease": {"until", "boot"}, "book": …}`. Leases run on the monotonic clock of one boot, so that neither a
changed wall clock nor a suspended machine burns one. `book` is what files of other programs never gain.
"""

from __future__ import annotations

import json
import os
import time

from ...core.model import BY_HAND, KEYS, LAPSED, LIVE, Claim, Task
from .dialects import BOOKKEEPING
from .disk import NotPlain, Write, read_text
from .patch import NotStrict, encode, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

BOOKED = tuple(KEYS[key] for key in KEYS if key in BOOKKEEPING and key not in ("epoch", "rev", "createdAt", "key"))
STORED = ("task", "epoch", "actor", "session", "since", "reserved", "ttl", "open", "past")


def boot_id() -> str:
    """Names this boot of the machine: on another one, nobody who beat before it is alive."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


class Ledger:
    """Reads entries as they are asked for; an entry that cannot be read is as good as none."""

    def __init__(self, path: str, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.path = path
        self._monotonic = monotonic
        self._read: dict[str, dict[str, Any]] = {}
        try:
            self._names = set(os.listdir(path))
        except OSError:
            self._names = set()

    def get(self, task_id: str) -> Claim | None:
        """The latest claim on a task, its lease judged now."""
        entry = self._entry(task_id)
        stored = entry.get("claim")
        if not isinstance(stored, dict):
            return None
        try:
            claim = Claim(**stored | {"past": tuple(tuple(each) for each in stored.get("past", ()))})
        except TypeError:
            return None
        return self._judged(claim, entry.get("lease"))

    def book(self, task: Task) -> Task:
        """A task of another program's file with what we remember of it."""
        booked = self._entry(task.id).get("book")
        known = {name: value for name, value in booked.items() if name in BOOKED} if isinstance(booked, dict) else {}
        return task.replace(**known) if known else task

    def writes(self, claims: dict[str, Claim], tasks: dict[str, Task]) -> list[Write]:
        """The files to write for these claims, whose leases start now, and these tasks' bookkeeping."""
        booked = {i: {name: getattr(t, name) for name in BOOKED} for i, t in tasks.items() if not t.gated}
        found = []
        for task_id in dict.fromkeys([*claims, *booked]):
            entry = dict(self._entry(task_id))
            if claim := claims.get(task_id):
                entry["claim"] = {name: getattr(claim, name) for name in STORED}
                until = self._monotonic() + 60 * (claim.ttl or 0)
                entry["lease"] = {"until": until, "boot": boot_id()} if claim.ttl is not None else None
            if task_id in booked:
                entry["book"] = booked[task_id]
            found.append(Write(self._file(task_id), encode(entry) + "\n"))
        return found

    def _file(self, task_id: str) -> str:
        return os.path.join(self.path, f"{task_id}.json")

    def _entry(self, task_id: str) -> dict[str, Any]:
        if f"{task_id}.json" not in self._names:
            return {}
        if task_id not in self._read:
            try:
                self._read[task_id] = parse(read_text(self._file(task_id))[0])
            except (OSError, NotPlain, NotStrict, json.JSONDecodeError):
                self._read[task_id] = {}
        return self._read[task_id]

    def _judged(self, claim: Claim, lease: Any) -> Claim:
        if not isinstance(lease, dict):
            return claim.replace(lease=BY_HAND)
        left = (lease.get("until", 0) - self._monotonic()) / 60 if lease.get("boot") == boot_id() else 0.0
        return claim.replace(lease=LIVE if left > 0 else LAPSED, left=max(left, 0.0))
