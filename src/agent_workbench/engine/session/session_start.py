"""First events of a session, new or resumed, and the arrival of one that another machine continued."""

import asyncio
from collections.abc import Sequence

from agent_workbench.core.events import SessionConfigured, SessionResumed, SessionStarted
from agent_workbench.core.fold import fold_all
from agent_workbench.core.ports.repo_files import Memory
from agent_workbench.core.ports.stores import HeldSession
from agent_workbench.core.ports.workspace import Workspaces
from agent_workbench.core.repo.workspace import WorkspaceRequest
from agent_workbench.core.state.session_state import SessionState
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


async def arrive(
    opened: HeldSession, state: SessionState, memory: Memory, workspaces: Workspaces, root: str, links: Sequence[str]
) -> SessionResumed:
    """Return the event of a session's resumption here; one that was away gets its notes and its worktree first.

    Changes of the notes that the user made here meanwhile are merged. Raises `WorkspaceError`, `StorageError`.
    """
    resumed = SessionResumed(opened.torn_bytes)
    if opened.away_since is None:
        return resumed
    repo = root if root != state.repo else ""
    run = state.run
    if run is None or not state.unfinished:
        return SessionResumed(opened.torn_bytes, repo, arrived=True)
    known = await asyncio.to_thread(fold_all, opened.events[: opened.away_since + 1])
    before, now = known.scratchpad(run.task), state.scratchpad(run.task)
    if before != now:
        await memory.write_scratchpad(run.task, before, now, run.fork)
    facts = run.workspace
    workspace = await workspaces.open(WorkspaceRequest(state.session, run.task, facts.branch, facts.base, tuple(links)))
    await workspace.release(keep=True)
    path = workspace.facts.path
    return SessionResumed(opened.torn_bytes, repo, path if path != facts.path else "", arrived=True)
