"""Delivery of a prompt's words: said to the model, made a task, or the reason of a rejection."""

from agent_workbench.acp.thread import EditorThread
from agent_workbench.api.sessions.awaited import Awaited, wait_of
from agent_workbench.core.custom_prompts import named_call
from agent_workbench.core.intents import (
    AbortTask,
    ExpandPrompt,
    Intent,
    PauseTask,
    RejectProposal,
    RetryTrouble,
    SayToModel,
    StartTask,
)
from agent_workbench.core.intents.outcomes import Accepted, Outcome, PromptExpanded, Refused, TaskAdded, TaskDrafted
from agent_workbench.core.intents.plan import AddTask, DraftTask
from agent_workbench.core.live import SessionUpdate
from agent_workbench.core.state.session_state import ENDED
from agent_workbench.core.text.markdown import fenced, literal

ABORT = "/abort"
MAX_NOTE_CHARS = 2_000


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
        in_task = run is not None and run.phase not in ENDED and state.open_planning is None
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
        if state.chat is None and wait.awaited is Awaited.RETRY and not state.unfinished:
            return await self._submit(RetryTrouble())
        self._done = True
        if state.chat is None and not state.unfinished:
            return await self._begin()
        if refusal := await self._expand():
            return refusal
        return await self._submit(SayToModel(self._words)) if state.chat is not None else await self._say(update)

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
        added = await self._outcome(AddTask(drafted.draft.task))
        if not isinstance(added, TaskAdded):
            return _why_not(added)
        return await self._submit(StartTask(added.task.id))

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
