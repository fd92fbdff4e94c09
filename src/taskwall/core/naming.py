"""Which task is meant by a part of an id, by a subject in other letters, or by mistake."""

from __future__ import annotations

from .errors import AmbiguousId, UnknownTask
from .model import composed, to_the_second

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .model import Claim

    Subjects = Sequence[tuple[str, str]]
    """The id and the subject of every task."""

SHORTEST_PART = 4
"""An id may be given by a prefix or suffix of this many characters."""
NEAR_IDS = 5
MAX_COMPARED = 2000
"""On how large a board an unknown id is compared with every other for what may have been meant."""


def bare(text: str) -> str:
    """What is meant of a name that was pasted with its quotes, its `#`, or the mark of a cut one."""
    return composed(text.strip().strip("'\"`").lstrip("#").rstrip("…"))


def matching(wanted: str, known: Subjects) -> list[str]:
    """The ids of the tasks with this subject, or with this part of an id, both in any letters."""
    folded = wanted.casefold()
    return [i for i, subject in known if subject.casefold() == folded or _is_part(folded, i)]


def having_part(wanted: str, ids: Iterable[str]) -> list[str]:
    """The ids that have this part, in any letters."""
    folded = wanted.casefold()
    return [task_id for task_id in ids if _is_part(folded, task_id)]


def _is_part(folded: str, task_id: str) -> bool:
    """Whether text is long enough and begins or ends this id, or begins it behind `task_`."""
    whole = task_id.casefold()
    starts = whole.startswith(folded) or whole.removeprefix("task_").startswith(folded)
    return len(folded) >= SHORTEST_PART and (starts or whole.endswith(folded))


def ambiguous(wanted: str, matches: Sequence[str]) -> AmbiguousId:
    """The refusal of a name that fits several tasks."""
    ids = tuple(matches[:NEAR_IDS])
    more = f" and {len(matches) - NEAR_IDS} more" if len(matches) > NEAR_IDS else ""
    return AmbiguousId(f"{wanted!r} could be {', '.join(ids)}{more}", task=wanted, by=ids, next="give more of the id")


def unknown(wanted: str, known: Subjects) -> UnknownTask:
    """The refusal of a name that fits no task, with what may have been meant."""
    near = _near(wanted, known)
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    way = f"{hint}see `taskwall list --all` (list_tasks)"
    return UnknownTask(f"no task {wanted!r} on this board", task=wanted, by=near, next=way)


def _near(wanted: str, names: Subjects) -> tuple[str, ...]:
    from difflib import get_close_matches  # imported late: only an error needs it

    by_subject = [i for i, text in names if len(wanted) >= SHORTEST_PART and wanted.casefold() in text.casefold()]
    near = get_close_matches(wanted, [i for i, _ in names], n=3, cutoff=0.75) if len(names) <= MAX_COMPARED else []
    return tuple(dict.fromkeys(by_subject[:3] + near))[:3]


def removed(claim: Claim) -> UnknownTask:
    """The refusal for a task whose file went away while somebody held it."""
    file = f".tasks/{claim.task}.json"
    return UnknownTask(
        f"{claim.task} is gone: its file was removed while {claim.actor} held it (claim {claim.epoch} since "
        f"{to_the_second(claim.since)}); the claim still stands",
        task=claim.task,
        by=(claim.actor,),
        next=f"bring the file back, then repeat the command: `git restore {file}`, or, when a commit removed it, "
        f"`git restore --source=COMMIT^ {file}` with the commit that `git log -1 --diff-filter=D -- {file}` shows",
    )
