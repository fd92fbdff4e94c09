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
)
from ..record import Record
from ..state import find_cycle, find_cycle_over, open_waits, reservation, unblocked
from ..view import Overlay
from .change import (
    Change,
    ended,
    event,
    given_back,
    is_mine,
    note,
    require_acyclic,
    require_current,
    require_open,
    require_parents,
    require_writable,
    superseded,
    used_up,
    was_mine,
    written,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
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
    for draft, fresh in zip(drafts, fresh_ids, strict=True):
        known = view.by_key(draft.key.strip()) if draft.key else None
        own = known.id if known else checked_id(draft.id) if draft.id else fresh
        ids.append(keys.setdefault(draft.key.strip(), own) if draft.key else own)
        if draft.ref:
            if draft.ref in local:
                raise errors.Invalid(f"two tasks of this plan have the ref {draft.ref!r}", next="give each its own")
            local[draft.ref] = ids[-1]
        local.setdefault(ids[-1], ids[-1])
    after = Overlay(view)
    for draft, task_id, now in zip(drafts, ids, times, strict=True):
        task = _drafted(after, actor, draft, task_id, local, now)
        if task:
            after.put(task)
    require_parents(after, after.changed.values())
    refs = {local[draft.ref]: draft.ref for draft in drafts if draft.ref and not draft.id}
    cycle = find_cycle(after, list(after.changed))
    require_acyclic(cycle and [refs.get(i, i) for i in cycle])  # ids that never came to be tell nobody anything
    events = tuple(event(actor, str(t.created_at), "create", t, subject=t.subject) for t in after.changed.values())
    first = after.get(ids[0])
    assert first is not None
    change = Change(first, put=tuple(after.changed.values()), events=events, already=not after.changed)
    change = _release_own_parents(view, after, actor, change, times[-1])
    return change, tuple(task for i in ids if (task := after.get(i)))


def _drafted(view: Overlay, actor: Actor, draft: Draft, task_id: str, local: dict[str, str], now: str) -> Task | None:
    """The task of a draft, its references still unchecked; None when its key is known."""
    if draft.key and view.by_key(draft.key.strip()):
        return None
    if view.get(task_id):
        raise errors.Invalid(
            f"{task_id} exists already" if draft.id else f"id {task_id} is taken",
            task=task_id,
            next="choose another id",
        )
    return Task(
        id=task_id,
        subject=checked_line(draft.subject, "the subject"),
        description=checked_text(draft.description, "the description"),
        owner=checked_line(draft.owner, "the owner") if draft.owner else None,
        blocked_by=_found(view, draft.blocked_by, local),
        priority=checked_priority(draft.priority),
        labels=tuple(dict.fromkeys(checked_line(label, "a label") for label in draft.labels)),
        parent=_found(view, (draft.parent,), local)[0] if draft.parent else None,
        products=tuple(checked_glob(glob) for glob in draft.products),
        checks=tuple(checked_line(check, "a check") for check in draft.checks),
        created_at=now,
        created_by=actor.name,
        updated_at=now,
        key=checked_line(draft.key, "the key") if draft.key else None,
        rev=1,
    )


def _found(view: View, names: Iterable[str], local: dict[str, str]) -> tuple[str, ...]:
    """The ids meant by these names; a ref of the same plan comes before the board."""
    try:
        return tuple(dict.fromkeys(local[name] if name in local else view.find(name).id for name in names))
    except errors.UnknownTask as unknown:
        from difflib import get_close_matches  # imported late: only an error needs it

        near = get_close_matches(str(unknown.task), local, n=1)
        if not near:
            raise
        raise errors.UnknownTask(
            unknown.message, task=unknown.task, by=tuple(near), next=f"did you mean {near[0]} of this plan?"
        ) from None


def _release_own_parents(view: View, after: Overlay, actor: Actor, change: Change, now: str) -> Change:
    """Whoever adds open work in front of a task that they hold has stopped working on it: give it back."""
    parents = {p.id: p for task in change.put if task.parent and (p := view.get(task.parent))}
    for parent in parents.values():
        if parent.status == IN_PROGRESS and is_mine(view, parent, actor, None) and open_waits(after, parent):
            change = change.replace(
                put=(*change.put, given_back(view, parent, now)),
                claims=change.claims + ended(view, parent),
                events=(*change.events, event(actor, now, "release", parent, reason="waits for new work")),
                notices=(*change.notices, f"{parent.id} now waits for this, so your claim on it was released"),
            )
    return change


def update(view: View, actor: Actor, task: Task, edit: Edit, epoch: int | None, now: str) -> Change:
    """Change fields, notes, metadata and edges. Raises Invalid, UnknownTask, Cycle, Superseded, AlreadyResolved."""
    require_writable(task)
    require_current(view, task, epoch)
    if task.status == IN_PROGRESS and not is_mine(view, task, actor, epoch) and was_mine(view, task, actor):
        raise superseded(view, task)
    fields = _edited_fields(view, actor, task, edit, now)
    if edit.add_blocked_by or edit.parent:
        require_open(task)
    # An edge to a task that no longer exists can be removed by its literal id.
    removed = {name if name in task.blocked_by else view.find(name).id for name in edit.remove_blocked_by}
    kept = (i for i in task.blocked_by if i not in removed)
    if removed or edit.add_blocked_by:
        fields["blocked_by"] = tuple(dict.fromkeys([*kept, *_found(view, edit.add_blocked_by, {})]))
    changes = {name: value for name, value in fields.items() if getattr(task, name) != value}
    spent = used_up(view, task) if changes else {}
    changes |= spent
    unlinked = _unlinked(view, task, removed, now)
    if not changes and not unlinked:
        return Change(task, already=True)
    after = Overlay(view, [task.replace(**changes), *unlinked])
    require_parents(after, [task.replace(**changes)] if "parent" in changes else [])
    require_acyclic(find_cycle_over(after, task.id, set(changes.get("blocked_by", ())) - set(task.blocked_by)))
    if changes.get("parent"):
        require_acyclic(find_cycle_over(after, changes["parent"], [task.id]))
    edited = written(task, now, **changes) if changes else task
    change = Change(
        edited,
        put=(edited, *unlinked) if changes else unlinked,
        claims=ended(view, task) if spent else (),
        events=(event(actor, now, "update", task, fields=sorted(changes), note=edit.note),),
        unblocked=unblocked(view, after, [task.id]),
    )
    if edit.add_blocked_by:
        change = _release_if_waiting(after, actor, change, epoch, now)
    return _release_own_parents(view, after, actor, change, now) if changes.get("parent") else change


def _edited_fields(view: View, actor: Actor, task: Task, edit: Edit, now: str) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if edit.subject is not None:
        fields["subject"] = checked_line(edit.subject, "the subject")
    if edit.description is not None:
        fields["description"] = checked_text(edit.description, "the description")
    if edit.priority is not None:
        fields["priority"] = checked_priority(edit.priority)
    if edit.labels is not None:
        fields["labels"] = tuple(dict.fromkeys(checked_line(label, "a label") for label in edit.labels))
    if edit.products is not None:
        fields["products"] = tuple(checked_glob(glob) for glob in edit.products)
    if edit.checks is not None:
        fields["checks"] = tuple(checked_line(check, "a check") for check in edit.checks)
    if edit.parent is not None:
        fields["parent"] = view.find(edit.parent).id if edit.parent else None
    if edit.owner is not None:
        fields["owner"] = checked_line(edit.owner, "the owner") if edit.owner else None
        if task.status != PENDING and fields["owner"] != task.owner:
            raise errors.Invalid(
                f"{task.id} is {task.status}: its owner is who holds or finished it",
                task=task.id,
                next="only a pending task can be reserved; release or reopen it first",
            )
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


def _release_if_waiting(after: View, actor: Actor, change: Change, epoch: int | None, now: str) -> Change:
    """Whoever adds a blocker to a task that they hold thereby gives it back."""
    task = change.task
    if task.status != IN_PROGRESS or not is_mine(after, task, actor, epoch) or not open_waits(after, task):
        return change
    back = task.replace(status=PENDING, owner=reservation(after, task))
    return change.replace(
        task=back,
        put=tuple(back if t.id == back.id else t for t in change.put),
        claims=change.claims + ended(after, task),
        events=(*change.events, event(actor, now, "release", task, reason="waits for a blocker")),
        notices=(*change.notices, f"{task.id} waits now, so your claim on it was released"),
    )
