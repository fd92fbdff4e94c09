"""What every reader of another program's board has at hand: texts, strict JSON, values, drafts and findings."""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from ...core.model import CANCELLED, COMPLETED, IN_PROGRESS, PENDING, Task
from ...core.record import Record
from ...core.rules.incoming import DUPLICATE, GUESSED, METADATA, SKIPPED, UNREADABLE, Finding, Incoming, short
from ...stores.files.dialects import utc_time
from ...stores.files.strict import NotStrict, parse


class Text(Record):
    """One file of a source: its name below the source's own, and what it says."""

    name: str
    text: str


class Batch(Record):
    """What was read: the tasks with ids of their own, what is to be reported, and how many records there were."""

    items: tuple[Incoming, ...]
    findings: tuple[Finding, ...]
    records: int


class Reading:
    """Gathers the tasks and findings of one source while it is read."""

    def __init__(self) -> None:
        self.items: list[Incoming] = []
        self.findings: list[Finding] = []
        self.records = 0

    def tell(self, kind: str, where: str, text: str) -> None:
        """Add a line to the report."""
        self.findings.append(Finding(kind, where, text))

    def add(self, source: str, where: str, task: Task, kept: Mapping[str, Any], *, native: bool = False) -> None:
        """Add a task; of what is kept, empty values say nothing."""
        told = {name: value for name, value in kept.items() if value not in (None, "", [], {})}
        self.items.append(Incoming(source, task, where, told, native))

    def status(self, value: Any, known: Mapping[str, Any], where: str, source: str) -> dict[str, Any]:
        """The status fields for a word of the source; an unknown one holds the task, lest it start too early."""
        found = known.get(re.sub(r"[\s_-]+", "", value.lower()) if isinstance(value, str) else "")
        if found is None:
            self.tell(GUESSED, where, f"{short(source)} has the status {value!r}, which is unknown: held")
            return {"status": PENDING, "hold": f"its status was {value!r}"}
        return {"status": PENDING, "hold": found[1:]} if found.startswith(HOLD) else {"status": found}

    def batch(self, *, newest: bool = False) -> Batch:
        """All of it. newest: of records with one id the latest counts; otherwise each is a task of its own."""
        found: dict[str, Incoming] = {}
        again: dict[str, int] = {}
        for item in self.items:
            first = found.get(item.source)
            if first is None:
                found[item.source] = item
            elif first.task == item.task and first.kept == item.kept:
                self.tell(DUPLICATE, item.where, f"{item.source} stands the same at {first.where}")
            elif newest or item.native:
                later = max(first, item, key=lambda i: i.task.updated_at or "")
                found[item.source] = later
                other = item if later is first else first
                self.tell(DUPLICATE, other.where, f"{item.source} is left out for the later one at {later.where}")
            else:
                name = item.source
                while name in found:
                    again[item.source] = again.get(item.source, 1) + 1
                    name = f"{item.source}~{again[item.source]}"
                found[name] = item.replace(source=name)
                self.tell(DUPLICATE, item.where, f"{item.source} is another task at {first.where}; this one is {name}")
        self._tell_kept(found.values())
        return Batch(tuple(found.values()), tuple(self.findings), self.records)

    def _tell_kept(self, items: Iterable[Incoming]) -> None:
        keys: dict[str, list[str]] = {}
        for item in items:
            for key in item.kept:
                keys.setdefault(key, []).append(item.where)
        for key, places in keys.items():
            self.tell(METADATA, places[0], f"{key} of {len(places)} task{'s' * (len(places) > 1)}")


HOLD = "!"
"""How a table of statuses says that a word holds the task; the reason follows."""

_HELD = ("blocked", "deferred", "review", "阻塞", "已阻塞", "暂停", "搁置", "评审中", "待评审")
STATUSES = {
    **dict.fromkeys(("open", "todo", "pending", "new", "backlog", "ready", "待办", "未开始", "待处理"), PENDING),
    **dict.fromkeys(("inprogress", "doing", "started", "active", "进行中", "处理中"), IN_PROGRESS),
    **dict.fromkeys(("done", "completed", "complete", "closed", "已完成", "完成"), COMPLETED),
    **dict.fromkeys(("cancelled", "canceled", "deleted", "tombstone", "已取消", "取消"), CANCELLED),
    **{word: f"{HOLD}{word} when it was imported" for word in _HELD},
    "inreview": f"{HOLD}in review when it was imported",
}
"""Words for a status that mean the same in several programs, without spaces and dashes; teams choose their own."""

PRIORITIES = {"critical": 0, "high": 1, "medium": 2, "low": 3}


class Unparsed(ValueError):
    """A text is not what its format promises. `line` counts from 1."""

    def __init__(self, message: str, line: int = 1) -> None:
        super().__init__(message)
        self.line = line


_MARKERS = re.compile(r"^(?:<{7}|>{7}) ", re.MULTILINE)


def require_whole(text: str) -> None:
    """Raises Unparsed for a text that is empty, or in which git left a conflict."""
    if not text.strip("\0 \r\n\t"):
        raise Unparsed("the file is empty")
    if marker := _MARKERS.search(text):
        raise Unparsed("git conflict markers", line_at(text, marker.start()))


def line_at(text: str, offset: int) -> int:
    """The number of the line in which a character stands."""
    return text.count("\n", 0, offset) + 1


def loads(text: str) -> Any:
    """One JSON value, as strictly as our own files are read. Raises Unparsed."""
    try:
        if text.lstrip().startswith("{"):
            return parse(text)
        found = parse('{"":' + text + "\n}")
    except NotStrict as flaw:
        if str(flaw) in _MORE and (second := _second_document(text)):
            raise Unparsed("a second JSON document begins here", line_at(text, second)) from None
        raise Unparsed(str(flaw), flaw.line or 1) from None
    if len(found) > 1:
        raise Unparsed("more than one JSON value")
    return found[""]


_MORE = ("Extra data", "Expecting ',' delimiter")


def _second_document(text: str) -> int | None:
    """Where something follows a whole JSON value."""
    begin = len(text) - len(text.lstrip())
    with suppress(ValueError):
        end = json.JSONDecoder().raw_decode(text, begin)[1]
        return end + len(text[end:]) - len(text[end:].lstrip())
    return None


class Lines:
    """Finds where in a JSON file the objects stand that have this key, asked for in their order by its value."""

    def __init__(self, source: Text, key: str) -> None:
        self._source, self._at, self._line = source, 0, 1
        self._places: dict[str, list[int]] = {}
        decode = json.JSONDecoder().raw_decode
        for found in reversed(list(re.finditer(rf'"{key}"\s*:\s*(?=")', source.text))):
            self._places.setdefault(decode(source.text, found.end())[0], []).append(found.end())

    def where(self, value: str) -> str:
        """File and line of the next such value; of the one before where there is none."""
        places = self._places.get(value, [])
        while places and places[-1] < self._at:
            places.pop()
        at = places.pop() if places else self._at
        self._line += self._source.text.count("\n", self._at, at)
        self._at = at
        return f"{self._source.name}:{self._line}"


def json_files(reading: Reading, texts: Iterable[Text]) -> Iterator[tuple[Text, Any]]:
    """Each file that is one JSON value, and that value; what is none is reported."""
    for source in texts:
        try:
            value = loads(source.text)
        except Unparsed as flaw:
            reading.tell(UNREADABLE, f"{source.name}:{flaw.line}", str(flaw))
            continue
        yield source, value


def json_lines(reading: Reading, source: Text) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each object of a file with one on a line, and where it stands; what is none is reported."""
    for number, line in enumerate(source.text.split("\n"), 1):
        if not (line := line.strip().removesuffix(",")) or line in "[]":
            continue
        reading.records += 1
        where = f"{source.name}:{number}"
        try:
            value = loads(line)
        except Unparsed as flaw:
            reading.tell(UNREADABLE, where, str(flaw))
            continue
        if isinstance(value, dict):
            yield where, value
        else:
            reading.tell(SKIPPED, where, f"a {type(value).__name__}, not an object")


def as_text(value: Any) -> str:
    """Text as it is, a number in its digits, nothing for anything else."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(int(value) if value == int(value) else value)
    return value if isinstance(value, str) else ""


def as_list(value: Any) -> list[str]:
    """A list of texts, however it was written; text may have commas between its parts."""
    parts = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else []
    return [text for part in parts if (text := as_text(part).strip())]


def as_note(at: Any, by: Any, text: Any) -> dict[str, str]:
    """A note of that time, by whoever is known to have written it."""
    return {"at": utc_time(at) or as_text(at), "by": as_text(by) or "import", "text": as_text(text)}


def as_priority(value: Any, words: Mapping[str, int] = PRIORITIES) -> dict[str, Any]:
    """The priority field for a word or a number from 0 to 4, if it is one."""
    text = as_text(value).strip().lower()
    found = words.get(text, int(text) if text in tuple("01234") else None)
    return {} if found is None else {"priority": found}


def times(record: Mapping[str, Any], created: str, updated: str, ended: str) -> dict[str, Any]:
    """The time fields out of these keys of a record."""
    keys = {"created_at": created, "updated_at": updated, "completed_at": ended}
    return {field: utc_time(record.get(key)) for field, key in keys.items()}


def sections(*parts: tuple[str, Any]) -> str:
    """One text out of several with their titles; the first has none."""
    told = [(title, as_text(value).strip()) for title, value in parts]
    return "\n\n".join(f"## {title}\n\n{text}" if title else text for title, text in told if text)


def keys(names: str) -> frozenset[str]:
    """These names, with spaces between them."""
    return frozenset(names.split())


def rest(record: Mapping[str, Any], used: Container[str], words: Mapping[str, int] = PRIORITIES) -> dict[str, Any]:
    """What of a record has no field here: keys that are not used, and values of another kind than is read there."""
    return {key: value for key, value in record.items() if key not in used or not _is_read(key, value, words)}


_TIMES = keys("created_at updated_at closed_at deleted_at created created_date updated_date entry modified end")
_LISTS: dict[str, Any] = {
    **dict.fromkeys(("labels", "tags", "deps", "depends"), (str, int, float)),
    **dict.fromkeys(("comments", "annotations"), dict),
    **dict.fromkeys(("dependencies", "subtasks"), object),
}


def _is_read(key: str, value: Any, words: Mapping[str, int]) -> bool:
    if key == "priority":
        return bool(as_priority(value, words))
    if key in _TIMES:
        return utc_time(value) is not None
    if key in _LISTS and isinstance(value, list):
        return all(isinstance(item, _LISTS[key]) for item in value)
    return isinstance(value, (str, int, float)) and not isinstance(value, bool)
