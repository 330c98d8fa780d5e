"""An editor as a test drives it: the SDK's client, which keeps what it is shown and answers what it is asked."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

from acp import PROTOCOL_VERSION, spawn_agent_process
from acp import schema as wire
from acp.client.connection import ClientSideConnection
from acp.interfaces import Client

from tests.e2e.machine import CHECKOUT, LAUNCHER, WAIT_SECONDS, Machine

Answer = Callable[[wire.ToolCallUpdate, list[wire.PermissionOption]], Awaitable[str | None]]
LIMIT = 50 * 1024 * 1024


async def approve(_: wire.ToolCallUpdate, options: list[wire.PermissionOption]) -> str | None:
    """Allow once whatever is asked."""
    return next((each.option_id for each in options if each.kind == "allow_once"), None)


class Editor:
    """Implements the SDK's `Client`; `answer` returns the id of the chosen option, None to cancel the question."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.agent = cast("ClientSideConnection", None)
        self.process = cast("asyncio.subprocess.Process", None)
        self.buffers: dict[str, str] = {}
        """Files as the editor has them; any other is read from the disk."""
        self.updates: list[Any] = []
        self.asked: list[tuple[wire.ToolCallUpdate, list[wire.PermissionOption]]] = []
        self.news = asyncio.Event()

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(update)
        self.news.set()

    async def request_permission(
        self, session_id: str, tool_call: wire.ToolCallUpdate, options: list[wire.PermissionOption], **_: Any
    ) -> wire.RequestPermissionResponse:
        self.asked.append((tool_call, options))
        self.news.set()
        chosen = await self.answer(tool_call, options)
        outcome = (
            wire.DeniedOutcome(outcome="cancelled")
            if chosen is None
            else wire.AllowedOutcome(outcome="selected", option_id=chosen)
        )
        return wire.RequestPermissionResponse(outcome=outcome)

    async def read_text_file(
        self, path: str, session_id: str, limit: int | None = None, line: int | None = None, **_: Any
    ) -> wire.ReadTextFileResponse:
        if path in self.buffers:
            return wire.ReadTextFileResponse(content=self.buffers[path])
        return wire.ReadTextFileResponse(content=await asyncio.to_thread(Path(path).read_text))

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        """Pass over extensions."""

    async def new(self, repo: Path) -> str:
        """Begin a thread and return its session."""
        return (await self.agent.new_session(cwd=str(repo), mcp_servers=[])).session_id

    async def prompt(self, session: str, words: str) -> str:
        """Send a prompt and return why its turn is over."""
        async with asyncio.timeout(WAIT_SECONDS):
            block = wire.TextContentBlock(type="text", text=words)
            return (await self.agent.prompt(session_id=session, prompt=[block])).stop_reason

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds after an update or a question."""
        async with asyncio.timeout(WAIT_SECONDS):
            while not holds():
                self.news.clear()
                await self.news.wait()

    def said(self, kind: str) -> str:
        """Return the text of all updates of a kind, such as `agent_message_chunk`."""
        return "".join(each.content.text for each in self.updates if each.session_update == kind)

    def of_kind(self, kind: str) -> list[Any]:
        """Return the updates of a kind."""
        return [each for each in self.updates if each.session_update == kind]


@asynccontextmanager
async def editor(
    machine: Machine,
    repo: Path,
    scripts: Mapping[str, Sequence[str]],
    answer: Answer = approve,
    *,
    halt: str = "",
    environ: Mapping[str, str] | None = None,
    name: str = "test editor",
) -> AsyncIterator[Editor]:
    """Start `agent acp` with a model that says `scripts`, and give an editor that is connected to it."""
    plan = machine.folder / "acp-plan.json"
    plan.write_text(json.dumps({"scripts": scripts, "halt": halt, "mark": str(machine.folder / "mark")}))
    paths = [str(CHECKOUT), machine.environ.get("PYTHONPATH")]
    usual = {**machine.environ, "PYTHONPATH": ":".join(filter(None, paths)), **(environ or {})}
    found = Editor(answer)
    command = [sys.executable, "-P", str(LAUNCHER), str(plan), "acp"]
    async with spawn_agent_process(
        cast("Client", found),
        *command,
        env=usual,
        cwd=repo,
        transport_kwargs={"limit": LIMIT, "stderr": None},
        use_unstable_protocol=True,
    ) as (agent, process):
        found.agent, found.process = agent, process
        await agent.initialize(
            protocol_version=PROTOCOL_VERSION,
            client_capabilities=wire.ClientCapabilities(fs=wire.FileSystemCapabilities(read_text_file=True)),
            client_info=wire.Implementation(name=name, version="1"),
        )
        yield found
