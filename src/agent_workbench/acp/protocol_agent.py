"""The agent over standard input and output: the protocol's methods, answered from threads and records."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, cast

from acp import RequestError
from acp import schema as wire
from acp.agent.connection import AgentSideConnection
from msgspec.structs import replace

from agent_workbench.acp.editor import ClientPipe, Editor, decider_name
from agent_workbench.acp.prompt_words import Block, prompt_words
from agent_workbench.acp.thread import OPTION, EditorThread, spellings
from agent_workbench.acp.turn import Turn
from agent_workbench.api.sessions.session_host import LocalSessionHost, new_session_id
from agent_workbench.api.trusted_repo import check_person
from agent_workbench.core.background import in_background
from agent_workbench.core.errors import ExitCode, WorkbenchError, error_text
from agent_workbench.core.history.summaries import SessionSummary
from agent_workbench.core.ids import SessionId, session_id
from agent_workbench.core.plan import WorkState
from agent_workbench.core.session_request import Invocation
from agent_workbench.core.text.amounts import quoted
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.core.version import __version__
from agent_workbench.server_process import end_process, first_end, log_to_stderr, take_pipe

if TYPE_CHECKING:
    from acp.interfaces import Agent


NAME, TITLE = "agent-workbench", "Agent Workbench"
PROTOCOL = 1
MAX_THREADS = 50

PAGE = 50

SET_UP = wire.TerminalAuthMethod(
    type="terminal",
    id="model",
    name="Choose a model",
    description="Chooses a model of this machine, or a server's, for all your repositories",
    args=["--setup"],
)
"""Choice of a model in a terminal. Editors take it for a log-in: there is no account, and no task without a model."""
_OLD_TERMINAL = "terminal-auth"
LEAVE_SECONDS = 0.8
"""Time for sessions to record that they were left; what they run ends with this process."""


class ProtocolAgent:
    """Implements the SDK's `Agent` for one client; the names of its methods and parameters are the SDK's."""

    def __init__(self, invocation: Invocation, editor: Editor) -> None:
        self._invocation = invocation
        self._editor = editor
        self._initialized = False
        self._hosts: dict[str, LocalSessionHost] = {}
        self._threads: dict[str, EditorThread] = {}
        self._turns: dict[str, Turn] = {}

    async def close(self) -> None:
        """Leave all sessions; each can be resumed."""
        await asyncio.gather(*(host.close() for host in self._hosts.values()), return_exceptions=True)

    async def initialize(
        self,
        protocol_version: int,
        client_capabilities: wire.ClientCapabilities | None = None,
        client_info: wire.Implementation | None = None,
    ) -> wire.InitializeResponse:
        """Say what is served. The first name that a client gives itself stays."""
        if not self._initialized:
            self._editor.person = decider_name(client_info.name if client_info is not None else None)
        self._initialized = True
        capabilities = wire.AgentCapabilities(
            load_session=True,
            prompt_capabilities=wire.PromptCapabilities(image=False, audio=False, embedded_context=True),
            mcp_capabilities=wire.McpCapabilities(http=False, sse=False),
            session_capabilities=wire.SessionCapabilities(
                list=wire.SessionListCapabilities(),
                resume=wire.SessionResumeCapabilities(),
                close=wire.SessionCloseCapabilities(),
            ),
        )
        info = wire.Implementation(name=NAME, title=TITLE, version=__version__)
        self._editor.reads_files = bool(
            client_capabilities and client_capabilities.fs and client_capabilities.fs.read_text_file
        )
        return wire.InitializeResponse(
            protocol_version=PROTOCOL,
            agent_capabilities=capabilities,
            agent_info=info,
            auth_methods=[SET_UP] if has_terminal(client_capabilities) else [],
        )

    async def new_session(
        self, cwd: str, additional_directories: list[str] | None = None, mcp_servers: Sequence[object] | None = None
    ) -> wire.NewSessionResponse:
        """Begin a thread; its session is opened with the first prompt."""
        with _as_protocol_errors():
            thread = await self._add(cwd, None)
        self._after_response(thread)
        return wire.NewSessionResponse(session_id=thread.session, modes=thread.modes, config_options=[*thread.options])

    async def load_session(
        self,
        cwd: str,
        session_id: str,
        mcp_servers: Sequence[object] | None = None,
        additional_directories: list[str] | None = None,
    ) -> wire.LoadSessionResponse:
        """Take up a session and send its whole history."""
        with _as_protocol_errors():
            thread = await self._take_up(cwd, session_id, shown=True)
        self._after_response(thread)
        return wire.LoadSessionResponse(modes=thread.modes, config_options=[*thread.options])

    async def resume_session(
        self,
        session_id: str,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: Sequence[object] | None = None,
    ) -> wire.ResumeSessionResponse:
        """Take up a session without its history."""
        with _as_protocol_errors():
            thread = await self._take_up(cwd, session_id, shown=False)
        self._after_response(thread)
        return wire.ResumeSessionResponse(modes=thread.modes, config_options=[*thread.options])

    async def list_sessions(self, cwd: str | None = None, cursor: str | None = None) -> wire.ListSessionsResponse:
        """List the sessions of a repository, the newest first."""
        with _as_protocol_errors():
            host, _ = await self._host(cwd or str(self._invocation.folder))
            return await listed_sessions(host, cwd or str(self._invocation.folder), cursor)

    async def close_session(self, session_id: str) -> wire.CloseSessionResponse:
        """Leave the session of a thread."""
        thread = self._thread(session_id)
        del self._threads[session_id]
        if (turn := self._turns.get(session_id)) is not None:
            turn.cancel()
            await turn.over.wait()
        await thread.leave()
        return wire.CloseSessionResponse()

    async def set_session_mode(self, mode_id: str, session_id: str) -> wire.SetSessionModeResponse:
        """Enter a mode."""
        await self._choose(session_id, mode_id)
        return wire.SetSessionModeResponse()

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool
    ) -> wire.SetSessionConfigOptionResponse:
        """Enter a mode, as an option."""
        if config_id != OPTION or not isinstance(value, str):
            raise _invalid(f"there is no option {quoted(config_id)} with that value; there is {OPTION!r}")
        thread = await self._choose(session_id, value)
        return wire.SetSessionConfigOptionResponse(config_options=[*thread.options])

    async def prompt(self, session_id: str, prompt: list[Block]) -> wire.PromptResponse:
        """Work on a prompt until the session waits for the next one."""
        thread = self._thread(session_id)
        if session_id in self._turns:
            raise _invalid("a prompt of this session is being worked on; cancel it first")
        words = prompt_words(prompt, thread.roots)
        if not words:
            raise _invalid("the prompt has no text")
        turn = self._turns[session_id] = Turn(thread, words)
        try:
            return wire.PromptResponse(stop_reason=await turn.run())
        finally:
            del self._turns[session_id]

    async def cancel(self, session_id: str) -> None:
        """Cancel the prompt that is worked on, if there is one."""
        turn = self._turns.get(session_id)
        if turn is not None:
            turn.cancel()

    async def _take_up(self, cwd: str, name: str, *, shown: bool) -> EditorThread:
        from agent_workbench.api.session_queries import recorded_events

        thread = await self._add(cwd, session_id(name))
        try:
            events = await recorded_events(thread.host.invocation, thread.session, whole=True)
            await thread.take_up(events, shown=shown)
        except BaseException:
            del self._threads[thread.session]
            raise
        return thread

    async def _add(self, cwd: str, session: SessionId | None) -> EditorThread:
        if not self._initialized:
            raise _invalid("initialize the connection first")
        if len(self._threads) >= MAX_THREADS:
            raise _invalid(f"{MAX_THREADS} sessions are open; close one")
        host, root = await self._host(cwd)
        roots = await asyncio.to_thread(spellings, root, cwd)
        if session in self._threads:
            raise _invalid(f"session {session} is open here already")
        thread = EditorThread(self._editor, host, roots, session or new_session_id())
        self._threads[thread.session] = thread
        return thread

    async def _host(self, cwd: str) -> tuple[LocalSessionHost, str]:
        """Return the host of the repository around a folder, and the repository's root; raise `RepoError`.

        All folders of a repository have one, because the sessions of a host share a model's server.
        """
        if not cwd.startswith("/") or "\0" in cwd:
            raise _invalid(f"cwd is {quoted(cwd)}, and no absolute path")
        root = (await self._host_in(Path(cwd)).repo()).root
        host = self._hosts.get(str(root)) or self._host_in(root)
        return self._hosts.setdefault(str(root), host), str(root)

    def _host_in(self, folder: Path) -> LocalSessionHost:
        return LocalSessionHost(replace(self._invocation, folder=folder))

    async def _choose(self, session: str, mode: str) -> EditorThread:
        thread = self._thread(session)
        if refusal := await thread.choose_mode(mode):
            raise _invalid(refusal)
        return thread

    def _thread(self, session: str) -> EditorThread:
        thread = self._threads.get(session)
        if thread is None:
            raise _invalid(f"no session {quoted(session)} is open here; session/load opens one")
        return thread

    def _after_response(self, thread: EditorThread) -> None:
        """Tell the client the commands: the response, from which it learns the session's name, is written before."""
        in_background(_tell_commands(thread))


async def _tell_commands(thread: EditorThread) -> None:
    with suppress(ConnectionError):  # the client is gone
        await thread.tell_commands()


def has_terminal(client: wire.ClientCapabilities | None) -> bool:
    """Return True if a client can run the agent in a terminal, by the protocol's word or the one before it."""
    if client is None:
        return False
    old = client.field_meta or {}
    return bool(client.auth and client.auth.terminal) or old.get(_OLD_TERMINAL) is True


@contextmanager
def _as_protocol_errors() -> Iterator[None]:
    """Turn our errors into those of the protocol."""
    try:
        yield
    except WorkbenchError as error:
        raise _invalid(error_text(error)) from None


def _invalid(why: str) -> RequestError:
    return RequestError(-32602, why)


async def listed_sessions(host: LocalSessionHost, cwd: str, cursor: str | None) -> wire.ListSessionsResponse:
    """Return a page of the sessions that can be loaded; the cursor is the name of the last one before it."""
    from agent_workbench.api.session_queries import session_summaries

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


def serve_stdio(invocation: Invocation, parent: int) -> None:
    """Serve until the client closes the pipe or is gone; ends the process.

    Raises `TrustError` before that in a process that a command of the agent started: it would decide.
    """
    asyncio.run(_serve(invocation, parent))


async def _serve(invocation: Invocation, parent: int) -> None:
    await check_person()
    log_to_stderr()
    pipe = ClientPipe(*take_pipe())
    editor = Editor(pipe)
    agent = ProtocolAgent(invocation, editor)
    # The agent has the methods that it advertises; the SDK answers the others with "method not found". It calls
    # `close` and `resume`, which protocol 1 has by now, unstable.
    served = cast("Agent", agent)
    connection = AgentSideConnection(served, pipe, listening=False, use_unstable_protocol=True)
    editor.connected(connection)
    await first_end(connection.listen(), parent)
    leaving = asyncio.ensure_future(agent.close())
    await asyncio.wait({leaving}, timeout=LEAVE_SECONDS)
    end_process(ExitCode.DONE)
