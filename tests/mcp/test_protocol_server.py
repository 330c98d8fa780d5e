"""The server in this process: bounds of calls and results, progress, cancellation, and defects."""

import asyncio
import json
import logging
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from agent_workbench.core.errors import UsageError
from agent_workbench.core.session_request import Invocation
from agent_workbench.mcp.resources import Resources
from agent_workbench.mcp.served_tool import Arguments, FailedCall, JsonObject, ServedTool, schema_of
from agent_workbench.server_process import InertHandler

pytestmark = pytest.mark.xdist_group("mcp")


@pytest.fixture(autouse=True)
def server_module() -> ModuleType:
    """The module of the server, imported before the event loop runs."""
    import mcp.client  # noqa: F401 - slow

    from agent_workbench.mcp import protocol_server

    return protocol_server


NOWHERE = Invocation(Path("/nowhere"), {}, {})


def serving(*tools: ServedTool) -> Any:
    """Return a client of a server with these tools, for `async with`."""
    from mcp import Client

    from agent_workbench.mcp.protocol_server import ProtocolServer

    return Client(ProtocolServer(NOWHERE, tools, Resources(NOWHERE, ())).sdk, mode="legacy")


class Waiting:
    """A tool that waits until it is released, and remembers who gave up."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.release = asyncio.Event()
        self.given_up = asyncio.Event()
        self.tool = ServedTool("wait", "waits", schema_of({}, {}), self._call)

    async def _call(self, _: Arguments) -> JsonObject:
        self.begun.set()
        try:
            await self.release.wait()
        except asyncio.CancelledError:
            self.given_up.set()
            raise
        return {"done": True}


def failing(error: Exception) -> ServedTool:
    async def call(_: Arguments) -> JsonObject:
        raise error

    return ServedTool("fail", "fails", schema_of({}, {}), call)


def answering(value: JsonObject) -> ServedTool:
    async def call(_: Arguments) -> JsonObject:
        return value

    return ServedTool("say", "says", schema_of({}, {}), call)


async def test_too_many_calls_at_once_are_refused(monkeypatch: pytest.MonkeyPatch, server_module: ModuleType) -> None:
    from mcp import MCPError

    monkeypatch.setattr(server_module, "MAX_CALLS", 2)
    waiting = Waiting()
    async with serving(waiting.tool) as client:
        two = [asyncio.create_task(client.call_tool("wait", {})) for _ in range(2)]
        await waiting.begun.wait()
        await asyncio.sleep(0)
        refused = await client.call_tool("wait", {})
        assert refused.is_error
        assert "2 calls are being answered" in refused.content[0].text
        with pytest.raises(MCPError, match="2 calls are being answered"):
            await client.list_resources()
        waiting.release.set()
        assert [each.structured_content for each in await asyncio.gather(*two)] == [{"done": True}] * 2


async def test_a_client_hears_that_a_long_call_goes_on(
    monkeypatch: pytest.MonkeyPatch, server_module: ModuleType
) -> None:
    monkeypatch.setattr(server_module, "PROGRESS_SECONDS", 0)
    waiting, heard = Waiting(), asyncio.Event()

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.set()
        waiting.release.set()

    async with serving(waiting.tool) as client:
        answer = await client.call_tool("wait", {}, progress_callback=hear)
    assert heard.is_set()
    assert answer.structured_content == {"done": True}


async def test_a_call_that_its_client_gives_up_is_cancelled() -> None:
    waiting = Waiting()
    async with serving(waiting.tool) as client:
        asking = asyncio.create_task(client.call_tool("wait", {}))
        await waiting.begun.wait()
        asking.cancel()
        await waiting.given_up.wait()


async def test_a_refusal_tells_what_to_do_and_a_defect_tells_nothing_of_the_inside(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with serving(failing(UsageError("no such thing", advice="name another"))) as client:
        assert (await client.call_tool("fail", {})).content[0].text == "no such thing (name another)"
    async with serving(failing(RuntimeError("/home/me/secret"))) as client:
        told = await client.call_tool("fail", {})
    assert told.is_error
    assert "defect" in told.content[0].text
    assert "secret" not in told.content[0].text
    assert "secret" in caplog.text


async def test_results_are_whole_text_within_bounds() -> None:
    async with serving(answering({"half": "\ud800", "inert": "\x1b]52;c;x\x07"})) as client:
        told = await client.call_tool("say", {})
        assert told.structured_content == {"half": "?", "inert": "\x1b]52;c;x\x07"}
        assert json.loads(told.content[0].text) == told.structured_content
    async with serving(answering({"much": ["x" * 2_200_001]})) as client:
        told = await client.call_tool("say", {})
        assert told.is_error
        assert "ask for less" in told.content[0].text
    escaped = {"a file of a skill": '"\\' * 1_048_576}
    async with serving(answering(dict(escaped))) as client:
        assert (await client.call_tool("say", {})).structured_content == escaped


async def test_a_call_that_failed_has_its_outcome_beside_the_reason() -> None:
    async with serving(failing(FailedCall("timed out", {"stdout": "1\n", "timed_out": True}))) as client:
        told = await client.call_tool("fail", {})
    assert (told.is_error, told.content[0].text) == (True, "timed out")
    assert told.structured_content == {"stdout": "1\n", "timed_out": True}


def test_the_log_controls_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    record = logging.LogRecord("sdk", logging.ERROR, "", 0, "sent: \x1b]52;c;x\x07" + "x" * 100_000, None, None)
    InertHandler().emit(record)
    told = capsys.readouterr().err
    assert "\x1b" not in told
    assert len(told) < 30_000
