"""The embedded server dies, or we do."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import psutil
import pytest

from agent_workbench.adapters.llama_cpp.embedded_server import EmbeddedModel, EmbeddedServer
from agent_workbench.core.errors import ModelUnavailable
from agent_workbench.core.model import TextDelta
from tests.adapters.llama_cpp.answers import ask, collect
from tests.adapters.llama_cpp.contract import ENDLESS

PARENT = """
import asyncio, os, sys
from pathlib import Path
from agent_workbench.adapters.llama_cpp.embedded_server import EmbeddedServer
from agent_workbench.core.settings.models import ServingSettings

async def main():
    server = EmbeddedServer(Path(sys.argv[1]), log=Path(sys.argv[2]), environ=os.environ, serving=ServingSettings(512))
    await server.start()
    print(server.pid, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.fixture
async def server(tiny_model_path: Path, tmp_path: Path) -> AsyncIterator[EmbeddedServer]:
    server = EmbeddedServer(tiny_model_path, log=tmp_path / "log" / "server.log", environ=os.environ)
    yield server
    await server.stop()


@pytest.fixture
async def model(server: EmbeddedServer) -> AsyncIterator[EmbeddedModel]:
    model = EmbeddedModel(server)
    yield model
    await model.close()


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - a process that dies elsewhere sets no event
            await asyncio.sleep(0.02)


async def test_a_death_in_the_middle_keeps_what_came_and_the_next_request_starts_anew(
    server: EmbeddedServer, model: EmbeddedModel
) -> None:
    came: list[str] = []

    async def read() -> None:
        async with contextlib.aclosing(model.answer(ask(grammar=ENDLESS, answer_tokens=8000))) as items:
            async for item in items:
                if isinstance(item, TextDelta):
                    came.append(item.text)
                if len(came) == 20:
                    os.kill(server.pid, signal.SIGKILL)

    with pytest.raises(ModelUnavailable, match="SIGKILL") as caught:
        await read()
    assert caught.value.partial == "".join(came)
    assert len(came) >= 20
    assert "server.log" in caught.value.advice
    assert not server.running
    assert (await collect(model, ask(answer_tokens=5))).ends
    assert server.running


async def test_a_death_between_requests_is_not_noticed_by_the_next(
    server: EmbeddedServer, model: EmbeddedModel
) -> None:
    facts = await model.observe()
    first = server.pid
    os.kill(first, signal.SIGKILL)
    await _until(lambda: not server.running)
    assert await model.count_tokens(["a"]) == (1,)
    assert await model.observe() == facts
    assert server.pid != first


async def test_who_waits_for_the_end_learns_why(server: EmbeddedServer) -> None:
    assert "does not run" in str(await server.ended())
    await server.start()
    waiting = asyncio.create_task(server.ended())
    done, _ = await asyncio.wait({waiting}, timeout=0.1)
    assert not done
    os.kill(server.pid, signal.SIGKILL)
    async with asyncio.timeout(10):
        assert "SIGKILL" in str(await waiting)
    await server.start()
    waiting = asyncio.create_task(server.ended())
    await asyncio.sleep(0)
    await server.stop()
    assert "was stopped" in str(await waiting)


async def test_closing_ends_the_server(server: EmbeddedServer, model: EmbeddedModel) -> None:
    await model.observe()
    pid = server.pid
    assert psutil.pid_exists(pid)
    await model.close()
    assert not psutil.pid_exists(pid)


async def test_a_start_that_is_cancelled_leaves_nothing(server: EmbeddedServer) -> None:
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    starting = asyncio.create_task(server.start())
    while server.pid == 0:  # noqa: ASYNC110 - at each turn of the loop: a pause could outlast the start
        await asyncio.sleep(0)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    after = {child.pid for child in psutil.Process().children(recursive=True)}
    assert after <= before


def _alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def test_it_does_not_outlive_us(tiny_model_path: Path, tmp_path: Path) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tiny_model_path), str(tmp_path / "server.log")],
        stdout=subprocess.PIPE,
        text=True,
    )
    with parent:
        assert parent.stdout is not None
        pid = int(await asyncio.to_thread(parent.stdout.readline))
        assert _alive(pid)
        parent.kill()
    await _until(lambda: not _alive(pid))
