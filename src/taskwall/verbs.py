"""Every verb, once: its name, its parameters, its words. Schemas, tools and JSON derive from here (`registry`).

The first paragraph of a docstring is what agents read; then one line a parameter.
"""

from __future__ import annotations

from .core.errors import Invalid
from .core.model import DEFAULT_PRIORITY
from .registry import Ids, verb
from .results import PAGE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .board import Board
    from .core.rules import Draft
    from .results import Answer


@verb(agents="subject description blockedBy parent priority owner products checks", makes_board=True)
def create_task(
    board: Board,
    subject: str,
    description: str = "",
    blocked_by: Ids | None = None,
    parent: str = "",
    priority: int = DEFAULT_PRIORITY,
    owner: str = "",
    products: list[str] | None = None,
    checks: list[str] | None = None,
    labels: Ids | None = None,
    id: str = "",
    key: str = "",
) -> Answer:
    """Create one task on the board. For several dependent tasks use create_tasks.

    subject: one line
    description: details
    blocked_by: ids it waits for
    parent: larger task
    priority: 0 urgent to 4
    owner: for whom; user = a person
    products: files it must make
    checks: commands that must pass
    labels: words to filter by
    id: an id of your own instead of a random one
    key: repeating a call with this key creates nothing new
    """
    from .core.rules import Draft  # imported late: who only looks needs none of the rules

    draft = Draft(
        subject=subject,
        description=description,
        blocked_by=tuple(blocked_by or ()),
        parent=parent,
        priority=priority,
        owner=owner,
        products=tuple(products or ()),
        checks=tuple(checks or ()),
        labels=tuple(labels or ()),
        id=id,
        key=key,
    )
    return board.create([draft])


@verb(agents="tasks", makes_board=True)
def create_tasks(board: Board, tasks: list[Draft], key: str = "") -> Answer:
    """Create a plan of dependent tasks in one call, all or none. Each has a ref that others name in blockedBy.

    tasks: the plan
    key: repeating a plan with this key creates nothing new
    """
    keyed = [draft if draft.key or not key else draft.replace(key=f"{key}/{n}") for n, draft in enumerate(tasks)]
    return board.create(keyed)


@verb(agents="state text after", writes=False)
def list_tasks(
    board: Board,
    state: Ids | None = None,
    text: str = "",
    after: str = "",
    owner: str = "",
    label: str = "",
    id_glob: str = "",
    limit: int = PAGE,
    everything: bool = False,
) -> Answer:
    """List tasks, oldest first; finished ones only by state.

    state: ready, blocked, waiting, completed
    text: search for
    after: id to go on from
    owner: only tasks of this owner
    label: only tasks with this label
    id_glob: only ids that match this pattern
    limit: at most this many, and 50
    everything: finished tasks too
    """
    states = [STATE_WORDS.get(name.lower(), name.lower()) for name in state or ()]
    return board.list(
        states, owner=owner, label=label, glob=id_glob, text=text, after=after, limit=limit, everything=everything
    )


@verb(writes=False)
def waiting(board: Board, after: str = "", limit: int = PAGE) -> Answer:
    """List what waits for a person to act. Decisions come with their choices, and with what waits behind.

    after: id to go on from
    limit: at most this many, and 50
    """
    return board.waiting(after=after, limit=limit)


STATE_WORDS = {
    **dict.fromkeys(("open", "todo"), "pending"),
    **dict.fromkeys(("doing", "in-progress", "claimed"), "in_progress"),
    **dict.fromkeys(("done", "finished"), "completed"),
    "canceled": "cancelled",
}
"""What others call states."""


@verb(agents="task_id", writes=False)
def get_task(board: Board, task_id: str) -> Answer:
    """Show one task in full.

    task_id: its id
    """
    return board.get(task_id)


@verb(agents="", writes=False)
def next_actionable(board: Board, limit: int = 3) -> Answer:
    """Show what you may start now, best first. When nothing, who must act.

    limit: how many to show
    """
    return board.next(limit)


@verb(agents="task_id")
def claim_task(
    board: Board, task_id: str = "", ttl: float | None = None, steal: bool = False, reason: str = ""
) -> Answer:
    """Claim a task before you work on it. Refused while a blocker is not completed.

    task_id: leave out for the best one
    ttl: minutes after which the claim lapses unless renewed
    steal: take over a live claim
    reason: why it is taken over
    """
    if steal and not task_id:
        raise Invalid("steal needs a task", next="name the task whose claim is taken over")
    return board.claim(task_id or None, ttl=ttl, steal=steal, reason=reason)


@verb(agents="task_id result", repeatable=True)
def complete_task(board: Board, task_id: str, result: str = "", products: list[str] | None = None) -> Answer:
    """Complete a task that you claimed; says what this unblocked.

    task_id: its id
    result: short summary
    products: files that this task made
    """
    return board.complete(task_id, result=result, products=tuple(products or ()))


@verb(agents="task_id reason failed", repeatable=True)
def release_task(board: Board, task_id: str = "", reason: str = "", failed: bool = False, session: str = "") -> Answer:
    """Give back a claimed task.

    task_id: its id
    reason: for the next one
    failed: tried and failed
    session: instead of one task, all that this session holds
    """
    if bool(task_id) == bool(session):
        way = "`taskwall release ID` (task_id), or --session NAME"
        raise Invalid("a task or a session is needed, one of them", next=way)
    if session:
        return board.release_session(session, reason=reason, failed=failed)
    return board.release(task_id, reason=reason, failed=failed)


@verb(agents="task_id subject description priority addBlockedBy removeBlockedBy note")
def update_task(
    board: Board,
    task_id: str,
    subject: str | None = None,
    description: str | None = None,
    priority: int | None = None,
    add_blocked_by: Ids | None = None,
    remove_blocked_by: Ids | None = None,
    note: str = "",
    owner: str | None = None,
    labels: Ids | None = None,
    parent: str | None = None,
    products: list[str] | None = None,
    checks: list[str] | None = None,
    metadata: list[str] | None = None,
) -> Answer:
    """Change a task's fields or blockers, or add a note.

    task_id: its id
    subject: new subject
    description: new description
    priority: 0 urgent to 4
    add_blocked_by: ids to wait for
    remove_blocked_by: ids to drop
    note: text to append
    owner: for whom a pending task is reserved; - for anyone
    labels: all its labels
    parent: id of the larger task; - for none
    products: all its products
    checks: all its checks
    metadata: KEY=VALUE; an empty value deletes the key
    """
    from .core.rules import Edit

    edit = Edit(
        subject=subject,
        description=description,
        priority=priority,
        owner="" if owner == "-" else owner,
        labels=None if labels is None else tuple(labels),
        parent="" if parent == "-" else parent,
        products=None if products is None else tuple(products),
        checks=None if checks is None else tuple(checks),
        note=note,
        metadata=_pairs(metadata or []),
        add_blocked_by=tuple(add_blocked_by or ()),
        remove_blocked_by=tuple(remove_blocked_by or ()),
    )
    if edit == Edit():
        way = "give a field or a note; `taskwall block` and `unblock` change what it waits for"
        raise Invalid("nothing to change was given", next=way)
    return board.update(task_id, edit)


def _pairs(metadata: list[str]) -> dict[str, str]:
    if bad := [pair for pair in metadata if "=" not in pair or pair.startswith("=")]:
        raise Invalid(f"metadata is {bad[0]!r}, must be KEY=VALUE", next="an empty VALUE deletes the key")
    return dict(pair.partition("=")[::2] for pair in metadata)


@verb(agents="task_id question options")
def ask_person(board: Board, task_id: str, question: str, options: list[str] | None = None) -> Answer:
    """Ask a person what only a person can decide. The task waits for it; your claim is released.

    task_id: task that needs it
    question: all of it
    options: choices
    """
    return board.ask(task_id, question, tuple(options or ()))


@verb(repeatable=True)
def answer(board: Board, task_id: str, text: str) -> Answer:
    """Answer a decision that waits for you, a person. Says which tasks this unblocked.

    task_id: the decision
    text: the answer
    """
    return board.answer(task_id, text)


@verb()
def hold(board: Board, task_id: str, reason: str = "") -> Answer:
    """Let nobody start a task until a person resumes it. Your own claim on it is released.

    task_id: its id
    reason: why
    """
    return board.hold(task_id, reason)


@verb(repeatable=True)
def resume(board: Board, task_id: str) -> Answer:
    """Lift a hold and forget failed attempts. Only a person may.

    task_id: its id
    """
    return board.resume(task_id)


@verb(repeatable=True, destroys=True)
def cancel(board: Board, task_id: str, cascade: bool = False, drop_edges: bool = False) -> Answer:
    """Cancel an open task. When open tasks wait for it, say what becomes of them.

    task_id: its id
    cascade: cancel what waits for it too
    drop_edges: let what waits for it go on without it
    """
    return board.cancel(task_id, cascade=cascade, drop_edges=drop_edges)


@verb(repeatable=True)
def reopen(board: Board, task_id: str) -> Answer:
    """Take a finished task back to pending. Names the tasks that relied on it.

    task_id: its id
    """
    return board.reopen(task_id)


@verb(repeatable=True)
def archive(board: Board, older_than: float | None = None) -> Answer:
    """Move finished tasks out of the way, to `archive/`. They still count as blockers, and come back when they change.

    older_than: only those that were finished more than so many days ago
    """
    return board.archive(older_than or 0)


@verb(repeatable=True)
def heartbeat(board: Board, task_id: str, ttl: float | None = None) -> Answer:
    """Renew the lease of a claim.

    task_id: its id or token
    ttl: its new length in minutes
    """
    return board.heartbeat(task_id, ttl=ttl)


@verb(writes=False)
def why(board: Board, task_id: str) -> Answer:
    """Explain why a task is in its state, down to who must act.

    task_id: its id
    """
    return board.why(task_id)


@verb(writes=False)
def history(board: Board, task_id: str = "", limit: int = PAGE) -> Answer:
    """Show what happened on the board, or to one task.

    task_id: only this task
    limit: the latest this many
    """
    return board.history(task_id, limit)


@verb(writes=False)
def fleet(board: Board) -> Answer:
    """Show who works where. Tells how leases stand, what was done lately, and which decision waits longest."""
    return board.fleet()


@verb(writes=False)
def graph(board: Board) -> Answer:
    """Show the open work as a tree of what waits for what."""
    return board.graph()
