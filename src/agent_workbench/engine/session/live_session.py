"""Attended session: it takes intents, lets the executor move, waits at gates, and always ends cleanly."""

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager

from agent_workbench.core.background import in_background, uninterrupted
from agent_workbench.core.errors import StorageError, WorkbenchError, error_text
from agent_workbench.core.events import PlanAsked, SessionLeft
from agent_workbench.core.ids import TaskId
from agent_workbench.core.intents import (
    AbortTask,
    ApproveProposal,
    AskConsultant,
    ChooseMergeMethod,
    EditProposal,
    Intent,
    Leave,
    MergeTask,
    RecordDecision,
    RejectProposal,
    SkipProposal,
    StartTask,
    StopAnswer,
    StopConsultation,
    SwitchModel,
    UndoStep,
)
from agent_workbench.core.model import Purpose
from agent_workbench.core.outcomes import Accepted, Outcome, Refused
from agent_workbench.core.plan import TaskStatus, is_queued
from agent_workbench.core.proposals import OFFER_NOTES, Verdict
from agent_workbench.core.session_request import SessionEnd
from agent_workbench.core.settings import Approval, ApprovalMode, Permission
from agent_workbench.core.state.session_state import Phase, SessionState
from agent_workbench.engine.answer.model_request import observe_model
from agent_workbench.engine.chat.chat_context import start_chat
from agent_workbench.engine.chat.chat_intents import IS_CHAT
from agent_workbench.engine.executor import perform
from agent_workbench.engine.flow import (
    Ask,
    AskPlan,
    AwaitGo,
    AwaitRetry,
    Close,
    Decide,
    Execute,
    Idle,
    Move,
    ReviewChange,
    RunHook,
    next_move,
)
from agent_workbench.engine.mode_change import leave_mode
from agent_workbench.engine.planning.plan_prompt import VERSION
from agent_workbench.engine.policy import ruling
from agent_workbench.engine.proposals import decide, propose_merge
from agent_workbench.engine.recorder import Recorder
from agent_workbench.engine.runtime.intent_queue import IntentQueue, Submission, submission
from agent_workbench.engine.runtime.publisher import show_time
from agent_workbench.engine.runtime.session_context import SessionContext
from agent_workbench.engine.runtime.stoppable import BackgroundTask
from agent_workbench.engine.runtime.tool import REFUSALS
from agent_workbench.engine.session.context_intents import why_not_switch
from agent_workbench.engine.session.inbox import record_decision, record_pending, watch_inbox
from agent_workbench.engine.session.intents import Lengthy, Question, carry_out, look_up
from agent_workbench.engine.session.unattended import trouble_event
from agent_workbench.engine.task.task_start import find_taken_tasks, read_again, start_task, task_without_check
from agent_workbench.engine.task.undo import why_not_undo

STOPPED = "it was stopped before it was done"


DECIDES: tuple[type[Intent], ...] = (
    *(Leave, AbortTask, UndoStep, RecordDecision),
    *(ApproveProposal, RejectProposal, SkipProposal, EditProposal, ChooseMergeMethod),
)
"""Intents that stop a hook: nobody waits for it, and who decides does so without it."""


class LiveSession:
    """A session with a person; `run()` is its life and must be awaited by its owner. `chat` makes a new one a chat."""

    def __init__(
        self, session: SessionContext, recorder: Recorder, intents: IntentQueue, *, chat: bool = False
    ) -> None:
        self._session = session
        self._chat = chat
        self._recorder = recorder
        self._intents = intents
        self.submit = intents.submit
        self._leaving = ""
        self._starting = False
        self._checked = CheckedStart()
        self._background: list[asyncio.Task[None]] = []

    async def run(self) -> SessionEnd:
        """Live until the user leaves; the journal, the workspace and the model are closed however it ends."""
        farewell = "the session ended unexpectedly"
        try:
            await self._begin()
            while not self._leaving:
                await self._advance()
            farewell = farewell_of(self._session.state)
        except WorkbenchError as error:
            farewell = f"{error_text(error)}\n{farewell_of(self._session.state)}"
        finally:
            farewell = await self._end(farewell)
        return SessionEnd(reason=farewell)

    async def _begin(self) -> None:
        publisher = self._session.publisher
        publisher.show_activity("")
        publisher.show_model_wait()
        if self._chat and self._session.state.main is None:
            await start_chat(self._session)
        self._background.append(in_background(self._warm_up()))
        ports = self._session.ports
        self._background.append(in_background(show_time(publisher, ports.clock, ports.backlog)))
        try:
            await read_again(self._session)
        except WorkbenchError as error:
            if self._session.state.plan_path:
                publisher.notify(error_text(error))
            else:
                publisher.show_plan_problem(error_text(error))
        await record_pending(self._session)  # a person's decision comes before any policy
        self._background.append(in_background(watch_inbox(self._session, self.submit)))

    async def _warm_up(self) -> None:
        """Make the model ready behind the first screen, so that the first step need not wait for it."""
        in_chat = self._session.state.in_chat
        try:
            await observe_model(self._session, Purpose.CHAT if in_chat else Purpose.EXECUTOR)
        except WorkbenchError as error:
            if not in_chat:  # there the first message tells it
                self._session.publisher.notify(error_text(error))
        if not self._session.state.at_work:
            self._session.publisher.show_activity("")

    async def _advance(self) -> None:
        move = next_move(self._session.state)
        if isinstance(move, Idle):
            submitted = self._checked.resumed(self._session.state) or await self._next_intent()
            if isinstance(submitted.intent, StartTask) and not self._session.state.in_chat:
                starting = self._start(submitted, submitted.intent)
                await self._listen_during(starting, stopped_by=(Leave, AbortTask, StopAnswer))
            else:
                await self._take(submitted)
        elif isinstance(move, AwaitRetry | AwaitGo):
            await self._take(await self._next_intent())
        elif isinstance(move, Decide):
            verdict = ruling(self._session.state, move.proposal)
            if verdict is None:
                self._session.hooks.tell_waiting(move.proposal, self._session.state)
                await self._take(await self._next_intent())
            else:
                await decide(self._session, move.proposal, verdict.verdict, verdict.by, verdict.reason)
        else:
            await self._do(move)

    async def _next_intent(self) -> Submission:
        self._session.publisher.show_waits()
        submitted = await self._intents.get()
        self._session.publisher.stop_waiting()
        return submitted

    async def _do(self, move: Move) -> None:
        """Perform a move; the user may stop it unless it must not be interrupted."""
        doing = self._guarded(move)
        if isinstance(move, Execute) and move.proposal.kind is Permission.MERGE:
            await self._listen_during(uninterrupted(doing), stopped_by=())
            return
        await self._listen_during(doing, _stoppers(move))

    async def _listen_during(self, doing: Coroutine[None, None, None], stopped_by: tuple[type[Intent], ...]) -> None:
        """Await `doing` and carry out intents meanwhile; those of the types `stopped_by` cancel it first."""
        work = asyncio.create_task(doing)
        try:
            while not work.done():
                submitted = await self._intents.get_during(work)
                if submitted is None:
                    continue
                if isinstance(submitted.intent, stopped_by) and not is_vain(self._session, submitted.intent):
                    work.cancel()
                    await asyncio.gather(work, return_exceptions=True)
                await self._take(submitted)
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
        if not work.cancelled():
            work.result()

    async def _start(self, submitted: Submission, intent: StartTask) -> None:
        self._starting = True
        try:
            if asked := await self._checked.ask(self._session, intent.task):
                submitted.answer(asked)
                return
            await start_task(self._session, intent.task, intent.unsaved)
            submitted.answer(Accepted())
        except WorkbenchError as error:
            submitted.answer(Refused(error_text(error)))
        finally:
            submitted.answer(Refused(STOPPED))
            self._starting = False
            self._session.publisher.show_activity("")

    async def _guarded(self, move: Move) -> None:
        try:
            await perform(self._session, move)
        except StorageError as error:
            # The journal itself may be what cannot be written: the trouble is shown, and recorded if it can be.
            self._session.publisher.notify(error_text(error))
            await self._session.record(trouble_event(move, error))
        except WorkbenchError as error:
            await self._session.record(trouble_event(move, error))
        if isinstance(move, Close):
            await leave_mode(self._session, ApprovalMode.ACCEPT_UNTIL_DONE)
            await _see_taken(self._session)
            await _offer_merge(self._session)

    async def _take(self, submitted: Submission) -> None:
        """Carry an intent out and answer it. Questions are answered in the background: a search may take long."""
        session, intent = self._session, submitted.intent
        if isinstance(intent, Question | Lengthy):
            # A task that is cancelled before its first step runs none of its own code.
            running = await _background(session, intent).start(self._take_long(submitted, intent))
            running.add_done_callback(lambda _: submitted.answer(Refused(STOPPED)))
            return
        with _answering(self._session, submitted):
            match intent:
                case StartTask():
                    outcome: Outcome = Refused(_why_no_start(session.state))
                case MergeTask() if self._starting:
                    # It would be proposed in the run that begins.
                    outcome = Refused(f"a task is being started; merge with `agent merge {intent.task}`")
                case Leave():
                    self._leaving = intent.reason
                    await leave_mode(session)
                    outcome = Accepted()
                case RecordDecision():
                    outcome = await record_decision(session, intent.decision)
                case _:
                    outcome = await carry_out(session, intent)
            submitted.answer(outcome)

    async def _take_long(self, submitted: Submission, intent: Question | Lengthy) -> None:
        with _answering(self._session, submitted):
            if isinstance(intent, Lengthy):
                submitted.answer(await carry_out(self._session, intent))
            else:
                submitted.answer(await look_up(self._session, intent))

    async def _end(self, farewell: str) -> str:
        """Close everything and answer what is still queued; return the farewell with what went wrong."""
        session = self._session
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, session.stop_background(), return_exceptions=True)
        try:
            await session.record(SessionLeft(self._leaving or "ended"))
        except WorkbenchError as error:
            farewell = f"{farewell}\n{error_text(error)}"
        finally:
            try:
                await session.close()
            finally:
                try:
                    await self._recorder.close()
                finally:
                    self._intents.close()
                    session.publisher.end(farewell)
        return farewell


@contextmanager
def _answering(session: SessionContext, submitted: Submission) -> Iterator[None]:
    """Refuse an intent that raises an error while it is carried out, or is stopped."""
    try:
        yield
    except WorkbenchError as error:
        session.publisher.show_activity("")
        submitted.answer(Refused(error_text(error)))
    finally:
        submitted.answer(Refused(STOPPED))


async def _offer_merge(session: SessionContext) -> None:
    run = session.run
    headless = session.state.config is not None and session.state.config.headless
    if run.phase is not Phase.OVER or run.status is not TaskStatus.DONE or run.commit is None or headless:
        return
    try:
        await propose_merge(session)
    except REFUSALS as refusal:
        session.publisher.notify(error_text(refusal))


def _background(session: SessionContext, intent: Intent) -> BackgroundTask:
    """Return where an intent is carried out that takes long: a search does not end a consultation."""
    if isinstance(intent, AskConsultant):
        return session.consultation
    return session.model_loading if isinstance(intent, Lengthy) else session.lookup


def is_vain(session: SessionContext, intent: Intent) -> bool:
    """Return True for an undo, or a switch to another model, that will be refused: nothing is stopped for it."""
    if isinstance(intent, SwitchModel):
        return bool(why_not_switch(session.state, session.settings, intent))
    return isinstance(intent, UndoStep) and bool(why_not_undo(session.state, intent.proposal))


def _why_no_start(state: SessionState) -> str:
    """Return why no task can be started now."""
    if state.in_chat:
        return IS_CHAT
    if state.waiting is not None and state.waiting.kind is Permission.MERGE:
        return "a merge waits at the gate; approve or skip it first"
    if state.waiting is not None and state.waiting.tool == OFFER_NOTES:
        return "notes wait at the gate; decide or skip them first"
    if state.open_planning is not None:
        return "a plan is being made; decide it, or stop it, before a task is started"
    return "a task is being worked on; finish or abort it first"


async def _see_taken(session: SessionContext) -> None:
    try:
        await find_taken_tasks(session, session.state.plan)
    except WorkbenchError as error:
        session.publisher.notify(error_text(error))


def _stoppers(move: Move) -> tuple[type[Intent], ...]:
    """Return the intents that stop a move: the end of a task is not aborted, a diff is applied before a leave."""
    if isinstance(move, Close):
        return (Leave,)
    if isinstance(move, Execute) and move.proposal.kind is Permission.DIFF:
        return (AbortTask, UndoStep)
    if isinstance(move, RunHook):
        return DECIDES
    if isinstance(move, ReviewChange):
        return (Leave, AbortTask, UndoStep, StopConsultation)
    if isinstance(move, Ask):  # a server that loads a model is not waited for when the user chose another one
        return (Leave, AbortTask, UndoStep, StopAnswer, SwitchModel)
    return (Leave, AbortTask, UndoStep, *((StopAnswer,) if isinstance(move, AskPlan) else ()))


def farewell_of(state: SessionState) -> str:
    """Return the last words of a session: how to go on with it, or look at it again."""
    if state.in_chat:
        return f"session {state.session} is kept; `agent chat --session {state.session}` goes on with it"
    if state.at_work:
        if not is_queued(state.plan_path):
            return f"session {state.session} is kept; `agent tui` takes it up again"
        worker = "a worker goes on with it, or " if state.parent is None else ""
        return f"session {state.session} is kept; {worker}`agent tui --session {state.session}`"
    return f"session {state.session} is kept; `agent replay {state.session}` shows it"


class CheckedStart:
    """Remembers the task that starts when the check which the model proposes for it is taken or left."""

    def __init__(self) -> None:
        self._task: TaskId | None = None

    async def ask(self, session: SessionContext, wanted: TaskId | None) -> Accepted | None:
        """Begin to ask for a check, None if the task can start without: once is enough for each task.

        Raises `PlanError` for a task that cannot be started.
        """
        state = session.state
        denied = state.config is not None and state.config.approvals.of(Permission.PLAN) is Approval.DENY
        task = await task_without_check(session, wanted)
        asked = state.planning.check_for if state.planning is not None else ""
        if task is None or denied or asked == task.id:
            return None
        self._task = task.id
        goal = "\n".join(filter(None, (task.description, task.goal, task.suggested_approach)))
        await session.record(PlanAsked(goal, VERSION, check_for=task.id))
        return Accepted(f"{task.id} has no check: the model proposes one first")

    def resumed(self, state: SessionState) -> Submission | None:
        """Return the start of the task after the decision about its check, None if the user stopped the question."""
        task, self._task = self._task, None
        planning = state.planning
        decision = planning.gate.decision if planning is not None and planning.check_for == task else None
        goes_on = decision is not None and decision.verdict is not Verdict.ABORT
        return submission(StartTask(task)) if task is not None and goes_on else None
