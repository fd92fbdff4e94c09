"""Claude Code itself, set up by `taskwall setup claude --yes`, works a board against a scripted model on loopback.

    tests/conformance/claude_round_trip.py [CLAUDE]

Outside CI. CLAUDE: the client's program; without it, npm fetches it. A dummy key, a home of its own, no login. The
model creates two tasks, is refused the blocked one, claims its blocker and completes it, through the MCP tools alone.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGE = "@anthropic-ai/claude-code@2.1.197"
PLAN = [{"ref": "a", "subject": "lay the pipes"}, {"ref": "b", "subject": "close the wall", "blockedBy": ["a"]}]
STEPS = [
    # the tool, its arguments, what its result must say
    ("create_tasks", {"tasks": PLAN}, r"Created task_\w+: close the wall \(blockedBy: task_\w+\)"),
    ("claim_task", {"task_id": "close the wall"}, r"Blocked by: task_\w+"),
    ("claim_task", {"task_id": "lay the pipes"}, r"Claimed task_\w+ \(lay the pipes\)"),
    (
        "complete_task",
        {"task_id": "lay the pipes", "result": "three circuits"},
        r"Unblocked:\n- task_\w+: close the wall",
    ),
]


class Model:
    """An endpoint in the wire format of the Messages API; each conversation gets the step after its last result."""

    def __init__(self):
        self.requests = []
        model = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if "count_tokens" in self.path:
                    return self.reply("application/json", json.dumps({"input_tokens": 10}))
                return self.reply("text/event-stream", model.answer(body))

            def do_HEAD(self):
                self.reply("application/json", "")

            do_GET = do_HEAD

            def reply(self, kind, text):
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(text.encode())))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def answer(self, body):
        if not body.get("tools"):  # a side request, such as one for a title
            return events({"type": "text", "text": "ok"}, "end_turn")
        self.requests.append(body)
        at = len(results(body))
        if at == len(STEPS):
            return events({"type": "text", "text": "All done."}, "end_turn")
        name, arguments, _ = STEPS[at]
        block = {"type": "tool_use", "id": f"toolu_{at}", "name": f"mcp__taskwall__{name}", "input": arguments}
        return events(block, "tool_use")


def results(body):
    """The texts of the tool results of a conversation."""
    found = []
    for message in body["messages"]:
        for block in message["content"] if isinstance(message["content"], list) else []:
            if block["type"] == "tool_result":
                content = block["content"]
                found.append(content if isinstance(content, str) else "\n".join(b.get("text", "") for b in content))
    return found


def events(block, reason):
    """One answer as server-sent events."""
    usage = {"input_tokens": 10, "output_tokens": 10}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "content": []}
    if block["type"] == "text":
        start, delta = block | {"text": ""}, {"type": "text_delta", "text": block["text"]}
    else:
        start, delta = block | {"input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    told = [
        {"type": "message_start", "message": message | {"stop_reason": None, "stop_sequence": None, "usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": start},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    ]
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in told)


def fetched(folder):
    """The client from npm."""
    subprocess.run(["npm", "install", "--silent", "--prefix", folder, PACKAGE], check=True)
    inside = Path(folder, "node_modules/@anthropic-ai/claude-code")
    subprocess.run(["node", "install.cjs"], cwd=inside, check=True, stdout=subprocess.DEVNULL)
    return Path(folder, "node_modules/.bin/claude")


def main():
    with tempfile.TemporaryDirectory() as scratch:
        home, project = Path(scratch, "home"), Path(scratch, "project")
        home.mkdir()
        project.mkdir()
        claude = sys.argv[1] if len(sys.argv) > 1 else fetched(f"{scratch}/client")
        model = Model()
        kept = {k: v for k, v in os.environ.items() if not re.match("TASKWALL|CLAUDE|ANTHROPIC|CODEX|GEMINI|HOME$", k)}
        env = kept | {
            "HOME": str(home), "PATH": f"{Path(sys.executable).parent}:{kept['PATH']}", "ANTHROPIC_API_KEY": "dummy",
            "ANTHROPIC_BASE_URL": model.url, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1",
        }  # fmt: skip
        run = lambda *words: subprocess.run(  # noqa: E731
            [str(w) for w in words],
            cwd=project,
            env=env,
            capture_output=True,
            text=True,
            timeout=180,
            stdin=subprocess.DEVNULL,
        )
        subprocess.run(["git", "init", "-q"], cwd=project, check=True)
        for words in (["init"], ["setup", "claude", "--yes"]):
            assert run("taskwall", *words).returncode == 0
        done = run(
            claude, "-p", "Work the board off.", "--settings", '{"enableAllProjectMcpServers": true}',
            "--allowedTools", "mcp__taskwall", "--model", "claude-sonnet-4-5",
        )  # fmt: skip
        report(model, done, run("taskwall", "list", "--all").stdout, run("taskwall", "log").stdout)


def report(model, done, board, log):
    print(done.stdout.strip(), done.stderr.strip(), board, log, sep="\n")
    assert done.returncode == 0
    said = results(model.requests[-1])
    for (name, _, wanted), result in zip(STEPS, said, strict=True):
        assert re.search(wanted, result), f"{name}: {result}"
    first = json.dumps(model.requests[0])
    offered = re.findall(r"mcp__taskwall__(\w+)", first)
    print("tools named in the first request:", len(set(offered)))
    print("the digest reached the model:", "a task board shared with other agents" in first)
    print("AGENTS.md reached the model:", "Tasks: taskwall" in first)
    assert "a task board shared with other agents" in first and "Tasks: taskwall" in first
    assert re.search(r"\[x\] task_\w+: lay the pipes \[completed\] owner=claude", board)
    assert re.search(r"\[ \] task_\w+: close the wall \[pending\]", board)
    print("ok: create, blocked claim, claim and complete through Claude Code")


if __name__ == "__main__":
    main()
