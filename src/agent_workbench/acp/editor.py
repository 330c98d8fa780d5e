"""The client at the other end: its name, the updates that it is shown, and the questions that it is asked."""

import asyncio
import logging
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from acp import RequestError
from acp import schema as wire
from pydantic import ValidationError

from agent_workbench.acp.tool_calls import text_content
from agent_workbench.core.proposals import ACP
from agent_workbench.core.text.amounts import quoted

if TYPE_CHECKING:
    from acp.agent.connection import AgentSideConnection

    from agent_workbench.acp.transport import ClientPipe

Update = (
    wire.UserMessageChunk
    | wire.AgentMessageChunk
    | wire.AgentThoughtChunk
    | wire.ToolCallStart
    | wire.ToolCallProgress
    | wire.AgentPlanUpdate
    | wire.AvailableCommandsUpdate
    | wire.CurrentModeUpdate
    | wire.ConfigOptionUpdate
    | wire.SessionInfoUpdate
)
MAX_NAME_CHARS = 40
MAX_READ_CHARS = 1_000_000
READ_SECONDS = 10.0
UNKNOWN_CLIENT = "unknown client"
_STRANGE = re.compile(r"[^A-Za-z0-9._-]+")
_log = logging.getLogger(__name__)


class Editor:
    """The client of one connection; `person` is the `by` of the decisions that it reports."""

    def __init__(self, pipe: "ClientPipe") -> None:
        self._pipe = pipe
        self._connection: AgentSideConnection | None = None
        self.person = decider_name(UNKNOWN_CLIENT)
        self.reads_files = False
        """True if the client gives the text of its files, unsaved changes included."""

    def connected(self, connection: "AgentSideConnection") -> None:
        """Talk through this connection from now on."""
        self._connection = connection

    async def show(self, session: str, *updates: Update) -> None:
        """Send updates of a thread; raises `ConnectionError` when the client is gone."""
        if self._connection is None:
            raise AssertionError("nothing is shown before there is a connection")
        for update in updates:
            await self._connection.session_update(session, update)

    async def read(self, session: str, path: str) -> str | None:
        """Return the text that the editor has of a file; None if it gives none, or one that is too long."""
        if self._connection is None or not self.reads_files:
            return None
        try:
            async with asyncio.timeout(READ_SECONDS):
                response = await self._connection.read_text_file(session_id=session, path=path)
        except (RequestError, ValidationError, TimeoutError) as error:
            _log.warning("the client gave no text of a file: %s", error)
            return None
        return response.content if len(response.content) <= MAX_READ_CHARS else None

    async def say(self, session: str, text: str) -> None:
        """Say something to the user in a thread; `text` is Markdown."""
        await self.show(session, message(f"{text}\n\n"))

    async def ask(
        self, session: str, call: wire.ToolCallUpdate, options: Sequence[wire.PermissionOption]
    ) -> str | None:
        """Return the id of the option that the user chose, None if they chose none, or the client cannot ask.

        A question that is cancelled here is withdrawn there.
        """
        if self._connection is None:
            raise AssertionError("nothing is asked before there is a connection")
        answered = False
        try:
            response = await self._connection.request_permission(session, call, list(options))
            answered = True
        except (RequestError, ValidationError) as error:
            answered = True
            _log.warning("the client gave no answer to a question: %s", error)
            return None
        finally:
            if not answered:
                await self._pipe.withdraw(session, call.tool_call_id)
        if not isinstance(response.outcome, wire.AllowedOutcome):
            return None
        if all(response.outcome.option_id != each.option_id for each in options):
            _log.warning("the client chose an option that was not offered: %s", quoted(response.outcome.option_id))
            return None
        return response.outcome.option_id


def decider_name(name: str | None) -> str:
    """Return the `by` of the decisions that a client of this name reports; a foreign name is cut and made plain."""
    plain = _STRANGE.sub(" ", (name or "")[: 4 * MAX_NAME_CHARS]).strip()[:MAX_NAME_CHARS].strip()
    return f"{ACP}{plain or UNKNOWN_CLIENT}"


def message(text: str) -> wire.AgentMessageChunk:
    """Return a piece of a message of the agent."""
    return wire.AgentMessageChunk(session_update="agent_message_chunk", content=_text(text))


def thought(text: str) -> wire.AgentThoughtChunk:
    """Return a piece of the agent's thoughts."""
    return wire.AgentThoughtChunk(session_update="agent_thought_chunk", content=_text(text))


def user_message(text: str) -> wire.UserMessageChunk:
    """Return a message of the user, for the history."""
    return wire.UserMessageChunk(session_update="user_message_chunk", content=_text(text))


def question(name: str, title: str, text: str) -> wire.ToolCallUpdate:
    """Return the tool call of a question that is about no proposal."""
    return wire.ToolCallUpdate(
        tool_call_id=name, kind="other", status="pending", title=title, content=[text_content(text)]
    )


def _text(text: str) -> wire.TextContentBlock:
    return wire.TextContentBlock(type="text", text=text)
