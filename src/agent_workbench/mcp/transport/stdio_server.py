"""The server over standard input and output, for a client that starts it as its child."""

import asyncio

import anyio
import anyio.to_thread
from mcp.server.stdio import stdio_server

from agent_workbench.core.errors import ExitCode
from agent_workbench.core.invocation import Invocation
from agent_workbench.mcp.served_repo import served_repo
from agent_workbench.server_process.client_pipe import bounded_line, take_pipe
from agent_workbench.server_process.process_end import end_process, first_end


class BoundedLines(anyio.AsyncFile[str]):
    """Lines of a stream; one that is too long is dropped, and an empty one is in its place."""

    async def readline(self) -> str:
        """Return the next line, empty at the end of the stream. Who stops waiting leaves the thread behind."""
        line, whole = await anyio.to_thread.run_sync(bounded_line, self.wrapped, abandon_on_cancel=True)
        return line if whole else "\n"


def serve_stdio(invocation: Invocation, parent: int) -> None:
    """Serve until the client closes the pipe or is gone; ends the process. Raises `RepoError` before that."""
    asyncio.run(_serve(invocation, parent))


async def _serve(invocation: Invocation, parent: int) -> None:
    async with served_repo(invocation) as sdk:
        reading_end, writing_end = take_pipe()
        try:
            async with stdio_server(BoundedLines(reading_end), anyio.wrap_file(writing_end)) as (reading, writing):
                await first_end(sdk.run(reading, writing, sdk.create_initialization_options()), parent)
        except* OSError:
            pass  # the client is gone, and nobody reads the answers
    end_process(ExitCode.DONE)
