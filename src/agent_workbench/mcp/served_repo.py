"""The repository that is served: its tables of tools, resources and prompts, and the tasks that clients started."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from agent_workbench.api.sessions.task_runs import TaskRuns
from agent_workbench.api.trusted_repo import trusted_repo
from agent_workbench.core.invocation import Invocation
from agent_workbench.mcp.protocol_server import ProtocolServer
from agent_workbench.mcp.resources import Resources, session_resources
from agent_workbench.mcp.tools.knowledge_tools import note_resources
from agent_workbench.mcp.tools.served_tools import served_tools
from agent_workbench.server_process.error_log import log_to_stderr

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

STOP_SECONDS = 0.5
"""Time for started tasks to record that they were left; what they run ends with this process."""


@asynccontextmanager
async def served_repo(invocation: Invocation) -> "AsyncIterator[Server[Any]]":
    """Yield the SDK's server for the repository around `invocation`, and stop what clients started at the end.

    Raises `RepoError` where there is no repository.
    """
    await trusted_repo(invocation)
    log_to_stderr()
    runs = TaskRuns(invocation)
    try:
        tools = served_tools(invocation, runs)
        resources = Resources(invocation, (session_resources(invocation), note_resources(invocation)))
        yield ProtocolServer(invocation, tools, resources).sdk
    finally:
        stopping = asyncio.ensure_future(runs.stop())
        await asyncio.wait({stopping}, timeout=STOP_SECONDS)
