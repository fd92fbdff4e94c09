"""Boards of other programs: which formats there are, how one is recognised, and how its files are read.

A reader is a pure function from texts to tasks and findings; only this module looks at files, and it never writes.
"""

from __future__ import annotations

import os
import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress

from ...core.errors import Invalid
from ...core.record import Record
from ...core.rules.incoming import SKIPPED, UNREADABLE, Finding
from ...stores.files.archive import Archive
from ...stores.files.dialects import recognise
from ...stores.files.disk import DISK, NotPlain
from ...stores.files.plain import NotATask
from . import backlog, beads, checklist, folder, ours, taskmaster, taskwarrior, ticket
from .source import Batch, Text, Unparsed, loads, require_whole

MAX_SOURCE = 64 * 1024 * 1024
"""How large one file of a source may be, in bytes."""


class Format(Record):
    """One kind of board. places: where it lies in a project, below the folder that is given.

    suffix: of the files in a place that is a folder. deep: with the folders below it. names: other words for it.
    archive: finished tasks of ours lie in a folder there, too.
    """

    name: str
    read: Callable[[Sequence[Text]], Batch]
    places: tuple[str, ...]
    suffix: str = ""
    deep: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    archive: bool = False
    worldwide: bool = False  # its ids are unique beyond one board


FORMATS = {
    form.name: form
    for form in (
        Format("beads", beads.read, (".beads/issues.jsonl", ".beads/beads.jsonl"), names=("bd",), worldwide=True),
        Format(
            "taskmaster", taskmaster.read, (".taskmaster/tasks/tasks.json", "tasks/tasks.json"), names=("task-master",)
        ),
        Format("backlog", backlog.read, ("backlog",), ".md", backlog.FOLDERS, ("backlog.md", "backlogmd")),
        Format("taskwarrior", taskwarrior.read, (), names=("task", "tw"), worldwide=True),
        Format("ticket", ticket.read, (".tickets",), ".md", names=("tickets", "tk")),
        Format(
            "tasks",
            folder.read,
            (".tasks",),
            ".json",
            names=("claude", "claude-code", "lesson", "numbered", "research", "arm", "nested"),
            archive=True,
        ),
        Format("checklist", checklist.read, (), names=("markdown", "md")),
        Format("jsonl", ours.read, (), names=("taskwall",), worldwide=True),
    )
}


class Source(Record):
    """A board of another program: its format, and the file or folder that is read. beside: others that are not."""

    form: Format
    path: str
    beside: tuple[str, ...] = ()


def format_named(name: str) -> Format:
    """The format of this name or other word for it. Raises Invalid."""
    for form in FORMATS.values():
        if name.lower() in (form.name, *form.names):
            return form
    raise Invalid(f"no format {name!r}", next=f"one of {', '.join(FORMATS)}")


def find_source(path: str, form: Format | None, own: str) -> Source:
    """The board that lies at a path: a file, its folder, or a project with it. Raises Invalid when that is not certain.

    own: the board that imports, which is no source unless named itself.
    """
    if not os.path.isfile(path) and not os.path.isdir(path):
        if path != "-" and not os.path.exists(path):
            raise Invalid(f"{path} does not exist", next="name a file, or the folder of a board or project")
        told = f"{path} is a pipe or device, and tasks are known again by the file that they came from"
        way = f"save it first: `… > FILE; taskwall import {form.name if form else 'FORMAT'} FILE`"
        raise Invalid(told, next=way)
    path = os.path.realpath(path)
    if not os.path.isdir(path):
        return Source(form or _recognised(path), path)
    found = [source for f in ([form] if form else FORMATS.values()) for source in _places(f, path, own)]
    if not found:
        whole = [Source(f, path) for f in ([form] if form else _by_content(path)) if f.suffix]
        found = [source for source in whole if _files(source, [])]
    if len({source.form.name for source in found}) == 1:
        others = dict.fromkeys(source.path for source in found if source.path != found[0].path)
        return found[0].replace(beside=tuple(others))
    names = [f"`taskwall import {source.form.name} {path}`" for source in found]
    if names:
        raise Invalid(f"{path} holds boards of several programs", next=f"say which: {' or '.join(names)}")
    raise Invalid(f"no board was found in {path}", next=f"name its file; formats are {', '.join(FORMATS)}")


def _places(form: Format, path: str, own: str) -> Iterator[Source]:
    """The places of this format in a folder, or those that the folder is itself a part of."""
    above = [path, os.path.dirname(path), os.path.dirname(os.path.dirname(path))]
    for full in (os.path.join(upper, place) for place in form.places for upper in above):
        is_kind = os.path.isdir(full) if form.suffix else os.path.isfile(full)
        is_kind = is_kind and (not form.deep or any(os.path.isdir(os.path.join(full, name)) for name in form.deep))
        if is_kind and f"{full}{os.sep}".startswith(f"{path}{os.sep}") and (full != own or path == own):
            yield Source(form, full)


def _by_content(path: str) -> list[Format]:
    """The formats of the first files of a folder that lies elsewhere than usual."""
    if form := next((FORMATS["backlog"] for name in ("tasks", "completed") if _holds(path, "config.yml", name)), None):
        return [form]
    found = []
    for name in sorted(_names(path))[:MAX_LOOKED_AT]:
        if name.endswith((".json", ".md")) and (text := _text(os.path.join(path, name), [])) is not None:
            form = _format_of(name, text)
            found += [form] if form and form.suffix and form not in found else []
    return found


MAX_LOOKED_AT = 50
"""How many files of a folder are looked at to see what it is."""


def _names(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except OSError as error:
        raise Invalid(f"{path} cannot be read: {error.strerror}", next="see that this process may read it") from None


def _holds(path: str, *names: str) -> bool:
    return all(os.path.exists(os.path.join(path, name)) for name in names)


def _recognised(path: str) -> Format:
    """The format of one file. Raises Invalid."""
    findings: list[Finding] = []
    text = _text(path, findings)
    if text is None:
        told = findings[0].text.partition("; ")[0]
        raise Invalid(f"{path}: {told}", next=conversion(findings) or "name another file")
    try:
        require_whole(text)
    except Unparsed as flaw:
        told = f"{path}:{flaw.line}: {flaw}; nothing was imported"
        raise Invalid(told, next="mend the file with its program") from None
    if form := _format_of(os.path.basename(path), text):
        return form
    way = f"name the format if it is one of {', '.join(FORMATS)}"
    raise Invalid(f"{path} is in no format that is known here", next=way)


def _format_of(name: str, text: str) -> Format | None:
    if name.lower().endswith((".md", ".markdown", ".txt")):
        known = _markdown(text)
    else:
        known = next(filter(None, map(_json, _values(text))), None)
        known = "jsonl" if known == "tasks" and name.endswith(".jsonl") else known
    return FORMATS[known] if known else None


def _markdown(text: str) -> str | None:
    if text.startswith("---"):
        head = text.partition("\n---")[0]
        if re.search(r"^deps:", head, re.MULTILINE):
            return "ticket"
        if re.search(r"^id:", head, re.MULTILINE) and re.search(r"^title:", head, re.MULTILINE):
            return "backlog"
    return "checklist" if any(map(checklist.item_in, text.expandtabs(4).splitlines())) else None


def _values(text: str) -> Iterator[object]:
    """What the whole file is, else the first objects of a file with one on a line."""
    with suppress(Unparsed):
        yield loads(text)
        return
    for line in text.split("\n", MAX_LOOKED_AT)[:MAX_LOOKED_AT]:
        with suppress(Unparsed):
            yield loads(line.strip().rstrip(","))


def _json(value: object) -> str | None:
    """The format in which this is a task, or a whole board."""
    record = next(iter(value), None) if isinstance(value, list) else value
    if not isinstance(record, dict):
        return None
    if "uuid" in record and "description" in record:
        return "taskwarrior"
    if "title" in record and ("issue_type" in record or {"id", "status", "priority", "created_at"} <= record.keys()):
        return "beads"
    inner = [record, *(board for board in record.values() if isinstance(board, dict))]
    for tasks in (board["tasks"] for board in inner if isinstance(board.get("tasks"), (list, dict))):
        items = tasks.values() if isinstance(tasks, dict) else tasks
        return "tasks" if any(isinstance(item, dict) and "subject" in item for item in items) else "taskmaster"
    with suppress(NotATask):
        return "tasks" if recognise(record) and {"status", "state", "TaskPayload"} & record.keys() else None
    return None


def read_source(source: Source) -> Batch:
    """All that could be read of a source; what could not is among the findings. Writes nothing."""
    findings: list[Finding] = []
    named = ((path, f"{os.path.basename(path)}:1") for path in source.beside)
    beside = [Finding(SKIPPED, where, f"{path} lies beside it, not read") for path, where in named]
    texts = [
        Text(name, text) for name, path in _files(source, findings) if (text := _text(path, findings, name)) is not None
    ]
    whole = [text for text in texts if _is_whole(text, findings)]
    batch = source.form.read(whole)
    return batch.replace(findings=(*beside, *findings, *batch.findings), records=batch.records + len(findings))


def _files(source: Source, findings: list[Finding]) -> list[tuple[str, str]]:
    """The files of a source, by their names below it."""
    if not os.path.isdir(source.path):
        return [(os.path.basename(source.path), source.path)]
    inner = [os.path.join(source.path, name) for name in source.form.deep] or [source.path]
    found = []
    for folder_path in inner:
        for at, folders, names in os.walk(folder_path, onerror=lambda error: _tell(findings, error)):
            folders[:] = sorted(folders) if source.form.deep else []
            found += [os.path.join(at, name) for name in sorted(names) if name.endswith(source.form.suffix)]
    if source.form.archive:
        archive, here = Archive(DISK, source.path), {os.path.basename(path) for path in found}
        put_away = [archive.in_file(task_id)[0] for task_id in sorted(archive.ids())]
        found += [os.path.join(source.path, name) for name in put_away if os.path.basename(name) not in here]
    return [(os.path.relpath(path, source.path).replace(os.sep, "/"), path) for path in found]


def _tell(findings: list[Finding], error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):  # a board need not have every folder
        findings.append(Finding(UNREADABLE, f"{error.filename}:1", str(error.strerror)))


def _text(path: str, findings: list[Finding], name: str = "") -> str | None:
    """The text of one file, or None and why there is none."""
    name = name or os.path.basename(path)
    try:
        data, _ = DISK.read(path, MAX_SOURCE)
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        findings.append(Finding(UNREADABLE, f"{name}:{line}", f"{NOT_UTF8}{_conversion(error.object)}"))
    except (OSError, NotPlain) as error:
        findings.append(Finding(UNREADABLE, f"{name}:1", str(getattr(error, "strerror", None) or error)))
    return None


NOT_UTF8 = "not UTF-8 text; "
"""How a finding begins that goes on with the conversion."""


def conversion(findings: Iterable[Finding]) -> str:
    """How to convert the first file that is told to be in another encoding; empty when none is."""
    return next((f.text.removeprefix(NOT_UTF8) for f in findings if f.text.startswith(NOT_UTF8)), "")


def _conversion(data: bytes) -> str:
    """A command for a text in another encoding, by its byte order mark; without one it is a guess."""
    encoding, doubt = "UTF-16", ""
    if not data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        encoding, doubt = "ENCODING", ", with the encoding that it has"
        with suppress(UnicodeDecodeError):
            data.decode("gb18030")
            encoding, doubt = "GB18030", ", if that is its encoding"
    return f"convert it: `iconv -f {encoding} -t UTF-8 FILE > NEW`{doubt}"


def _is_whole(source: Text, findings: list[Finding]) -> bool:
    try:
        require_whole(source.text)
    except Unparsed as flaw:
        findings.append(Finding(UNREADABLE, f"{source.name}:{flaw.line}", str(flaw)))
        return False
    return True
