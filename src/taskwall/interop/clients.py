"""What each client of coding agents wants in a project, as data. The facts were measured on the clients themselves."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from typing import Any

from ..core.record import Record
from .jsonc import Entry

TEXTS = os.path.join(os.path.dirname(__file__), "texts")
SERVER = "taskwall"


class Text(Record):
    """A block of lines in a Markdown file."""

    path: str
    lines: str


class Skill(Record):
    """A file that is wholly ours."""

    path: str
    text: str


class Json(Record):
    """Entries of a JSON file. others: names by which the file may be called instead. extras: see `jsonc.create`."""

    path: str
    entries: tuple[Entry, ...]
    extras: dict[str, Any] = {}
    others: tuple[str, ...] = ()


class Toml(Record):
    """A block of tables in a TOML file. table: the keys of the one that must not be there twice. extra: left out where
    the file has that table already.
    """

    path: str
    lines: str
    table: tuple[str, ...]
    extra: str = ""


Part = Text | Skill | Json | Toml


class Client(Record):
    """A client: by what it is found, and what set-up writes and says for it in a project and, with --user, at home."""

    name: str
    programs: tuple[str, ...]
    traces: tuple[str, ...]
    project: tuple[Part, ...]
    user: tuple[Part, ...]
    notes: tuple[str, ...] = ()
    user_notes: tuple[str, ...] = ()


def text_of(name: str) -> str:
    """One of our texts for agents: `SKILL.md` or `agents.md`."""
    with open(os.path.join(TEXTS, name), encoding="utf-8") as file:
        return file.read()


AT_HOME = (
    (
        "This repository has a task board that outlives sessions and is shared",
        "In a repository with a .tasks folder, and in no other: its task board outlives sessions and is shared",
    ),
    ("Shared task board of this repository in .tasks,", "Only in a repository with a .tasks folder, its task board,"),
    ("when a .tasks folder is present; ", ""),
    ("# The task board\n", "# The task board\n\nOnly where there is a .tasks folder: elsewhere use nothing of this.\n"),
)
"""What our texts say instead where they are read in every repository: nobody there has asked for a board."""


def _at_home(text: str) -> str:
    for ours, instead in AT_HOME:
        text = text.replace(ours, instead)
    return text


def _skill(folder: str) -> Skill:
    return Skill(f"{folder}/skills/taskwall/SKILL.md", text_of("SKILL.md"))


def _skill_at_home(folder: str) -> Skill:
    return _skill(folder).replace(text=_at_home(text_of("SKILL.md")))


def _lines_at_home(path: str) -> Text:
    return Text(path, _at_home(text_of("agents.md")))


# Hooks

HOOKS = ("SessionStart", "SessionEnd", "SubagentStop", "PostToolUse", "TaskCreated", "TaskCompleted")
"""The events that Claude Code knows and that change something on the board."""
SECONDS = 10
"""How long a client waits for a hook; ours end sooner by themselves."""


CLAIMED = ("PostToolUse", "mcp__.*taskwall.*__claim_task")
"""The event that says which sub-agent has claimed a task, and the tools whose use it is about."""


def hook(event: str, timeout: int = SECONDS) -> dict[str, Any]:
    """One group of hooks in the shape of Claude Code, Codex and Gemini CLI."""
    matcher = {"matcher": CLAIMED[1]} if event == CLAIMED[0] else {}
    return matcher | {"hooks": [{"type": "command", "command": f"taskwall hook {event}", "timeout": timeout}]}


def _hooks(path: str, events: tuple[str, ...]) -> Json:
    return Json(path, _hook_entries(events))


def _hook_entries(events: tuple[str, ...], timeout: int = SECONDS) -> tuple[Entry, ...]:
    return tuple(Entry(("hooks", event, None), hook(event, timeout)) for event in events)


def _cursor_hooks(path: str, events: tuple[str, ...]) -> Json:
    entries = (Entry(("hooks", event, None), {"command": f"taskwall hook {event}"}) for event in events)
    return Json(path, tuple(entries), extras={"version": 1})


# Servers

STDIO = {"type": "stdio", "command": "taskwall", "args": ["mcp"], "env": {}}
SHORT = {"command": "taskwall", "args": ["mcp"]}
OPENCODE = {"type": "local", "command": ["taskwall", "mcp"], "enabled": True}
OPENCODE_SCHEMA = {"$schema": "https://opencode.ai/config.json"}
CODEX = '[mcp_servers.taskwall]\ncommand = "taskwall"\nargs = ["mcp"]\nrequired = true\n'


def _servers(path: str, value: dict[str, Any]) -> Json:
    return Json(path, (Entry(("mcpServers", SERVER), value),))


def _opencode_server(folder: str) -> Json:
    entry = Entry(("mcp", SERVER), OPENCODE)
    return Json(f"{folder}opencode.json", (entry,), OPENCODE_SCHEMA, others=(f"{folder}opencode.jsonc",))


# Clients

IMPORT = "@AGENTS.md"
GEMINI_FILES = Entry(("context", "fileName"), ["AGENTS.md", "GEMINI.md"], '["AGENTS.md","GEMINI.md"]')


def clients(*, stop: bool = False) -> dict[str, Client]:
    """Every client by its name. stop: with the hook that asks an agent once about what it still holds."""
    also = ("Stop",) if stop else ()
    found = (_claude(also), _codex(also), _gemini(), _opencode(), _cursor())
    return {client.name: client for client in found}


def _agents() -> Text:
    return Text("AGENTS.md", text_of("agents.md"))


def _claude(also: tuple[str, ...]) -> Client:
    hooks = _hooks(".claude/settings.json", HOOKS + also)
    return Client(
        "claude", ("claude",), (".claude", "CLAUDE.md", ".mcp.json"),
        (_skill(".claude"), _agents(), Text("CLAUDE.md", IMPORT), _servers(".mcp.json", STDIO), hooks),
        (_skill_at_home(".claude"), _lines_at_home(".claude/CLAUDE.md"), _servers(".claude.json", STDIO), hooks),
        ("Claude Code asks once whether it may use the server of .mcp.json",),
    )  # fmt: skip


def _codex(also: tuple[str, ...]) -> Client:
    both = (Toml(".codex/config.toml", CODEX, ("mcp_servers", SERVER)), _hooks(".codex/hooks.json", HOOKS[:3] + also))
    return Client(
        "codex", ("codex",), (".codex",),
        (_skill(".agents"), _agents(), *both),
        (_skill_at_home(".agents"), _lines_at_home(".codex/AGENTS.md"), *both),
        ("Codex reads .codex/ of a project only when the project is trusted",),
    )  # fmt: skip


def _gemini() -> Client:
    entries = (Entry(("mcpServers", SERVER), SHORT), *_hook_entries(HOOKS[:2], SECONDS * 1000))
    path = ".gemini/settings.json"
    return Client(
        "gemini", ("gemini",), (".gemini", "GEMINI.md"),
        (_skill(".agents"), _agents(), Json(path, (*entries, GEMINI_FILES))),
        (_skill_at_home(".agents"), _lines_at_home(".gemini/GEMINI.md"), Json(path, entries)),
    )  # fmt: skip


def _opencode() -> Client:
    home = ".config/opencode"
    return Client(
        "opencode", ("opencode",), (".opencode", "opencode.json", "opencode.jsonc", home),
        (_skill(".agents"), _agents(), _opencode_server("")),
        (_skill_at_home(".agents"), _lines_at_home(f"{home}/AGENTS.md"), _opencode_server(f"{home}/")),
    )  # fmt: skip


def _cursor() -> Client:
    both = (
        _servers(".cursor/mcp.json", SHORT),
        _cursor_hooks(".cursor/hooks.json", ("sessionStart", "sessionEnd", "subagentStop")),
    )
    notes = ("what Cursor gets follows its documentation and is untested",)
    return Client(
        "cursor", ("cursor", "cursor-agent"), (".cursor", ".cursorrules"),
        (_agents(), _skill(".agents"), *both), (_skill_at_home(".agents"), *both), notes, notes,
    )  # fmt: skip


NAMES = {"claude-code": "claude", "gemini-cli": "gemini", "cursor-agent": "cursor"}
"""What people type who mean one of them."""


def in_use(root: str, env: Mapping[str, str]) -> list[str]:
    """The clients whose files lie in a project or whose programs can be started, by name."""
    return [
        client.name
        for client in clients().values()
        if any(os.path.lexists(os.path.join(root, trace)) for trace in client.traces)
        or any(shutil.which(program, path=env.get("PATH", "")) for program in client.programs)
    ]


def writable(client: str, board: str) -> Part | None:
    """Where a client is told of a folder outside the project that its sandbox shall let an agent write."""
    if client == "claude":
        # Local settings: the path is one of this machine, and the client keeps that file out of git.
        return Json(".claude/settings.local.json", (Entry(("permissions", "additionalDirectories", None), board),))
    return None


def codex_writable(part: Toml, board: str) -> Toml:
    """Codex is told in the same block."""
    quoted = board.replace("\\", "\\\\").replace('"', '\\"')
    return part.replace(extra=f'\n[sandbox_workspace_write]\nwritable_roots = ["{quoted}"]\n')
