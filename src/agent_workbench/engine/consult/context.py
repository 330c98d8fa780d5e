"""Context of a consultation: ports, settings, the files that may be judged, and who records and shows it."""

from collections.abc import Awaitable, Callable

from msgspec import Struct

from agent_workbench.core.consult.session_log import LogEntry
from agent_workbench.core.events import Event
from agent_workbench.core.live import Consulting, Streaming
from agent_workbench.core.ports.workspace import Sources
from agent_workbench.core.settings import Settings
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.engine.runtime.budget import dollars_left
from agent_workbench.engine.runtime.scope import TaskBounds
from agent_workbench.engine.runtime.session_context import SessionContext
from agent_workbench.engine.runtime.tool_context import Ports


def show_nothing(_: Streaming) -> None:
    """Ignore an answer that arrives."""


class ConsultContext(Struct, frozen=True):
    """Surroundings of a consultation.

    `state` returns the session's newest state, `record` adds an event to it. `files` are those of the workspace or the
    checkout, of which `may_read` admits some. `past` are the entries of earlier sessions with the label of the request.
    `show` is given the answer as it arrives. `dollars_left` bounds the price (None: only the daily cap does).
    """

    ports: Ports
    settings: Settings
    state: Callable[[], SessionState]
    record: Callable[[Event], Awaitable[object]]
    files: Sources
    may_read: Callable[[str], bool] = lambda _: True
    past: tuple[LogEntry, ...] = ()
    show: Callable[[Streaming], None] = show_nothing
    dollars_left: float | None = None


async def consult_context(session: SessionContext, skill: str) -> ConsultContext:
    """Return the context of a consultation within a session: its task's files and scope, if there is a task."""
    state = session.state
    run = state.run if state.unfinished else None
    bounds = TaskBounds(session.settings, run.definition, state) if run is not None else None
    return ConsultContext(
        session.ports,
        session.settings,
        lambda: session.state,
        session.record,
        await session.sources(),
        bounds.may_read if bounds is not None else lambda _: True,
        show=lambda streaming: session.publisher.show_consulting(Consulting(skill, streaming)),
        dollars_left=dollars_left(run) if run is not None else None,
    )
