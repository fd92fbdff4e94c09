"""What doctor can find: its codes, how bad each is and what it means; and its answer."""

from __future__ import annotations

from ...core.errors import EXITS
from ...core.record import Record
from ...results import ALL, Report
from .repairs import Repair

ERROR, WARNING, NOTE = "error", "warning", "note"
SEVERITIES = (ERROR, WARNING, NOTE)

CODES = {
    # the board as a whole
    "newer_board": (ERROR, "a newer taskwall left a change of several files unfinished; this one cannot finish it"),
    "settings_unreadable": (ERROR, "no command runs on the board until its settings can be read"),
    "local_not_folder": (ERROR, "nothing can be claimed or written: what is machine-local has no place of its own"),
    "not_examined": (WARNING, "this part of the board could not be looked at, so nothing is said of it"),
    "unfinished_change": (NOTE, "a process was killed while it changed several files; the next write finishes it"),
    # its files
    "unreadable": (ERROR, "the file is no readable task; what depends on it stays blocked, and no verb writes to it"),
    "conflict": (ERROR, "git merged two versions and left both in the file; what depends on it stays blocked"),
    "unmerged": (WARNING, "git stopped a merge at this file and waits to be told what it shall be"),
    "twin_ids": (ERROR, "two files claim one id, so neither is the task; what depends on it stays blocked"),
    "open_in_archive": (ERROR, "it gates and is found by its id, but no list shows it, and nobody is offered it"),
    "name_differs": (NOTE, "the file is not called like its task, so that people and git look for another"),
    "old_tmp": (NOTE, "a killed process or an editor left it; nothing reads it"),
    "permissions": (WARNING, "agents of this user cannot work here, or any user of this machine can change it"),
    "local_in_git": (WARNING, "locks and claims of this machine would reach others, where they are wrong"),
    "parked": (WARNING, "a merge or a recovery could not keep both versions; the other one lies in this file"),
    "ledger_unreadable": (NOTE, "the entry counts as none: who claimed the task is told by its file alone"),
    # the work
    "cycle": (ERROR, "these tasks wait for each other, so none of them can ever start"),
    "missing_blocker": (WARNING, "a blocker that does not exist never completes, so the task can never start"),
    "missing_parent": (NOTE, "the task is a child of nothing"),
    "missing_dependent": (NOTE, "the file says that a task waits for it which does not exist"),
    "cancelled_blocker": (WARNING, "a cancelled blocker never satisfies, so the task can never start"),
    "one_sided_edge": (NOTE, "the edge gates, but only the blocker's file shows it"),
    "no_owner": (WARNING, "nobody is known who could complete or release it"),
    "stale_claim": (WARNING, "its holder is gone or stopped beating; the next claim takes it and counts an attempt"),
    "idle_claim": (NOTE, "it was claimed by hand over a day ago; such a claim never lapses by itself"),
    "gone_while_claimed": (WARNING, "the file was removed under its holder, who can no longer complete it"),
    "reverted": (NOTE, "git or an editor took the file back; the claim ledger decides until the next write"),
    "displaced_claim": (NOTE, "two machines claimed it; the merge kept the other claim, and this one is over"),
    "started_early": (WARNING, "it is in progress although it waits for open work; it cannot be completed yet"),
    "finished_early": (WARNING, "it was completed although work it waits for is open: its result may rest on nothing"),
    "oddity": (NOTE, "another program wrote something that is kept and ignored"),
    # what is written in it
    "prose_wait": (WARNING, "without an edge it can be started too early"),
    "secret": (WARNING, "whoever reads the repository can use it; what was committed stays in git's history"),
    # git
    "driver_absent": (NOTE, "git merges task files by lines, so that two changes of one task conflict"),
    "driver_inert": (WARNING, "without a driver that runs, git silently merges task files by lines"),
    "driver_union": (WARNING, "git keeps the lines of both sides, which makes files that are no JSON, or twins"),
    "left_out": (WARNING, "tasks that git has are not seen here, and what waits for them stays blocked"),
    "worktree_copy": (NOTE, "the copy is ignored: all worktrees share the board of the main one"),
    "worktree_work": (WARNING, "something worked on a copy of the board, where nobody sees it"),
}
"""By code: how bad it is, and what it means."""


class Finding(Record):
    """One thing that is wrong. file: as a person would name it. fix: what helps, or what `--fix` does."""

    code: str
    severity: str
    file: str | None
    task: str | None
    found: str
    means: str
    fix: str
    repairable: bool

    @property
    def order(self) -> tuple[object, ...]:
        """Sort key: the worst first, then kind by kind."""
        return (SEVERITIES.index(self.severity), list(CODES).index(self.code), self.file or "", self.task or "")


class Found(Record):
    """A finding, and how it can be repaired without a person."""

    finding: Finding
    repair: Repair | None = None


def found(
    code: str, what: str, fix: str, *, file: str | None = None, task: str | None = None, repair: Repair | None = None
) -> Found:
    """A finding of this code."""
    severity, means = CODES[code]
    fix = f"`taskwall doctor --fix` {repair.words}" if repair else fix
    return Found(Finding(code, severity, file, task, what, means, fix, repair is not None), repair)


MAX_SHOWN = 10
"""How many findings of one kind are told as text; JSON has all."""


class Diagnosis(Report):
    """What was found. plan: what --fix would do and did not; repaired, copies: what it did, and where copies lie."""

    findings: tuple[Finding, ...]
    plan: tuple[str, ...] = ()
    repaired: tuple[str, ...] = ()
    copies: str | None = None

    @property
    def exit(self) -> int:
        """8: a file cannot be read; 4: something else is wrong; 0: nothing, or notes alone."""
        severe = [each for each in self.findings if each.severity != NOTE]
        unreadable = any(each.code in ("unreadable", "conflict", "twin_ids") for each in severe)
        return EXITS["unreadable"] if unreadable else EXITS["check_failed"] if severe else 0

    def lines(self) -> list[str]:
        """Kind by kind: what was found, then once what it means; with each what helps."""
        told = [f"repaired: {words}" for words in self.repaired]
        told += [f"copies of what was changed: {self.copies}"] if self.copies else []
        for code in dict.fromkeys(each.code for each in self.findings):
            same = [each for each in self.findings if each.code == code]
            told.append(f"{same[0].severity} {code}: {same[0].means}")
            for each in same[:MAX_SHOWN]:
                told += [f"- {_line(each.found)}", f"  fix: {_line(each.fix)}"]
            told += [f"… {len(same) - MAX_SHOWN} more; {ALL}"] if len(same) > MAX_SHOWN else []
        return [*told, self._summary(), *(f"- {_line(words)}" for words in self.plan)]

    def _summary(self) -> str:
        counts = [(name, sum(each.severity == name for each in self.findings)) for name in SEVERITIES]
        words = [f"{count} {name}{'s' * (count > 1)}" for name, count in counts if count]
        if not words:
            return "Nothing is wrong."
        if self.plan:
            return f"{', '.join(words)}. Nothing was written. --fix --yes would:"
        repairable = sum(each.repairable for each in self.findings)
        way = f"; {repairable} can be repaired: taskwall doctor --fix" if repairable else ""
        return f"{', '.join(words)}{way}."


def _line(text: str) -> str:
    return text.replace("\n", "\\n")
