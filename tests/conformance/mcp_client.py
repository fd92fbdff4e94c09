"""The official MCP client lists and calls every tool of a real server, in each protocol version that it knows.

`make conformance` runs this in an environment of its own. The first argument is the `taskwall` to serve.
"""

import asyncio
import os
import subprocess
import sys
import tempfile

import mcp.client.session as session_module
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

CALLS = (
    ("create_tasks", {"tasks": [{"ref": "a", "subject": "建表"}, {"ref": "b", "subject": "api", "blockedBy": ["a"]}]}),
    ("create_task", {"subject": "docs"}),
    ("list_tasks", {}),
    ("next_actionable", {}),
    ("get_task", {"task_id": "api"}),
    ("claim_task", {"task_id": "建表"}),
    ("update_task", {"task_id": "建表", "note": "begun"}),
    ("complete_task", {"task_id": "建表", "result": "made"}),
    ("claim_task", {"task_id": "docs"}),
    ("release_task", {"task_id": "docs", "reason": "later"}),
    ("ask_person", {"task_id": "docs", "question": "Which language?", "options": ["zh", "en"]}),
)


async def use(session, label):
    """List the ten tools, call each, and see a refusal come as a result."""
    tools = {tool.name for tool in (await session.list_tools()).tools}
    assert tools == {name for name, _ in CALLS}, tools
    for name, arguments in CALLS:
        result = await session.call_tool(name, arguments)
        failed = getattr(result, "is_error", None) or getattr(result, "isError", None)
        assert not failed, (name, result)
        assert len(result.content) == 1, name
    refused = await session.call_tool("claim_task", {"task_id": "建表"})
    assert getattr(refused, "is_error", None) or getattr(refused, "isError", None)
    assert "already" in refused.content[0].text
    print(f"ok  {label}: {len(tools)} tools listed, {len(CALLS) + 1} calls answered")


async def with_session(server):
    """The handshake."""
    async with stdio_client(server) as streams, ClientSession(*streams) as session:
        found = await session.initialize()
        await use(session, f"handshake {getattr(found, 'protocol_version', None) or found.protocolVersion}")


async def with_client(server, mode):
    """Without a handshake, where this client can do that."""
    from mcp.client.client import Client

    async with Client(server, mode=mode) as client:
        await use(client, f"mode {mode}, {client.protocol_version}")


def main(command):
    def fresh():
        folder = tempfile.mkdtemp(prefix="taskwall-conformance-")
        subprocess.run(["git", "init", "-q", folder], check=True)
        return StdioServerParameters(command=command, args=["mcp"], cwd=folder)

    if hasattr(session_module, "LATEST_HANDSHAKE_VERSION"):
        for version in ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"):
            session_module.LATEST_HANDSHAKE_VERSION = version
            asyncio.run(with_session(fresh()))
        for mode in ("auto", "2026-07-28"):
            asyncio.run(with_client(fresh(), mode))
    else:
        asyncio.run(with_session(fresh()))


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]))
