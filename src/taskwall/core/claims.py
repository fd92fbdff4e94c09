"""How a task file and its entry in the claim ledger are read together (DESIGN section 2, Claims).

The file is the commit point of every change and the ledger entry follows it; a checkout can take the file back, but not
the ledger. The larger epoch decides; at equal epochs the file's status does; finished in the file always wins.
"""

from __future__ import annotations

from .model import IN_PROGRESS, LAPSED, LIVE, PENDING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .model import Claim, Task


def settle(task: Task, entry: Claim | None, ended: int = 0) -> Task:
    """The task as it stands, given what its file says and the latest claim known on this machine.

    ended: for files of other programs, the latest epoch of a claim that was made by hand, once that is over.
    """
    if task.closed or task.flaw:
        known = max(entry.epoch if entry else 0, ended)
        return task.replace(epoch=known) if known > task.epoch else task
    if not task.gated:
        return _settle_dialect(task, entry, ended)
    if entry is None or entry.epoch <= task.epoch:
        return task
    notice = f"its file was taken back to before claim {entry.epoch} (a checkout or an edit)"
    task = task.replace(epoch=entry.epoch, notices=(*task.notices, notice))
    if entry.open:
        return task.replace(status=IN_PROGRESS, owner=entry.actor, started_at=entry.since)
    return task.replace(status=PENDING, owner=entry.reserved) if task.status == IN_PROGRESS else task


def is_held(task: Task, entry: Claim | None, ended: int = 0) -> bool:
    """Whether a task is in progress, whatever became of the lease."""
    kept = entry.replace(lease=LIVE) if entry and entry.lease == LAPSED else entry
    return settle(task, kept, ended).status == IN_PROGRESS


def _settle_dialect(task: Task, entry: Claim | None, ended: int) -> Task:
    """Files of other programs have no epoch: the entry's counts, and only their status tells a claim from its end."""
    known = max(entry.epoch if entry else 0, ended)
    if entry and entry.open and entry.epoch == known:
        if task.status == PENDING and entry.lease == LIVE:
            return task.replace(status=IN_PROGRESS, owner=entry.actor, epoch=known, started_at=entry.since)
        return task.replace(epoch=known)
    unknown_claim = task.status == IN_PROGRESS
    return task.replace(epoch=known + unknown_claim) if known or unknown_claim else task
