"""The port `LanguageServers`: servers that are installed, in the sandbox of commands, each asked beside the others."""

import asyncio
import os
import shlex
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from agent_workbench.adapters.language_connection import Connect, Connection
from agent_workbench.core.checks.language_servers import (
    LANGUAGE_SERVERS,
    MAX_DIAGNOSTICS,
    Diagnostic,
    LanguageServer,
    in_order,
    new_diagnostics,
)
from agent_workbench.core.errors import SandboxError, WorkbenchError
from agent_workbench.core.patch.values import FileContent
from agent_workbench.core.ports.tools import AppliedDiff, ServedCommands, ServerProcess, StandardStreams
from agent_workbench.core.ports.workspace import Command
from agent_workbench.system.programs import find_program
from agent_workbench.system.repo_files import read_inside

WAIT_SECONDS = 2.0
"""Time for an answer before the session goes on; a later one joins the next step."""
ANSWER_SECONDS = 300.0
"""Time for an answer before a server is given up: the first one may load a whole project."""
MOST_PREPARED = 5
"""Most files that a server looks at before a diff: those of a diff would wait for them."""
MAX_BYTES = 500_000
"""Size of the largest file that servers are asked about."""
_MODULES = "node_modules/.bin"


class ServerSurroundings(Struct, frozen=True):
    """Surroundings of servers: the repo, the environment of the workbench, what runs commands, and trust.

    `environment_for` returns the variables of commands in a worktree. `trusted` tells whether what the repo brings is
    as the user trusted it; it may block. `say` tells the user that a server is given up. A session waits `wait_seconds`
    for an answer, and a server that does not answer within `answer_seconds` is given up.
    """

    repo: str
    environ: Mapping[str, str]
    commands: ServedCommands
    environment_for: Callable[[str], Awaitable[Mapping[str, str]]]
    trusted: Callable[[], bool]
    say: Callable[[str], None]
    wait_seconds: float = WAIT_SECONDS
    answer_seconds: float = ANSWER_SECONDS


class InstalledServers:
    """The servers of a session. Each is started for the first file of its languages, and once only."""

    def __init__(self, around: ServerSurroundings) -> None:
        self._around = around
        self._root = ""
        self._servers: dict[str, _Server] = {}
        self._beginning: set[asyncio.Task[object]] = set()

    def prepare(self, root: str, paths: Sequence[str], servers: Collection[str]) -> None:
        task = asyncio.get_running_loop().create_task(self._prepare(root, paths, servers))
        self._beginning.add(task)
        task.add_done_callback(self._beginning.discard)

    async def compare(self, diff: AppliedDiff, servers: Collection[str]) -> tuple[Diagnostic, ...]:
        old, new = _texts(diff)
        asked = await self._of(diff.root, new, servers)
        for server in asked:
            server.compare(_Change(diff.base, diff.tree, old, new))
        # One that was late is not waited for again until it has answered.
        awaited = [server.comparing for server in asked if server.comparing is not None and not server.is_late]
        if awaited:
            _, late = await asyncio.wait(awaited, timeout=self._around.wait_seconds)
            for server in asked:
                server.is_late = server.is_late or server.comparing in late
        return self.late(diff.tree)

    def late(self, tree: str) -> tuple[Diagnostic, ...]:
        found = (each for server in self._servers.values() for each in server.take(tree))
        return in_order(tuple(found))[:MAX_DIAGNOSTICS]

    async def close(self) -> None:
        for task in tuple(self._beginning):
            task.cancel()
        await asyncio.gather(*self._beginning, return_exceptions=True)
        await self._leave("")

    async def _leave(self, root: str) -> None:
        """End the servers, and go on with the worktree at `root`."""
        servers, self._servers, self._root = self._servers, {}, root
        await asyncio.gather(*(each.close() for each in servers.values()))

    async def _prepare(self, root: str, paths: Sequence[str], servers: Collection[str]) -> None:
        texts = await asyncio.to_thread(_read, root, paths[:MOST_PREPARED])
        for server in await self._of(root, paths, servers):
            server.prepare(texts)

    async def _of(self, root: str, paths: Collection[str], names: Collection[str]) -> "list[_Server]":
        """Return the servers of these files that are installed and may run."""
        if root != self._root:
            await self._leave(root)
        wanted = [each for each in LANGUAGE_SERVERS if each.name in names and any(map(each.language, paths))]
        try:
            if not wanted or not await asyncio.to_thread(self._around.trusted):
                return []
            variables = await self._around.environment_for(root)
        except (WorkbenchError, OSError):
            return []
        found = await asyncio.to_thread(self._installed, wanted, variables)
        instead = {each.instead_of for each, _ in found}
        for each, program in found:
            if each.name not in {*self._servers, *instead}:
                self._servers[each.name] = _Server(each, program, root, variables, self._around)
        return [self._servers[each.name] for each, _ in found if each.name in self._servers]

    def _installed(
        self, wanted: Sequence[LanguageServer], variables: Mapping[str, str]
    ) -> list[tuple[LanguageServer, str]]:
        """Return the servers that are installed, on the PATH of commands or in the repo, with their programs."""
        path = variables.get("PATH") or self._around.environ.get("PATH", "")
        path = os.pathsep.join([path, f"{self._around.repo}/{_MODULES}"])
        found = ((each, find_program(each.argv[0], path, self._root)) for each in wanted)
        return [(each, program) for each, program in found if program is not None]


class _Change(Struct, frozen=True):
    """Texts of files before and after diffs that led from the tree `base` to `tree`."""

    base: str
    tree: str
    old: Mapping[str, str]
    new: Mapping[str, str]

    def after(self, earlier: "_Change") -> "_Change":
        """Return this change together with the one before it."""
        return _Change(earlier.base, self.tree, {**self.old, **earlier.old}, {**earlier.new, **self.new})


class _Server:
    """One server, from its first question to its end."""

    def __init__(
        self, kind: LanguageServer, program: str, root: str, variables: Mapping[str, str], around: ServerSurroundings
    ) -> None:
        self._kind = kind
        self._program = program
        self._root = root
        self._variables = variables
        self._around = around
        self._opening: asyncio.Task[Connection] | None = None
        self._ending: asyncio.Task[None] | None = None
        self._change: _Change | None = None
        self._preparing: asyncio.Task[tuple[Diagnostic, ...]] | None = None
        self._gone = False
        self.comparing: asyncio.Task[tuple[Diagnostic, ...]] | None = None
        self.is_late = False

    def prepare(self, texts: Mapping[str, str]) -> None:
        """Have the server look at these files, unless it is asked already."""
        if self.comparing is None and (self._preparing is None or self._preparing.done()):
            self._preparing = asyncio.create_task(self._asked(self._own(texts)))

    def compare(self, change: _Change) -> None:
        """Begin to compare; what a former comparison has not told yet becomes a part of this one."""
        if self._change is not None and self.comparing is not None:
            self.comparing.cancel()
            change = change.after(self._change) if self._change.tree == change.base else change
        self._change = change
        self.comparing = asyncio.create_task(self._compared(change))

    def take(self, tree: str) -> tuple[Diagnostic, ...]:
        """Return what was found of the change that led to `tree`, once, empty as long as that is not known."""
        done = self.comparing
        if done is None or not done.done():
            return ()
        self.comparing, self.is_late = None, False
        told = self._change is not None and self._change.tree == tree and not done.cancelled()
        return done.result() if told else ()

    async def close(self) -> None:
        """End the server."""
        self._gone = True
        tasks = {each for each in (self._preparing, self.comparing) if each is not None}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._ending = self._ending or asyncio.create_task(self._end())
        await self._ending

    async def _end(self) -> None:
        if self._opening is not None:
            await asyncio.wait({self._opening})
            if self._opening.exception() is None:
                await self._opening.result().close()

    async def _compared(self, change: _Change) -> tuple[Diagnostic, ...]:
        old, new = self._own(change.old), self._own(change.new)
        before = await self._asked(old)
        after = await self._asked(new)
        return () if self._gone else await asyncio.to_thread(new_diagnostics, before, after, old, new)

    def _own(self, texts: Mapping[str, str]) -> dict[str, str]:
        return {path: text for path, text in texts.items() if self._kind.language(path)}

    async def _asked(self, texts: Mapping[str, str]) -> tuple[Diagnostic, ...]:
        """Return the diagnostics of files with these texts; without a server that answers there are none."""
        if self._gone or not texts:
            return ()
        if self._opening is None:
            self._opening = asyncio.create_task(self._open())
        try:
            async with asyncio.timeout(self._around.answer_seconds):
                return await (await asyncio.shield(self._opening)).ask(texts)
        except TimeoutError:
            self._give_up(f"it did not answer within {self._around.answer_seconds:g} s")
        except SandboxError:
            self._gone = True  # the screen says already that none works here
        except (WorkbenchError, OSError) as error:
            self._give_up(str(error))
        return ()

    def _give_up(self, why: str) -> None:
        if not self._gone:
            self._gone = True
            self._around.say(f"the language server {self._kind.name} is not used any more in this session: {why}")
            self._ending = asyncio.create_task(self._end())

    async def _open(self) -> Connection:
        words = [self._program, *self._kind.argv[1:]]
        command = Command(
            line=f"exec {shlex.join(words)}",
            folder=self._root,
            timeout_seconds=0.0,
            # cargo, which rust-analyzer runs, writes what it builds, and nothing in the workspace.
            environment={**self._variables, "CARGO_TARGET_DIR": "/tmp/target"},  # noqa: S108 - of the sandbox
        )

        async def start(streams: StandardStreams) -> ServerProcess:
            return await self._around.commands.serve(command, streams)

        connect = Connect(self._kind.name, self._root, self._kind.languages)
        return await Connection.open(connect, start, self._around.environ)


def _texts(diff: AppliedDiff) -> tuple[dict[str, str], dict[str, str]]:
    """Return the texts of the changed files before and after a diff; that of a renamed one has its new name in both."""
    old = {each.path: text for each in diff.changes if (text := _text(each.before)) is not None}
    new = {each.path: text for each in diff.changes if (text := _text(each.after)) is not None}
    gone, made = [*(old.keys() - new.keys())], [*(new.keys() - old.keys())]
    if len(gone) == len(made) == 1:
        old[made[0]] = old.pop(gone[0])
    return old, new


def _text(content: FileContent | None) -> str | None:
    """Return a file's text, None if there is none, or it is large or not text."""
    if content is None or len(content.data) > MAX_BYTES or b"\0" in content.data:
        return None
    try:
        return content.data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _read(root: str, paths: Sequence[str]) -> dict[str, str]:
    texts: dict[str, str] = {}
    for path in paths:
        try:
            data = read_inside(Path(root), path, MAX_BYTES)
        except WorkbenchError:
            continue
        text = _text(FileContent(data)) if data is not None else None
        if text is not None:
            texts[path] = text
    return texts
