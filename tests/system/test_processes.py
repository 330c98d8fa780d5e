"""Starting, reading, stopping: what every user of processes relies on."""

import asyncio
import contextlib
import os
import signal
import time
from pathlib import Path

import psutil
import pytest

from agent_workbench.core.errors import ShellError
from agent_workbench.core.ports.tools import StandardStreams
from agent_workbench.system.processes import SupervisedProcess, spawn

ENVIRONMENT = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}


async def start(line: str, folder: Path, grace_seconds: float = 0.3) -> SupervisedProcess:
    return await spawn(
        ["/bin/sh", "-c", line], folder=str(folder), environment=ENVIRONMENT, grace_seconds=grace_seconds
    )


async def read_all(process: SupervisedProcess) -> bytes:
    pieces = []
    while piece := await process.read(65536):
        pieces.append(piece)
    return b"".join(pieces)


async def test_output_and_exit_code_come_back(tmp_path: Path) -> None:
    async with await start("echo out; echo err >&2; pwd; exit 3", tmp_path) as process:
        assert await read_all(process) == f"out\nerr\n{tmp_path}\n".encode()
        assert await process.wait() == 3
        assert process.returncode == 3


async def test_standard_error_can_be_dropped(tmp_path: Path) -> None:
    process = await spawn(
        ["/bin/sh", "-c", "echo out; echo err >&2"],
        folder=str(tmp_path),
        environment=ENVIRONMENT,
        beside=StandardStreams(),
    )
    assert await read_all(process) == b"out\n"
    assert await process.wait() == 0


async def test_output_can_go_to_a_file(tmp_path: Path) -> None:
    log = tmp_path / "log"
    for word in ("one", "two"):
        process = await spawn(["/bin/echo", word], folder=str(tmp_path), environment=ENVIRONMENT, stdout=log)
        assert await process.read(10) == b""
        assert await process.wait() == 0
    assert log.read_text() == "one\ntwo\n"


async def test_a_log_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    log = tmp_path / "none" / "log"
    with pytest.raises(ShellError, match=str(log)):
        await spawn(["/bin/echo"], folder=str(tmp_path), environment=ENVIRONMENT, stdout=log)


async def test_the_environment_is_the_one_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "hunter2")
    process = await spawn(["/usr/bin/env"], folder=str(tmp_path), environment=ENVIRONMENT)
    assert set((await read_all(process)).decode().splitlines()) == {f"{k}={v}" for k, v in ENVIRONMENT.items()}
    await process.wait()


async def test_standard_input_is_empty(tmp_path: Path) -> None:
    process = await start("cat; ls -l /proc/self/fd | wc -l", tmp_path)
    await read_all(process)
    assert await process.wait() == 0


@pytest.mark.parametrize(("argv", "word"), [(["/no/such/program"], "No such file"), (["/etc/passwd"], "denied")])
async def test_what_cannot_be_started_says_why(argv: list[str], word: str, tmp_path: Path) -> None:
    with pytest.raises(ShellError, match=word):
        await spawn(argv, folder=str(tmp_path), environment=ENVIRONMENT)


async def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(ShellError, match="nowhere"):
        await start("true", tmp_path / "nowhere")


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL, signal.SIGTERM])
async def test_a_signal_is_a_negative_number(number: signal.Signals, tmp_path: Path) -> None:
    process = await start(f"kill -{number} $$", tmp_path)
    assert await process.wait() == -number


async def test_sigpipe_is_as_in_a_shell(tmp_path: Path) -> None:
    process = await start("(yes; echo $? >&2) | head -1", tmp_path)
    assert sorted((await read_all(process)).split()) == [b"141", b"y"]
    await process.wait()


async def test_stop_lets_the_command_tidy_up(tmp_path: Path) -> None:
    process = await start("trap 'echo tidied; exit 5' TERM; echo ready; while :; do sleep 0.01; done", tmp_path)
    assert await process.read(100) == b"ready\n"
    assert await process.stop() == 5
    assert (await read_all(process)).endswith(b"tidied\n")


async def test_stop_kills_what_will_not_end(tmp_path: Path) -> None:
    process = await start("trap '' TERM; echo ready; while :; do sleep 0.01; done", tmp_path)
    await process.read(100)
    began = time.monotonic()
    assert await process.stop() == -signal.SIGKILL
    assert 0.25 < time.monotonic() - began < 30
    assert await process.stop() == -signal.SIGKILL, "stopping twice is harmless"


async def test_a_stopped_process_is_ended_too(tmp_path: Path) -> None:
    process = await start("echo ready; kill -STOP $$", tmp_path)
    await process.read(100)
    assert await process.stop() == -signal.SIGTERM


async def test_cancelling_the_wait_stops_the_command(tmp_path: Path) -> None:
    process = await start("echo ready; sleep 60", tmp_path)
    await process.read(100)
    waiting = asyncio.create_task(process.wait())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert not psutil.pid_exists(process.pid)


async def test_cancelling_the_start_leaves_nothing(tmp_path: Path) -> None:
    for turns in range(12):
        starting = asyncio.create_task(start("sleep 61", tmp_path))
        for _ in range(turns):
            await asyncio.sleep(0.003)
        starting.cancel()
        try:
            await (await starting).stop()
        except asyncio.CancelledError:
            continue
    deadline = time.monotonic() + 30
    while left := [child for child in psutil.Process().children(recursive=True) if _sleeps(child)]:
        assert time.monotonic() < deadline, left
        await asyncio.sleep(0.02)


async def test_cancelling_the_start_ends_what_the_command_has_started(tmp_path: Path) -> None:
    """The supervisor is running already, and asyncio has not yet said so."""
    running = tmp_path / "running"
    for turns in range(2, 6):
        starting = asyncio.create_task(start(f"sleep 62 & echo $! >> {running}; sleep 62", tmp_path))
        for _ in range(turns):
            await asyncio.sleep(0)
        deadline = time.monotonic() + 5
        while not (running.exists() and len(running.read_text().splitlines()) >= turns - 1):
            if time.monotonic() > deadline:
                break
            time.sleep(0.01)
        starting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await (await starting).stop()
    pids = [int(line) for line in running.read_text().splitlines()]
    assert pids
    assert not [pid for pid in pids if psutil.pid_exists(pid)]


def _sleeps(process: psutil.Process) -> bool:
    try:
        return "sleep 61" in " ".join(process.cmdline())
    except psutil.Error:
        return False


async def test_no_zombie_and_no_descriptor_is_left(tmp_path: Path) -> None:
    await (await start("true", tmp_path)).wait()
    before = psutil.Process().num_fds()
    for _ in range(3):
        process = await start("sleep 0 & true", tmp_path)
        await read_all(process)
        await process.wait()
        del process
    await asyncio.sleep(0)
    assert psutil.Process().num_fds() <= before
    assert [child for child in psutil.Process().children() if child.status() == psutil.STATUS_ZOMBIE] == []


async def test_a_process_can_get_all_three_streams(tmp_path: Path) -> None:
    (stdin, ours_in), (ours_out, stdout), (ours_error, stderr) = os.pipe(), os.pipe(), os.pipe()
    process = await spawn(
        ["/bin/sh", "-c", "read line; echo got $line; echo told >&2; read line || exit 4"],
        folder=str(tmp_path),
        environment=ENVIRONMENT,
        stdout=StandardStreams(stdin, stdout, stderr),
    )
    for given in (stdin, stdout, stderr):
        os.close(given)
    os.write(ours_in, b"one\n")
    os.close(ours_in)
    assert await process.wait() == 4
    for ours, said in ((ours_out, b"got one\n"), (ours_error, b"told\n")):
        with os.fdopen(ours, "rb") as stream:
            assert stream.read() == said
