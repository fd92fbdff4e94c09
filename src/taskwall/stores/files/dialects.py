"""Task files, ours and those that other programs wrote, read into `Task`. How they are written back: `changes`.

What each looks like: DESIGN section 2 and its Dialects paragraph. A file with `rev` is ours.
"""

from __future__ import annotations

from ...core.model import CANCELLED, COMPLETED, IN_PROGRESS, KEYS, PENDING, STATUSES, WILD_HOLD, Task, id_flaw
from ...core.record import Record
from .plain import BOOKKEEPING, NotATask, fits, plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

OURS, RESEARCH, NUMBERED, CLAUDE_CODE, LESSON = "taskwall", "research", "numbered", "claude-code", "lesson"
ARM, NESTED = "arm", "nested"


class Dialect(Record):
    """How one kind of file differs from ours."""

    name: str
    renamed: dict[str, str] = {}  # our key → theirs
    statuses: dict[str, str] = {}  # our status → theirs
    no_owner: Any = None  # what stands for nobody; ABSENT when the key is left out

    def key(self, ours: str) -> str:
        """Their name for a key of ours."""
        return self.renamed.get(ours, ours)


ABSENT = object()

DIALECTS = {
    dialect.name: dialect
    for dialect in (
        Dialect(OURS),
        Dialect(
            RESEARCH,
            renamed={"subject": "title", "status": "state", "blockedBy": "blocked_by"},
            statuses={COMPLETED: "done"},
            no_owner=ABSENT,
        ),
        Dialect(NUMBERED, statuses={CANCELLED: "deleted"}, no_owner=""),
        Dialect(CLAUDE_CODE, statuses={CANCELLED: "deleted"}, no_owner=ABSENT),
        Dialect(LESSON),
        Dialect(ARM, renamed={"id": "task_id", "subject": "name", "blockedBy": "blocked_by", "owner": "assigned_arm"}),
        Dialect(NESTED, renamed={"blockedBy": "block_by", "blocks": "blocking"}),
    )
}

OUR_KEYS = {
    name: {dialect.key(key): key for key in KEYS} | {dialect.key("blocks"): "id"} for name, dialect in DIALECTS.items()
}
"""By dialect: their key → ours. `blocks`, which we never store, is read before the others, like the id."""

READ_STATUS = {status: status for status in STATUSES} | {"done": COMPLETED, "deleted": CANCELLED}


def recognise(raw: Mapping[str, Any]) -> str:
    """The name of the dialect an object is written in. Raises NotATask."""
    if isinstance(raw.get("rev"), int) and "id" in raw:
        return OURS
    if "TaskPayload" in raw and "id" in raw:
        return NESTED
    if "task_id" in raw and "name" in raw:
        return ARM
    if "id" not in raw or not ("subject" in raw or "title" in raw):
        if isinstance(raw.get("tasks"), (dict, list)):
            raise NotATask("a whole board in one file, not a task; it can be imported")
        raise NotATask("not a task: it has no id and subject")
    if "title" in raw or "state" in raw:
        return RESEARCH
    if isinstance(raw["id"], int):
        return NUMBERED
    return CLAUDE_CODE if "blocks" in raw or "activeForm" in raw else LESSON


def read(raw: Mapping[str, Any]) -> Task:
    """The task in an object. Raises NotATask when its id, subject or blockers are no such things."""
    if task := plain(raw):
        return task
    dialect = DIALECTS[recognise(raw)]
    source = _unnested(raw) if dialect.name == NESTED else raw
    reader = _Reader(dialect, source)
    number = source[dialect.key("id")]
    fields: dict[str, Any] = {
        "id": reader.id(number),
        "subject": reader.required_text("subject"),
        "blocked_by": reader.ids("blockedBy"),
        "blocks": reader.ids("blocks") if dialect.name != OURS else (),
        "numeric": not isinstance(number, str),
        "dialect": dialect.name,
    }
    fields |= reader.status()
    extra = {}
    for theirs, value in source.items():
        key = OUR_KEYS[dialect.name].get(theirs)
        if key is None:
            extra[theirs] = value
        elif value is not None and KEYS[key] not in fields and (dialect.name == OURS or key not in BOOKKEEPING):
            fields |= reader.field(key, KEYS[key])
    if dialect.name != OURS:
        fields["created_at"] = utc_time(source.get("createdAt", source.get("created_at")))
    oddities = _oddities(fields["id"], fields["status"], fields.get("owner"), fields["blocked_by"])
    return Task(**fields, extra=extra, notices=(*reader.notices, *oddities))


def _unnested(raw: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(raw["TaskPayload"], dict):
        raise NotATask("its TaskPayload is not an object")
    return raw["TaskPayload"] | {"id": raw["id"]}


def _oddities(task_id: str, status: str, owner: str | None, blocked_by: tuple[str, ...]) -> list[str]:
    found = []
    if status == IN_PROGRESS and owner is None:
        found.append("in progress without an owner")
    if task_id in blocked_by:
        found.append("waits for itself")
    return found


class _Reader:
    """Reads well-typed values of one object and takes note of the others, which are kept and ignored."""

    def __init__(self, dialect: Dialect, source: Mapping[str, Any]) -> None:
        self.dialect, self.source, self.notices = dialect, source, list[str]()

    def id(self, value: Any) -> str:
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            raise NotATask(f"its id is no text or number but {type(value).__name__}")
        if flaw := id_flaw(str(value)):
            raise NotATask(f"its id cannot be used: {flaw}")
        return str(value)

    def required_text(self, key: str) -> str:
        value = self.source.get(self.dialect.key(key))
        if not isinstance(value, str):
            raise NotATask(f"its {self.dialect.key(key)} is not text")
        return value

    def ids(self, key: str) -> tuple[str, ...]:
        """Ids of an edge list. What could hide an edge makes the file unreadable, lest a gate opens."""
        value = self.source.get(self.dialect.key(key))
        if value is None:
            return ()
        if not isinstance(value, list) or any(isinstance(i, bool) or not isinstance(i, (str, int)) for i in value):
            raise NotATask(f"its {self.dialect.key(key)} is not a list of ids")
        return tuple(str(i) for i in value)

    def status(self) -> dict[str, Any]:
        """The status, and the hold that a value we do not know stands for."""
        key = self.dialect.key("status")
        value = self.source.get(key)
        if isinstance(value, str) and value in READ_STATUS:
            return {"status": READ_STATUS[value]}
        if self.dialect.name == RESEARCH and value == "blocked":
            return {"status": PENDING, "hold": self.source.get("hold") if self._is("hold", str) else WILD_HOLD}
        self.notices.append(f"unknown {key} {value!r}")
        return {"status": PENDING, "hold": f"its {key} is {value!r}, which is none we know"}

    def _is(self, key: str, kind: type) -> bool:
        return isinstance(self.source.get(self.dialect.key(key)), kind)

    def field(self, key: str, field: str) -> dict[str, Any]:
        value = self.source[self.dialect.key(key)]
        if not fits(field, value):
            self.notices.append(f"{self.dialect.key(key)} is not of its type and is ignored")
            return {}
        if field == "owner":
            return {"owner": value or None}
        if field == "parent":
            return {"parent": str(value)}
        return {field: tuple(value) if isinstance(value, list) else value}


def utc_time(value: Any) -> str | None:
    """A time of any kind seen in the wild as RFC 3339 UTC: ISO text, naive text (taken as UTC), seconds since 1970."""
    from datetime import UTC, datetime  # imported late: only files of other programs need it

    try:
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0:
            moment = datetime.fromtimestamp(value, UTC)
        elif isinstance(value, str):
            moment = datetime.fromisoformat(value)
            moment = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
        else:
            return None
    except (ValueError, OverflowError, OSError):
        return None
    return f"{moment:%Y-%m-%dT%H:%M:%S.%f}Z"
