"""The last words of a run: the end of the log that an agent's session keeps in `.local/runs/`.

Our own agent's is `RUN.jsonl`, whose first line names its session; of any other, `SESSION.log` is what it printed.
"""

from __future__ import annotations

import json
import os
from typing import Any

SUFFIXES = (".jsonl", ".log")
MAX_BYTES = 64 * 1024
MAX_LINES = 30
MAX_TEXT = 600
MAX_RUNS = 50
"""How many logs are looked at, the latest first."""


def tail(runs: str, session: str) -> list[dict[str, str]]:
    """The end of the latest log of this session, `{who, text}` a message; empty when it keeps none."""
    for path in _latest(runs):
        printed = os.path.basename(path) == f"{session}.log"
        with open(path, "rb") as file:
            if not printed and _entry(file.readline(MAX_BYTES)).get("session") != session:
                continue
            file.seek(max(file.tell(), os.fstat(file.fileno()).st_size - MAX_BYTES))
            lines = file.read(MAX_BYTES).splitlines()
        return [told for line in lines for told in (_printed if printed else _messages)(line)][-MAX_LINES:]
    return []


def _latest(runs: str) -> list[str]:
    try:
        found = [e for e in os.scandir(runs) if e.name.endswith(SUFFIXES) and e.is_file(follow_symlinks=False)]
    except OSError:
        return []
    return [e.path for e in sorted(found, key=lambda e: e.stat().st_mtime_ns, reverse=True)[:MAX_RUNS]]


def _entry(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _printed(line: bytes) -> list[dict[str, str]]:
    return [{"who": "", "text": line.decode("utf-8", "replace")[:MAX_TEXT]}]


def _messages(line: bytes) -> list[dict[str, str]]:
    """What one line of a run says: a message's text, then the tools that it calls."""
    entry = _entry(line)
    message = entry.get("message")
    if not isinstance(message, dict):
        end = entry.get("end")
        return [{"who": "end", "text": str(end.get("why"))[:MAX_TEXT]}] if isinstance(end, dict) else []
    told = [{"who": str(message.get("role")), "text": text[:MAX_TEXT]}] if (text := _text(message)) else []
    calls = [c["function"] for c in message.get("tool_calls") or () if isinstance(c, dict) and "function" in c]
    return told + [{"who": "call", "text": f"{c.get('name')} {c.get('arguments')}"[:MAX_TEXT]} for c in calls]


def _text(message: dict[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        content = " ".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return str(content or "").strip()
