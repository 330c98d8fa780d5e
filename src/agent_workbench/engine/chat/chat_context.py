"""Context of a chat: its tools, its approved calls, and the tracked files that they may read."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import cached_property

from agent_workbench.core.errors import WorkbenchError, WorkspaceError, error_text
from agent_workbench.core.events import (
    ActionFinished,
    ActionResult,
    ActionStarted,
    ChatStarted,
    CodeRetrieved,
    UserSaid,
)
from agent_workbench.core.ids import TaskId
from agent_workbench.core.patch.values import FileContent
from agent_workbench.core.plan import Task
from agent_workbench.core.ports.workspace import Sources
from agent_workbench.core.proposals import KINDS, Proposal
from agent_workbench.core.repo.path_kinds import holds_secrets
from agent_workbench.core.repo.retrieval import RELEVANT, Chunk, CodeQuery, PastCommit
from agent_workbench.core.settings import BACKGROUND, Permission
from agent_workbench.core.state.work import Chat
from agent_workbench.core.tools.spec import FINISH, NOTE, ToolSpec
from agent_workbench.engine.chat.chat_prompt import VERSION
from agent_workbench.engine.prompt.prompt_text import WHILE_RUNNING
from agent_workbench.engine.runtime.session_context import SessionContext
from agent_workbench.engine.runtime.stoppable import StoppedByUser
from agent_workbench.engine.runtime.tool import REFUSALS, ToolResult
from agent_workbench.engine.runtime.tool_context import ToolContext
from agent_workbench.engine.task.execution import propose_following, run_tool, stopped_result

NO_TASK = Task(TaskId("chat"), "a conversation")
"""Bounds of the calls in a chat: every file that it shows may be read."""
CONSULT = "consult"
CHAT_TOOLS = (CONSULT, "query_audit")
"""Tools that a chat offers whether or not tasks have them."""

SEARCH_SECONDS = 20.0
"""The longest wait for the index before the first prompt; then what is indexed so far is searched."""


class TrackedFiles:
    """The port `ReadableFiles` on the user's checkout, limited to the files `paths`."""

    def __init__(self, sources: Sources, paths: Sequence[str]) -> None:
        self._sources = sources
        self._paths = tuple(path for path in paths if not holds_secrets(path))

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self._paths)

    @property
    def root(self) -> str:
        """Absolute path of the checkout."""
        return self._sources.root

    async def list_files(self) -> tuple[str, ...]:
        """Return the paths of the files, sorted."""
        return self._paths

    async def read_files(self, paths: Sequence[str]) -> Mapping[str, bytes]:
        """Return the contents of these files, without those that are gone, links, or not among `paths`."""
        return await self._sources.read_files([path for path in paths if path in self._known])

    async def read(self, path: str) -> FileContent | None:
        """Return a file's content, None if there is none; raise `WorkspaceError` for one that may hold secrets."""
        if holds_secrets(path):
            raise WorkspaceError(f"{path!r} is a file that usually holds secrets; a chat does not read it")
        found = (await self.read_files([path])).get(path)
        return FileContent(found) if found is not None else None

    async def past_commits(self, limit: int, until: str = "") -> tuple[PastCommit, ...]:
        """Return the newest past commits of the checkout."""
        return await self._sources.past_commits(limit, until)


async def start_chat(session: SessionContext) -> None:
    """Make the session a chat, with the tools that there are now."""
    for problem in await session.tools.refresh():
        session.publisher.notify(problem)
    specs = session.tools.allowed_specs((*session.settings.tools_allowed, *CHAT_TOOLS), skills=True)
    await session.record(ChatStarted(VERSION, tuple(spec for spec in specs if _is_offered(spec))))


def _is_offered(spec: ToolSpec) -> bool:
    if spec.builtin:
        return spec.permission is Permission.READ and spec.name not in {NOTE, FINISH, BACKGROUND}
    return KINDS[spec.permission].in_chat


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


async def execute_call(session: SessionContext, proposal: Proposal) -> None:
    """Make an approved call and record its result. It changes no file of the repository."""
    context = await chat_context(session)
    session.publisher.show_activity(proposal.activity)
    await session.record(ActionStarted(proposal.id))
    started = session.ports.clock.monotonic_seconds()
    try:
        outcome = await run_tool(session, context, proposal)
    except REFUSALS as error:
        outcome = ToolResult(error_text(error), ActionResult.REFUSED)
    except StoppedByUser:
        outcome = stopped_result(context, session.ports.clock.monotonic_seconds() - started)
    for effect in outcome.effects:
        await session.record(effect)
    seconds = round(session.ports.clock.monotonic_seconds() - started, 3)
    output, cut, shown = outcome.output, outcome.cut_bytes, outcome.shown
    await session.record(ActionFinished(proposal.id, outcome.result, outcome.observation, seconds, output, cut, shown))
    if outcome.follow is not None:
        await propose_following(session, context, outcome.follow)


async def recover_call(session: SessionContext, proposal: Proposal) -> None:
    """Record that the result of an interrupted call is unknown; it is not made again."""
    await session.record(ActionFinished(proposal.id, ActionResult.UNKNOWN, f"the workbench was stopped{WHILE_RUNNING}"))
