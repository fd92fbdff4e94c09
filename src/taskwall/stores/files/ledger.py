"""The claim ledger, `.local/claims/`: one small file per task that was ever claimed on this machine.

`{"claim": …, "lease": {"until", "boot"}, "taken": {"at", "boot"}, "book": …, "free": …, "ended": n}`. Leases run on the
monotonic clock of one boot, so that neither a changed wall clock nor a suspended machine burns one. `taken` is when the
claim was granted, `book` what files of other programs never gain, `free` how one of them looked before the claim,
`ended` the latest epoch there of a claim by hand.
"""

from __future__ import annotations

import os

from ...core.light import cache
from ...core.model import BY_HAND, IDLE, KEYS, LAPSED, LIVE, Claim, Task, id_flaw
from .disk import NotPlain, Write, read_text
from .plain import BOOKKEEPING, fits
from .strict import NotStrict, encode, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from .disk import Disk

SUFFIX = ".json"
IDLE_AFTER = 24 * 60 * 60
"""Seconds after which a claim by hand is shown as idle; it stands all the same."""
BOOKED = tuple(KEYS[key] for key in KEYS if key in BOOKKEEPING and key not in ("epoch", "rev", "createdAt", "key"))
STORED = ("task", "epoch", "actor", "session", "since", "reserved", "ttl", "open", "past", "process", "host")
LATER = {"process": "", "host": ""}
"""What entries of earlier versions do not have, and what then stands for it."""


@cache
def boot_id() -> str:
    """Names this boot of the machine: on another one, nobody who beat before it is alive."""
    try:
        with open("/proc/sys/kernel/random/boot_id", "rb") as file:
            return file.read().strip().decode()
    except OSError:
        return ""


class Ledger:
    """Reads entries as they are asked for; one that cannot be read is as good as none."""

    def __init__(
        self,
        disk: Disk,
        path: str,
        monotonic: Callable[[], float],
        pending: Mapping[str, str],
        known: Callable[[str], str | None] | None = None,
    ) -> None:
        """pending: texts that entries will have once a committed journal is applied, by their names in the board.

        known: the text of a task's entry that is to stand for its file, None when there is none, "" when not known.
        """
        self.disk, self.path = disk, path
        self._monotonic, self._known = monotonic, known
        self._claims: dict[str, Claim | None] = {}
        promised = {os.path.basename(name): text for name, text in pending.items() if "/" in name}
        self._read = {name.removesuffix(SUFFIX): _entry(text) for name, text in promised.items()}

    def get(self, task_id: str) -> Claim | None:
        """The latest claim on a task, its lease judged when this was first asked."""
        if task_id not in self._claims:
            entry = self._entry(task_id)
            claim = claim_of(task_id, entry.get("claim")) if entry else None
            self._claims[task_id] = claim and self._judged(claim, entry.get("lease"), entry.get("taken"))
        return self._claims[task_id]

    def known(self) -> set[str]:
        """The ids of all tasks that have an entry."""
        try:
            listed = {name.removesuffix(SUFFIX) for name, _ in self.disk.names(self.path)}
        except OSError:
            listed = set()
        return listed | self._read.keys()

    def free(self, task_id: str) -> dict[str, Any]:
        """How the task's file looked before its claim, as `free_form` told it; empty when that was not seen."""
        found = self._entry(task_id).get("free")
        return found if isinstance(found, dict) else {}

    def ended(self, task_id: str) -> int:
        """The epoch of the latest claim that was made by hand and ended by a verb, 0 when there was none."""
        found: Any = self._entry(task_id).get("ended")
        return int(found) if fits("epoch", found) else 0

    def book(self, task: Task) -> Task:
        """A task of another program's file with what we remember of it."""
        booked = self._entry(task.id).get("book")
        if not isinstance(booked, dict):
            return task
        known = {name: value for name, value in booked.items() if name in BOOKED}
        return task.replace(**{name: v for name, v in known.items() if v == Task.__defaults__[name] or fits(name, v)})

    def writes(
        self, claims: dict[str, Claim], tasks: dict[str, Task], free: dict[str, dict[str, Any]], ended: dict[str, int]
    ) -> dict[str, Write]:
        """By task, the files to write for these claims, whose leases start now, and for what these tasks' files never
        gain.
        """
        booked = {i: {name: getattr(t, name) for name in BOOKED} for i, t in tasks.items() if not t.gated}
        found = {}
        for task_id in dict.fromkeys([*claims, *booked]):
            entry = dict(self._entry(task_id))
            if claim := claims.get(task_id):
                known = claim_of(task_id, entry.get("claim"))
                if known is None or known.epoch != claim.epoch:
                    entry["taken"] = {"at": self._monotonic(), "boot": boot_id()}
                entry["claim"] = {name: getattr(claim, name) for name in STORED if name != "host" or claim.host}
                until = self._monotonic() + 60 * (claim.ttl or 0)
                entry["lease"] = {"until": until, "boot": boot_id()} if claim.ttl is not None else None
            if task_id in booked:
                entry["book"] = booked[task_id]
            if task_id in free:
                entry["free"] = free[task_id]
            if task_id in ended:
                entry["ended"] = ended[task_id]
            found[task_id] = Write(self._file(task_id), encode(entry) + "\n")
        return found

    def _file(self, task_id: str) -> str:
        return f"{self.path}{os.sep}{task_id}{SUFFIX}"

    def _entry(self, task_id: str) -> dict[str, Any]:
        if task_id not in self._read:
            text = self._known(task_id) if self._known else ""
            self._read[task_id] = _entry(self.text(task_id) if text == "" else text)
        return self._read[task_id]

    def is_as_read(self, task_id: str) -> bool:
        """Whether the entry of a task is still the one that was read."""
        return self._entry(task_id) == _entry(self.text(task_id))

    def prime(self, task_id: str, entry: str | None) -> None:
        """Tell the text of an entry that stands for its file, before it is asked for."""
        if task_id not in self._read:
            self._read[task_id] = _entry(entry)

    def text(self, task_id: str) -> str | None:
        """What the file of an entry holds, None without one."""
        if id_flaw(task_id):  # what somebody typed need not be the name of a file
            return None
        try:
            return read_text(self._file(task_id), self.disk)[0]
        except (OSError, NotPlain):
            return None

    def _judged(self, claim: Claim, lease: Any, taken: Any) -> Claim:
        # A claim that has ended says nothing about who took the task since, by hand.
        if not isinstance(lease, dict) or not claim.open:
            at: Any = taken.get("at") if isinstance(taken, dict) and taken.get("boot") == boot_id() else None
            idle = _is_number(at) and self._monotonic() - at > IDLE_AFTER
            return claim.replace(lease=IDLE if idle and claim.open else BY_HAND)
        until: Any = lease.get("until")
        processes = [each for each in claim.process.split(",") if each]
        living = _living(processes) if processes else []
        alive = _is_number(until) and lease.get("boot") == boot_id() and (living or not processes)
        left = (until - self._monotonic()) / 60 if alive else 0.0
        kept = ",".join(living or processes)
        return claim.replace(lease=LIVE if left > 0 else LAPSED, left=max(left, 0.0), process=kept)


def _living(processes: list[str]) -> list[str]:
    from ...process import is_gone  # imported late: claims by hand name no process

    return [each for each in processes if not is_gone(each)]


def _entry(text: str | None) -> dict[str, Any]:
    try:
        return parse(text) if text else {}
    except NotStrict:
        return {}


def claim_of(task_id: str, stored: Any) -> Claim | None:
    """The claim in an entry. The file may be damaged, or come with a hostile repository: its types are checked."""
    stored = LATER | stored if isinstance(stored, dict) else {}
    if not stored.keys() >= set(STORED) or stored["task"] != task_id:
        return None
    stored = {name: stored[name] for name in STORED}
    texts = all(isinstance(stored[name], str) for name in ("actor", "session", "since", *LATER))
    options = isinstance(stored["reserved"], str | None) and (stored["ttl"] is None or _is_number(stored["ttl"]))
    if not texts or not options or not fits("epoch", stored["epoch"]) or not isinstance(stored["open"], bool):
        return None
    past = stored["past"]
    if not isinstance(past, list) or not all(_is_past(each) for each in past):
        return None
    return Claim(**stored | {"past": tuple((actor, session, epoch) for actor, session, epoch in past)})


def _is_past(value: Any) -> bool:
    return isinstance(value, list) and [type(part) for part in value] == [str, str, int]


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
