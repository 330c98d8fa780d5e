"""The server over standard input and output, for a client that starts it as its child."""

import asyncio
import io
import os
import sys
from typing import IO

import anyio
import anyio.to_thread
from mcp.server.stdio import stdio_server

from agent_workbench.core.errors import ExitCode
from agent_workbench.core.invocation import Invocation
from agent_workbench.mcp.served_repo import served_repo
from agent_workbench.mcp.transport.process_end import end_process, first_end

MAX_MESSAGE_CHARS = 4 * 1024 * 1024


class BoundedLines(anyio.AsyncFile[str]):
    """Lines of a stream; one that is too long is dropped, and an empty one is in its place."""

    async def readline(self) -> str:
        """Return the next line, empty at the end of the stream. Who stops waiting leaves the thread behind."""
        return await anyio.to_thread.run_sync(_bounded_line, self.wrapped, abandon_on_cancel=True)


def _bounded_line(stream: IO[str]) -> str:
    line = stream.readline(MAX_MESSAGE_CHARS)
    if len(line) < MAX_MESSAGE_CHARS or line.endswith("\n"):
        return line
    while (rest := stream.readline(MAX_MESSAGE_CHARS)) and not rest.endswith("\n"):
        continue
    return "\n"


def serve_stdio(invocation: Invocation, parent: int) -> None:
    """Serve until the client closes the pipe or is gone; ends the process. Raises `RepoError` before that."""
    asyncio.run(_serve(invocation, parent))


async def _serve(invocation: Invocation, parent: int) -> None:
    async with served_repo(invocation) as sdk:
        wire_in, wire_out = _take_wire()
        lines = BoundedLines(io.TextIOWrapper(wire_in, encoding="utf-8", errors="replace"))
        out = anyio.wrap_file(io.TextIOWrapper(wire_out, encoding="utf-8", write_through=True))
        try:
            async with stdio_server(lines, out) as (reading, writing):
                await first_end(sdk.run(reading, writing, sdk.create_initialization_options()), parent)
        except* OSError:
            pass  # the client is gone, and nobody reads the answers
    end_process(ExitCode.DONE)


def _take_wire() -> tuple[io.BufferedReader, io.BufferedWriter]:
    """Return the client's pipe, and point standard input at nothing and standard output at standard error.

    What this process or a child prints by accident cannot get into the protocol, and no child reads from it.
    """
    incoming, outgoing = os.dup(0), os.dup(1)
    sys.stdout.flush()
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return os.fdopen(incoming, "rb"), os.fdopen(outgoing, "wb")
