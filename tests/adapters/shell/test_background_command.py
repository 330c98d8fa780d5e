"""Commands that are left running: their bounds, their network, their output and their end."""

import asyncio
import os
import shlex
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from agent_workbench.adapters.shell.output import KEPT_BYTES, RunningCommand
from agent_workbench.adapters.shell.shell import SandboxedShell
from agent_workbench.core.errors import SandboxError, ShellError
from agent_workbench.core.ports.workspace import Command
from agent_workbench.core.settings import SandboxSettings
from agent_workbench.system.processes import ResourceLimits
from tests.adapters.shell.conftest import Bench, MakeBench, until

PYTHON = shlex.quote(sys.executable)
# Answers one connection after the other with what it is.
SERVER = """
import socket
with socket.create_server(("127.0.0.1", 8124)) as listener:
    print("ready", flush=True)
    while True:
        caller, _ = listener.accept()
        caller.sendall(b"served")
        caller.close()
"""
ASK = """
import socket
with socket.create_connection(("127.0.0.1", 8124), 5) as server: print(server.recv(99).decode())
"""


def python(program: str) -> str:
    return f"{PYTHON} -I -S -c {shlex.quote(program)}"


@asynccontextmanager
async def left_running(bench: Bench, line: str) -> AsyncIterator[RunningCommand]:
    command = await bench.shell.start(Command(line, str(bench.folder), 20, bench.environment), bench.pieces.append)
    try:
        yield command
    finally:
        await command.stop()


async def said(command: RunningCommand, word: str) -> None:
    await until(lambda: word in command.tail()[0], 20)


async def ask(bench: Bench, *, joins: bool) -> str:
    command = Command(python(ASK), str(bench.folder), 20, bench.environment, joins=joins)
    return (await bench.shell.run(command, bench.pieces.append)).output.strip().splitlines()[-1]


def at_work(folder: Path) -> list[str]:
    """Return the ids of the processes that work in `folder`."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (process / "cwd").readlink() == folder:
                found.append(process.name)
    return found


async def test_only_commands_that_join_it_reach_it(confined: Bench) -> None:
    async with left_running(confined, python(SERVER)) as command:
        assert (command.reachable, command.shared, command.outcome) == (True, False, None)
        await said(command, "ready")
        assert await ask(confined, joins=True) == "served"
        assert "refused" in await ask(confined, joins=False)
        with pytest.raises(ConnectionRefusedError):
            await asyncio.to_thread(socket.create_connection, ("127.0.0.1", 8124), 5)
    assert "refused" in await ask(confined, joins=True), "it has ended"


async def test_what_joins_it_is_confined_as_any_command(confined: Bench, tmp_path: Path) -> None:
    plain = Command(f"id -u; touch {tmp_path}/out; touch kept; ls", str(confined.folder), 20, confined.environment)
    alone = await confined.shell.run(plain, confined.pieces.append)
    (confined.folder / "kept").unlink()
    async with left_running(confined, "echo ready; sleep 300"):
        joined = Command(plain.line, plain.folder, 20, plain.environment, joins=True)
        assert (await confined.shell.run(joined, confined.pieces.append)).output == alone.output
    assert not (tmp_path / "out").exists()
    assert (confined.folder / "kept").exists()


async def test_what_joins_it_reaches_nothing_of_the_host(confined: Bench, tmp_path: Path) -> None:
    asks = f"""
import socket
for family, name in ((socket.AF_INET, ("127.0.0.1", PORT)), (socket.AF_UNIX, {str(tmp_path / "socket")!r})):
    try: print(socket.socket(family).connect(name))
    except OSError as error: print(type(error).__name__)
"""
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket(socket.AF_UNIX) as named:
        named.bind(str(tmp_path / "socket"))
        named.listen()
        line = python(asks.replace("PORT", str(listener.getsockname()[1])))
        async with left_running(confined, "sleep 300"):
            command = Command(line, str(confined.folder), 20, confined.environment, joins=True)
            outcome = await confined.shell.run(command, confined.pieces.append)
    assert outcome.output.split() == ["ConnectionRefusedError", "PermissionError"]


async def test_where_the_network_is_open_it_is_that_of_the_host(make_bench: MakeBench, needs_sandbox: None) -> None:
    bench = make_bench(SandboxSettings(network=True))
    async with left_running(bench, "echo ready; sleep 300") as command:
        assert (command.reachable, command.shared) == (True, True)


async def test_it_sees_its_folder_and_changes_nothing_there(confined: Bench) -> None:
    file = confined.folder / "file"
    file.write_text("first\n")
    line = "cat file; echo x >> file; rm file; echo y > other; echo z > $TMPDIR/own && cat $TMPDIR/own"
    async with left_running(confined, f"{line}; while ! grep second file; do sleep 0.01; done; sleep 300") as command:
        await said(command, "z\n")
        file.write_text("second\n")
        await said(command, "second")
    assert [each.name for each in confined.folder.iterdir()] == ["file"]
    assert command.tail()[0].count("Read-only file system") == 3


async def test_without_a_sandbox_nothing_is_left_running(unconfined: Bench) -> None:
    with pytest.raises(SandboxError, match="could change files while checks run"):
        await unconfined.shell.start(Command("touch file", str(unconfined.folder), 20, {}), unconfined.pieces.append)
    assert not list(unconfined.folder.iterdir())


async def test_a_folder_that_is_missing_is_an_error(confined: Bench) -> None:
    confined.folder.rmdir()
    with pytest.raises(ShellError, match="is not a folder"):
        await confined.shell.start(Command("true", str(confined.folder), 20, {}), confined.pieces.append)


async def test_its_last_output_is_kept_and_the_rest_counted(confined: Bench) -> None:
    async with left_running(confined, "yes flood") as command:
        await until(lambda: command.tail()[1] > 3 * KEPT_BYTES, 30)
        text, written = command.tail()
        assert len(text.encode()) == KEPT_BYTES < written
        assert set(text.split("\n")[1:-1]) == {"flood"}
        assert command.tail(written - 6)[0] == text[-6:]
    assert max(map(len, confined.pieces)) < KEPT_BYTES


async def test_one_that_ends_says_how(confined: Bench) -> None:
    async with left_running(confined, "echo last words; exit 7") as command:
        outcome = await command.wait()
        assert (outcome.exit_code, outcome.reason) == (7, "")
        assert command.outcome == outcome == await command.stop()
        assert command.tail() == ("last words\n", 11)
        used = confined.shell.used()
        assert used is not None
        assert used.wall_seconds > 0


STUBBORN = """
import os, signal
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT): signal.signal(number, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    os.fork()
print("ready", flush=True)
while True: print("flood" * 99)
"""


@pytest.mark.parametrize(
    "program", [STUBBORN, STUBBORN.replace('"flood" * 99', "end=''")], ids=["floods", "says nothing"]
)
async def test_nothing_of_it_outlives_a_stop(confined: Bench, program: str) -> None:
    async with left_running(confined, python(program)) as command:
        await said(command, "ready")
        assert len(at_work(confined.folder)) >= 3
        await command.stop()
        assert at_work(confined.folder) == []


async def test_what_a_command_starts_in_the_background_ends_with_it(confined: Bench) -> None:
    async with left_running(confined, f"{python(STUBBORN)} & sleep 0.1; echo started") as command:
        assert (await command.wait()).exit_code == 0
        assert at_work(confined.folder) == []


async def test_a_limit_ends_it(confined: Bench, tmp_path: Path) -> None:
    few = ResourceLimits(processes=20)
    confined.shell = SandboxedShell(SandboxSettings(), str(tmp_path), os.environ, limits=few)
    forks = python("import os, time; [os.fork() for _ in range(6)]; time.sleep(300)")
    async with left_running(confined, forks) as it:
        assert (await it.wait()).reason == "stopped: it had more than 20 processes and threads"


async def test_a_start_that_is_cancelled_leaves_nothing(confined: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    reached = asyncio.Event()

    async def for_ever(*_: object) -> int:
        reached.set()
        return await asyncio.Event().wait()

    monkeypatch.setattr("agent_workbench.adapters.shell.shell.open_network", for_ever)
    starting = asyncio.create_task(
        confined.shell.start(Command("sleep 300", str(confined.folder), 20, {}), confined.pieces.append)
    )
    await reached.wait()
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert at_work(confined.folder) == []


async def test_a_kernel_that_refuses_the_namespace_leaves_it_alone(
    confined: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)

    async def no_namespace(_: object) -> int:
        return os.dup(nothing)

    monkeypatch.setattr("agent_workbench.adapters.shell.output._opened", no_namespace)
    async with left_running(confined, python(SERVER)) as command:
        assert (command.reachable, command.shared) == (False, False)
        await said(command, "ready")
        assert "refused" in await ask(confined, joins=True), "the command runs, in a network of its own"
    os.close(nothing)
