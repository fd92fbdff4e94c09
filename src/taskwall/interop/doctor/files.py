"""The task files themselves: those that cannot be read, those that claim one id, those called otherwise."""

from __future__ import annotations

import os
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import chain, count
from shlex import quote

from ...core.model import MAX_ID, Task, id_flaw
from ...stores.files.changes import key_order
from ...stores.files.dialects import DIALECTS, OURS, read
from ...stores.files.disk import DISK, MAX_BYTES, NotPlain, decode
from ...stores.files.folder import SUFFIX
from ...stores.files.patch import patch
from ...stores.files.plain import NotATask
from ...stores.files.strict import NotStrict, parse
from ..driver import park, parking
from ..git import is_task_file, task_in
from ..merge import MadeApart, Merged, Unmergeable, merge
from .findings import Found, found
from .repairs import Repair
from .sight import File, Sight

BOM = b"\xef\xbb\xbf"
MARKED = re.compile(rb"(?m)^<{7,}(?: |$)")


def unreadable(sight: Sight) -> Iterator[Found]:
    """Files that are no task. Those that git left in conflict are told by `conflicts`."""
    for file in sight.files:
        if file.task.flaw and file.name not in sight.stages:
            shown = sight.shown(file.name)
            code = "conflict" if file.data and MARKED.search(file.data) else "unreadable"
            repair = _without_bom(file) or _from_git(sight, file)
            yield found(code, f"{shown}: {file.task.flaw}", _by_hand(sight, file), file=shown, repair=repair)


def _without_bom(file: File) -> Repair | None:
    """The file without its byte order mark, when that is all that is wrong."""
    if not file.data or not file.data.startswith(BOM):
        return None
    text = _task_text(file.data[len(BOM) :])
    return Repair(f"takes the byte order mark out of {file.name}", file.path, file.data, text) if text else None


def _from_git(sight: Sight, file: File) -> Repair | None:
    """The committed version, when nothing at all is in the file that could be lost."""
    if file.data is None or file.data.strip(b"\0 \r\n\t") or sight.git is None:
        return None
    text = _task_text(sight.git.committed(sight.git.path(file.name)))
    return Repair(f"brings {file.name} back as it is in HEAD", file.path, file.data, text) if text else None


def _task_text(data: bytes) -> str | None:
    try:
        text = decode(data)
        read(parse(text))
    except (NotPlain, NotStrict, NotATask):
        return None
    return text if len(data) <= MAX_BYTES else None


def _last_good(sight: Sight, file: File) -> str | None:
    """The latest commit in which the file was a task."""
    if sight.git is None:
        return None
    path = sight.git.path(file.name)
    commits = [head.commit for head in sight.git.commits([path])]
    return next((name[:12] for name in commits if _task_text(sight.git.committed(path, name))), None)


def _by_hand(sight: Sight, file: File) -> str:
    where = quote(sight.shown(file.name))
    if "a whole board" in (file.task.flaw or ""):
        return "`taskwall import` reads it; then move it out of the folder"
    if "not a task" in (file.task.flaw or ""):
        return "move it out of the folder, if another program does not need it there"
    good = _last_good(sight, file)
    way = f"`git show {good}:./{where}` was good last; `git restore --source={good} {where}` takes it" if good else ""
    plain = os.path.isfile(file.path) and not os.path.islink(file.path)
    return way or ("mend it in an editor: nothing here guesses what it was" if plain else "move it out of the folder")


def conflicts(sight: Sight) -> Iterator[Found]:
    """Files that git stopped at in a merge: merged by their fields from its three stages, where nobody mended them."""
    for name, stages in sight.stages.items():
        file, shown = sight.load(name), sight.shown(name)
        if is_task_file(name):
            if not {2, 3} <= stages.keys():
                way = f"`git add {quote(shown)}` keeps the file, `git rm {quote(shown)}` lets it go"
                yield found("unmerged", f"{shown}: one side removed it, the other changed it", way, file=shown)
            elif file.task.flaw or file.data == _texts(sight, stages)[1]:
                yield from _in_conflict(sight, file, stages)
            else:
                told = f"{shown} is readable, and git does not know yet that it is merged"
                yield found("unmerged", told, f"look at it, then `git add {quote(shown)}`", file=shown)


def _texts(sight: Sight, stages: dict[int, str]) -> list[bytes]:
    """Base, ours and theirs; empty where there is none."""
    assert sight.git is not None
    blobs = sight.git.texts(stages.values())
    return [blobs.get(stages.get(number, "")) or b"" for number in (1, 2, 3)]


def _in_conflict(sight: Sight, file: File, stages: dict[int, str]) -> Iterator[Found]:
    shown = sight.shown(file.name)
    add = f"`git add {quote(shown)}`"
    told = f"{shown}: {file.task.flaw or 'git has another version of it, which is not in the file'}"
    try:
        base, ours, theirs = map(decode, _texts(sight, stages))
        merged = merge(base, ours, theirs)
    except MadeApart as flaw:
        yield _told_from_theirs(sight, file, ours, theirs, str(flaw))
        return
    except (NotPlain, Unmergeable) as flaw:
        way = f"decide by hand ({flaw}): `git show {quote(f':2:./{shown}')}` is our side, `:3:` theirs; then {add}"
        yield found("conflict", told, way, file=shown)
        return
    is_kept = not merged.parked or os.path.lexists(parking(sight.path, shown, merged)[0])
    if merged.text.encode() == file.data and is_kept:
        told = f"{shown} is merged, and git does not know it yet"
        yield found("unmerged", told, f"look at it, then {add}", file=shown)
        return
    keep = partial(park, sight.path, shown, merged) if merged.parked else None
    words = f"merges {file.name} by its fields from git's three stages; then {add} tells git"
    repair = Repair(words, file.path, file.data, merged.text, before=keep)
    yield found("conflict", told, "", file=shown, repair=repair)


def _told_from_theirs(sight: Sight, file: File, ours: str, theirs: str, flaw: str) -> Found:
    """Two tasks that were made under one id: ours keeps it, and theirs gets another one."""
    shown, other = sight.shown(file.name), task_in(file.name, theirs.encode())
    others = [each for each in sight.files if each.task.id != other.id and each.task.subject == other.subject]
    known = next((each for each in others if each.task.created_at == other.created_at), None)
    if known and file.data == ours.encode():
        waiting = f"{', '.join(task.id for task in sight.view.dependents(other.id)) or 'nobody'} waits for {other.id}"
        told = f"{shown} is our task, theirs is {known.task.id}, and git does not know it yet; {waiting}"
        add = f"`git add {quote(shown)} {quote(sight.shown(known.name))}`"
        return found("unmerged", told, f"see which of the two is meant there, then {add}", file=shown)
    told = f"{shown}: {flaw}"
    if known or other.numeric:
        way = f"`git show {quote(f':3:./{shown}')}` is theirs: save it under another id; `:2:` is ours, and stays"
        repair = Repair(f"keeps our task in {file.name}", file.path, file.data, ours) if known else None
        return found("conflict", told, way, file=shown, repair=repair)
    new_id = _free_id(other.id[: MAX_ID - 4], os.path.dirname(file.path), {each.task.id for each in sight.files})
    path, text = os.path.join(os.path.dirname(file.path), new_id + SUFFIX), _with_id(theirs, other, new_id)
    keep = partial(DISK.write_new, path, text.encode(), durable=True)
    words = f"keeps our task in {file.name} and makes theirs one of its own, with the id {new_id}"
    repair = Repair(words, file.path, file.data, ours, before=keep)
    return found("conflict", told, "", file=shown, repair=repair)


def twins(sight: Sight) -> Iterator[Found]:
    """Files that claim one id. The one that is called by it keeps it."""
    by_id: dict[str, list[File]] = {}
    for file in sight.files:
        if not file.task.flaw:
            by_id.setdefault(file.task.id, []).append(file)
    taken = {*by_id}
    for task_id, files in by_id.items():
        keepers = [file for file in files if file.name.removesuffix(SUFFIX) in (task_id, f"task_{task_id}")]
        for file in files if len(files) > 1 else ():
            if file in keepers and len(keepers) == 1:
                continue
            repair = _told_apart(file, keepers[0], taken) if len(keepers) == 1 else None
            others = " and ".join(sight.shown(other.name) for other in files if other is not file)
            told = f"{sight.shown(file.name)} claims the id {task_id}, like {others}"
            way = "give one of them another id, or move it out of the folder"
            yield found("twin_ids", told, way, file=sight.shown(file.name), task=task_id, repair=repair)


def _told_apart(file: File, keeper: File, taken: set[str]) -> Repair | None:
    """A copy goes aside when it says the same; else it becomes a task of its own, called like its file."""
    if file.data == keeper.data:
        return Repair(f"sets {file.name} aside, which says the same as {keeper.name}", file.path, file.data, aside=True)
    if file.task.numeric or file.data is None:
        return None
    own = file.name.removesuffix(SUFFIX)
    stem = unicodedata.normalize("NFC", "".join(c if c.isalnum() or c in "._-" else "-" for c in own))[: MAX_ID - 4]
    folder = os.path.dirname(file.path)
    new = _free_id(stem, folder, taken, own)
    if id_flaw(new):
        return None
    taken.add(new)
    text = _with_id(decode(file.data), file.task, new)
    to = os.path.join(folder, new + SUFFIX) if new != own else None
    return Repair(f"makes the task in {file.name} one of its own, with the id {new}", file.path, file.data, text, to)


def _free_id(stem: str, folder: str, taken: set[str], own: str = "") -> str:
    """An id that no task and no file of the folder has, but for the file that is called `own`."""
    names = chain([stem], (f"{stem}-{n}" for n in count(2)))
    return next(
        i for i in names if i not in taken and (i == own or not os.path.lexists(os.path.join(folder, i + SUFFIX)))
    )


def _with_id(text: str, task: Task, new: str) -> str:
    """The text of a task's file under another id."""
    return patch(text, {DIALECTS[task.dialect].key("id"): new}, (), key_order(task.dialect))


def names(sight: Sight) -> Iterator[Found]:
    """Files of ours that are not called like their task; other programs have names of their own."""
    present = {file.name.casefold() for file in sight.files}
    ids = Counter(file.task.id for file in sight.files if not file.task.flaw)
    for file in sight.files:
        task, wanted = file.task, file.task.id + SUFFIX
        if task.flaw or task.dialect != OURS or file.name == wanted or ids[task.id] > 1:
            continue
        free = wanted.casefold() not in present or wanted.casefold() == file.name.casefold()
        repair = Repair(f"renames {file.name} to {wanted}", file.path, file.data, to=os.path.join(sight.path, wanted))
        shown = sight.shown(file.name)
        told, way = f"{shown} holds {task.id}", f"rename one of {file.name} and {wanted}"
        yield found("name_differs", told, way, file=shown, task=task.id, repair=repair if free else None)


def astray(sight: Sight) -> Iterator[Found]:
    """Unfinished tasks in the archive: git followed the rename there of a task that the other side had reopened."""
    here = {file.task.id: file for file in sight.files if not file.task.flaw}
    for file in sight.archived():
        task, shown = file.task, sight.shown(file.name)
        if task.flaw or task.closed or file.name in sight.stages:
            continue
        to = os.path.join(sight.path, os.path.basename(file.name))
        told, way = f"{shown}: {task.id} is {task.status}, and lies in the archive", f"move {os.path.basename(to)} away"
        repair = None
        if keeper := here.get(task.id):
            told, repair = f"{told}; {sight.shown(keeper.name)} has its id", _parked(sight, file, keeper)
        elif not os.path.lexists(to):
            repair = Repair(f"brings {file.name} back to the board", file.path, file.data, to=to)
            here[task.id] = file
        yield found("open_in_archive", told, way, file=shown, task=task.id, repair=repair)


def _parked(sight: Sight, file: File, keeper: File) -> Repair:
    """What another file of the same task does not say is parked, as after a merge."""
    kept, lost = (parse(decode(each.data or b"")) for each in (keeper, file))
    fields = {key: {"kept": kept.get(key), "parked": told} for key, told in lost.items() if told != kept.get(key)}
    keep = partial(park, sight.path, sight.shown(file.name), Merged(file.task.id, "", fields)) if fields else None
    words = f"parks what {file.name} says otherwise than {keeper.name}, and sets it aside"
    return Repair(words, file.path, file.data, aside=True, before=keep)


CHECKS = (unreadable, conflicts, twins, astray, names)
