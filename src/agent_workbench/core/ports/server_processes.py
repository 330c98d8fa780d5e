"""Port of programs that serve tools over their standard input and output."""

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct

NOTHING = -3
"""Descriptor that stands for the null device, as in `subprocess.DEVNULL`."""


class StandardStreams(Struct, frozen=True):
    """Descriptors that a process gets as its standard input, output and error; it inherits `beside` as it is."""

    stdin: int = NOTHING
    stdout: int = NOTHING
    stderr: int = NOTHING
    beside: int = NOTHING


class ServerCommand(Struct, frozen=True):
    """A program that serves tools, with its access.

    `argv` begins with the program: a name on PATH, or a path relative to the repo. `environment` is all that it gets
    beyond PATH, a home of its own and the locale. It reads the system, the folder of its program and `readable`, and
    writes `writable` and its own temporary folder; paths may begin with `~` or be relative to the repo. It starts in
    the repo if it may read that. Unless it is `confined`, it runs with the user's rights.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    network: bool = False
    confined: bool = True


class ServerProcess(Protocol):
    """A started server, with all processes that it started."""

    @property
    def returncode(self) -> int | None:
        """The exit code, negative for a signal, None while it runs."""

    async def stop(self) -> int:
        """End the server and all its descendants; return the exit code."""


class ServerProcesses(Protocol):
    """Starter of servers. They end with this process at the latest."""

    async def start(self, command: ServerCommand, streams: StandardStreams) -> ServerProcess:
        """Start a server; the caller closes its own descriptors of `streams` afterwards. Raises `ToolError`."""
