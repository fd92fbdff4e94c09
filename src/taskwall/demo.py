"""`make demo`: an agent plans a board, is refused a blocked task, does its blocker; then a person goes on by hand.

`python -m taskwall.demo [FOLDER]`. A configured model is used; otherwise a script plays the model, on loopback.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

from . import agent, config, render
from .agent.models import choose
from .agent.scripted import ScriptedModel, Step, calls, say, task_id
from .config import Location
from .core.errors import Invalid

SCHEMA, API = "setup database schema", "create API endpoints"
TESTS, DOCS = "write tests", "write documentation"

GOALS = (
    f"Put four tasks on the board: {SCHEMA}; {API}, which waits for it; {TESTS} and {DOCS}, which wait for the API.",
    f"Try to claim the task {API} and say what happens. Claim nothing else.",
    f"Claim the task {SCHEMA}, write schema.sql, complete it, and say what that unblocked. Do nothing else.",
)

SCRIPT: list[Step] = [
    calls(
        (
            "create_tasks",
            {
                "tasks": [
                    {"ref": "schema", "subject": SCHEMA},
                    {"ref": "api", "subject": API, "blockedBy": ["schema"]},
                    {"ref": "tests", "subject": TESTS, "blockedBy": ["api"]},
                    {"ref": "docs", "subject": DOCS, "blockedBy": ["api"]},
                ]
            },
        )
    ),
    say("The plan is on the board: schema, then API, then tests and documentation."),
    calls(("list_tasks", {})),
    lambda seen: calls(("claim_task", {"task_id": task_id(seen, API)})),
    say("The API task was refused: the database schema is not done yet."),
    lambda seen: calls(("claim_task", {"task_id": task_id(seen, SCHEMA)})),
    calls(
        ("write_file", {"path": "schema.sql", "content": "CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT);\n"})
    ),
    lambda seen: calls(("complete_task", {"task_id": task_id(seen, SCHEMA), "result": "one table, in schema.sql"})),
    say("The schema is done, and the API task may be started now."),
]


def main(arguments: list[str]) -> int:
    """Play the three goals, then show how to go on. Returns the exit status."""
    folder = os.path.realpath(arguments[0]) if arguments else tempfile.mkdtemp(prefix="taskwall-demo-")
    os.makedirs(folder, exist_ok=True)
    with _model() as options:
        for goal in GOALS:
            print(f"\n$ taskwall agent {shlex.quote(goal)}")
            if status := agent.run(config.find_board(folder, {}, folder), goal=goal, **options):
                return status
    _by_hand(config.find_board(folder, {}, folder))
    return 0


@contextlib.contextmanager
def _model() -> Iterator[dict[str, Any]]:
    """Which model plays, said plainly; the options of a run that name it."""
    try:
        endpoint = choose(None, None, os.environ)
    except Invalid as refused:
        endpoint, why = None, refused.message
    if endpoint:
        print(f"The model is {endpoint.model} at {endpoint.base_url}.")
        yield {}
    else:
        print(f"As {why}, a script plays the model, on loopback. Board, tools and requests are real.")
        print("To see a real one, set DEEPSEEK_API_KEY or OPENAI_API_KEY (or OPENAI_BASE_URL and TASKWALL_MODEL).")
        with ScriptedModel(SCRIPT) as scripted:
            yield {"base_url": scripted.url, "model": "scripted"}


def _by_hand(location: Location) -> None:
    board = config.open_board(location, config.find_actor(None, os.environ))
    beside = os.path.join(os.path.dirname(sys.executable), "taskwall")
    program = "taskwall" if shutil.which("taskwall") or not os.path.exists(beside) else os.path.relpath(beside)
    command = f"{shlex.quote(program)} --board {shlex.quote(location.root)}"
    print(f"\nNow you. The board is {location.path}, one file a task; go on by hand:\n")
    for words, meaning in (
        ("list", "all open tasks"),
        ("next", "what may be started now"),
        ("claim", "take the best of it"),
        ("done ID -m 'what came of it'", "complete it, and see what that unblocks"),
        ("web --open", "see it in a browser, live"),
        ("agent --yes", "or let an agent work the rest off (needs a model)"),
    ):
        print(f"  {command} {words:<30} # {meaning}")
    for words, answer in (("list", board.list()), ("next", board.next())):
        print(f"\n$ {command} {words}\n{render.text(answer)}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
