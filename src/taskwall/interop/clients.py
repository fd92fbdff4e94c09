"""What each client of coding agents wants in a project, as data. The facts were measured on the clients themselves."""

from __future__ import annotations

import os
import shutil

from ..core.record import Record
from .jsonc import Entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

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
    """A client: by what it is found, and what set-up writes for it in a project and, with --user, in a home folder."""

    name: str
    title: str
    programs: tuple[str, ...]
    traces: tuple[str, ...]
    project: tuple[Part, ...]
    user: tuple[Part, ...]
    notes: tuple[str, ...] = ()


def text_of(name: str) -> str:
    """One of our texts for agents: `SKILL.md` or `agents.md`."""
    with open(os.path.join(TEXTS, name), encoding="utf-8") as file:
        return file.read()


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


def _hooks(path: str, events: tuple[str, ...], timeout: int = SECONDS) -> Json:
    return Json(path, _hook_entries(events, timeout))


def _hook_entries(events: tuple[str, ...], timeout: int) -> tuple[Entry, ...]:
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


def _opencode(folder: str) -> Json:
    entry = Entry(("mcp", SERVER), OPENCODE)
    return Json(f"{folder}opencode.json", (entry,), OPENCODE_SCHEMA, others=(f"{folder}opencode.jsonc",))


def _codex(folder: str) -> Toml:
    return Toml(f"{folder}config.toml", CODEX, ("mcp_servers", SERVER))


# Clients

IMPORT = "@AGENTS.md"
GEMINI_FILES = Entry(("context", "fileName"), ["AGENTS.md", "GEMINI.md"], '["AGENTS.md","GEMINI.md"]')


def clients(*, stop: bool = False) -> dict[str, Client]:
    """Every client by its name. stop: with the hook that asks an agent once about what it still holds."""
    lines, skill = text_of("agents.md"), text_of("SKILL.md")
    agents = Text("AGENTS.md", lines)
    shared = Skill(".agents/skills/taskwall/SKILL.md", skill)
    ours = Skill(".claude/skills/taskwall/SKILL.md", skill)
    claude = _hooks(".claude/settings.json", HOOKS + (("Stop",) if stop else ()))
    codex = HOOKS[:3] + (("Stop",) if stop else ())
    gemini = Json(
        ".gemini/settings.json",
        (Entry(("mcpServers", SERVER), SHORT), *_hook_entries(HOOKS[:2], SECONDS * 1000)),
    )
    cursor = (
        shared,
        _servers(".cursor/mcp.json", SHORT),
        _cursor_hooks(".cursor/hooks.json", ("sessionStart", "sessionEnd", "subagentStop")),
    )
    found = (
        Client(
            "claude", "Claude Code", ("claude",), (".claude", "CLAUDE.md", ".mcp.json"),
            (ours, agents, Text("CLAUDE.md", IMPORT), _servers(".mcp.json", STDIO), claude),
            (ours, Text(".claude/CLAUDE.md", lines), _servers(".claude.json", STDIO), claude),
            ("Claude Code asks once whether it may use the server of .mcp.json",),
        ),
        Client(
            "codex", "Codex", ("codex",), (".codex",),
            (shared, agents, _codex(".codex/"), _hooks(".codex/hooks.json", codex)),
            (shared, Text(".codex/AGENTS.md", lines), _codex(".codex/"), _hooks(".codex/hooks.json", codex)),
            ("Codex reads .codex/ of a project only when the project is trusted",),
        ),
        Client(
            "gemini", "Gemini CLI", ("gemini",), (".gemini", "GEMINI.md"),
            (shared, agents, gemini.replace(entries=(*gemini.entries, GEMINI_FILES))),
            (shared, Text(".gemini/GEMINI.md", lines), gemini),
        ),
        Client(
            "opencode", "opencode", ("opencode",), (".opencode", "opencode.json", "opencode.jsonc", ".config/opencode"),
            (shared, agents, _opencode("")),
            (shared, Text(".config/opencode/AGENTS.md", lines), _opencode(".config/opencode/")),
        ),
        Client(
            "cursor", "Cursor", ("cursor", "cursor-agent"), (".cursor", ".cursorrules"),
            (agents, *cursor),
            cursor,
            ("what Cursor gets follows its documentation and is untested",),
        ),
    )  # fmt: skip
    return {client.name: client for client in found}


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
