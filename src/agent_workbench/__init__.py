"""Agent Workbench: a local language model works on a git repository, and a person approves every step.

The API of the workbench, which its own screen and command line use too:

    open_host(folder, ...)         the host of the sessions of a repository, for `async with`
    host.open(SessionRequest(...)) opens a session: new, resumed, forked or replayed
    session.submit(intent)         returns the intent's outcome: `Accepted`, `Refused`, or the value asked for
    session.events(after_seq)      all events in order, recorded and to come
    session.live()                 the newest state with its transient part, for a screen
    session.wait()                 the session's end
    host.inbox(...), host.decide() proposals that wait in any session of the repository
    open_conversation(folder)      a chat, for `async with`; `await conversation.send("…")` returns the reply

`agent_workbench.core.intents` and `agent_workbench.core.events` list all intents and events.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_workbench.api.sessions.conversation import Conversation, Reply, ToolCall, open_conversation
    from agent_workbench.api.sessions.session_host import LocalSessionHost, open_host
    from agent_workbench.core.errors import WorkbenchError
    from agent_workbench.core.ids import SessionId, TaskId
    from agent_workbench.core.inbox import InboxChoice, InboxFilter
    from agent_workbench.core.intents import ApproveProposal, Leave, RejectProposal, StartTask
    from agent_workbench.core.outcomes import Accepted, Outcome, Refused
    from agent_workbench.core.ports.session_host import SessionHandle, SessionHost
    from agent_workbench.core.session_request import OpenMode, SessionEnd, SessionRequest, TaskOutcome, Unattended
    from agent_workbench.core.version import __version__

_MODULES = {
    "agent_workbench.api.sessions.conversation": ("Conversation", "Reply", "ToolCall", "open_conversation"),
    "agent_workbench.api.sessions.session_host": ("LocalSessionHost", "open_host"),
    "agent_workbench.core.errors": ("WorkbenchError",),
    "agent_workbench.core.ids": ("SessionId", "TaskId"),
    "agent_workbench.core.inbox": ("InboxChoice", "InboxFilter"),
    "agent_workbench.core.intents": ("ApproveProposal", "Leave", "RejectProposal", "StartTask"),
    "agent_workbench.core.outcomes": ("Accepted", "Outcome", "Refused"),
    "agent_workbench.core.ports.session_host": ("SessionHandle", "SessionHost"),
    "agent_workbench.core.session_request": ("OpenMode", "SessionEnd", "SessionRequest", "TaskOutcome", "Unattended"),
    "agent_workbench.core.version": ("__version__",),
}

__all__ = [
    "Accepted",
    "ApproveProposal",
    "Conversation",
    "InboxChoice",
    "InboxFilter",
    "Leave",
    "LocalSessionHost",
    "OpenMode",
    "Outcome",
    "Refused",
    "RejectProposal",
    "Reply",
    "SessionEnd",
    "SessionHandle",
    "SessionHost",
    "SessionId",
    "SessionRequest",
    "StartTask",
    "TaskId",
    "TaskOutcome",
    "ToolCall",
    "Unattended",
    "WorkbenchError",
    "__version__",
    "open_conversation",
    "open_host",
]


def __getattr__(name: str) -> object:
    """Import a name of the API when it is first used: importing the package alone loads nothing else."""
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
