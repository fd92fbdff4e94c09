"""The commands that are verbs of the board, and what belongs to them. What they mean is the verb's to say."""

from __future__ import annotations

from ...core.state import STATES
from .command import Argument, Command

ID = Argument("ID", "task_id", "id")

DAILY = {
    "add": Command(
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
        verb="create_task",
        doc="Create one task on the board. For several that depend on each other use `taskwall plan`.",
    ),
    "plan": Command(
        Argument("FILE", "tasks", "plan", "JSON, or lines `ref: subject <- ref, id`; - for standard input"),
        Argument("--key", "key"),
        verb="create_tasks",
        doc="Create many dependent tasks at once, all or none. From a file of JSON or of plain lines.",
    ),
    "list": Command(
        Argument("[STATE]", "state", "ids", f"only tasks in one of these states: {', '.join(STATES)}, archived"),
        Argument("--owner", "owner"),
        Argument("--label", "label"),
        Argument("--id", "id_glob"),
        Argument("--text", "text"),
        Argument("--after", "after"),
        Argument("--limit -n", "limit", "int"),
        Argument("--all", "everything", "flag"),
        verb="list_tasks",
    ),
    "waiting": Command(Argument("--after", "after"), Argument("--limit -n", "limit", "int"), verb="waiting"),
    "show": Command(ID, verb="get_task"),
    "next": Command(Argument("-n --limit", "limit", "int"), verb="next_actionable"),
    "claim": Command(
        Argument("[ID]", "task_id", "id"),
        Argument("--ttl", "ttl", "float"),
        Argument("--steal", "steal", "flag"),
        Argument("--reason", "reason", "text"),
        verb="claim_task",
    ),
    "done": Command(
        ID,
        Argument("-m --message --result", "result", "text"),
        Argument("--product", "products", "many"),
        verb="complete_task",
    ),
    "release": Command(
        Argument("[ID]", "task_id", "id"),
        Argument("--reason", "reason", "text"),
        Argument("--failed", "failed", "flag"),
        Argument("--session", "session"),
        verb="release_task",
    ),
    "edit": Command(
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
        verb="update_task",
    ),
    "note": Command(ID, Argument("TEXT", "note", "words"), verb="update_task", doc="Append a note to a task."),
    "block": Command(
        ID, Argument("BY", "add_blocked_by", "ids"), verb="update_task", doc="Let a task wait for others."
    ),
    "unblock": Command(
        ID, Argument("BY", "remove_blocked_by", "ids"), verb="update_task", doc="Let a task wait for others no longer."
    ),
    "ask": Command(
        ID, Argument("QUESTION", "question", "words"), Argument("--option", "options", "many"), verb="ask_person"
    ),
    "answer": Command(ID, Argument("TEXT", "text", "words"), verb="answer"),
    "hold": Command(ID, Argument("[REASON]", "reason", "words"), verb="hold"),
    "resume": Command(ID, verb="resume"),
    "cancel": Command(
        ID, Argument("--cascade", "cascade", "flag"), Argument("--drop-edges", "drop_edges", "flag"), verb="cancel"
    ),
    "reopen": Command(ID, verb="reopen"),
    "archive": Command(Argument("--older-than", "older_than", "float"), verb="archive"),
    "beat": Command(ID, Argument("--ttl", "ttl", "float"), verb="heartbeat"),
    "why": Command(ID, verb="why"),
    "log": Command(
        Argument("[ID]", "task_id", "id"),
        Argument("-n --limit", "limit", "int"),
        Argument("--git", "git", "flag", "what git's commits did to the task, on other machines too"),
        verb="history",
    ),
    "diff": Command(
        Argument("[A..B]", "revisions", "id", "two commits; A: since then; without one: since HEAD"),
        doc="Say in task words what changed between two commits. Or since one.",
    ),
    "fleet": Command(verb="fleet"),
    "graph": Command(Argument("--mermaid", "mermaid", "flag", "as a Mermaid flowchart"), verb="graph"),
}
