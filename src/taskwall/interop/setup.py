"""`taskwall setup`: what the clients in use lack, shown as a diff, written when somebody says yes, and taken back.

Nothing is remembered beside the files: what is ours in them can be told from what is not (`jsonc`, `blocks`), and the
skill names the folders that were there before it and empty.
"""

from __future__ import annotations

import json
import os
import re

from .. import config
from ..core.errors import Invalid
from ..results import SetUp
from ..stores.files.patch import NotStrict
from . import blocks, jsonc
from .blocks import MARKDOWN, TOML, Torn
from .clients import NAMES, Json, Skill, Text, Toml, clients, codex_writable, in_use, writable
from .tree import Foreign, Tree, above

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from .clients import Client, Part
    from .tree import Change

    Ask = Callable[[SetUp], bool]

PROJECT_FILES = ("AGENTS.md", "CLAUDE.md")
_OURS = re.compile(r"<!-- taskwall skill(?:; keep: ([^>]*?))? -->\s*\Z")


def set_up(
    names: Sequence[str],
    env: Mapping[str, str],
    cwd: str,
    *,
    user: bool = False,
    check: bool = False,
    remove: bool = False,
    yes: bool = False,
    stop_hook: bool = False,
    ask: Ask | None = None,
) -> SetUp:
    """Set clients up, or compare (`check`), or take everything back (`remove`). Raises Refused.

    names: clients; those in use when none are named. user: in the home folder instead of the project. ask: shows the
    plan to a person and returns whether they agree; without it only `yes` writes.
    """
    root = _root(env, cwd, user=user)
    known = clients(stop=stop_hook or remove)
    chosen = _chosen(names, known, root, env, every=remove)
    board = None if user else _board_outside(cwd)
    tree = Tree(root)
    parts = _parts(chosen, user=user, board=board)
    if remove:
        needed = _still_needed(root, chosen, known, user=user)
        parts = [part for part in parts if part not in needed]
        notes, keep = _take_all(tree, parts)
    else:
        notes, keep = _put_all(tree, parts), set()
    changes = sorted(tree.changes(), key=lambda c: c.path.endswith("SKILL.md") is remove)
    leftovers = tree.leftovers(p for c in known.values() for p in map(_path, c.user if user else c.project))
    if changes and not check and not remove:
        notes += _hints(chosen, env, board)
    answer = SetUp(
        "remove" if remove else "check" if check else "set up",
        tuple(c.name for c in chosen),
        (*(c.path for c in changes), *leftovers),
        _diff(changes) + "".join(f"left by an interrupted run, to be removed: {name}\n" for name in leftovers),
        tuple(notes),
    )
    if check or not answer.files or not (yes or ask):
        return answer
    if not yes and ask:
        agreed, answer = ask(answer), answer.replace(diff="", notes=())  # they have been shown
        if not agreed:
            return answer
    tree.write(changes, leftovers, keep)
    return answer.replace(done=True)


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
        raise Invalid(f"no client {unknown[0]!r}", next=f"there are {', '.join(known)}")
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


def _path(part: Part) -> str:
    return part.path


def _hints(chosen: Sequence[Client], env: Mapping[str, str], board: str | None) -> list[str]:
    import shutil  # imported late, like all that only a plan with changes needs

    found = [note for client in chosen for note in client.notes]
    if not shutil.which("taskwall", path=env.get("PATH", "")):
        found.append(
            "taskwall is not on PATH: clients will not find it until it is installed, for example as a uv tool"
        )
    if board:
        found.append(f"agents of this worktree write the board at {board}; that a sandbox lets them is untested")
    return found


# Putting


def _put_all(tree: Tree, parts: Sequence[Part]) -> list[str]:
    hollow = {folder for part in parts for folder in above(part.path) if tree.hollow(folder)}
    notes: list[str] = []
    for part in parts:
        try:
            notes += _put(tree, part, hollow)
        except (Foreign, NotStrict, Torn) as flaw:
            what = str(flaw) if isinstance(flaw, Foreign) else f"{part.path} cannot be read: {_told(flaw)}"
            raise Invalid(
                f"{what}; nothing was written", next=f"mend that, or name clients without {part.path}"
            ) from None
    return notes


def _told(flaw: Exception) -> str:
    line = getattr(flaw, "line", None)
    return f"{flaw} (line {line})" if line else str(flaw)


def _put(tree: Tree, part: Part, hollow: set[str]) -> list[str]:
    if isinstance(part, Text):
        return _put_text(tree, part)
    if isinstance(part, Skill):
        return _put_skill(tree, part, hollow)
    return _put_toml(tree, part) if isinstance(part, Toml) else _put_json(tree, part)


def _put_text(tree: Tree, part: Text) -> list[str]:
    path = _instructions(tree, part)
    if path is None:
        return []
    text = tree.read(path)
    around = blocks.without(text, MARKDOWN) if text else ""
    if part.lines.startswith("@") and re.search(r"(?m)(?:^|\s)@(?:\./)?AGENTS\.md\b", around):
        return []
    tree.now[path] = blocks.put(text, part.lines, MARKDOWN)
    return []


def _instructions(tree: Tree, part: Text) -> str | None:
    """Where instructions go: AGENTS.md and CLAUDE.md may be one file under two names."""
    if part.path not in PROJECT_FILES:
        return part.path
    agents, claude = map(tree.full, PROJECT_FILES)
    linked = (os.path.islink(agents) or os.path.islink(claude)) and os.path.exists(agents) and os.path.exists(claude)
    if not linked or not os.path.samefile(agents, claude):
        return part.path
    if part.path == "CLAUDE.md":
        return None
    return "CLAUDE.md" if os.path.islink(agents) else "AGENTS.md"


def _put_skill(tree: Tree, part: Skill, hollow: set[str]) -> list[str]:
    text = tree.read(part.path)
    if text is not None and not _OURS.search(text):
        return [f"kept {part.path}, which is not ours"]
    keep = sorted(hollow | _kept(text))
    new = _OURS.sub(f"<!-- taskwall skill; keep: {' '.join(keep)} -->\n", part.text) if keep else part.text
    tree.now[part.path] = new.replace("\n", "\r\n") if text and "\r\n" in text else new
    return []


def _kept(text: str | None) -> set[str]:
    """The folders that a skill of ours says were there before it."""
    found = _OURS.search(text or "")
    return set((found[1] or "").split()) if found else set()


def _put_toml(tree: Tree, part: Toml) -> list[str]:
    text = tree.read(part.path)
    around = blocks.without(text or "", TOML)
    if _has(around, part.table):
        return [f"kept {part.path}, which has its own {'.'.join(part.table)}"]
    notes = []
    lines = part.lines + part.extra
    if part.extra and not _fits(blocks.put(around, lines, TOML)):
        folder = part.extra.rpartition("=")[2].strip()
        notes = [f"{part.path} has its own settings of the sandbox: add {folder} to them"]
        lines = part.lines
    new = blocks.put(text, lines, TOML)
    if not _fits(new):
        raise NotStrict(f"a table {'.'.join(part.table)} cannot be added to it")
    tree.now[part.path] = new
    return notes


def _has(text: str, table: tuple[str, ...]) -> bool:
    import tomllib

    try:
        found = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise NotStrict(str(error)) from None
    for key in table:
        if not isinstance(found, dict) or key not in found:
            return False
        found = found[key]
    return True


def _fits(text: str) -> bool:
    try:
        _has(text, ())
    except NotStrict:
        return False
    return True


def _put_json(tree: Tree, part: Json) -> list[str]:
    path = _json_path(tree, part)
    text = tree.read(path)
    if text is None:
        tree.now[path] = jsonc.create(part.entries, part.extras)
        return []
    notes = []
    for entry in part.entries:
        if entry.path[-1] is None:
            there = jsonc.items(text, entry.path[:-1])
            if entry.value in there or any(_same_command(item, entry.value) for item in there):
                continue
        elif (found := jsonc.lookup(text, entry.path)) is not None:
            value = json.loads(found)
            if value != entry.value and not (entry.raw and "AGENTS.md" in value):
                notes.append(f"kept {path}, which has its own {'.'.join(map(str, entry.path))}")
            continue
        text = jsonc.insert(text, entry)
    tree.now[path] = text
    return notes


def _json_path(tree: Tree, part: Json) -> str:
    there = (path for path in (part.path, *part.others) if os.path.lexists(tree.full(path)))
    return next(there, part.path)


def _same_command(item: object, ours: object) -> bool:
    """Whether a group of hooks is ours with other details, such as a timeout that somebody chose."""
    command = re.search(r'"taskwall hook \w+"', json.dumps(ours))
    return bool(command and command[0] in json.dumps(item))


# Taking


def _take_all(tree: Tree, parts: Sequence[Part]) -> tuple[list[str], set[str]]:
    """Take everything of ours out; what else keeps the name, and the folders that stay."""
    notes: list[str] = []
    keep: set[str] = set()
    for part in parts:
        try:
            keep |= _kept(tree.read(part.path)) if isinstance(part, Skill) else set()
            notes += _take(tree, part)
        except Foreign:
            continue  # we never write there, so nothing of ours is there
        except (NotStrict, Torn) as flaw:
            if "taskwall" in (tree.now.get(part.path) or ""):
                raise Invalid(
                    f"{part.path} cannot be read: {_told(flaw)}; nothing was removed", next="mend that and repeat"
                ) from None
    return notes, keep


def _take(tree: Tree, part: Part) -> list[str]:
    if isinstance(part, Json):
        return _take_json(tree, part)
    path = (_instructions(tree, part) if isinstance(part, Text) else part.path) or part.path
    text = tree.read(path)
    if text is None:
        return []
    if isinstance(part, Skill):
        tree.now[path] = None if _OURS.search(text) else text
    else:
        tree.now[path] = blocks.take(text, MARKDOWN if isinstance(part, Text) else TOML)
    return []


def _take_json(tree: Tree, part: Json) -> list[str]:
    path = _json_path(tree, part)
    text = was = tree.read(path)
    # What only its layout tells from somebody's own goes last, and only from a file in which something else was ours.
    for entry in sorted(part.entries, key=lambda entry: bool(entry.raw)):
        if text is not None and not (entry.raw and text == was):
            text = jsonc.remove(text, entry, part.extras)
    tree.now[path] = text
    left = text is not None and any(
        entry.path[-1] == "taskwall" and jsonc.lookup(text, entry.path) is not None for entry in part.entries
    )
    return [f"left {path}: its server taskwall is not the one that set-up writes"] if left else []


def _still_needed(root: str, leaving: Sequence[Client], known: dict[str, Client], *, user: bool) -> list[Part]:
    """What clients that stay set up share with those that leave."""
    staying = []
    for client in known.values():
        if client in leaving:
            continue
        others = _parts([other for other in known.values() if other is not client], user=user)
        own = [part for part in _parts([client], user=user) if part not in others]
        tree = Tree(root)
        _take_all(tree, own)
        if tree.changes():
            staying.append(client)
    return _parts(staying, user=user)


# Showing


def _diff(changes: Sequence[Change]) -> str:
    from difflib import unified_diff

    lines: list[str] = []
    for change in changes:
        old, new = ((text or "").splitlines(keepends=True) for text in (change.before, change.after))
        names = [
            f"{side}/{change.path}" if text is not None else "/dev/null"
            for side, text in (("a", change.before), ("b", change.after))
        ]
        lines += (
            line if line.endswith("\n") else line + "\n\\ No newline at end of file\n"
            for line in unified_diff(old, new, names[0], names[1])
        )
    return "".join(lines)
