"""All commands: those of daily work first, then those around the board."""

from __future__ import annotations

from .command import Argument, Command
from .daily import DAILY

COMMANDS = DAILY | {
    "init": Command(
        Argument("--git", "git", "flag", "let git merge task files by their fields too, as `setup git` does"),
        Argument("--yes", "yes", "flag", "write that without asking"),
        doc="Make a board here, at the root of the repository. Touches nothing else.",
    ),
    "where": Command(doc="Say which board is in use and why, and who acts."),
    "import": Command(
        Argument("[FORMAT]", "format", doc="beads, taskmaster, backlog, taskwarrior, ticket, tasks, checklist, jsonl"),
        Argument("PATH", "path", doc="the board of another program, or a project that holds one"),
        Argument("--dry-run", "dry_run", "flag", "say what would happen; write nothing"),
        doc="Bring the tasks of another program here. All or none, with a report of what had no place. "
        "Again, it updates what was not changed here.",
    ),
    "export": Command(
        Argument("[FORMAT]", "format", doc="jsonl (all of it, to import again), beads, markdown, csv or html"),
        Argument("-o --output", "path", doc="a new file; - for standard output"),
        Argument("--force", "force", "flag", "the file may exist, and is replaced"),
        doc="Print the whole board in another format.",
    ),
    "selftest": Command(
        doc="Try whether a board is safe on this file system. Takes up to half a minute, leaves nothing behind."
    ),
    "trust": Command(
        Argument("[ID]", "names", "many", "tasks whose checks are meant; all open ones without one"),
        Argument("--list", "list", "flag", "say what is trusted on this board"),
        Argument("--revoke", "revoke", "flag", "trust these no longer; without an ID, nothing of this board"),
        Argument("--yes", "yes", "flag", "do not ask"),
        doc="Let checks of tasks run as you, once you have seen them. Only a person may.",
    ),
    "setup": Command(
        Argument("[CLIENT]", "names", "many", "claude, codex, gemini, opencode, cursor; else those in use; git"),
        Argument("--user", "user", "flag", "in your home folder instead of this project"),
        Argument("--check", "check", "flag", "write nothing; exit 0 when all is as it should be"),
        Argument("--remove", "remove", "flag", "take back what set-up wrote"),
        Argument("--yes", "yes", "flag", "write without asking"),
        Argument("--stop-hook", "stop_hook", "flag", "with a hook that asks an agent that stops what it holds"),
        doc="Make coding agents use the board. MCP server, hooks, skill and instructions: shows what it changes. "
        "`setup git`: let git merge task files by their fields.",
    ),
    "uninstall": Command(
        Argument("--yes", "yes", "flag", "without asking"),
        doc="Take back all that set-up wrote, for git and for clients. Tasks stay.",
    ),
    "doctor": Command(
        Argument("--fix", "fix", "flag", "show what can be repaired safely, and repair it when you say yes"),
        Argument("--yes", "yes", "flag", "repair without asking"),
        doc="Find what is wrong with the board, what it means and what helps. Writes nothing without --fix.",
    ),
    "merge-driver": Command(
        Argument("BASE", "base", doc="the common ancestor's file"),
        Argument("OURS", "ours", doc="our file, which is written"),
        Argument("THEIRS", "theirs", doc="their file"),
        Argument("PATH", "path", doc="where the file lies in the worktree"),
        Argument("[SIZE]", "size", doc="of git's conflict markers"),
        doc="What git calls to merge a task file. `setup git` tells it to.",
    ),
    "agent": Command(
        Argument("[GOAL]", "goal", "words", "what to do; without one, work the board off"),
        Argument("--task", "task", "id", "work on this task alone"),
        Argument("--model", "model", doc="name of the model"),
        Argument("--base-url", "base_url", doc="OpenAI-compatible endpoint; Anthropic's if it ends in /anthropic"),
        Argument("--fallback", "fallback", doc="a model that stands in when the other is overloaded"),
        Argument("--yes", "yes", "flag", "run shell commands without asking"),
        Argument("--outside", "outside", "flag", "files outside the workspace may be read and written"),
        Argument("--resume", "resume", "run", "go on with the latest run, or with RUN"),
        Argument("--max-turns", "max_turns", "int", "stop after this many requests"),
        Argument("--max-tokens", "max_tokens", "int", "stop after this many tokens, read and written"),
        Argument("--max-seconds", "max_seconds", "float", "stop after this time"),
        Argument("--max-cost", "max_cost", "float", "stop when it cost this much; needs --prices"),
        Argument("--prices", "prices", doc="what a million tokens cost: IN/OUT ($TASKWALL_PRICES)"),
        doc="Let an agent plan on the board and work it off.",
    ),
    "work": Command(
        Argument("--agents", "agents", "int", "how many work at the same time"),
        Argument("--timeout", "minutes", "float", "minutes that an agent may take for a task; 60 otherwise"),
        Argument("--until-empty", "until_empty", "flag", "end when nothing is left to do, the default"),
        Argument("--forever", "forever", "flag", "wait for new work until a signal ends it"),
        Argument("--worktree", "worktree", "flag", "a git worktree and a branch task/ID-eN for each claim"),
        Argument("--base", "base", doc="where those branches begin; HEAD of the main worktree otherwise"),
        Argument("--merge", "merge", "flag", "merge what was completed into the main worktree's branch"),
        doc="Keep agents on the board until nothing is left to do. The agent is ours, or any command behind --, "
        "such as `taskwall work -- claude -p {prompt}`; {task} is the id, and without {prompt} the prompt comes on "
        "standard input.",
        tail="command",
    ),
    "tui": Command(doc="Show the live board in this terminal, and act on it. Needs `taskwall[tui]`."),
    "web": Command(
        Argument("--open", "open", "flag", "open it in a browser"),
        Argument("--port", "port", "int", "7420 or the next free one without it; 0 takes any"),
        Argument("--read-only", "read_only", "flag", "show, and change nothing"),
        Argument("--remote", "remote", doc="listen on this address instead of loopback; says what that risks"),
        doc="Serve the live board to a browser on this machine. Acts as `user`, or as --as says.",
    ),
    "watch": Command(doc="Print what happens on the board, a line each, as it happens."),
    "db": Command(
        Argument("ACTION", "action", doc="check, migrate, role, settings or mirror"),
        Argument("[NAME]", "name", doc="role: its name. settings: a file to take them from. mirror: a folder"),
        Argument("--dry-run", "dry_run", "flag", "migrate: say what would be applied"),
        doc="Keep a database of boards, named by --board postgresql://…. Check it; make or renew its tables; print "
        "SQL for a role that may do no more than it must; show or set settings; write the board's files for git.",
    ),
    "move": Command(
        Argument("TARGET", "target", doc="postgresql://…?board=NAME, or a folder for a board in a database"),
        doc="Move the board, whole, to PostgreSQL or back to files. Both are compared; the old one is only read.",
    ),
    "mcp": Command(
        Argument("--tools", "tools", doc="these verbs instead of the ten, with commas between them"),
        doc="Serve the board to an MCP client on standard input and output.",
    ),
    "prime": Command(doc="Tell an agent what it holds, what is next and who must act. In a few lines."),
    "hook": Command(
        Argument("[EVENT]", "event", doc="SessionStart, SessionEnd, SubagentStop, TaskCreated, …"),
        Argument("--strict", "strict", "flag", "a refusal reaches the client, as exit status 2"),
        doc="Answer a hook of a coding agent. Its JSON comes on standard input. Never fails. "
        "Tasks of the client's own list are mirrored on the board, reserved for it.",
    ),
    "completion": Command(
        Argument("SHELL", "shell", doc="bash, zsh, tcsh or another that shtab knows"),
        doc="Print a script that completes commands in a shell.",
    ),
}
