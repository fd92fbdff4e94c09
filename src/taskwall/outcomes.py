"""What was done: the answers of verbs that change a board, and of what is done around one."""

from __future__ import annotations

from .core.errors import EXITS
from .results import Answer, Report, Row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .core.rules.incoming import Finding


class Changed(Answer):
    """One task was changed by a verb."""

    verb: str
    row: Row
    unblocked: tuple[Row, ...] = ()
    also: tuple[Row, ...] = ()
    blockers: tuple[Row, ...] = ()  # of a claimed task: what came of them is part of the briefing
    notices: tuple[str, ...] = ()
    already: bool = False


class Created(Answer):
    """Tasks were created; `already` holds the ids of those whose key was known."""

    rows: tuple[Row, ...]
    already: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


class Imported(Report):
    """What an import did, or would do (dry_run), and its loss report. records: how many the source has."""

    format: str
    source: str
    dry_run: bool
    records: int
    created: tuple[str, ...]
    updated: tuple[str, ...]
    unchanged: int
    findings: tuple[Finding, ...]
    notices: tuple[str, ...] = ()

    @property
    def exit(self) -> int:
        """What could not be read is no reason to leave the rest, but whoever removes the source must hear of it."""
        return EXITS["unreadable"] if any(finding.kind == "unreadable" for finding in self.findings) else 0

    def lines(self) -> list[str]:
        """What was done, then the loss report: each kind with its count and its first lines."""
        from .core.rules.incoming import KINDS  # imported late: only an import needs it

        would = "would be " if self.dry_run else ""
        counts = f"{len(self.created)} {would}created, {len(self.updated)} {would}updated, {self.unchanged} left as is"
        lines = [f"{self.format}: {self.records} read from {self.source}: {counts}"]
        for kind, meaning in KINDS.items():
            told = [f"- {f.where}: {f.text[:MAX_TOLD]}" for f in self.findings if f.kind == kind]
            lines += [f"{kind}: {len(told)} {meaning}", *told[:MAX_FINDINGS]] if told else []
            more = len(told) - MAX_FINDINGS
            lines += [f"… {more} more (--json lists all)"] if more > 0 else []
        return [*lines, "Nothing was written."] if self.dry_run else [*lines, *self.notices]


MAX_FINDINGS, MAX_TOLD = 8, 200
"""How many findings of a kind are shown, and how many characters of each."""


class Exported(Report):
    """What was exported: into a file, or as text. left_out: why files that cannot be read are not in it."""

    format: str
    path: str | None
    tasks: int
    left_out: tuple[str, ...] = ()
    text: str = ""

    @property
    def exit(self) -> int:
        return EXITS["unreadable"] if self.left_out else 0

    def lines(self) -> list[str]:
        """What was written where, and what was not."""
        told = [f"Exported {self.tasks} task{'s' * (self.tasks != 1)} to {self.path}"] if self.path else []
        return told + [f"left out, for it cannot be read: {flaw}" for flaw in self.left_out]


class Released(Answer):
    """All tasks of a session were given back."""

    session: str
    rows: tuple[Row, ...]


class Archived(Report):
    """Finished tasks were taken out of the way. left: those that stay, for their file's name is not theirs or taken."""

    ids: tuple[str, ...]
    left: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """How many went; they are still found by id."""
        plural = "s" * (len(self.ids) != 1)
        why = "for their files are not called like them, or others of that name are archived"
        stay = f"{len(self.left)} stay, {why}: {', '.join(self.left[:5])}"
        found = f"Archived {len(self.ids)} finished task{plural}; `taskwall show ID` still finds them"
        return [found if self.ids else "Nothing to archive.", *([stay] if self.left else [])]


class Place(Answer):
    """Which board is in use and why, and who acts on it. made: it was made just now."""

    path: str
    why: str
    exists: bool
    made: bool
    actor: str
    session: str
    clients: tuple[str, ...] = ()  # coding agents that `setup` would set up
    git: SetUp | None = None  # what `init --git` did

    @property
    def exit(self) -> int:
        return self.git.exit if self.git else 0


class Trusted(Answer):
    """Commands that were trusted or revoked just now, or all that this user trusts on the board (`list`)."""

    action: str
    commands: tuple[str, ...]


class SetUp(Answer):
    """What set-up of clients changes: to set them up, to remove that, or to check it. files: those concerned.

    done: they were written just now.
    """

    action: str
    clients: tuple[str, ...]
    files: tuple[str, ...]
    diff: str
    notes: tuple[str, ...] = ()
    done: bool = False

    @property
    def exit(self) -> int:
        return 0 if self.done or not self.files else EXITS["check_failed"]
