"""Task files of ours in which nothing is odd, as nearly all are; what is true of the others is told by `dialects`."""

from __future__ import annotations

from ...core.model import IN_PROGRESS, KEYS, STATUSES, Task, id_flaw

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

BOOKKEEPING = frozenset(
    ("evidence", "createdAt", "createdBy", "updatedAt", "startedAt", "completedAt", "key", "attempts", "epoch", "rev")
)
"""Keys that files of other programs never gain; what we must remember of them lives in the claim ledger."""


class NotATask(ValueError):
    """The object has no id or no subject that could be read."""


def plain(raw: Mapping[str, Any]) -> Task | None:
    """The task in a file of ours in which each value is of its type and nothing is odd, as in nearly all; else None.

    The same as `dialects.read` finds, several times as fast: a large board is read whole now and then.
    """
    if type(raw.get("rev")) is not int:
        return None
    extra: dict[str, Any] = {}
    fields: dict[str, Any] = {**Task.__defaults__, "extra": extra}
    for key, value in raw.items():
        if (known := _PLAIN.get(key)) is None:
            extra[key] = value
        elif value is not None:
            field, kind, fits = known
            if type(value) is not kind or (fits and not fits(value)):
                return None
            fields[field] = tuple(value) if type(value) is list else value
    task_id, blockers, status = fields.get("id"), fields["blocked_by"], raw.get("status")
    sound = task_id and "subject" in fields and status in STATUSES and not id_flaw(task_id)
    odd = task_id in blockers or (status == IN_PROGRESS and not fields["owner"])
    if not sound or odd:
        return None
    fields["owner"] = fields["owner"] or None
    return Task.made_of(fields)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_texts(value: Any) -> bool:
    if not isinstance(value, (list, tuple)):
        return False
    for item in value:  # noqa: SIM110 - asked of every file, and a generator takes as long as all the rest of this
        if not isinstance(item, str):
            return False
    return True


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_notes(value: Any) -> bool:
    def well_formed(note: Any) -> bool:
        return isinstance(note, dict) and all(isinstance(note.get(key), str) for key in ("at", "by", "text"))

    return isinstance(value, list) and all(well_formed(note) for note in value)


def _is_priority(value: Any) -> bool:
    return _is_count(value) and value <= 4


_FITS: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(KEYS.values(), _is_text),
    **dict.fromkeys(("labels", "products", "checks", "options"), _is_texts),
    **dict.fromkeys(("evidence", "metadata"), _is_object),
    **dict.fromkeys(("attempts", "epoch", "rev"), _is_count),
    "blocked_by": lambda value: isinstance(value, list),  # `_Reader.ids` has looked into it
    "parent": lambda value: _is_text(value) or _is_count(value),
    "priority": _is_priority,
    "notes": _is_notes,
}


_KINDS: dict[str, type] = {
    **dict.fromkeys(KEYS.values(), str),
    **dict.fromkeys(("blocked_by", "labels", "products", "checks", "options", "notes"), list),
    **dict.fromkeys(("evidence", "metadata"), dict),
    **dict.fromkeys(("priority", "attempts", "epoch", "rev"), int),
}
_PLAIN = {
    key: (field, _KINDS[field], None if _KINDS[field] in (str, dict) else (_FITS | {"blocked_by": _is_texts})[field])
    for key, field in KEYS.items()
}
"""By key of ours: its field, the type that it has as good as always, and what more is asked of a value of that type."""


def fits(field: str, value: Any) -> bool:
    """Whether a stored value has the type of this field of `Task`."""
    return _FITS[field](value)
