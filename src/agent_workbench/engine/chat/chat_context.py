"""Context of a chat: its tools when it starts, the files that its calls may read, and the code of its first prompt."""

import asyncio
from collections.abc import Sequence

from agent_workbench.core.errors import WorkbenchError, error_text
from agent_workbench.core.events import ChatStarted, CodeRetrieved, UserSaid
from agent_workbench.core.ids import TaskId
from agent_workbench.core.plan import Task
from agent_workbench.core.repo.retrieval import RELEVANT, Chunk, CodeQuery
from agent_workbench.core.settings import Permission
from agent_workbench.core.state.chat import Chat
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

SEARCH_SECONDS = 20.0
"""The longest wait for the index before the first prompt; then what is indexed so far is searched."""


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


async def find_code(session: SessionContext, chat: Chat, most_tokens: int) -> None:
    """Record the code that a search for the newest message finds, best first, up to `most_tokens`.

    A search that fails is told and finds nothing: the conversation needs none.
    """
    said = next(each.event for each in reversed(chat.history) if isinstance(each.event, UserSaid))
    session.publisher.show_activity("searching the code")
    found: Sequence[Chunk] = ()
    try:
        found = await _readable(session, said)
    except WorkbenchError as error:
        session.publisher.notify(f"the code was not searched: {error_text(error)}")
    taken, left = list[Chunk](), most_tokens
    for chunk in found:
        if chunk.tokens <= left and not any(each.covers(chunk) for each in said.files):
            taken.append(chunk)
            left -= chunk.tokens
    await session.record(CodeRetrieved(said.text, tuple(taken)))


async def _readable(session: SessionContext, said: UserSaid) -> list[Chunk]:
    context = await chat_context(session)
    query = CodeQuery(said.text, floor=RELEVANT)
    retriever, most = session.ports.retriever, session.settings.retrieval.top_n
    try:
        async with asyncio.timeout(SEARCH_SECONDS):
            found = await retriever.search(context.files, query, most)
    except TimeoutError:
        found = await retriever.search(context.files, query, most, complete=False)
    known = frozenset(await context.files.list_files())
    return [each for each in found if each.path in known and context.may_read(each.path)]
