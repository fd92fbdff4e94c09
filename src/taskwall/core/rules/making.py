"""Creating tasks and changing their fields and edges."""

from __future__ import annotations

from .. import errors
from ..model import (
    DEFAULT_PRIORITY,
    IN_PROGRESS,
    PENDING,
    Task,
    checked_glob,
    checked_id,
    checked_line,
    checked_priority,
    checked_text,
    composed,
)
from ..record import Record
from ..state import find_cycle, find_cycle_over, is_waiting, unblocked
from ..view import Overlay
from .change import (
    Change,
    ended,
    event,
    freed,
    is_mine,
    note,
    require_acyclic,
    require_left_to_persons,
    require_open,
    require_parents,
    require_writable,
    superseded,
    used_up,
    was_mine,
    written,
)
from .proving import require_kept_promises

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from ..model import Actor
    from ..view import View


class Draft(Record):
    """A task to be created. `blocked_by` and `parent` name tasks of the board or `ref`s of the same call."""

    subject: str
    description: str = ""
    blocked_by: tuple[str, ...] = ()
    parent: str = ""
    priority: int = DEFAULT_PRIORITY
    owner: str = ""
    labels: tuple[str, ...] = ()
    products: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    id: str = ""
    key: str = ""
    ref: str = ""


class Edit(Record):
    """Changes to a task's fields; None leaves a field as it is."""

    subject: str | None = None
    description: str | None = None
    priority: int | None = None
    owner: str | None = None
    labels: tuple[str, ...] | None = None
    parent: str | None = None
    products: tuple[str, ...] | None = None
    checks: tuple[str, ...] | None = None
    note: str = ""
    metadata: dict[str, str] = {}
    add_blocked_by: tuple[str, ...] = ()
    remove_blocked_by: tuple[str, ...] = ()


def _lines(what: str, check: Callable[[str], str] | None = None) -> Callable[[Sequence[str]], tuple[str, ...]]:
    return lambda values: tuple(dict.fromkeys(check(v) if check else checked_line(v, what) for v in values))


CHECKED: dict[str, Callable[[Any], Any]] = {
    "subject": lambda value: checked_line(value, "the subject"),
    "description": lambda value: checked_text(value, "the description"),
    "priority": checked_priority,
    "owner": lambda value: checked_line(value, "the owner") if value else None,
    "labels": _lines("a label"),
    "products": _lines("a product", checked_glob),
    "checks": _lines("a check"),
}
"""What a field accepts, at creation and later."""


def create(
    view: View, actor: Actor, drafts: Sequence[Draft], fresh_ids: Sequence[str], times: Sequence[str]
) -> tuple[Change, tuple[Task, ...]]:
    """All of these tasks, or none. A draft whose key the board knows is answered with that task.

    fresh_ids and times: one of each a draft. Returns the change and one task a draft.
    Raises Invalid, UnknownTask, AmbiguousId, Cycle.
    """
    if not drafts:
        raise errors.Invalid("no tasks were given", next="give at least one with a subject")
    ids: list[str] = []
    local: dict[str, str] = {}
    keys: dict[str, str] = {}
    fresh: list[bool] = []
    for draft, new_id in zip(drafts, fresh_ids, strict=True):
        key = draft.key.strip()
        known = keys.get(key) or ((task := view.by_key(key)) and task.id) if key else None
        fresh.append(not known)
        ids.append(known or (checked_id(draft.id) if draft.id else new_id))
        if key:
            keys[key] = ids[-1]
        if draft.ref:
            if draft.ref in local:
                raise errors.Invalid(f"two tasks of this plan have the ref {draft.ref!r}", next="give each its own")
            local[draft.ref] = ids[-1]
        local.setdefault(ids[-1], ids[-1])
    after = Overlay(view)
    for draft, task_id, now, is_new in zip(drafts, ids, times, fresh, strict=True):
        if is_new:
            after.put(_drafted(after, actor, draft, task_id, local, now))
    require_parents(after, after.changed.values())
    refs = {local[draft.ref]: draft.ref for draft in drafts if draft.ref and not draft.id}
    cycle = find_cycle(after, list(after.changed))
    require_acyclic(cycle and [refs.get(i, i) for i in cycle])  # ids that never came to be tell nobody anything
    events = tuple(event(actor, str(t.created_at), "create", t, subject=t.subject) for t in after.changed.values())
    first = after.get(ids[0])
    assert first is not None
    notices = _repeated(view, drafts) if after.changed else ()
    change = Change(first, put=tuple(after.changed.values()), events=events, notices=notices, already=not after.changed)
    parents = [task.parent for task in change.put if task.parent]
    change = _give_back_waiting(view, after, actor, change, parents, None, times[-1])
    return change, tuple(task for i in ids if (task := after.get(i)))


def _repeated(view: View, drafts: Sequence[Draft]) -> tuple[str, ...]:
    """What is said of a plan that seems to have been made before."""
    twins = view.by_subject(composed(drafts[0].subject.strip())) if len(drafts) > 1 and not drafts[0].key else []
    way = "with --key NAME a plan is made once"
    return tuple(f"{twin} has the subject of the first already; {way}" for twin in twins[:1])


def _drafted(view: Overlay, actor: Actor, draft: Draft, task_id: str, local: dict[str, str], now: str) -> Task:
    """The task of a draft, its references still unchecked."""
    if view.get(task_id):
        told = f"{task_id} exists already" if draft.id else f"id {task_id} is taken"
        raise errors.Invalid(told, task=task_id, next="choose another id")
    return Task(
        id=task_id,
        **{name: check(getattr(draft, name)) for name, check in CHECKED.items()},
        blocked_by=_found(view, draft.blocked_by, local, draft.subject),
        parent=_found(view, (draft.parent,), local, draft.subject)[0] if draft.parent else None,
        created_at=now,
        created_by=actor.name,
        updated_at=now,
        key=checked_line(draft.key, "the key") if draft.key else None,
        rev=1,
    )


def _found(view: View, names: Iterable[str], local: dict[str, str], subject: str = "") -> tuple[str, ...]:
    """The ids meant by these names; a ref of the same plan comes before the board. subject: of the task that names."""
    try:
        return tuple(dict.fromkeys(local[name] if name in local else view.find(name).id for name in names))
    except errors.UnknownTask as unknown:
        from difflib import get_close_matches  # imported late: only an error needs it

        if len(local) <= 1:  # it is the only one
            raise
        near = get_close_matches(str(unknown.task), local, n=1)
        told = f"{unknown.message}, nor a ref of this plan: {subject!r} names it"
        way = f"did you mean {near[0]} of this plan?" if near else unknown.next
        raise errors.UnknownTask(told, task=unknown.task, by=tuple(near), next=way) from None


def _give_back_waiting(
    view: View, after: Overlay, actor: Actor, change: Change, names: Iterable[str], epoch: int | None, now: str
) -> Change:
    """Whoever adds work in front of a task that they hold has stopped working on it: give it back.

    names: the tasks that may wait now. epoch: of the token with which the changed task itself was named.
    """
    for held in [task for name in dict.fromkeys(names) if (task := view.get(name))]:
        token = epoch if held.id == change.task.id else None
        changed = after.get(held.id) or held
        if held.status != IN_PROGRESS or not is_mine(view, held, actor, token) or not is_waiting(after, changed):
            continue
        free = freed(view, held)
        after.put(changed.replace(**free) if held.id in after.changed else written(held, now, **free))
        change = change.replace(
            task=after.changed.get(change.task.id, change.task),
            put=tuple(after.changed.values()),
            claims=change.claims + ended(view, held),
            events=(*change.events, event(actor, now, "release", held, reason="waits for other work")),
            notices=(*change.notices, f"{held.id} waits now, so your claim on it was released"),
        )
    return change


def update(view: View, actor: Actor, task: Task, epoch: int | None, now: str, *, edit: Edit) -> Change:
    """Change fields, notes, metadata and edges. Raises Invalid, UnknownTask, Cycle, Superseded, AlreadyResolved."""
    require_writable(task)
    if task.status == IN_PROGRESS and not is_mine(view, task, actor, epoch) and was_mine(view, task, actor):
        raise superseded(view, task)
    fields = _edited_fields(view, actor, task, edit, now)
    require_kept_promises(view, actor, task, fields)
    if edit.add_blocked_by or edit.parent:
        require_open(task)
    # An edge to a task that no longer exists can be removed by its literal id.
    removed = {name if name in task.blocked_by else view.find(name).id for name in edit.remove_blocked_by}
    _require_left_to_persons(view, actor, task, fields, removed)
    kept = (i for i in task.blocked_by if i not in removed)
    if removed or edit.add_blocked_by:
        fields["blocked_by"] = tuple(dict.fromkeys([*kept, *_found(view, edit.add_blocked_by, {})]))
    changes = {name: value for name, value in fields.items() if getattr(task, name) != value}
    spent = used_up(view, task) if changes else {}
    changes |= spent
    unlinked = _unlinked(view, task, removed, now)
    if not changes and not unlinked:
        return Change(task, already=True)
    edited = written(task, now, **changes) if changes else task
    after = Overlay(view, [*([edited] if changes else []), *unlinked])
    require_parents(after, [edited] if "parent" in changes else [])
    require_acyclic(find_cycle_over(after, task.id, set(changes.get("blocked_by", ())) - set(task.blocked_by)))
    if changes.get("parent"):
        require_acyclic(find_cycle_over(after, changes["parent"], [task.id]))
    change = Change(
        edited,
        put=tuple(after.changed.values()),
        claims=ended(view, task) if spent else (),
        events=(
            event(actor, now, "update", task, fields=sorted(changes), note=edit.note, **_differences(task, changes)),
            *(event(actor, now, "update", blocker, fields=["blocks"]) for blocker in unlinked),
        ),
        unblocked=unblocked(view, after, [task.id]),
    )
    waiting = [*([task.id] if edit.add_blocked_by else []), *([changes["parent"]] if changes.get("parent") else [])]
    return _give_back_waiting(view, after, actor, change, waiting, epoch, now)


def _differences(task: Task, changes: dict[str, Any]) -> dict[str, str]:
    """What a log tells of changes by which work goes another way: for whom it is, and what it waits for."""
    told = {"owner": f"{task.owner or '-'} → {changes['owner'] or '-'}"} if "owner" in changes else {}
    if "blocked_by" in changes:
        before, after = dict.fromkeys(task.blocked_by), dict.fromkeys(changes["blocked_by"])
        edges = [f"+{i}" for i in after if i not in before] + [f"-{i}" for i in before if i not in after]
        told["blocked_by"] = " ".join(edges)
    return told


def _require_left_to_persons(
    view: View, actor: Actor, task: Task, fields: dict[str, Any], removed: Iterable[str]
) -> None:
    """An agent neither changes what makes a decision, nor takes an open one out of the way."""
    if any(fields.get(name, getattr(task, name)) != getattr(task, name) for name in DECIDED):
        require_left_to_persons(view, actor, task, "changes it")
    for blocker in [b for i in removed if (b := view.get(i)) and not b.closed]:
        require_left_to_persons(view, actor, blocker, "takes it out of the way")


DECIDED = ("owner", "subject", "description", "parent", "products", "checks")
"""What makes a decision the one that it is: who decides what, for which task, and what that takes."""


def _edited_fields(view: View, actor: Actor, task: Task, edit: Edit, now: str) -> dict[str, Any]:
    given = ((name, check, getattr(edit, name)) for name, check in CHECKED.items())
    fields: dict[str, Any] = {name: check(value) for name, check, value in given if value is not None}
    if edit.parent is not None:
        fields["parent"] = view.find(edit.parent).id if edit.parent else None
    if task.status != PENDING and fields.get("owner", task.owner) != task.owner:
        told = f"{task.id} is {task.status}: its owner is who holds or finished it"
        way = "only a pending task can be reserved; release or reopen it first"
        raise errors.Invalid(told, task=task.id, next=way)
    if edit.note:
        fields["notes"] = (*task.notes, note(actor, now, edit.note))
    if edit.metadata:
        merged = task.metadata | edit.metadata
        fields["metadata"] = {name: value for name, value in merged.items() if value != ""}
    return fields


def _unlinked(view: View, task: Task, removed: Iterable[str], now: str) -> tuple[Task, ...]:
    """The removed blockers whose own files name the edge too: it would gate again from there."""
    blockers = [b for i in removed if (b := view.get(i)) and task.id in b.blocks]
    for blocker in blockers:
        require_writable(blocker)
    return tuple(written(b, now, blocks=tuple(i for i in b.blocks if i != task.id)) for b in blockers)
