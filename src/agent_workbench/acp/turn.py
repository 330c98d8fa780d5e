"""Turn of a thread: a prompt's words are delivered, the session is followed, and the user is asked."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Literal

from msgspec import Struct

from agent_workbench.acp.editor import question
from agent_workbench.acp.gate import EditorGate, GateAnswer
from agent_workbench.acp.prompt_words import begins_with
from agent_workbench.acp.thread import EditorThread
from agent_workbench.api.approvals import proposed_files
from agent_workbench.api.sessions.session_handle import Awaited, wait_of
from agent_workbench.core.custom_prompts import named_call
from agent_workbench.core.errors import WorkbenchError, error_text
from agent_workbench.core.intents import (
    AbortTask,
    AddTask,
    AnswerQuestion,
    DraftTask,
    ExpandPrompt,
    Intent,
    Leave,
    PauseTask,
    RejectProposal,
    RetryTrouble,
    SayToModel,
    StartTask,
    StopAnswer,
)
from agent_workbench.core.live import PreflightQuestion, SessionUpdate
from agent_workbench.core.outcomes import Accepted, Outcome, PromptExpanded, Refused, TaskAdded, TaskDrafted
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.state.session_state import ENDED
from agent_workbench.core.text.markdown import fenced, fenced_whole, literal
from agent_workbench.views.gate.gate_bar import GateMode, view_gate
from agent_workbench.views.gate.proposal_views import proposal_key

from acp import schema as wire  # isort: skip


StopReason = Literal["end_turn", "cancelled", "refusal"]
STOP_SECONDS = 5.0
MAX_TOLD_CHARS = 4_000

ABORT = "/abort"
MAX_NOTE_CHARS = 2_000


class _Asking(Struct):
    """A question that the client has: what it is about, and its answer."""

    key: str
    answer: "asyncio.Task[StopReason | None]"


class Turn:
    """One prompt of a thread. `run` returns the protocol's reason why it is over, and sets `over`."""

    def __init__(self, thread: EditorThread, words: str) -> None:
        self._thread = thread
        self._delivery = Delivery(thread, words)
        self._cancelled = asyncio.Event()
        self.over = asyncio.Event()
        self._asking: _Asking | None = None
        self._doing: asyncio.Task[str] | None = None

    def cancel(self) -> None:
        """End the turn: what runs is stopped, and what waits goes on waiting."""
        self._cancelled.set()

    async def run(self) -> StopReason:
        """Follow the session to the end of the turn."""
        try:
            await self._thread.open()
            while True:
                news = self._thread.news
                update = await self._thread.current()
                reason = await self._stop(update) if self._cancelled.is_set() else await self._proceed(update)
                if reason is not None:
                    await self._thread.shown(update.state.seq)
                    return reason
                await self._wait(news)
        except WorkbenchError as error:
            return await self._failed(error)
        except ConnectionError:
            return "cancelled"  # the client is gone, and the process ends
        finally:
            await self._drop(self._doing)
            await self._withdraw()
            self.over.set()

    async def _wait(self, news: asyncio.Event) -> None:
        """Wait until the session changes, an answer comes, or the turn is cancelled."""
        waits: set[asyncio.Future[Any]] = {asyncio.ensure_future(each.wait()) for each in (news, self._cancelled)}
        asked = self._asking.answer if self._asking is not None else None
        try:
            await asyncio.wait({*waits, *filter(None, (self._doing, asked))}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()

    async def _proceed(self, update: SessionUpdate) -> StopReason | None:
        """Do what the newest update asks for; return a reason if that ends the turn."""
        if self._asking is not None and self._asking.answer.done():
            reason, self._asking = self._asking.answer.result(), None
            return reason or await self._again()
        if update.ended:
            return await self._ended(update)
        if update.live.question is not None:
            asked = update.live.question
            self._ask(asked.key, lambda: self._ask_before(asked))
            return None
        if not update.state.session:
            return None
        self._thread.began()
        if self._doing is not None and self._doing.done():
            refusal, self._doing = self._doing.result(), None
            if refusal:
                await self._tell(refusal)
                return "end_turn"
            return await self._again()
        return None if self._doing is not None else await self._follow(update)

    async def _follow(self, update: SessionUpdate) -> StopReason | None:
        state = update.state
        wait = wait_of(state)
        key = proposal_key(wait.proposal) if wait.proposal is not None else ""
        if self._asking is not None and self._asking.key != key:
            await self._withdraw()
        if self._delivery.fits(update):
            self._doing = asyncio.ensure_future(self._delivery.deliver(update))
            return None
        if not update.live.waits:
            return None
        if wait.awaited is Awaited.DECISION and wait.proposal is not None:
            proposal = wait.proposal
            self._ask(key, lambda: self._ask_about(update, proposal))
            return None
        if wait.awaited is Awaited.RESUMPTION and state.run is not None and state.run.awaits_send:
            await self._submit(PauseTask(paused=False))  # the prompt said to begin
            return None
        if wait.awaited is Awaited.RESUMPTION:
            await self._tell("The task is paused. Your next message goes to the model, and the task continues.")
        if wait.awaited is Awaited.RETRY and state.trouble is not None:
            await self._tell("Your next message tries it again.")
        return "end_turn"

    async def _again(self) -> StopReason | None:
        """Look at what became of an answer or of the words: the session may have gone on, or wait already."""
        return await self._proceed(await self._thread.current())

    def _ask(self, key: str, ask: Callable[[], Coroutine[Any, Any, StopReason | None]]) -> None:
        """Ask the client, unless it is asked already."""
        if self._asking is None:
            self._asking = _Asking(key, asyncio.create_task(ask()))

    async def _ask_about(self, update: SessionUpdate, proposal: Proposal) -> StopReason | None:
        thread = self._thread
        changes = await proposed_files(thread.host, update.state, proposal)
        gate = EditorGate(thread.editor, thread.handle, thread.root)
        match await gate.ask(update, proposal, changes):
            case GateAnswer.DECIDED:
                return None
            case GateAnswer.EXPLAINED_NEXT:
                thread.rejecting = proposal.id
                await self._tell("Say why: your next message is the reason of the rejection.")
                return "end_turn"
            case GateAnswer.UNDECIDED:
                where = f"`agent inbox show {update.state.session}`"
                await self._tell(f"Nothing was decided. {proposal.id} waits; {where} shows it, and so does a message.")
                return "cancelled"

    async def _ask_before(self, asked: PreflightQuestion) -> StopReason | None:
        """Ask a question that comes before the session; its text is a message first."""
        thread = self._thread
        text = fenced_whole("\n".join(asked.lines))
        await self._tell(f"{asked.title}\n\n{text}")
        options = (
            wire.PermissionOption(option_id="yes", name=asked.yes.capitalize(), kind="allow_once"),
            wire.PermissionOption(option_id="no", name=asked.no.capitalize(), kind="reject_once"),
        )
        call = question(f"{thread.session}-{asked.key}", asked.title, text)
        chosen = await thread.editor.ask(thread.session, call, options)
        if chosen is None:
            await self._submit(Leave("the question before the session was not answered"))
            await self._tell("The session was not opened: the question was not answered.")
            return "end_turn"
        await self._submit(AnswerQuestion(asked.key, chosen == "yes"))
        return None

    async def _ended(self, update: SessionUpdate) -> StopReason:
        """Return the end of a turn whose session has ended; raise what ended it."""
        await self._thread.handle.wait()
        if update.farewell:
            await self._tell(literal(update.farewell, MAX_TOLD_CHARS))
        return "end_turn"

    async def _failed(self, error: WorkbenchError) -> StopReason:
        await self._tell(literal(error_text(error), MAX_TOLD_CHARS))
        return "refusal"

    async def _stop(self, update: SessionUpdate) -> StopReason:
        """Stop what runs. A proposal that waits goes on waiting: nobody decided."""
        await self._drop(self._doing)
        await self._withdraw()
        bar = view_gate(update)
        if update.live.question is not None:
            await self._submit(Leave("the question before the session was not answered"))
        elif bar.mode is GateMode.BUSY:
            stopping = asyncio.ensure_future(self._submit(bar.stop or StopAnswer()))
            await asyncio.wait({stopping}, timeout=STOP_SECONDS)
        return "cancelled"

    async def _withdraw(self) -> None:
        """Withdraw the question that the client has."""
        asking, self._asking = self._asking, None
        if asking is not None:
            await self._drop(asking.answer)

    async def _drop(self, task: "asyncio.Task[Any] | None") -> None:
        if task is not None and not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _submit(self, intent: Intent) -> str:
        outcome = await self._thread.handle.submit(intent)
        return outcome.reason if isinstance(outcome, Refused) else ""

    async def _tell(self, text: str) -> None:
        await self._thread.editor.say(self._thread.session, text)


class Delivery:
    """The words of one prompt; they are delivered once, as soon as the session can take them."""

    def __init__(self, thread: EditorThread, words: str) -> None:
        self._thread = thread
        self._words = words
        self._done = False

    def fits(self, update: SessionUpdate) -> bool:
        """Return True if the words, or what has to come before them, can be submitted now."""
        if self._done:
            return False
        state, waits = update.state, update.live.waits
        wait = wait_of(state)
        if wait.proposal is not None and wait.proposal.id == self._thread.rejecting:
            return waits
        if waits and wait.awaited in {Awaited.WORDS, Awaited.RETRY}:
            return True
        run = state.run
        in_task = run is not None and run is state.work and run.phase not in ENDED
        return in_task or (self._words == ABORT and state.at_work)

    async def deliver(self, update: SessionUpdate) -> str:
        """Submit the words; return why they are refused, empty if they are not."""
        await self._thread.enter_chosen_mode(update)
        await self._thread.tell_commands()
        state = update.state
        wait = wait_of(state)
        rejecting, self._thread.rejecting = self._thread.rejecting, None
        if self._words == ABORT:
            self._done = True
            return await self._submit(AbortTask())
        if wait.proposal is not None and wait.proposal.id == rejecting:
            self._done = True
            return await self._submit(RejectProposal(wait.proposal.id, self._words))
        if wait.awaited is Awaited.RETRY and not state.takes_words:
            return await self._submit(RetryTrouble())
        self._done = True
        if not state.takes_words:
            return await self._begin()
        if refusal := await self._expand():
            return refusal
        return await self._submit(SayToModel(self._words)) if state.in_chat else await self._say(update)

    async def _expand(self) -> str:
        """Replace the call of a custom prompt by its text, and show that; return why it is refused."""
        if named_call(self._words) is None:
            return ""
        expanded = await self._outcome(ExpandPrompt(self._words))
        if isinstance(expanded, PromptExpanded) and expanded.file:
            self._words = expanded.words
            await self._thread.editor.say(self._thread.session, fenced(self._words))
        return _why_not(expanded)

    async def _say(self, update: SessionUpdate) -> str:
        """Say the words to the model, and have the task go on."""
        run, refusal = update.state.run, await self._submit(SayToModel(self._words))
        if not refusal and run is not None and run.paused:
            refusal = await self._submit(PauseTask(paused=False))
        if not refusal and update.state.trouble is not None:
            refusal = await self._submit(RetryTrouble())
        return refusal

    async def _begin(self) -> str:
        """Make the words a task of the plan, and start it."""
        drafted = await self._outcome(DraftTask(self._words))
        if not isinstance(drafted, TaskDrafted):
            return _why_not(drafted)
        for remark in drafted.draft.remarks:
            await self._thread.editor.say(self._thread.session, literal(remark, MAX_NOTE_CHARS))
        unsaved, refusal = await begins_with(self._thread, drafted.draft.mentions)
        if refusal:
            return refusal
        added = await self._outcome(AddTask(drafted.draft.task))
        if not isinstance(added, TaskAdded):
            return _why_not(added)
        return await self._submit(StartTask(added.task.id, unsaved))

    async def _submit(self, intent: Intent) -> str:
        """Return why an intent is refused; tell the user the note of one that is not."""
        outcome = await self._outcome(intent)
        if isinstance(outcome, Accepted) and outcome.note:
            await self._thread.editor.say(self._thread.session, literal(outcome.note, MAX_NOTE_CHARS))
        return _why_not(outcome)

    async def _outcome(self, intent: Intent) -> Outcome:
        return await self._thread.handle.submit(intent)


def _why_not(outcome: Outcome) -> str:
    return literal(outcome.reason, MAX_NOTE_CHARS) if isinstance(outcome, Refused) else ""
