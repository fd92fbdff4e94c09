"""`taskwall work` drives Claude Code itself, set up by `taskwall setup claude --yes`, against a scripted model on loopback.

    tests/conformance/claude_worker.py [CLAUDE]

Outside CI. CLAUDE: the client's program; without it, npm fetches it. The model does the first task through the MCP
tools and the second, which waits for it, through the shell; of the third it only says that it is done. Every hook of
the set-up runs: the end of the client's session must not give back what the worker judges.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from claude_round_trip import Model, events, fetched, results


PLAN = [
    {"id": "pipes", "subject": "走水电"},
    {"id": "wall", "subject": "封墙", "blockedBy": ["pipes"]},
    {"id": "lie", "subject": "刷漆"},
]


class Workman(Model):
    """Finds its task in the prompt; completes it, once by each way, or says so without doing it."""

    def answer(self, body):
        if not body.get("tools"):
            return events({"type": "text", "text": "ok"}, "end_turn")
        self.requests.append(body)
        task = re.search(r"TASK (\w+)\\n", json.dumps(body["messages"]))[1]
        if results(body) or task == "lie":
            return events({"type": "text", "text": "All done."}, "end_turn")
        ways = {
            "pipes": ("mcp__taskwall__complete_task", {"task_id": task, "result": "三条回路"}),
            "wall": ("Bash", {"command": f"taskwall done {task} -m 'closed'", "description": "complete the task"}),
        }
        name, arguments = ways[task]
        return events({"type": "tool_use", "id": f"toolu_{task}", "name": name, "input": arguments}, "tool_use")


def main():
    with tempfile.TemporaryDirectory() as scratch:
        home, project = Path(scratch, "home"), Path(scratch, "project")
        home.mkdir()
        project.mkdir()
        claude = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else fetched(f"{scratch}/client")
        model = Workman()
        kept = {k: v for k, v in os.environ.items() if not re.match("TASKWALL|CLAUDE|ANTHROPIC|CODEX|GEMINI|HOME$", k)}
        env = kept | {
            "HOME": str(home), "PATH": f"{Path(sys.executable).parent}:{kept['PATH']}", "ANTHROPIC_API_KEY": "dummy",
            "ANTHROPIC_BASE_URL": model.url, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1",
        }  # fmt: skip

        def run(*words, given=None):
            return subprocess.run(
                [*map(str, words)], cwd=project, env=env, capture_output=True, text=True, timeout=300, input=given or ""
            )

        run("git", "init", "-q")
        for words in (["init"], ["setup", "claude", "--yes"]):
            assert run("taskwall", *words).returncode == 0
        (project / ".tasks" / "board.toml").write_text("max_attempts = 1\n")
        assert run("taskwall", "plan", "-", given=json.dumps(PLAN)).returncode == 0
        worked = run(
            "taskwall", "work", "--as", "night", "--timeout", 2, "--", claude, "-p", "{prompt}",
            "--settings", '{"enableAllProjectMcpServers": true}', "--allowedTools", "mcp__taskwall", "Bash(taskwall:*)",
            "--model", "claude-sonnet-4-5",
        )  # fmt: skip
        report(worked, {task["id"]: json.loads((project / f".tasks/{task['id']}.json").read_text()) for task in PLAN})


def report(worked, tasks):
    print(worked.stdout, worked.stderr)
    found = {name: (task["status"], task["owner"], task.get("result")) for name, task in tasks.items()}
    assert found["pipes"] == ("completed", "night", "三条回路"), found
    assert found["wall"] == ("completed", "night", "closed"), found
    assert found["lie"] == ("pending", None, None) and tasks["lie"]["attempts"] == 1, tasks["lie"]
    assert worked.returncode == 7 and "held until a person resumes it: lie" in worked.stdout
    print("ok: a worker drives Claude Code: two tasks done in their order, and a lie found out")


if __name__ == "__main__":
    main()
