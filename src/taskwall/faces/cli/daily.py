"""The commands that are verbs of the board, and what belongs to them. What they mean is the verb's to say."""

from __future__ import annotations

from ...core.state import STATES
from .command import Argument, Command

ID = Argument("ID", "task_id", "id")

DAILY = {
    command.name: command
    for command in (
        Command(
            "add",
            "create_task",
            Argument("SUBJECT", "subject", "words"),
            Argument("-b --blocked-by", "blocked_by", "ids"),
            Argument("-d --description", "description", "text"),
            Argument("-p --priority", "priority", "int"),
            Argument("-l --label", "labels", "ids"),
            Argument("--for", "owner"),
            Argument("--parent", "parent"),
            Argument("--id", "id"),
            Argument("--product", "products", "many"),
            Argument("--check", "checks", "many"),
            Argument("--key", "key"),
            doc="Create one task on the board. For several that depend on each other use `taskwall plan`.",
        ),
        Command(
            "plan",
            "create_tasks",
            Argument("FILE", "tasks", "plan", "JSON, or lines `ref: subject <- ref, id`; - for standard input"),
            Argument("--key", "key"),
            doc="Create many dependent tasks at once, all or none. From a file of JSON or of plain lines.",
        ),
        Command(
            "list",
            "list_tasks",
            Argument("[STATE]", "state", "ids", f"only tasks in one of these states: {', '.join(STATES)}, archived"),
            Argument("--owner", "owner"),
            Argument("--label", "label"),
            Argument("--id", "id_glob"),
            Argument("--text", "text"),
            Argument("--after", "after"),
            Argument("--limit -n", "limit", "int"),
            Argument("--all", "everything", "flag"),
        ),
        Command("waiting", "waiting", Argument("--after", "after"), Argument("--limit -n", "limit", "int")),
        Command("show", "get_task", ID),
        Command("next", "next_actionable", Argument("-n --limit", "limit", "int")),
        Command(
            "claim",
            "claim_task",
            Argument("[ID]", "task_id", "id"),
            Argument("--ttl", "ttl", "float"),
            Argument("--steal", "steal", "flag"),
            Argument("--reason", "reason", "text"),
        ),
        Command(
            "done",
            "complete_task",
            ID,
            Argument("-m --message --result", "result", "text"),
            Argument("--product", "products", "many"),
        ),
        Command(
            "release",
            "release_task",
            Argument("[ID]", "task_id", "id"),
            Argument("--reason", "reason", "text"),
            Argument("--failed", "failed", "flag"),
            Argument("--session", "session"),
        ),
        Command(
            "edit",
            "update_task",
            ID,
            Argument("-s --subject", "subject"),
            Argument("-d --description", "description", "text"),
            Argument("-p --priority", "priority", "int"),
            Argument("-l --label", "labels", "ids"),
            Argument("--for", "owner"),
            Argument("--parent", "parent"),
            Argument("--product", "products", "many"),
            Argument("--check", "checks", "many"),
            Argument("--note", "note", "text"),
            Argument("--meta", "metadata", "many"),
        ),
        Command("note", "update_task", ID, Argument("TEXT", "note", "words"), doc="Append a note to a task."),
        Command("block", "update_task", ID, Argument("BY", "add_blocked_by", "ids"), doc="Let a task wait for others."),
        Command(
            "unblock",
            "update_task",
            ID,
            Argument("BY", "remove_blocked_by", "ids"),
            doc="Let a task wait for others no longer.",
        ),
        Command(
            "ask", "ask_person", ID, Argument("QUESTION", "question", "words"), Argument("--option", "options", "many")
        ),
        Command("answer", "answer", ID, Argument("TEXT", "text", "words")),
        Command("hold", "hold", ID, Argument("[REASON]", "reason", "words")),
        Command("resume", "resume", ID),
        Command(
            "cancel",
            "cancel",
            ID,
            Argument("--cascade", "cascade", "flag"),
            Argument("--drop-edges", "drop_edges", "flag"),
        ),
        Command("reopen", "reopen", ID),
        Command("archive", "archive", Argument("--older-than", "older_than", "float")),
        Command("beat", "heartbeat", ID, Argument("--ttl", "ttl", "float")),
        Command("why", "why", ID),
        Command(
            "log",
            "history",
            Argument("[ID]", "task_id", "id"),
            Argument("-n --limit", "limit", "int"),
            Argument("--git", "git", "flag", "what git's commits did to the task, on other machines too"),
        ),
        Command(
            "diff",
            "",
            Argument("[A..B]", "revisions", "id", "two commits; A: since then; without one: since HEAD"),
            doc="Say in task words what changed between two commits. Or since one.",
        ),
        Command("fleet", "fleet"),
        Command("graph", "graph", Argument("--mermaid", "mermaid", "flag", "as a Mermaid flowchart")),
    )
}
