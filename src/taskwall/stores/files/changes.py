"""What a changed task is in the keys and values of its own file, and the file of a new one."""

from __future__ import annotations

from ...core.light import cache
from ...core.model import ALWAYS, IN_PROGRESS, KEYS, PENDING, Task
from .dialects import ABSENT, DIALECTS, OURS, READ_STATUS, RESEARCH, Dialect
from .plain import BOOKKEEPING, fits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any


class Kept(ValueError):
    """A key that a verb would write holds a value of a foreign type, which is kept. `key` names it."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def differences(
    old: Task, new: Task, raw: Mapping[str, Any], numeric: Callable[[str], bool], free: Mapping[str, Any] | None = None
) -> tuple[dict[str, Any], list[str]]:
    """What to set and what to remove in the file of `old`, so that it says what `new` does. Raises Kept.

    raw: the file's object. numeric: whether the id of a task is a number in that task's own file. free: what
    `free_form` told when the task was claimed.
    """
    dialect = DIALECTS[old.dialect]
    if dialect.name == OURS:  # where every id is text
        numeric = _no_number
    changed: dict[str, Any] = {}
    removed: list[str] = []
    if (old.status, old.hold) != (new.status, new.hold):
        changed[dialect.key("status")] = _status_value(dialect, old, new, raw, free or {})
    for key, field in KEYS.items():
        value = getattr(new, field)
        if key == "status" or getattr(old, field) == value or (old.dialect != OURS and key in BOOKKEEPING):
            continue
        theirs = dialect.key(key)
        if raw.get(theirs) is not None and not fits(field, raw[theirs]):
            if key in BOOKKEEPING:  # kept and ignored; nobody asked for it
                continue
            raise Kept(theirs)
        if key == "owner" and value is None:
            _set_or_remove(theirs, _nobody(dialect, free or {}), changed, removed)
        elif key == "blockedBy":
            # The research dialect leaves the key out when nothing is in it.
            none = ABSENT if dialect.name == RESEARCH else []
            _set_or_remove(theirs, _edges(value, raw.get(theirs), numeric) or none, changed, removed)
        elif value in (None, (), {}, "") and key not in ALWAYS:
            removed.append(theirs)
        else:
            changed[theirs] = int(value) if key == "parent" and numeric(value) else _stored(value)
    if old.blocks != new.blocks:
        changed["blocks"] = _edges(new.blocks, raw.get("blocks"), numeric)
    return {key: value for key, value in changed.items() if key not in raw or raw[key] != value}, removed


def free_form(task: Task, raw: Mapping[str, Any]) -> dict[str, Any]:
    """How the file of a task that nobody holds says so: its word for the status, and its owner when that is nobody."""
    dialect = DIALECTS[task.dialect]
    owner = {"owner": [raw[key]] if (key := dialect.key("owner")) in raw else []} if task.owner is None else {}
    return {"status": raw.get(dialect.key("status")), **owner}


def _nobody(dialect: Dialect, free: Mapping[str, Any]) -> Any:
    """What stands for nobody in a file: what stood there before, else what its dialect has; ABSENT for no key."""
    match free.get("owner"):
        case []:
            return ABSENT
        case [None | "" as before]:
            return before
    return dialect.no_owner


def _no_number(_: str) -> bool:
    return False


def _edges(ids: Iterable[str], there: Any, numeric: Callable[[str], bool]) -> list[Any]:
    """Ids as a list is to hold them: those already there as they are, new ones in the type of their own file."""
    kept = {str(value): value for value in there or ()}
    return [kept.get(i, int(i) if numeric(i) else i) for i in ids]


def _stored(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _status_value(dialect: Dialect, old: Task, new: Task, raw: Mapping[str, Any], free: Mapping[str, Any]) -> str:
    current = raw.get(dialect.key("status"))
    given_back = old.status == IN_PROGRESS and free.get("status") == "blocked"  # a decision waited under that word
    if dialect.name == RESEARCH and new.status == PENDING and (new.hold is not None or given_back):
        return "blocked"
    same_word = old.status == new.status and isinstance(current, str) and READ_STATUS.get(current) == new.status
    return str(current) if same_word else dialect.statuses.get(new.status, new.status)


def _set_or_remove(key: str, value: Any, changed: dict[str, Any], removed: list[str]) -> None:
    if value is ABSENT:
        removed.append(key)
    else:
        changed[key] = value


@cache
def key_order(dialect_name: str) -> list[str]:
    """Their keys in our order: an added key goes after its predecessor here."""
    return [DIALECTS[dialect_name].key(key) for key in KEYS]
