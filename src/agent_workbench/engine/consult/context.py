"""Context of a consultation: ports, settings, the files that may be judged, and who records and shows it."""

from collections.abc import Awaitable, Callable

from msgspec import Struct

from agent_workbench.core.consult.session_log import LogEntry
from agent_workbench.core.events import Event
from agent_workbench.core.live import Streaming
from agent_workbench.core.ports.workspace import Sources
from agent_workbench.core.settings import Settings
from agent_workbench.core.state.session_state import SessionState
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
    record: Callable[[Event], Awaitable[None]]
    files: Sources
    may_read: Callable[[str], bool] = lambda _: True
    past: tuple[LogEntry, ...] = ()
    show: Callable[[Streaming], None] = show_nothing
    dollars_left: float | None = None
