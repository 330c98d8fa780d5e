"""MCP servers from the package index, used as sources of tools in the sandbox: what others wrote judges our client."""

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agent_workbench.adapters.shell.server_processes import SandboxedServers
from agent_workbench.core.ports.tools import SourceResult
from agent_workbench.core.settings.extensions import ToolServerSettings
from agent_workbench.core.tools.spec import select_specs
from agent_workbench.subjects.mcp_client.server_tools_adapter import McpServer

SERVERS = ("mcp-server-time==2026.10.19", "mcp-server-git==2026.10.19")
INSTALL_SECONDS = 300

pytestmark = [pytest.mark.timeout(2 * INSTALL_SECONDS), pytest.mark.usefixtures("needs_sandbox")]


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of programs of an environment with the servers."""
    folder = tmp_path_factory.mktemp("servers") / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=INSTALL_SECONDS)
    install = [str(folder / "bin/python"), "-m", "pip", "install", "-q", *SERVERS]
    done = subprocess.run(install, capture_output=True, text=True, check=False, timeout=INSTALL_SECONDS)
    if done.returncode:
        pytest.skip(f"machine lacks: a package index ({done.stderr.strip()[-300:]})")
    return folder / "bin"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    (folder / "a.txt").write_text("one\n")
    identity = ("-c", "user.name=A", "-c", "user.email=a@b.example")
    for words in (("init", "-q", "-b", "main"), ("add", "."), ("commit", "-q", "-m", "Begin with one")):
        subprocess.run(["git", *identity, *words], cwd=folder, check=True)
    return folder


@asynccontextmanager
async def connected(repo: Path, entry: ToolServerSettings) -> AsyncIterator[McpServer]:
    server = McpServer("judge", entry, SandboxedServers(str(repo), os.environ, ()), os.environ)
    try:
        specs = await server.list_tools()
        assert [problem for _, problem in select_specs(specs, ()) if problem] == []
        yield server
    finally:
        await server.close()


async def called(server: McpServer, tool: str, **arguments: object) -> SourceResult:
    return await server.call(f"mcp__judge__{tool}", json.dumps(arguments), lambda _: None)


async def test_the_time_server_answers_without_files_and_network(programs: Path, repo: Path) -> None:
    entry = ToolServerSettings(str(programs / "mcp-server-time"), ("--local-timezone", "Europe/Oslo"))
    async with connected(repo, entry) as server:
        times = {"source_timezone": "UTC", "target_timezone": "Asia/Tokyo", "time": "12:00"}
        answer = await called(server, "convert_time", **times)
        assert json.loads(answer.text)["target"]["datetime"].endswith("T21:00:00+09:00")
        wrong = await called(server, "get_current_time", timezone="Nowhere")
        assert (wrong.failed, "Nowhere" in wrong.text) == (True, True)


async def test_the_git_server_reads_the_repo_that_its_entry_grants_and_cannot_change_it(
    programs: Path, repo: Path
) -> None:
    entry = ToolServerSettings(str(programs / "mcp-server-git"), ("--repository", str(repo)), read=(".",))
    async with connected(repo, entry) as server:
        log = await called(server, "git_log", repo_path=str(repo))
        assert (log.failed, "Begin with one" in log.text) == (False, True)
        (repo / "b.txt").write_text("two\n")
        added = await called(server, "git_add", repo_path=str(repo), files=["b.txt"])
        assert added.failed
        staged = subprocess.run(["git", "diff", "--cached"], cwd=repo, capture_output=True, check=True)
        assert staged.stdout == b""
