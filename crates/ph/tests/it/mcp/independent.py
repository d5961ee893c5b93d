"""Every tool of `ph mcp`, by the official Python SDK. Prints one line where all is as it should be."""

import asyncio
import json
import os
import subprocess
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

PH = sys.argv[1]
NAMES = {
    "inbox_list", "inbox_mark_read", "task_add", "task_status", "task_list", "note_add",
    "note_list", "session_complete", "send_message", "reply", "read_message", "list_agents",
    "search_messages", "wait_for_message",
}


def environment(agent):
    keep = ("PATH", "HOME", "PH_HOME")
    return {name: os.environ[name] for name in keep} | {"PH_AGENT": agent, "PH_ITERATION": "2"}


def ph(*words, agent=""):
    done = subprocess.run(
        [PH, *words], env=environment(agent), stdin=subprocess.DEVNULL,
        capture_output=True, text=True, check=True,
    )
    return done.stdout.strip()


def field(thing, snake, camel):
    """The SDK has spelled its fields both ways."""
    return getattr(thing, snake) if hasattr(thing, snake) else getattr(thing, camel)


async def call(session, tool, **arguments):
    result = await session.call_tool(tool, arguments)
    return bool(field(result, "is_error", "isError")), [block.text for block in result.content]


async def ok(session, tool, **arguments):
    is_error, blocks = await call(session, tool, **arguments)
    assert not is_error, (tool, blocks)
    return blocks[0]


async def fails(session, says, tool, **arguments):
    is_error, blocks = await call(session, tool, **arguments)
    assert is_error and says in blocks[0], (tool, blocks)


async def check_tools(session):
    tools = (await session.list_tools()).tools
    assert {tool.name for tool in tools} == NAMES, [tool.name for tool in tools]
    for tool in tools:
        schema = field(tool, "input_schema", "inputSchema")
        assert tool.description and schema["type"] == "object", tool
        for name, of in schema["properties"].items():
            assert of["description"] and of["type"], (tool.name, name)


async def check_work(session):
    assert await ok(session, "task_list") == "No tasks yet"
    task = (await ok(session, "task_add", content="Write it")).split()[1]
    assert await ok(session, "task_status", id=task, status="in_progress") == f"Task {task} marked as in_progress"
    assert await ok(session, "task_list") == f"IN PROGRESS:\n  - [{task}] Write it"
    assert await ok(session, "note_add", content="SQLite", type="decision") == "Note added: [decision] SQLite"
    assert await ok(session, "note_list") == "DECISION:\n  - [#2] SQLite"
    await fails(session, "no task ffffffff", "task_status", id="ffffffff", status="completed")


async def check_mail(session):
    assert await ok(session, "inbox_list") == "No unread messages"
    waiting = asyncio.create_task(ok(session, "wait_for_message", timeout_seconds=600))
    # Answered meanwhile.
    assert "Write it" in await ok(session, "task_list")
    assert not waiting.done()
    sent = ph("send", "coder", "Which branch?")
    mail = json.loads(await waiting)
    assert [(m["id"], m["from"], m["content"]) for m in mail] == [(sent[:8], "human", "Which branch?")], mail
    _, blocks = await call(session, "read_message", id=sent[:8])
    assert blocks[1] == "Which branch?", blocks
    ph("mark-unread", sent)
    assert await ok(session, "inbox_mark_read", id=sent[:8]) == f"Message {sent[:8]} marked as read"
    assert await ok(session, "inbox_list") == "No unread messages"
    answer = (await ok(session, "reply", id=sent[:8], body="main")).removeprefix("Message sent: ")
    assert json.loads(ph("show", answer, "--json"))["to"] == "human"
    assert (await ok(session, "send_message", to="bob", body="hi")).startswith("Message sent: ")
    found = json.loads(await ok(session, "search_messages", query="branch"))
    assert [m["id"] for m in found] == [sent[:8]], found
    agents = json.loads(await ok(session, "list_agents"))
    assert {"bob", "coder", "human"} <= {a["name"] for a in agents}, agents
    await fails(session, "no message ffffffff", "inbox_mark_read", id="ffffffff")


async def main():
    server = StdioServerParameters(command=PH, args=["mcp"], env=environment("coder"))
    async with stdio_client(server) as (reading, writing):
        async with ClientSession(reading, writing) as session:
            hello = await session.initialize()
            assert field(hello, "server_info", "serverInfo").name == "posthaste", hello
            await check_tools(session)
            await check_work(session)
            await check_mail(session)
            await fails(session, "ERROR: session_name required", "inbox_list", session_name=" ")
            await fails(session, "it cannot act for other", "inbox_list", session_name="other")
            await fails(session, "unknown tool 'nope'", "nope")
            assert await ok(session, "session_complete") == 'Session "coder" marked complete (1 task is still open)'
    print("all as it should be")


asyncio.run(main())
