"""The port `Shell`: commands in the sandbox if there is one, with limits of output and time."""

import asyncio
import contextlib
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO

from agent_workbench.adapters.shell.command_user import find_user, hand_over, user_problem
from agent_workbench.adapters.shell.environment import clean_environment
from agent_workbench.adapters.shell.output import KeptOutput, LiveOutput, RunningCommand, open_network
from agent_workbench.adapters.shell.sandbox import (
    INNER_HOME,
    INNER_TEMPORARY,
    Sandbox,
    SandboxBounds,
    confine,
    find_sandbox,
    hidden_paths,
    no_sandbox,
)
from agent_workbench.core.errors import SandboxError, ShellError, StorageError
from agent_workbench.core.ports.tools import NOTHING, ServerProcess, StandardStreams
from agent_workbench.core.ports.workspace import Command, OnOutput
from agent_workbench.core.repo.workspace import TIMED_OUT, CommandOutcome, ResourceUse, SandboxFacts
from agent_workbench.core.settings import SandboxSettings
from agent_workbench.system.command_bounds import bounds_text
from agent_workbench.system.folder_trees import remove_tree
from agent_workbench.system.processes import ProcessUser, ResourceLimits, SupervisedProcess, read_pipe, spawn
from agent_workbench.system.programs import clean_path

_LIMITS = ResourceLimits()
# Folders that test runners and bundlers write to in `node_modules`.
_CACHES = (".cache", ".vite", ".vite-temp", ".vitest", ".tmp")
_PROBED = ".agent-canary"
_KEPT_BYTES = 8 * 1024 * 1024
_LIVE_BYTES = 16 * 1024
_LIVE_SECONDS = 0.05
_READ_BYTES = 256 * 1024
LEAST_FREE_BYTES = 65_536
_GRACE_SECONDS = 0.4
# For processes that print where they hung; with the grace period less than the second that anything may outlive it.
_TRACE_SECONDS = 0.5
# For the rest in the pipe after all writers have ended.
_REST_SECONDS = 1.0
_Read = Callable[[int], Awaitable[bytes]]


class SandboxedShell:
    """The port `core.ports.workspace.Shell` for the repo at `repo`; PATH and HOME come from the environment `parent`.

    `readable` are more paths that commands must see, such as the git common dir of a repo elsewhere, `hidden` paths
    that none may see. A command that exceeds `limits` is killed. Unless they are `confined`, no sandbox is looked for.
    """

    def __init__(
        self,
        settings: SandboxSettings,
        repo: str,
        parent: Mapping[str, str],
        readable: tuple[str, ...] = (),
        limits: ResourceLimits = _LIMITS,
        hidden: tuple[str, ...] = (),
        *,
        confined: bool = True,
    ) -> None:
        self._settings = settings
        self._repo = repo
        self._parent = dict(parent)
        self._readable = (repo, *readable, sys.prefix, sys.base_prefix)
        self._limits = limits
        self._hidden = hidden
        self._unconfined = not confined
        self._finding: asyncio.Task[Sandbox] | None = None
        self._used: ResourceUse | None = None
        self._copied: dict[tuple[str, ...], bool] = {}
        self._left: RunningCommand | None = None

    async def observe(self) -> SandboxFacts:
        return (await self._sandbox()).facts

    async def run(self, command: Command, on_output: OnOutput) -> CommandOutcome:
        sandbox = await self._sandbox()
        _check_bounds(self._settings, sandbox, command)
        await _check_folder(command)
        began = time.monotonic()
        async with self._running(sandbox, command) as (process, reads):
            streams = [_Stream(read, on_output) for read in reads]
            exit_code, reason = await _finish(process, command.timeout_seconds, streams)
        if exit_code != 0:
            await asyncio.to_thread(_check_disk, command)
        (output, cut_bytes), *others = [await asyncio.to_thread(each.kept.text) for each in streams]
        stderr = "".join(text for text, _ in others)
        cut_bytes += sum(cut for _, cut in others)
        return CommandOutcome(exit_code, output, time.monotonic() - began, cut_bytes, reason, stderr)

    async def serve(self, command: Command, streams: StandardStreams) -> ServerProcess:
        sandbox = await self._sandbox()
        if not sandbox.bwrap or not sandbox.facts.holds:
            raise SandboxError(f"{command.line!r} was not started: no sandbox works here", advice=sandbox.facts.why)
        argv, environment = await asyncio.to_thread(
            self._prepare, sandbox.bwrap, command, INNER_TEMPORARY, copies=False, read_only=True, joined=False
        )
        return await spawn(
            argv, folder="/", environment=environment, stdout=streams, guard=sandbox.guard, limits=self._limits
        )

    async def start(self, command: Command, on_output: OnOutput) -> RunningCommand:
        sandbox = await self._sandbox()
        if not sandbox.bwrap:
            raise SandboxError(
                f"{command.line!r} was not left running: without a sandbox it could change files while checks run",
                advice=sandbox.facts.why,
            )
        _check_bounds(self._settings, sandbox, command)
        await _check_folder(command)
        async with contextlib.AsyncExitStack() as held:
            process, _ = await held.enter_async_context(self._running(sandbox, command, background=True))
            network, shared = NOTHING, self._settings.network
            if not shared:
                trial = await asyncio.to_thread(_trial, sandbox.bwrap, self._readable, self._parent)
                network = await open_network(process, held, trial, sandbox.guard)
            self._left = RunningCommand(process, held.pop_all(), network, on_output, shared=shared)
        return self._left

    async def copies(self, linked: Sequence[str]) -> bool:
        sandbox = await self._sandbox()
        folders = await asyncio.to_thread(_linked_folders, self._repo, linked)
        return not sandbox.bwrap or not folders or await self._may_copy(sandbox, folders)

    async def _may_copy(self, sandbox: Sandbox, folders: tuple[str, ...]) -> bool:
        """Return True if overlays of these folders work; a write to each finds it out."""
        if folders not in self._copied:
            bounds = SandboxBounds(readable=self._readable, copied=folders, network=self._settings.network)
            argv = ["/bin/sh", "-ec", "\n".join(f": > {shlex.quote(f'{each}/{_PROBED}')}" for each in folders)]
            words = await asyncio.to_thread(lambda: confine(sandbox.bwrap, argv, bounds, hidden_paths(self._parent)))
            async with await spawn(words, folder="/", environment={}, guard=sandbox.guard) as process:
                while await process.read(_READ_BYTES):
                    pass
                self._copied[folders] = await process.wait() == 0
        return self._copied[folders]

    def used(self) -> ResourceUse | None:
        used, self._used = self._used, None
        return used

    async def _sandbox(self) -> Sandbox:
        if self._finding is None or (self._finding.done() and self._finding.cancelled()):
            self._finding = asyncio.create_task(self._find())
        return await asyncio.shield(self._finding)

    async def _find(self) -> Sandbox:
        """Return the sandbox, or the user that commands run as where there is none."""
        if self._unconfined:
            found = no_sandbox("they are not to be confined")
        else:
            found = await find_sandbox(self._parent, self._settings.network, self._repo)
        if found.bwrap or not self._settings.user:
            return found
        user = await asyncio.to_thread(find_user, self._settings.user)
        if problem := await user_problem(user):
            return no_sandbox(f"{found.facts.why}; {problem}")
        why = f"{found.facts.why}; they run as the user {user.name}"
        return Sandbox(SandboxFacts(kind="user", holds=False, network=True, why=why), guard=user)

    @contextlib.asynccontextmanager
    async def _running(
        self, sandbox: Sandbox, command: Command, *, background: bool = False
    ) -> AsyncIterator[tuple[SupervisedProcess, list[_Read]]]:
        """Start a command; yield it with the readers of its output and, if that is apart, its standard error."""
        async with contextlib.AsyncExitStack() as stack:
            temporary = ""
            if not sandbox.bwrap:
                temporary = await asyncio.to_thread(tempfile.mkdtemp, prefix="agent-command-")
                stack.push_async_callback(asyncio.to_thread, _remove, temporary)
            if isinstance(sandbox.guard, ProcessUser):
                await asyncio.to_thread(_hand_over, command, temporary, sandbox.guard)
            copies = await self.copies(command.linked)
            network = self._left.network if command.joins and self._left is not None else NOTHING
            prepare = partial(self._prepare, read_only=background, joined=network != NOTHING)
            argv, environment = await asyncio.to_thread(prepare, sandbox.bwrap, command, temporary, copies)
            reads: list[_Read] = []
            with contextlib.ExitStack() as theirs:
                stdin, stderr = NOTHING, subprocess.STDOUT
                if command.apart:
                    readable, stderr = os.pipe()
                    theirs.callback(os.close, stderr)
                    errors = await read_pipe(os.fdopen(readable, "rb", buffering=0))
                    stack.callback(errors.pipe.close)
                    reads.append(errors.reader.read)
                if command.stdin:
                    given = theirs.enter_context(await asyncio.to_thread(_as_file, command.stdin))
                    stdin = given.fileno()
                process = await stack.enter_async_context(
                    await spawn(
                        argv,
                        folder=command.folder,
                        environment=environment,
                        beside=StandardStreams(stdin=stdin, stderr=stderr, network=network),
                        grace_seconds=_GRACE_SECONDS,
                        guard=sandbox.guard,
                        limits=self._limits,
                    )
                )
                stack.callback(self._count, process, time.monotonic())
            yield process, [process.read, *reads]

    def _count(self, process: SupervisedProcess, began: float) -> None:
        """Add what a command used that has ended."""
        wall = round(time.monotonic() - began, 3)
        use = ResourceUse(process.cpu_seconds, wall, process.peak_memory_bytes)
        self._used = use if self._used is None else self._used.plus(use)

    def _prepare(
        self, bwrap: str, command: Command, temporary: str, copies: bool, *, read_only: bool, joined: bool
    ) -> tuple[list[str], dict[str, str]]:
        """Return the command line and its environment; `temporary` is its folder without a sandbox."""
        argv = ["/bin/sh", "-c", command.line]
        path = clean_path(self._parent.get("PATH", ""), self._repo, command.folder)
        home = INNER_HOME if bwrap else temporary
        temporary = INNER_TEMPORARY if bwrap else temporary
        bounds = bounds_text((temporary,) if read_only else (command.folder, *command.writable, temporary))
        environment = {**clean_environment(self._parent, path, home, temporary, bounds), **command.environment}
        if read_only:  # its last lines are read while it runs
            environment["PYTHONUNBUFFERED"] = "1"
        if bwrap:
            bounds_of = self._bounds(command, environment["PATH"], copies, read_only=read_only, joined=joined)
            argv = confine(bwrap, argv, bounds_of, hidden_paths(self._parent))
        return argv, environment

    def _bounds(self, command: Command, path: str, copies: bool, *, read_only: bool, joined: bool) -> SandboxBounds:
        folders = path.split(os.pathsep)
        linked = _linked_folders(self._repo, command.linked)
        caches = (Path(folder, name) for folder in linked for name in _CACHES)
        seen = (*command.readable, *((command.folder,) if read_only else ()))
        return SandboxBounds(
            folder="" if read_only else command.folder,
            start=command.folder,
            writable=() if read_only else command.writable,
            readable=(*self._readable, *seen, *(_installation(Path(each)) for each in folders if each)),
            hidden=(*self._hidden, *command.hidden),
            keys=command.keys,
            copied=linked if copies else (),
            fresh=() if copies else tuple(str(each) for each in caches if each.is_dir()),
            network=self._settings.network,
            joined=joined,
        )


def _trial(bwrap: str, readable: tuple[str, ...], parent: Mapping[str, str]) -> list[str]:
    """Return the command line that finds out whether a command can join the network of another one."""
    return confine(bwrap, ["/bin/true"], SandboxBounds(readable=readable, joined=True), hidden_paths(parent))


def _linked_folders(repo: str, linked: Sequence[str]) -> tuple[str, ...]:
    """Return the real paths of linked folders, read in the checkout: a command may have replaced the link."""
    paths = (Path(repo, name).resolve() for name in linked)
    return tuple(str(path) for path in paths if path.is_dir())


def _check_bounds(settings: SandboxSettings, sandbox: Sandbox, command: Command) -> None:
    """Raise `SandboxError` if the settings ask for a sandbox or a user, and there is none."""
    if settings.require and not sandbox.facts.holds:
        raise SandboxError(
            f"{command.line!r} was not run: sandbox.require is set, and no sandbox works here",
            advice=f"{sandbox.facts.why}; or set `sandbox: {{require: false}}` to run without one",
        )
    if settings.user and not sandbox.bwrap and not isinstance(sandbox.guard, ProcessUser):
        raise SandboxError(
            f"{command.line!r} was not run: {sandbox.facts.why}", advice="set sandbox.user to one who can work here"
        )


async def _check_folder(command: Command) -> None:
    """Raise `ShellError` if the folder of a command is not there."""
    if not await asyncio.to_thread(os.path.isdir, command.folder):
        raise ShellError(
            f"{command.line!r} was not run: {command.folder} is not a folder", advice="check the workspace"
        )


def _hand_over(command: Command, temporary: str, user: ProcessUser) -> None:
    """Give a command's own folders to the user that it runs as; raise `ShellError`."""
    try:
        for folder in (temporary, *((command.folder,) if command.private else ())):
            hand_over(folder, user)
    except OSError as error:
        raise ShellError(
            f"{command.line!r} was not run: its folder could not be given to {user.name}: {error}",
            advice="see that the workbench is root, or has CAP_CHOWN",
        ) from error


def _check_disk(command: Command) -> None:
    """Raise `StorageError` if nothing can be written: a command that failed then says nothing about the code.

    A command that fills the disk itself is stopped before that.
    """
    with contextlib.suppress(OSError):
        facts = os.statvfs(command.folder)
        if facts.f_blocks and facts.f_bavail * facts.f_frsize < LEAST_FREE_BYTES:
            raise StorageError(
                f"{command.line!r} failed on a full disk", advice="free some space on that disk, then try again"
            )


def _as_file(text: str) -> IO[bytes]:
    """Return a file without a name that holds the text: a pipe would wait for a command that does not read it."""
    file = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
    file.write(text.encode("utf-8", "surrogateescape"))
    file.seek(0)
    return file


def _remove(folder: str) -> None:
    """Remove the temporary folder of a command as far as possible."""
    with contextlib.suppress(OSError):
        remove_tree(folder)


def _installation(folder: Path) -> str:
    """Return the venv that contains `folder`, or the folder itself."""
    return str(folder.parent if os.access(folder.parent / "pyvenv.cfg", os.F_OK) else folder)


class _Stream:
    """Output of a command as it comes: kept within bounds, and passed on."""

    def __init__(self, read: _Read, on_output: OnOutput) -> None:
        self.kept = KeptOutput(_KEPT_BYTES)
        self.live = LiveOutput(on_output, _LIVE_SECONDS, _LIVE_BYTES)
        self._read = read

    async def read(self) -> None:
        """Read to the end."""
        while piece := await self._read(_READ_BYTES):
            self.kept.add(piece)
            self.live.add(piece)


async def _finish(
    process: SupervisedProcess, timeout_seconds: float, streams: Sequence[_Stream]
) -> tuple[int | None, str]:
    """Return the exit code and reason after the command and all its descendants have ended."""
    try:
        async with asyncio.timeout(timeout_seconds):
            await asyncio.gather(*(stream.read() for stream in streams))
            exit_code = await process.wait()
            return (None, f"stopped: {process.excess}") if process.excess else (exit_code, "")
    except TimeoutError:
        process.abort()
        await _read_for(_TRACE_SECONDS, streams)
        await process.stop()
        await _read_for(_REST_SECONDS, streams)
        return None, f"{TIMED_OUT} after {timeout_seconds:g} s"
    finally:
        for stream in streams:
            stream.live.close()


async def _read_for(seconds: float, streams: Sequence[_Stream]) -> None:
    """Read the output to its end, but no longer than this."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await asyncio.gather(*(stream.read() for stream in streams))
