"""The port `ServerProcesses`: programs that serve tools, in a sandbox with what their entry grants."""

import asyncio
import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path

from msgspec.structs import replace

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
from agent_workbench.core.errors import ShellError, ToolError
from agent_workbench.core.ports.tools import ServerCommand, ServerProcess, StandardStreams
from agent_workbench.system.command_bounds import COMMAND_MARK
from agent_workbench.system.folder_trees import open_regular
from agent_workbench.system.processes import ResourceLimits, spawn
from agent_workbench.system.programs import clean_path, find_program

_GRACE_SECONDS = 0.4
_LINE_BYTES = 512


class SandboxedServers:
    """Starts servers for the repo at `repo`; PATH and HOME come from the environment `parent`.

    `own` are the workbench's folders. A confined server sees neither them nor the repo nor the user's home, except for
    its program and the paths that its entry grants; `hidden` paths it never sees.
    """

    def __init__(
        self, repo: str, parent: Mapping[str, str], own: tuple[str, ...], hidden: tuple[str, ...] = ()
    ) -> None:
        self._folder = repo
        self._parent = dict(parent)
        self._folders = own
        self._hidden = hidden
        self._finding: dict[bool, asyncio.Task[Sandbox]] = {}

    @cached_property
    def _repo(self) -> str:
        return os.path.realpath(self._folder)

    @cached_property
    def _home(self) -> str:
        return os.path.realpath(self._parent.get("HOME") or "/nonexistent")

    @cached_property
    def _own(self) -> tuple[str, ...]:
        return tuple(map(os.path.realpath, self._folders))

    async def start(self, command: ServerCommand, streams: StandardStreams) -> ServerProcess:
        sandbox = await self._sandbox(command.network) if command.confined else no_sandbox("")
        if command.confined and not sandbox.facts.holds:
            raise ToolError(
                f"{command.argv[0]} was not started: no sandbox works here",
                advice=f"{sandbox.facts.why}; or set `unconfined: true` in its entry to run it with your rights",
            )
        with contextlib.ExitStack() as stack:
            argv, environment = await asyncio.to_thread(self._prepare, sandbox.bwrap, command)
            if sandbox.bwrap:
                beside = await asyncio.to_thread(_as_arguments, command.environment)
                stack.callback(os.close, beside)
                streams = replace(streams, beside=beside)
                argv[1:1] = ["--args", str(beside)]
            try:
                return await spawn(
                    argv,
                    folder="/" if command.confined else self._folder,
                    environment=environment,
                    stdout=streams,
                    grace_seconds=_GRACE_SECONDS,
                    guard=sandbox.guard,
                    limits=ResourceLimits(),
                )
            except ShellError as error:
                raise ToolError(str(error), advice=error.advice) from error

    async def _sandbox(self, network: bool) -> Sandbox:
        finding = self._finding.get(network)
        if finding is None or (finding.done() and finding.cancelled()):
            finding = asyncio.create_task(find_sandbox(self._parent, network, self._folder))
            self._finding[network] = finding
        return await asyncio.shield(finding)

    def _prepare(self, bwrap: str, command: ServerCommand) -> tuple[list[str], dict[str, str]]:
        """Return the command line and the whole environment; raise `ToolError`. Blocks."""
        path = clean_path(self._parent.get("PATH", ""), self._repo)
        program = self._program(command.argv[0], path)
        confined = command.confined
        environment = {
            "HOME": INNER_HOME if confined else self._home,
            "LANG": "C.UTF-8" if sys.platform == "linux" else "en_US.UTF-8",
            "PATH": path,
            "TMPDIR": INNER_TEMPORARY,
            COMMAND_MARK: "",
        }
        argv = [program, *command.argv[1:]]
        if not confined:
            return argv, {**environment, **command.environment, COMMAND_MARK: ""}
        folders = [folder for folder in path.split(os.pathsep) if folder]
        programs = tuple(self._programs(program, path))
        granted = tuple(map(self._granted, command.readable))
        bounds = SandboxBounds(
            start=self._repo if self._repo in granted else "",
            writable=tuple(self._writable(each) for each in command.writable),
            readable=_given(
                *granted,
                *(self._installation(Path(each)) for each in folders),
                *(self._installation(Path(each).parent) for each in programs),
                *programs,
                *(sys.prefix, sys.base_prefix),
            ),
            network=command.network,
            emptied=(self._home, self._repo, *self._own),
            hidden=self._hidden,
        )
        return confine(bwrap, argv, bounds, hidden_paths(self._parent)), environment

    def _program(self, word: str, path: str) -> str:
        """Return the absolute path of a server's program; a relative path is one inside the repo."""
        named = str(self._path(word)) if "/" in word else word
        found = find_program(named, path, self._repo)
        if found is None:
            raise ToolError(f"{word} was not started: it is not installed", advice="install it, or change the command")
        return found

    def _path(self, said: str) -> Path:
        home, rest = said == "~" or said.startswith("~/"), said[2:]
        return Path(self._home, rest) if home else Path(self._repo, said)

    def _granted(self, said: str) -> str:
        path = self._path(said)
        if not os.access(path, os.F_OK):
            raise ToolError(f"the granted path {said} does not exist", advice="create it, or remove it from the entry")
        return os.path.realpath(path)

    def _writable(self, said: str) -> str:
        """Return the real path of a grant; raise `ToolError` where a write could change the repo or the workbench."""
        path = self._granted(said)
        kept = (self._repo, *self._own)
        around = any(Path(each).is_relative_to(path) for each in (*kept, self._home))
        if around or any(Path(path).is_relative_to(each) for each in kept):
            raise ToolError(
                f"the server may not write {said}: it leads into the repo, your whole home or our own files",
                advice="changes of the repository come as diffs; grant another folder",
            )
        return path

    def _installation(self, folder: Path) -> str:
        """Return what of an installation can be shown: its environment or prefix, else its folder of programs.

        Empty if that is the home or around it, or any of the folders that stay hidden.
        """
        above = folder.parent
        whole = os.access(above / "pyvenv.cfg", os.F_OK) or (folder.name == "bin" and os.access(above / "lib", os.F_OK))
        choice = (above, folder) if whole else (folder,)
        return next((str(each) for each in choice if self._may_be_shown(each)), "")

    def _may_be_shown(self, folder: Path) -> bool:
        real = Path(os.path.realpath(folder))
        return not any(Path(each).is_relative_to(real) for each in (self._home, self._repo, *self._own))

    def _programs(self, program: str, path: str) -> Iterator[str]:
        """Yield the program, the file behind its links, and the same of the interpreter that its first line names."""
        for each in (program, _interpreter(program)):
            found = find_program(each, path, self._repo) if each else None
            if found is not None:
                yield found
                yield os.path.realpath(found)


def _given(*paths: str) -> tuple[str, ...]:
    return tuple(filter(None, paths))


def _interpreter(program: str) -> str:
    """Return the interpreter that the first line of a script names, empty if there is none."""
    try:
        with os.fdopen(open_regular(program, follow=True), "rb") as file:
            line = file.readline(_LINE_BYTES)
    except OSError:
        return ""
    words = line[2:].decode("utf-8", "replace").split() if line.startswith(b"#!") else []
    if words and words[0].endswith("/env"):
        words = [word for word in words[1:] if not word.startswith("-")]
    return words[0] if words else ""


def _as_arguments(environment: Mapping[str, str]) -> int:
    """Return a file in memory with the arguments of bubblewrap that set these variables.

    As variables of bubblewrap itself, or of its supervisor, `LD_PRELOAD` and its like would be obeyed outside of the
    sandbox; on the command line every user of the machine could read the values.
    """
    words = [word for name, value in environment.items() if name != COMMAND_MARK for word in ("--setenv", name, value)]
    file = os.memfd_create("arguments")
    os.write(file, b"".join(word.encode("utf-8", "surrogateescape") + b"\0" for word in words))
    os.lseek(file, 0, os.SEEK_SET)
    return file
