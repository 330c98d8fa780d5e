"""The workbench in a browser: who may open it, and what stands behind the page."""

import asyncio
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import psutil
import pytest
from multidict import CIMultiDict
from yarl import URL

from tests.e2e.calc import calc_repo
from tests.e2e.machine import WAIT_SECONDS, Machine

pytestmark = pytest.mark.slow

SIZE = "?width=100&height=30"


@asynccontextmanager
async def web_server(
    machine: Machine, repo: Path | None = None
) -> AsyncIterator[tuple[asyncio.subprocess.Process, URL]]:
    """Run `agent tui --web` in a repo, with the address that it prints."""
    server = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "agent_workbench", "tui", "--web"),
        cwd=repo or calc_repo(machine),
        env=machine.environ,
        stdout=asyncio.subprocess.PIPE,
    )
    assert server.stdout is not None
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            yield server, URL((await server.stdout.readline()).decode().strip())
    finally:
        if server.returncode is None:
            server.kill()
            await server.wait()


async def screen_until(socket: aiohttp.ClientWebSocketResponse, text: str) -> None:
    """Read what is drawn until it holds `text`; spaces are not compared, as they are often drawn as moves."""
    shown = ""
    while text.replace(" ", "") not in shown:
        drawn = await socket.receive_bytes()
        shown += re.sub(r"\x1b\[[0-9;?<>]*[A-Za-z]|\s", "", drawn.decode(errors="replace"))


async def test_who_lacks_the_token_the_host_or_the_origin_is_sent_away(machine: Machine) -> None:
    async with web_server(machine) as (_, address), aiohttp.ClientSession() as browser:

        async def status(url: URL, *headers: tuple[str, str]) -> int:
            async with browser.get(url, headers=CIMultiDict(headers)) as response:
                return response.status

        own, foreign = ("Origin", str(address.origin())), ("Origin", "http://elsewhere.example")
        assert address.host == "127.0.0.1"
        assert await status(address) == 200
        assert await status(address.with_query({})) == 403
        assert await status(address.with_query(token="guessed")) == 403
        assert await status(address, ("Host", "elsewhere.example")) == 403
        assert await status(address, own) == 200
        for headers in ((foreign,), (own, foreign), (foreign, own)):
            assert await status(address, *headers) == 403
        assert await status(address.with_path("/ws/guessed").with_query({})) == 404


async def test_the_page_shows_the_workbench_which_ends_with_the_server(machine: Machine) -> None:
    async with web_server(machine) as (server, address), aiohttp.ClientSession() as browser:
        page = await (await browser.get(address)).text()
        assert "googleapis" not in page
        found = re.search(r'data-session-websocket-url="([^"]+)"', page)
        assert found
        async with browser.ws_connect(found[1] + SIZE) as socket:
            await screen_until(socket, "write them: y")
            (workbench,) = psutil.Process(server.pid).children()
            server.send_signal(signal.SIGKILL)
            await asyncio.to_thread(workbench.wait, WAIT_SECONDS)
