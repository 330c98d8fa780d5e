"""Who starts a command may be killed at any time; the command does not outlive it by more than a second."""

import asyncio
import contextlib
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.e2e.machine import POLL_SECONDS, SURVIVAL_POLLS
from tests.fakes import mcp_server

PARENT = """
import asyncio, os, sys
from agent_workbench.adapters.shell.shell import SandboxedShell
from agent_workbench.core.ports.workspace import Command
from agent_workbench.core.settings import SandboxSettings

async def main():
    folder, line = os.getcwd(), sys.argv[1]
    parent = {"PATH": "/nonexistent"} if sys.argv[2] == "unconfined" else dict(os.environ)
    shell = SandboxedShell(SandboxSettings(), folder, parent)
    await shell.observe()
    command = Command(line, folder, 300, {"PATH": os.environ["PATH"]})
    if sys.argv[2] == "left running":
        await (await shell.start(command, lambda text: None)).wait()
    await shell.run(command, lambda text: None)

asyncio.run(main())
"""

# One that ignores what can be ignored, one that left its session and its parents.
FAMILY = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open("daemon", "w").close()
        while True: time.sleep(0.05)
    os._exit(0)
open("started", "w").close()
while True: time.sleep(0.05)
"""


# Says on its standard output when a server of tools hangs in a call.
SERVING = """
import asyncio, os, sys
from agent_workbench.subjects.mcp_client.server_tools_adapter import McpServer
from agent_workbench.adapters.shell.server_processes import SandboxedServers
from agent_workbench.core.settings.extensions import ToolServerSettings

async def main():
    entry = ToolServerSettings(sys.executable, ("-I", "-S", sys.argv[1]), read=(sys.argv[1],))
    server = McpServer("fake", entry, SandboxedServers(os.getcwd(), os.environ, ()), os.environ)
    await server.list_tools()
    print("listed", flush=True)
    await server.call("mcp__fake__hang", "{}", lambda text: None)

asyncio.run(main())
"""


@contextlib.contextmanager
def running(command: list[str], folder: Path, output: int | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """Run what is to be killed; it is so too where the test fails before that, which would wait for it otherwise."""
    with subprocess.Popen(command, cwd=folder, stdout=output, stderr=subprocess.DEVNULL) as parent:
        try:
            yield parent
        finally:
            parent.kill()


def is_gone(process: psutil.Process) -> bool:
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:  # it went between the two questions
        return True


def arguments(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except (psutil.NoSuchProcess, psutil.ZombieProcess):  # it ended since it was listed
        return []


async def survivors(family: list[psutil.Process]) -> list[psutil.Process]:
    """Return which of the processes still live after the second they have."""
    for _ in range(SURVIVAL_POLLS):
        if all(map(is_gone, family)):
            break
        await asyncio.sleep(POLL_SECONDS)
    return [each for each in family if not is_gone(each)]


@pytest.mark.parametrize("kind", ["confined", "unconfined"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_nothing_outlives_the_workbench(kind: str, number: signal.Signals, tmp_path: Path) -> None:
    if sys.platform != "linux":
        pytest.skip("machine lacks: child subreapers (Linux)")
    (tmp_path / "family.py").write_text(FAMILY)
    line = f"{sys.executable} -I -S family.py & {sys.executable} -I -S -c 'while True: pass' & wait"
    with running([sys.executable, "-c", PARENT, line, kind], tmp_path) as parent:
        deadline = time.monotonic() + 60
        while not ((tmp_path / "started").exists() and (tmp_path / "daemon").exists()):
            assert time.monotonic() < deadline
            assert parent.poll() is None
            await asyncio.sleep(0.01)
        family = psutil.Process(parent.pid).children(recursive=True)
        assert len(family) >= 5, "the supervisor, the shell and three of its children"
        os.kill(parent.pid, number)
        assert await survivors(family) == []


@pytest.mark.usefixtures("needs_sandbox")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_no_command_that_is_left_running_outlives_the_workbench(number: signal.Signals, tmp_path: Path) -> None:
    program = f"import os; os.chdir(os.environ['TMPDIR']){FAMILY}".replace('open("started", "w").close()', "")
    command = [sys.executable, "-c", PARENT, f"{sys.executable} -I -S -c {shlex.quote(program)}", "left running"]
    with running(command, tmp_path) as parent:
        deadline = time.monotonic() + 60
        family: list[psutil.Process] = []
        while sum("-S" in words and "TMPDIR" in words[-1] for words in map(arguments, family)) < 2:
            assert time.monotonic() < deadline
            assert parent.poll() is None
            await asyncio.sleep(0.01)
            family = psutil.Process(parent.pid).children(recursive=True)
        os.kill(parent.pid, number)
        assert await survivors(family) == []


@pytest.mark.usefixtures("needs_sandbox")
async def test_no_server_of_tools_outlives_the_workbench(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SERVING, str(Path(mcp_server.__file__))]
    with running(command, tmp_path, subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert await asyncio.to_thread(parent.stdout.readline) == b"listed\n"
        family = psutil.Process(parent.pid).children(recursive=True)
        assert len(family) >= 4, "the client process, the supervisor, bubblewrap and the server"
        parent.kill()
        assert await survivors(family) == []
