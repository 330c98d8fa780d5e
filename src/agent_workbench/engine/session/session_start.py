"""First events of a session, new or resumed."""

import asyncio

from agent_workbench.core.events import SessionConfigured, SessionResumed, SessionStarted
from agent_workbench.engine.compaction.compact_tool import TOOL as COMPACT_TOOL
from agent_workbench.engine.recorder import Recorder
from agent_workbench.engine.runtime.tool_context import Ports
from agent_workbench.engine.tools.registry import ToolRegistry, builtin_tools


def session_tools(ports: Ports) -> ToolRegistry:
    """Return the tools of a new session; no source is asked yet."""
    return ToolRegistry(ports.tool_sources, ports.schemas, own=(COMPACT_TOOL,))


async def begin(recorder: Recorder, header: SessionStarted, config: SessionConfigured, resumed: SessionResumed) -> None:
    """Record the header of a new session, or that an old one is `resumed`, and its settings."""
    await asyncio.to_thread(builtin_tools)  # imports modules, which blocks
    if recorder.state.seq < 0:
        await recorder.record(header)
    else:
        await recorder.record(resumed)
    await recorder.record(config)
