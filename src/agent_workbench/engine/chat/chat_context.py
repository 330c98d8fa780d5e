"""Context of a chat: its tools when it starts, and the files that its calls may read."""

from agent_workbench.core.events import ChatStarted
from agent_workbench.core.ids import TaskId
from agent_workbench.core.plan import Task
from agent_workbench.core.settings import Permission
from agent_workbench.core.tools.spec import FINISH, NOTE, ToolSpec
from agent_workbench.engine.chat.chat_prompt import VERSION
from agent_workbench.engine.chat.tracked_files import TrackedFiles
from agent_workbench.engine.runtime.session_context import SessionContext
from agent_workbench.engine.runtime.tool_context import ToolContext

NO_TASK = Task(TaskId("chat"), "a conversation")
"""Bounds of the calls in a chat: every file that it shows may be read."""
CONSULT = "consult"
CHAT_TOOLS = (CONSULT, "query_audit")
"""Tools that a chat offers whether or not tasks have them."""
OFFERED = frozenset({Permission.READ, Permission.SCRIPT, Permission.EXTERNAL, Permission.KNOWLEDGE})
"""Permissions of the tools in a chat: none of them changes the repository's files."""


async def start_chat(session: SessionContext) -> None:
    """Make the session a chat, with the tools that there are now."""
    for problem in await session.tools.refresh():
        session.publisher.notify(problem)
    specs = session.tools.allowed_specs((*session.settings.tools_allowed, *CHAT_TOOLS), skills=True)
    await session.record(ChatStarted(VERSION, tuple(spec for spec in specs if _is_offered(spec))))


def _is_offered(spec: ToolSpec) -> bool:
    if spec.builtin:
        return spec.permission is Permission.READ and spec.name not in {NOTE, FINISH}
    return spec.permission in OFFERED


async def chat_files(session: SessionContext) -> TrackedFiles:
    """Return the files of the user's checkout that git tracks, without the workbench's own."""
    workspaces = session.ports.workspaces
    own = f"{session.settings.memory.dir.strip('/')}/"
    tracked = [path for path in await workspaces.list_tracked() if not path.startswith(own)]
    return TrackedFiles(await workspaces.checkout_files(), tracked)


async def chat_context(session: SessionContext) -> ToolContext:
    """Return the context of a call made now; raise `RepoError`."""
    return session.context_of(NO_TASK, await chat_files(session))
