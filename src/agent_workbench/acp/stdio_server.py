"""The agent over standard input and output, for an editor that starts it as its child."""

import asyncio
from typing import TYPE_CHECKING, cast

from acp.agent.connection import AgentSideConnection

from agent_workbench.acp.editor import Editor
from agent_workbench.acp.protocol_agent import ProtocolAgent
from agent_workbench.acp.transport import ClientPipe
from agent_workbench.api.trusted_repo import check_person
from agent_workbench.core.errors import ExitCode
from agent_workbench.core.invocation import Invocation
from agent_workbench.server_process.client_pipe import take_pipe
from agent_workbench.server_process.error_log import log_to_stderr
from agent_workbench.server_process.process_end import end_process, first_end

if TYPE_CHECKING:
    from acp.interfaces import Agent

LEAVE_SECONDS = 0.8
"""Time for sessions to record that they were left; what they run ends with this process."""


def serve_stdio(invocation: Invocation, parent: int) -> None:
    """Serve until the client closes the pipe or is gone; ends the process.

    Raises `TrustError` before that in a process that a command of the agent started: it would decide.
    """
    asyncio.run(_serve(invocation, parent))


async def _serve(invocation: Invocation, parent: int) -> None:
    await check_person()
    log_to_stderr()
    pipe = ClientPipe(*take_pipe())
    editor = Editor(pipe)
    agent = ProtocolAgent(invocation, editor)
    # The agent has the methods that it advertises; the SDK answers the others with "method not found". It calls
    # `close` and `resume`, which protocol 1 has by now, unstable.
    served = cast("Agent", agent)
    connection = AgentSideConnection(served, pipe, listening=False, use_unstable_protocol=True)
    editor.connected(connection)
    await first_end(connection.listen(), parent)
    leaving = asyncio.ensure_future(agent.close())
    await asyncio.wait({leaving}, timeout=LEAVE_SECONDS)
    end_process(ExitCode.DONE)
