"""Proposal of the edits that a task names itself."""

from agent_workbench.core.errors import error_text
from agent_workbench.engine.approval.proposals import propose_draft
from agent_workbench.engine.runtime.session_context import SessionContext
from agent_workbench.engine.runtime.tool import REFUSALS
from agent_workbench.engine.task.task_end import roll_back
from agent_workbench.engine.tools.task_edits import TOOL, draft_edits


async def propose_edits(session: SessionContext) -> None:
    """Propose the task's edits as one diff; end the task as failed if one of them does not fit."""
    session.publisher.show_activity("making the edits of the task")
    try:
        draft = await draft_edits(await session.tool_context())
    except REFUSALS as refusal:
        await roll_back(session, f"the edits do not fit: {error_text(refusal)}")
        return
    await propose_draft(session, TOOL, draft)
