"""Chat from a program or a shell: a message is sent, and the reply with the calls made for it is returned."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from agent_workbench.api.sessions.session_handle import wait_of
from agent_workbench.core.custom_prompts import CustomPrompt
from agent_workbench.core.errors import ModelError, UsageError
from agent_workbench.core.events import ActionResult, UserSaid
from agent_workbench.core.ids import SessionId
from agent_workbench.core.intents import (
    AbortTask,
    AddTask,
    ApproveProposal,
    DraftTask,
    ExpandPrompt,
    Intent,
    ListPrompts,
    RejectProposal,
    SayToModel,
    StopAnswer,
)
from agent_workbench.core.live import SessionUpdate
from agent_workbench.core.outcomes import (
    Accepted,
    Outcome,
    PromptExpanded,
    PromptsListed,
    Refused,
    TaskAdded,
    TaskDrafted,
)
from agent_workbench.core.plan import Task
from agent_workbench.core.proposals import Proposal, is_too_long, shown_sha
from agent_workbench.core.session_request import OpenMode, SessionRequest, Unattended
from agent_workbench.core.state.steps import steps_of
from agent_workbench.core.state.work import Chat

if TYPE_CHECKING:
    from agent_workbench.api.sessions.session_host import LocalSessionHost
    from agent_workbench.core.ports.session_host import SessionHandle

Report = Callable[[SessionUpdate], None]
Approve = Callable[[Proposal], Awaitable[bool]]
"""Shows a call to a person and returns their decision."""
REJECTED = "the user rejected it"
TOO_LONG = "it is too long to be shown in full"


class ToolCall(Struct, frozen=True):
    """A call that the model made: its arguments as JSON, and its result. `refused`: it had none."""

    tool: str
    arguments: str
    result: str
    refused: bool = False


class Reply(Struct, frozen=True):
    """Reply to a message, in Markdown, with the calls made for it.

    `cut` says why it is incomplete, empty for a complete one. `stopped`: the user stopped the answer,
    and there is no reply.
    """

    text: str
    calls: tuple[ToolCall, ...] = ()
    cut: str = ""
    stopped: bool = False


class Conversation:
    """A chat about a repository. Messages are sent one after the other; `open_conversation` begins one.

    `report` is called with each update of the session. `approve` decides about the calls that ask; without it they
    are left to the policy of an unattended session, which rejects them. `remark` is about the newest message, such as
    a file that was not sent.
    """

    def __init__(
        self, handle: "SessionHandle", *, approve: Approve | None = None, report: Report | None = None
    ) -> None:
        self._handle = handle
        self._approve = approve
        self._report = report or (lambda _: None)
        self.remark = ""

    @property
    def session(self) -> SessionId:
        """Name of the session that records the chat."""
        return self._handle.session

    @property
    def opened_seq(self) -> int:
        """Number of the last event that was recorded before the chat was opened here (-1: it is new)."""
        return self._handle.opened_seq

    async def send(self, words: str) -> Reply:
        """Send a message, which may mention files with `@` or call a prompt with `/`, and return the reply.

        Raises `UsageError` if the message cannot be taken, `ModelError` if the model does not answer, and what kept
        the session from opening.
        """
        return await self._decided(await self.say(await self.expand(words)))

    async def _decided(self, reached: "Reply | Proposal") -> Reply:
        while isinstance(reached, Proposal):
            takable = not (is_too_long(reached) or reached.has_gaps)
            approved = self._approve is not None and takable and await self._approve(reached)
            reached = await self.decide(reached, approved=approved)
        return reached

    async def say(self, words: str) -> "Reply | Proposal":
        """Send a message; return the reply, or the call that waits for a decision. Raises as `send` does."""
        await self._submit(SayToModel(words))
        return await self.proceed()

    async def expand(self, words: str) -> str:
        """Return the text of the user's own prompt that the words call, or the words; raise `UsageError`."""
        expanded = await self._submit(ExpandPrompt(words))
        return expanded.words if isinstance(expanded, PromptExpanded) else words

    async def prompts(self) -> tuple[CustomPrompt, ...]:
        """Return the user's own prompts."""
        listed = await self._submit(ListPrompts())
        return listed.prompts if isinstance(listed, PromptsListed) else ()

    async def decide(self, call: Proposal, *, approved: bool, reason: str = REJECTED) -> "Reply | Proposal":
        """Decide about a call exactly as it is in `call`; return the reply, or the next call that waits."""
        sha = shown_sha(call)
        await self._submit(ApproveProposal(call.id, sha) if approved else RejectProposal(call.id, reason))
        return await self.proceed()

    async def proceed(self) -> "Reply | Proposal":
        """Follow the session to the reply to the newest message, or to the next call that waits for a decision."""
        async with aclosing(self._handle.live()) as updates:
            async for update in updates:
                self._report(update)
                state, chat = update.state, update.state.main
                if state.trouble is not None:
                    raise ModelError(state.trouble.what, advice=state.trouble.advice)
                if isinstance(chat, Chat) and not chat.due and not state.left:
                    return _reply(chat)
                if (proposal := wait_of(state).proposal) is not None:
                    return proposal
        await self._handle.wait()
        raise UsageError("the chat ended before there was a reply", advice="open it again")

    async def finish(self) -> Reply:
        """Follow a chat that was stopped in the middle to its reply, which is empty if no message was open."""
        return await self._decided(await self.proceed())

    async def stop(self) -> None:
        """Stop what is being answered, or drop the call that waits."""
        if isinstance(await self._handle.submit(StopAnswer()), Refused):
            await self._handle.submit(AbortTask())

    async def add_task(self, words: str) -> Task:
        """Make the words a task of the plan and return it, with a scope and checks; raise `UsageError`, `PlanError`."""
        drafted = await self._submit(DraftTask(words))
        if not isinstance(drafted, TaskDrafted):
            raise UsageError("no task could be made of that")
        added = await self._submit(AddTask(drafted.draft.task))
        if not isinstance(added, TaskAdded):
            raise UsageError("the task could not be added to the plan")
        return added.task

    async def _submit(self, intent: Intent) -> Outcome:
        outcome = await self._handle.submit(intent)
        if isinstance(outcome, Refused):
            await self._raise_failure()
            raise UsageError(outcome.reason)
        if isinstance(intent, SayToModel) and isinstance(outcome, Accepted):
            self.remark = outcome.note
        return outcome

    async def _raise_failure(self) -> None:
        """Raise what kept the session from opening, if it did."""
        if not self._handle.session:
            await self._handle.wait()


def _reply(chat: Chat) -> Reply:
    asked = max((place for place, each in enumerate(chat.history) if isinstance(each.event, UserSaid)), default=0)
    ended = ((step.first, step.result.event) for step in steps_of(chat.history[asked:]) if step.result is not None)
    calls = tuple(
        ToolCall(call.tool, call.text, result.observation, result.result is ActionResult.REFUSED)
        for call, result in ended
    )
    said = chat.reply
    return Reply(said.text, calls, said.why_cut) if said is not None else Reply("", calls, stopped=True)


@asynccontextmanager
async def open_conversation(
    folder: Path | str = ".",
    *,
    session: str = "",
    settings: Mapping[str, str] | None = None,
    environ: Mapping[str, str] | None = None,
    approve: Approve | None = None,
) -> AsyncGenerator[Conversation]:
    """Open a chat about the repository around `folder`, a new one or the one named `session`.

    `settings` are keys of `.agent.yml` with dots and count more than the file. `approve` is asked about each call that
    needs approval, with its text in full; without it such calls are rejected. Raises what prevents a session from
    opening.
    """
    from agent_workbench.api.sessions.session_host import open_host

    async with open_host(folder, settings=settings, environ=environ) as host:
        conversation = await open_chat(host, session, attended=approve is not None, approve=approve)
        await conversation.finish()
        yield conversation


async def open_chat(
    host: "LocalSessionHost",
    session: str = "",
    *,
    attended: bool,
    approve: Approve | None = None,
    report: Report | None = None,
) -> Conversation:
    """Open a chat in a host: the one named `session`, else a new one; raise what prevents it.

    Raises `TrustError` in a command of the agent.
    """
    mode = OpenMode.RESUME if session else OpenMode.NEW
    unattended = None if attended else Unattended()
    handle = await host.open(SessionRequest(mode, session, unattended=unattended, preflight=False, chat=True))
    return Conversation(handle, approve=approve, report=report)
