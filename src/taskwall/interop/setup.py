"""`taskwall setup`: what the clients in use lack, shown, written when somebody says yes, and taken back."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from .. import config
from ..core.errors import Invalid
from ..core.record import Record
from ..outcomes import SetUp
from .clients import NAMES, Client, Json, Part, Toml, clients, codex_writable, in_use, writable
from .parts import Note, Stuck, put_all, take_all
from .tree import Change, Tree

Ask = Callable[[SetUp], bool]


class Plan(Record):
    """What is to be written, and what is to be told. keep: folders that stay when they become empty.

    amiss: files that are not as they should be and that set-up leaves so.
    """

    action: str
    clients: tuple[str, ...]
    tree: Tree
    changes: list[Change]
    leftovers: list[str]
    keep: set[str]
    notes: tuple[str, ...]
    amiss: tuple[str, ...]

    def answer(self, *, check: bool) -> SetUp:
        files = (*(change.path for change in self.changes), *self.leftovers)
        # With nothing to write, what is amiss is all there is to say, as a check says it.
        check = check or bool(self.amiss and not files)
        action = "check" if check and self.action != "remove" else self.action
        files = (*dict.fromkeys((*files, *self.amiss)),) if check else files
        return SetUp(action, self.clients, files, _shown(self), self.notes)

    def write(self) -> None:
        """Bring it to the disk. Raises Refused."""
        self.tree.write(self.changes, self.leftovers, self.keep)


def set_up(
    names: Sequence[str],
    env: Mapping[str, str],
    cwd: str,
    *,
    check: bool = False,
    yes: bool = False,
    ask: Ask | None = None,
    **what: bool,
) -> SetUp:
    """Set clients up, or compare (`check`). names, what: see `plan`; the rest as `carry_out`. Raises Refused."""
    return carry_out(plan(names, env, cwd, **what), check=check, yes=yes, ask=ask)


def carry_out(made: Plan, *, check: bool, yes: bool, ask: Ask | None) -> SetUp:
    """Write what is planned. Raises Refused.

    ask: shows the plan to a person and returns whether they agree; without it only `yes` writes.
    """
    answer = made.answer(check=check)
    if check or not (made.changes or made.leftovers):
        return answer
    agreed, answer = consented(answer, yes=yes, ask=ask)
    if agreed:
        made.write()
    return answer.replace(done=agreed)


def consented(answer: SetUp, *, yes: bool, ask: Ask | None) -> tuple[bool, SetUp]:
    """Whether it may be written, and what is left to tell: not again what a person was shown."""
    if yes or not ask:
        return yes, answer
    return ask(answer), answer.replace(diff="", notes=())


def plan(
    names: Sequence[str],
    env: Mapping[str, str],
    cwd: str,
    *,
    user: bool = False,
    remove: bool = False,
    stop_hook: bool = False,
) -> Plan:
    """What setting clients up changes, or taking everything back (`remove`). Raises Refused.

    names: clients; those in use when none are named. user: in the home folder instead of the project.
    """
    tree = Tree(_root(env, cwd, user=user))
    known = clients(stop=stop_hook or remove)
    chosen = _chosen(names, known, tree.root, env, every=remove)
    board = None if user else _board_outside(cwd)
    parts = _parts(chosen, user=user, board=board)
    keep: set[str] = set()
    if remove:
        needed = _still_needed(tree.root, chosen, known, user=user)
        found, keep = take_all(tree, [part for part in parts if part not in needed])
    else:
        found = _put(tree, chosen, user=user, board=board)
    changes = sorted(tree.changes(), key=lambda c: c.path.endswith("SKILL.md") is remove)
    told = [note.text for note in found]
    if not remove:
        told += _hints(chosen if changes else [], env, board, user=user)
    return Plan(
        "remove" if remove else "set up",
        tuple(client.name for client in chosen),
        tree,
        changes,
        tree.leftovers(_paths(_parts(list(known.values()), user=user, board=board))),
        keep,
        tuple(told),
        tuple(note.amiss for note in found if note.amiss),
    )


# What is asked


def _root(env: Mapping[str, str], cwd: str, *, user: bool) -> str:
    home = os.path.realpath(env.get("HOME") or os.path.expanduser("~"))
    if user:
        return home
    repository = config.find_repository(cwd)
    if repository and repository.top == repository.common:
        raise Invalid("this is a bare repository: no client works here", next="run it in a worktree")
    root = repository.top if repository else config.find_board(None, {}, cwd).root
    if root == home:
        raise Invalid("this is your home folder, no project", next="`taskwall setup --user` sets up clients for you")
    return root


def _board_outside(cwd: str) -> str | None:
    """The board when it lies in another worktree, so that a sandbox around this one would not let it be written."""
    repository = config.find_repository(cwd)
    if repository is None or not repository.linked or repository.main is None:
        return None
    return os.path.join(repository.main, config.FOLDER)


def _chosen(
    names: Sequence[str], known: dict[str, Client], root: str, env: Mapping[str, str], *, every: bool
) -> list[Client]:
    wanted = [NAMES.get(name.lower(), name.lower()) for name in names]
    if unknown := [name for name in wanted if name not in known]:
        raise Invalid(f"no client {unknown[0]!r}", next=f"there are {', '.join(known)}; and `taskwall setup git`")
    wanted = wanted or (list(known) if every else in_use(root, env))
    if not wanted:
        raise Invalid("no client of coding agents was found here", next=f"name one: {', '.join(known)}")
    return [client for name, client in known.items() if name in wanted]


def _parts(chosen: Sequence[Client], *, user: bool, board: str | None = None) -> list[Part]:
    """What these clients want, each thing once."""
    found: list[Part] = []
    for client in chosen:
        wanted = list(client.user if user else client.project)
        if board:
            wanted = [codex_writable(part, board) if isinstance(part, Toml) else part for part in wanted]
            wanted += [more] if (more := writable(client.name, board)) else []
        found += [part for part in wanted if part not in found]
    return found


def _paths(parts: Sequence[Part]) -> list[str]:
    return [path for part in parts for path in (part.path, *(part.others if isinstance(part, Json) else ()))]


def _put(tree: Tree, chosen: Sequence[Client], *, user: bool, board: str | None) -> list[Note]:
    """All or nothing: a file that cannot be read stops set-up, which then says for whom it would go on."""
    try:
        return put_all(tree, _parts(chosen, user=user, board=board))
    except Stuck as flaw:
        rest = [client.name for client in chosen if flaw.part not in _parts([client], user=user, board=board)]
        words = " ".join(["taskwall setup", *(["--user"] if user else []), *rest])
        go_on = f", or set up the others alone: `{words}`" if rest else ""
        raise Invalid(f"{flaw}; nothing was written", next=f"mend that and run the same again{go_on}") from None


def _hints(chosen: Sequence[Client], env: Mapping[str, str], board: str | None, *, user: bool) -> list[str]:
    """What holds for the clients that something is written for, and what holds always."""
    import shutil  # imported late, like all that only a plan needs

    found = [note for client in chosen for note in (client.user_notes if user else client.notes)]
    if not shutil.which("taskwall", path=env.get("PATH", "")):
        found.append("taskwall is not on PATH: clients will not find it until it is installed, say as a uv tool")
    if board and chosen:
        found.append(f"agents of this worktree write the board at {board}; that a sandbox lets them is untested")
    return found


def _still_needed(root: str, leaving: Sequence[Client], known: dict[str, Client], *, user: bool) -> list[Part]:
    """What clients that stay set up share with those that leave."""
    staying = []
    for client in known.values():
        if client in leaving:
            continue
        others = _parts([other for other in known.values() if other is not client], user=user)
        own = [part for part in _parts([client], user=user) if part not in others]
        tree = Tree(root)
        take_all(tree, own)
        if tree.changes():
            staying.append(client)
    return _parts(staying, user=user)


# Showing


def _shown(made: Plan) -> str:
    """A line for each file, then the differences; a skill is ours alone, and its line is enough."""
    lines = [f"In {made.tree.root}:"] if made.changes or made.leftovers else []
    for change in made.changes:
        what = "new" if change.before is None else "removed" if change.after is None else "changed"
        size = len((change.after or change.before or "").splitlines())
        lines.append(f"  {what:<8} {change.path}" + (f", {size} lines" if change.path.endswith("SKILL.md") else ""))
    lines += (f"  {'removed':<8} {name}, left by an interrupted run" for name in made.leftovers)
    diffs = [_diff(change) for change in made.changes if not change.path.endswith("SKILL.md")]
    return "\n".join([*lines, "", *diffs]) if lines else ""


def _diff(change: Change) -> str:
    from difflib import unified_diff

    old, new = ((text or "").splitlines(keepends=True) for text in (change.before, change.after))
    names = [
        f"{side}/{change.path}" if text is not None else "/dev/null"
        for side, text in (("a", change.before), ("b", change.after))
    ]
    found = unified_diff(old, new, names[0], names[1])
    return "".join(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in found)
