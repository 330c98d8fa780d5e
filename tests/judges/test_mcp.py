"""Judges of the MCP server: the protocol's conformance suite and its inspector, in a Node.js of their own."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import yaml

from tests.e2e.calc import FILES
from tests.e2e.machine import Machine
from tests.e2e.test_mcp import served_over_http
from tests.judges.downloads import FETCH_SECONDS
from tests.judges.npm import installed, ran

CONFORMANCE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
INSPECTOR = "@modelcontextprotocol/inspector@2.12.0"
EXPECTED = Path(__file__).with_name("mcp_expected_failures.yaml")

pytestmark = pytest.mark.timeout(2 * FETCH_SECONDS)


@pytest.fixture(scope="module")
def judges(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with a Node.js and both judges."""
    return installed(tmp_path_factory.mktemp("judges"), CONFORMANCE, INSPECTOR)


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    """A machine without a model."""
    machine = Machine(tmp_path / "machine")
    yield machine
    machine.end()


@asynccontextmanager
async def with_token(address: str, token: str) -> AsyncIterator[str]:
    """Give an address at which each request gets the token: the conformance suite cannot send one.

    Host and origin are passed on, its own port replaced by the server's.
    """
    port = address.removesuffix("/mcp").rpartition(":")[2].encode()

    async def relay(reading: asyncio.StreamReader, writing: asyncio.StreamWriter) -> None:
        own = str(writing.get_extra_info("sockname")[1]).encode()
        answers, questions = await asyncio.open_connection("127.0.0.1", int(port))

        async def ask() -> None:
            while head := await reading.readuntil(b"\r\n\r\n"):
                lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
                names = {name.lower(): value for name, _, value in (line.partition(b":") for line in lines)}
                body = await reading.readexactly(int(names.get(b"content-length", b"0")))
                passed = [
                    line.replace(b":" + own, b":" + port) if line.lower().startswith((b"host:", b"origin:")) else line
                    for line in lines
                ]
                bearer = b"Authorization: Bearer " + token.encode()
                questions.write(b"\r\n".join((*passed, bearer, b"", b"")) + body)

        async def answer() -> None:
            while piece := await answers.read(65_536):
                writing.write(piece)

        both = [asyncio.ensure_future(each) for each in (ask(), answer())]
        relays.append(asyncio.ensure_future(asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)))
        await asyncio.gather(relays[-1], return_exceptions=True)
        for each in both:
            each.cancel()
        await asyncio.gather(*both, return_exceptions=True)
        for end in (questions, writing):
            end.close()

    relays: list[asyncio.Future[object]] = []
    async with await asyncio.start_server(relay, "127.0.0.1", 0) as server:
        yield f"http://localhost:{server.sockets[0].getsockname()[1]}/mcp"
        for each in relays:
            each.cancel()
        await asyncio.sleep(0)  # those that were cancelled close their connections
        await asyncio.sleep(0)


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_conformance(judges: Path, machine: Machine, revision: str, tmp_path: Path) -> None:
    listed = yaml.safe_load(EXPECTED.read_text())
    expected = tmp_path / "expected.yaml"
    expected.write_text(yaml.safe_dump({"server": [*listed["server"], *listed[revision]]}))
    with served_over_http(machine, machine.new_repo("calc", FILES)) as (_, address, token):
        async with with_token(address, token) as url:
            said = ("server", "--url", url, "--requirements", revision, "--expected-failures", str(expected))
            code, out = await ran(judges, "conformance", *said)
    assert code == 0, out[out.find("=== SUMMARY") :]


async def test_inspector(judges: Path, machine: Machine) -> None:
    repo = machine.new_repo("calc", FILES)
    stdio = (sys.executable, "-P", "-m", "agent_workbench", "mcp")
    environ = [word for name, value in machine.environ.items() for word in ("-e", f"{name}={value}")]

    async def asked(*words: str) -> object:
        code, out = await ran(judges, "mcp-inspector", "--cli", *environ, "--cwd", str(repo), *stdio, *words)
        assert code == 0, out
        return json.loads(out[out.index("{") :])

    listed = await asked("--method", "tools/list", "--strict")
    assert "run_task" in json.dumps(listed)
    called = await asked("--method", "tools/call", "--tool-name", "plan_status")
    assert "Make add() add" in json.dumps(called)
    read = await asked("--method", "resources/read", "--uri", "agent://plan")
    assert "Make add() add" in json.dumps(read)


async def test_inspector_over_http(judges: Path, machine: Machine) -> None:
    with served_over_http(machine, machine.new_repo("calc", FILES)) as (_, address, token):
        said = ("--cli", address, "--transport", "http", "--method", "tools/list")
        code, out = await ran(judges, "mcp-inspector", *said, "--header", f"Authorization: Bearer {token}")
        assert code == 0, out
        assert "run_task" in out
        refused, told = await ran(judges, "mcp-inspector", *said, "--header", "Authorization: Bearer wrong")
    assert refused != 0, told
