"""Sign-in at a real server behind OAuth: the step in a browser, kept tokens, their refresh, no secret in a message."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest

from agent_workbench.adapters.shell.server_processes import SandboxedServers
from agent_workbench.core.errors import ToolError, UsageError
from agent_workbench.core.settings.extensions import ToolServerSettings
from agent_workbench.subjects.mcp_client.server_tools_adapter import McpServer
from tests.fakes import asking_mcp_server

SERVER = str(Path(asking_mcp_server.__file__))

pytestmark = pytest.mark.slow


@asynccontextmanager
async def server_behind_oauth(seconds: int = 3600) -> AsyncIterator[str]:
    """Run the server in a process and yield its address; its tokens count for `seconds`."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", SERVER, "--http", str(seconds)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        assert process.stdout is not None
        yield (await process.stdout.readline()).decode().strip()
    finally:
        process.kill()
        await process.wait()


TOLD = 'your token is «redacted:sign-in», as JSON "«redacted:sign-in»"'


class Person:
    """A person with a browser, whose sessions each have a connection of their own."""

    def __init__(self, folder: Path, address: str) -> None:
        self.keys = folder / "keys"
        self.pages: list[str] = []
        self._folder = folder
        self._address = address

    def source(self, headers: tuple[tuple[str, str], ...] = ()) -> McpServer:
        entry = ToolServerSettings(url=f"{self._address}/mcp", headers=headers)
        environ = {**os.environ, "HOME": str(self._folder)}
        servers = SandboxedServers(str(self._folder), environ, ())
        return McpServer("web", entry, servers, environ, str(self.keys))

    async def sign_in(self, answer: str = "") -> None:
        """Sign in as the page leads; with `answer` the redirect brings that instead."""
        tasks = set()

        async def browse(page: str) -> None:
            async with httpx2.AsyncClient(follow_redirects=not answer) as browser:
                response = await browser.get(page)
                if answer:
                    await browser.get(response.headers["location"].partition("?")[0] + answer)

        def visit(page: str) -> None:
            self.pages.append(page)
            tasks.add(asyncio.create_task(browse(page)))

        await self.source().entry.sign_in(visit)

    async def ask_token(self) -> str:
        """Return what a tool of a new session says of its token; raise `ToolError`."""
        source = self.source()
        try:
            await source.list_tools()
            return (await source.call("mcp__web__token", "{}", lambda _: None)).text
        finally:
            await source.close()

    @property
    def kept(self) -> Path:
        (file,) = self.keys.rglob("*.json")
        return file


async def test_a_person_signs_in_once_and_every_session_uses_it(tmp_path: Path) -> None:
    async with server_behind_oauth() as address:
        person = Person(tmp_path, address)
        with pytest.raises(ToolError, match="mcp:web wants you to sign in: run `agent mcp login web`"):
            await person.ask_token()
        assert not person.keys.exists()
        await person.sign_in()
        (page,) = person.pages
        assert page.startswith(f"{address}/authorize?response_type=code")
        assert "code_challenge_method=S256" in page
        assert (person.kept.stat().st_mode & 0o777, person.kept.parent.stat().st_mode & 0o777) == (0o600, 0o700)
        assert json.loads(person.kept.read_text())["tokens"]["access_token"] == 'access-1-"s3cr\\3t"-value'
        # The token went to the server, and comes back in no message of the client process.
        assert await person.ask_token() == TOLD
        assert await person.ask_token() == TOLD
        source = person.source()
        assert [await asyncio.to_thread(source.entry.sign_out) for _ in range(2)] == [True, False]
        with pytest.raises(ToolError, match="agent mcp login web"):
            await person.ask_token()


async def test_expired_tokens_are_refreshed_and_nobody_is_asked(tmp_path: Path) -> None:
    async with server_behind_oauth() as address:
        person = Person(tmp_path, address)
        await person.sign_in()
        for expired in (1.0, None):  # by the clock of this machine, or by that of the server alone
            kept = json.loads(person.kept.read_text())
            before = kept["tokens"]["refresh_token"]
            kept["expires_at"] = expired
            if expired is None:
                kept["tokens"]["access_token"] = "one-that-is-not-known"
            person.kept.write_text(json.dumps(kept))
            # A refresh token counts once: two sessions at the same time share what one of them got.
            answers = await asyncio.gather(person.ask_token(), person.ask_token())
            assert set(answers) == {TOLD}
            assert json.loads(person.kept.read_text())["tokens"]["refresh_token"] != before
        kept = json.loads(person.kept.read_text())
        kept["tokens"] = {**kept["tokens"], "access_token": "gone-1234567", "refresh_token": "gone-7654321"}
        person.kept.write_text(json.dumps(kept))
        with pytest.raises(ToolError, match="agent mcp login web"):
            await person.ask_token()
        assert len(person.pages) == 1


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("?error=access_denied&error_description=not+you%1b%5b2J", "the sign-in was refused: not you"),
        ("?code=planted-code-1234&state=of-somebody-else", "State parameter mismatch"),
    ],
)
async def test_a_sign_in_that_fails_keeps_nothing(tmp_path: Path, answer: str, reason: str) -> None:
    async with server_behind_oauth() as address:
        person = Person(tmp_path, address)
        with pytest.raises(ToolError) as raised:
            await person.sign_in(answer)
        assert reason in str(raised.value)
        assert "\x1b" not in str(raised.value)
        assert not person.keys.exists()


async def test_a_file_that_others_can_read_is_not_used(tmp_path: Path) -> None:
    async with server_behind_oauth() as address:
        person = Person(tmp_path, address)
        await person.sign_in()
        person.kept.chmod(0o644)
        with pytest.raises(ToolError, match="can be read by others"):
            await person.ask_token()


async def test_where_nobody_can_sign_in(tmp_path: Path) -> None:
    person = Person(tmp_path, "http://docs.example")
    with pytest.raises(ToolError, match="which is not encrypted"):
        await person.sign_in()
    with pytest.raises(UsageError, match="has an Authorization header of its own"):
        await person.source((("authorization", "Bearer x"),)).entry.sign_in(lambda _: None)
    program = McpServer("program", ToolServerSettings(command="sh"), SandboxedServers("/", {}, ()), {}, "/nowhere")
    with pytest.raises(UsageError, match="is a program"):
        await program.entry.sign_in(lambda _: None)


async def test_no_step_of_a_sign_in_goes_to_an_address_without_encryption(tmp_path: Path) -> None:
    """The server's metadata name another host, where even the registration would bring a secret of the client."""
    asked, elsewhere = [], ""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        asked.append(head.lower().partition("host: ")[2].partition("\r")[0].partition(":")[0])
        if "oauth-protected-resource" in head:
            status, said = "200 OK", json.dumps({"resource": f"{address}/mcp", "authorization_servers": [elsewhere]})
        else:
            status, said = "401 Unauthorized", ""
        writer.write(f"HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {len(said)}\r\n\r\n{said}".encode())
        await writer.drain()
        writer.close()

    async with (
        await asyncio.start_server(answer, "127.0.0.1", 0) as near,
        await asyncio.start_server(answer, "127.0.0.2", 0) as far,
    ):
        address, elsewhere = ("http://{}:{}".format(*each.sockets[0].getsockname()) for each in (near, far))
        with pytest.raises(ToolError, match=f"to {elsewhere}/.*, which is not encrypted"):
            await Person(tmp_path, address).sign_in()
    assert set(asked) == {"127.0.0.1"}
