"""Commands under a supervisor process, so that none of their processes survives a stop or the death of this process."""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.errors import ShellError
from agent_workbench.core.ports.tools import NOTHING, StandardStreams
from agent_workbench.system.command_bounds import COMMAND_MARK

# Enough for the start of Python on a machine under load.
_START_SECONDS = 30.0
# Time for the supervisor after the grace period, before it is killed itself.
_STOP_SECONDS = 6.0
_WITH_STDOUT = StandardStreams(stderr=subprocess.STDOUT)
_SUPERVISOR = str(Path(__file__).with_name("supervisor.py"))

LOOK_SECONDS = 0.2
"""Seconds between two looks; no event tells it on every system."""


class Guard(StrEnum):
    """Unix sockets that a confined command may connect to. Linux only."""

    OPEN = "open"
    """All sockets that it can see; it need not be confined."""
    OWN = "own"
    """Sockets that it has bound; its network namespace is its own."""
    SHARED = "shared"
    """Sockets that it has bound to files; names without a file may belong to the host."""


class ResourceLimits(Struct, frozen=True):
    """Resources that a command may use before it is killed (`resource_watch`); 0: a share of the machine's."""

    processes: int = 4096
    memory_bytes: int = 0
    disk_left_bytes: int = 0


class ProcessUser(Struct, frozen=True):
    """User that a command runs as, other than the workbench's own."""

    name: str
    uid: int
    gid: int


class ProcessOutput(Struct, frozen=True):
    """Output of a command, and the pipe it comes through."""

    reader: asyncio.StreamReader
    pipe: asyncio.ReadTransport


class SupervisedProcess:
    """A running command. It is stopped at the end of `async with`, and if a task that waits for it is cancelled."""

    def __init__(
        self,
        supervisor: asyncio.subprocess.Process,
        lifeline: asyncio.StreamWriter,
        said: asyncio.StreamReader,
        pid: int,
        output: ProcessOutput | None,
        stop_seconds: float,
    ) -> None:
        self.pid = pid
        self.output = output.reader if output is not None else None
        self._pipe = output.pipe if output is not None else None
        self._supervisor = supervisor
        self._lifeline = lifeline
        self._stop_seconds = stop_seconds
        self.excess = ""
        """The exceeded limit for which it was killed, as the end of a sentence; set when it has ended."""
        self.cpu_seconds = 0.0
        self.peak_memory_bytes = 0
        """What it and its descendants used (the memory of the largest one), as far as known; set when it has ended."""
        self._ending = asyncio.ensure_future(self._end(said))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self.stop()
        finally:
            if self._pipe is not None:  # nobody reads the rest, and a full buffer would keep it open
                self._pipe.close()

    @property
    def returncode(self) -> int | None:
        """The exit code, negative for a signal, None while the command or a descendant runs."""
        return self._ending.result() if self._ending.done() and not self._ending.cancelled() else None

    async def read(self, count: int) -> bytes:
        """Return up to `count` bytes of output as soon as there are any, b"" at its end or if it goes to a file."""
        return await self.output.read(count) if self.output else b""

    async def wait(self) -> int:
        """Return the exit code (negative: signal) after the command and all its descendants have ended.

        If the waiting task is cancelled, the command is stopped.
        """
        try:
            return await asyncio.shield(self._ending)
        except asyncio.CancelledError:
            await self.stop()
            raise

    def abort(self) -> None:
        """Send SIGABRT to the command's processes: a Python with `PYTHONFAULTHANDLER` prints where it was."""
        with contextlib.suppress(OSError, RuntimeError):  # it is being stopped already
            self._lifeline.write(b"abort\n")

    async def stop(self) -> int:
        """End the command and all its descendants (SIGTERM, after the grace SIGKILL); return the exit code."""
        if not self._ending.done():
            with contextlib.suppress(OSError):
                self._lifeline.write_eof()
        try:
            return await asyncio.wait_for(asyncio.shield(self._ending), self._stop_seconds)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self._supervisor.kill()
            return await asyncio.shield(self._ending)

    async def _end(self, said: asyncio.StreamReader) -> int:
        last = await said.read()
        await self._supervisor.wait()
        self._lifeline.close()
        told = dict(line.split(" ", 1) for line in last.decode().splitlines())
        self.excess = told.get("exceeded", "")
        if "used" in told:
            seconds, kibibytes = told["used"].split()
            self.cpu_seconds, self.peak_memory_bytes = float(seconds), int(kibibytes) * 1024
        if "ended" in told:
            return int(told["ended"])
        # The supervisor was killed, and the command with it. The rest of its process group is killed here.
        with contextlib.suppress(OSError):
            os.killpg(self.pid, signal.SIGKILL)
        return -signal.SIGKILL


async def spawn(
    argv: Sequence[str],
    *,
    folder: str,
    environment: Mapping[str, str],
    stdout: Path | StandardStreams | None = None,
    beside: StandardStreams = _WITH_STDOUT,
    grace_seconds: float = 0.5,
    guard: Guard | ProcessUser = Guard.OPEN,
    limits: ResourceLimits | None = None,
) -> SupervisedProcess:
    """Start `argv` (an absolute path first) in `folder` with exactly this environment, in its own session.

    Output is read from the process or appended to the file `stdout`. `beside` has the descriptor of its standard input,
    one for standard error that does not go with the output, and that of a network to join. With `StandardStreams` as
    `stdout` the process gets these descriptors instead. On a stop all processes get `grace_seconds` between SIGTERM and
    SIGKILL. Raises `ShellError` if the command cannot be started, or the kernel refuses the `guard`: a filter for a
    confined command, or the user that another one runs as. What the environment names as its own folders
    (`COMMAND_MARK`) is shown by its supervisor too.
    """
    with contextlib.ExitStack() as theirs, contextlib.ExitStack() as ours:
        our_end, their_end = socket.socketpair()
        ours.callback(our_end.close)
        theirs.callback(their_end.close)
        reading: IO[bytes] | None = None
        if isinstance(stdout, StandardStreams):
            streams = stdout
        else:
            if stdout is None:
                readable, writing = os.pipe()
                reading = ours.enter_context(os.fdopen(readable, "rb", buffering=0))
            else:
                writing = await asyncio.to_thread(_open_log, stdout)
            theirs.callback(os.close, writing)
            stderr = writing if beside.stderr == subprocess.STDOUT else beside.stderr
            streams = replace(beside, stdout=writing, stderr=stderr)
        sums = "none" if limits is None else f"{limits.processes},{limits.memory_bytes},{limits.disk_left_bytes}"
        source = "none" if streams.stdin == NOTHING else str(streams.stdin)
        kept = (Guard.OPEN, f"{guard.uid}:{guard.gid}") if isinstance(guard, ProcessUser) else (guard, "none")
        network = "none" if streams.network == NOTHING else str(streams.network)
        told = (str(grace_seconds), kept[0], sums, source, kept[1], environment.get(COMMAND_MARK, ""), network)
        # If its start were cancelled, asyncio would kill the supervisor alone.
        starting = asyncio.ensure_future(_start_supervisor(argv, folder, environment, their_end, streams, told))
        try:
            supervisor = await asyncio.shield(starting)
            theirs.close()
            said, lifeline = await asyncio.open_unix_connection(sock=our_end)
            ours.callback(lifeline.close)
            pid = await _started(said, argv)
            output = await read_pipe(reading) if reading else None
        except BaseException:
            ours.close()
            await asyncio.shield(asyncio.ensure_future(_ended(starting)))
            raise
        ours.pop_all()
    return SupervisedProcess(supervisor, lifeline, said, pid, output, grace_seconds + _STOP_SECONDS)


async def _ended(starting: "asyncio.Future[asyncio.subprocess.Process]") -> None:
    """Wait until a supervisor has ended, or has failed to start."""
    with contextlib.suppress(ShellError):
        await (await starting).wait()


def _open_log(path: Path) -> int:
    try:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError as error:
        raise ShellError(f"{path} cannot be written: {error.strerror}", advice="check its folder") from error


async def _start_supervisor(
    argv: Sequence[str],
    folder: str,
    environment: Mapping[str, str],
    lifeline: socket.socket,
    streams: StandardStreams,
    told: tuple[str, ...],
) -> asyncio.subprocess.Process:
    try:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", _SUPERVISOR, *told, *argv),
            stdin=lifeline.fileno(),
            stdout=streams.stdout,
            stderr=streams.stderr,
            pass_fds=[each for each in (streams.stdin, streams.beside, streams.network) if each != NOTHING],
            cwd=folder,
            env=dict(environment),
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise ShellError(f"{argv[0]} could not be started in {folder}: {error}", advice="check the folder") from error


async def read_pipe(file: IO[bytes]) -> ProcessOutput:
    """Return a reader of a pipe; closing its transport closes `file`."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(loop=loop)
    pipe, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader, loop=loop), file)
    return ProcessOutput(reader, pipe)


async def _started(said: asyncio.StreamReader, argv: Sequence[str]) -> int:
    try:
        async with asyncio.timeout(_START_SECONDS):
            word, _, number = (await said.readline()).decode().strip().partition(" ")
    except TimeoutError as error:
        raise ShellError(
            f"{argv[0]} did not start within {_START_SECONDS:g} s", advice="check the load of the machine"
        ) from error
    if word == "started":
        return int(number)
    why = os.strerror(int(number)) if word == "failed" else "its supervisor did not start"
    raise ShellError(f"{argv[0]} could not be started: {why}", advice="check that it is installed and executable")


async def parent_gone(parent: int = 0) -> None:
    """Wait until the process that started this one has ended; without end for one that the system itself started.

    `parent` is its id, looked up as early as possible (0: now): it may end while this process still loads.
    """
    parent = parent or os.getppid()
    while os.getppid() == parent:  # noqa: ASYNC110 - see above
        await asyncio.sleep(LOOK_SECONDS)
