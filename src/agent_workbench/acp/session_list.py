"""Sessions of a repository as the client lists them, in pages."""

from acp import RequestError
from acp import schema as wire

from agent_workbench.api.sessions.session_host import LocalSessionHost
from agent_workbench.core.history.summaries import SessionSummary
from agent_workbench.core.plan.work_state import WorkState
from agent_workbench.core.text.sanitizer import sanitize_line

PAGE = 50


async def listed_sessions(host: LocalSessionHost, cwd: str, cursor: str | None) -> wire.ListSessionsResponse:
    """Return a page of the sessions that can be loaded; the cursor is the name of the last one before it."""
    from agent_workbench.api.records.session_queries import session_summaries

    found = [each for each in await session_summaries(host.invocation) if each.events and not each.problem]
    begin = 0
    if cursor is not None:
        begin = next((number for number, each in enumerate(found, 1) if each.id == cursor), 0)
        if not begin:
            raise RequestError(-32602, "that cursor names no session")
    page = found[begin : begin + PAGE]
    more = begin + PAGE < len(found)
    return wire.ListSessionsResponse(
        sessions=[_info(each, cwd) for each in page], next_cursor=page[-1].id if more else None
    )


def _info(summary: SessionSummary, cwd: str) -> wire.SessionInfo:
    held = f"open in {summary.holder}" if summary.holder else ""
    state = "" if held and summary.state is WorkState.OPEN else summary.state
    title = sanitize_line(" · ".join(filter(None, (summary.subject, state, held))), 200)
    return wire.SessionInfo(session_id=summary.id, cwd=cwd, title=title, updated_at=summary.last or None)
