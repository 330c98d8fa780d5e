"""The supervisor itself: nothing that a command starts lives on, whoever dies first."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import psutil
import pytest

from agent_workbench.system import supervisor
from agent_workbench.system.processes import SupervisedProcess, spawn

ENVIRONMENT = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
LINUX_ONLY = pytest.mark.skipif(sys.platform != "linux", reason="machine lacks: child subreapers (Linux)")

# Leaves its session and its parents, ignores whatever can be ignored, and says so in a file.
DAEMON = """
import os, signal, sys, time
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT): signal.signal(number, signal.SIG_IGN)
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
for file in (0, 1, 2): os.close(file)
with open(sys.argv[1] + ".part", "w") as pid: pid.write(str(os.getpid()))
os.rename(sys.argv[1] + ".part", sys.argv[1])
while True: time.sleep(0.05)
"""


def is_gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


async def until(condition: Callable[[], bool], seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what
        await asyncio.sleep(0.01)


async def pid_in(file: Path) -> int:
    await until(file.exists, 10, f"{file} was not written")
    return int(file.read_text())


@pytest.fixture
def daemon_line(tmp_path: Path) -> str:
    program = tmp_path / "daemon.py"
    program.write_text(DAEMON)
    return f"{sys.executable} -I -S {program} {tmp_path / 'pid'}"


@pytest.fixture
async def run(tmp_path: Path) -> AsyncIterator[Callable[[str], asyncio.Future[SupervisedProcess]]]:
    started: list[SupervisedProcess] = []

    async def go(line: str) -> SupervisedProcess:
        process = await spawn(["/bin/sh", "-c", line], folder=str(tmp_path), environment=ENVIRONMENT, grace_seconds=0.3)
        started.append(process)
        return process

    yield lambda line: asyncio.ensure_future(go(line))
    for process in started:
        await process.stop()


Run = Callable[[str], "asyncio.Future[SupervisedProcess]"]


@LINUX_ONLY
async def test_a_daemon_ends_when_the_command_is_stopped(run: Run, daemon_line: str, tmp_path: Path) -> None:
    process = await run(f"{daemon_line}; sleep 60")
    daemon = await pid_in(tmp_path / "pid")
    began = time.monotonic()
    await process.stop()
    assert time.monotonic() - began < 30
    assert is_gone(daemon)


@LINUX_ONLY
async def test_a_daemon_ends_when_the_command_has_ended(run: Run, daemon_line: str, tmp_path: Path) -> None:
    process = await run(f"{daemon_line}; while ! [ -e pid ]; do sleep 0.01; done; exit 4")
    daemon = await pid_in(tmp_path / "pid")
    assert await process.wait() == 4
    assert is_gone(daemon)


GENERATIONS = """
echo $$ >> pids
[ "$1" -gt 0 ] && (setsid sh "$0" $(($1 - 1)) &)
trap '' TERM
while :; do sleep 0.05; done
"""


@LINUX_ONLY
async def test_many_generations_end(run: Run, tmp_path: Path) -> None:
    (tmp_path / "generations.sh").write_text(GENERATIONS)
    process = await run("sh generations.sh 12")
    pids = tmp_path / "pids"
    await until(lambda: pids.exists() and len(pids.read_text().split()) == 13, 10, "13 generations")
    await process.stop()
    assert [pid for pid in pids.read_text().split() if not is_gone(int(pid))] == []


async def test_the_output_ends_only_with_the_last_descendant(run: Run) -> None:
    process = await run("(trap 'echo last; exit' TERM; while :; do sleep 0.01; done) & sleep 0.3; echo first")
    output = b""
    while piece := await process.read(100):
        output += piece
    assert process.returncode is not None or await process.wait() == 0
    assert output.startswith(b"first\n")
    assert output.endswith(b"last\n")


async def test_a_command_that_closes_its_output_lives_on_until_stopped(run: Run) -> None:
    process = await run("exec >&- 2>&-; sleep 60")
    assert await process.read(10) == b""
    assert process.returncode is None
    assert not is_gone(process.pid)
    assert await process.stop() == -signal.SIGTERM


async def test_a_killed_supervisor_takes_the_command_along(run: Run) -> None:
    process = await run("sleep 60 & echo ready; wait")
    await process.read(10)
    group = psutil.Process(process.pid)
    background = group.children()
    watcher = group.parent()
    assert watcher is not None
    watcher.kill()
    assert await process.wait() == -signal.SIGKILL
    await until(lambda: all(is_gone(each.pid) for each in [group, *background]), 1, "the group is ended")


async def test_signals_at_the_supervisor_end_the_command(run: Run) -> None:
    process = await run("echo ready; sleep 60")
    await process.read(10)
    watcher = psutil.Process(process.pid).parent()
    assert watcher is not None
    watcher.terminate()
    assert await process.wait() == -signal.SIGTERM


PARENT = """
import asyncio, os, signal, sys
from agent_workbench.system.processes import spawn

signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests may run under nohup, or in the background of a shell
signal.signal(signal.SIGINT, signal.default_int_handler)

async def main():
    line = sys.argv[1]
    process = await spawn(["/bin/sh", "-c", line], folder=os.getcwd(), environment=dict(os.environ))
    print(process.pid, flush=True)
    await process.wait()

asyncio.run(main())
"""


@LINUX_ONLY
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_nothing_outlives_a_killed_parent(number: signal.Signals, daemon_line: str, tmp_path: Path) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(PARENT), f"{daemon_line}; trap '' TERM HUP; sleep 60 & wait; sleep 60"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with parent:
        daemon = await pid_in(tmp_path / "pid")
        assert parent.stdout is not None
        command = int(parent.stdout.readline())
        family = [each.pid for each in psutil.Process(parent.pid).children(recursive=True)]
        assert {daemon, command} <= set(family)
        parent.send_signal(number)
        await until(lambda: all(is_gone(pid) for pid in family), 1.0, "everything is gone within a second")


def test_the_supervisor_loads_little() -> None:
    """It starts before each command, and what it imports is what its start costs."""
    told = ("0.1", "own", "none", "none", "none", "", "none")
    words = ["-X", "importtime", str(supervisor.__file__), *told, "/bin/true"]
    ours, theirs = socket.socketpair()
    with ours, theirs:
        done = subprocess.run(
            [sys.executable, "-I", "-S", *words], stdin=theirs.fileno(), capture_output=True, text=True, check=True
        )
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert {name for name in loaded if name.startswith("agent_workbench.")} == {
        *("agent_workbench.system", "agent_workbench.system.socket_filter")
    }
    assert loaded & {"asyncio", "inspect", "json", "logging", "msgspec", "pathlib", "subprocess", "threading"} == set()
    assert len(loaded) < 100, sorted(loaded)
