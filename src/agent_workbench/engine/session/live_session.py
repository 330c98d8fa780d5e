"""A live session: takes intents, lets the executor move, waits at gates, and ends cleanly whatever happens."""

import asyncio
from collections.abc import AsyncIterator, Coroutine

from msgspec.structs import replace

from agent_workbench.core.background import in_background
from agent_workbench.core.errors import StorageError, WorkbenchError
from agent_workbench.core.events import SessionLeft
from agent_workbench.core.intents import AbortTask, Intent, Leave, MergeTask, StartTask, UndoStep
from agent_workbench.core.live import SessionUpdate
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.settings import Permission
from agent_workbench.core.state.session_state import Phase
from agent_workbench.engine.answer.model_request import observe_model
from agent_workbench.engine.approval.policy import ruling
from agent_workbench.engine.approval.proposals import decide, propose_merge, spoken
from agent_workbench.engine.executor import perform
from agent_workbench.engine.flow import AwaitGo, AwaitRetry, Carry, Close, Decide, Idle, Move, next_move
from agent_workbench.engine.recorder import Recorder
from agent_workbench.engine.runtime.session_context import SessionContext
from agent_workbench.engine.runtime.tool import REFUSALS
from agent_workbench.engine.runtime.uninterrupted import uninterrupted
from agent_workbench.engine.session.intents import handle
from agent_workbench.engine.session.trouble import trouble_event
from agent_workbench.engine.task.task_start import find_taken_tasks, read_again, start_task
from agent_workbench.engine.task.undo import why_not_undo


class LiveSession:
    """Implements `core.ports.Session` over a desk; `run()` is its life and must be awaited by whoever starts it."""

    def __init__(self, session: SessionContext, recorder: Recorder) -> None:
        self._desk = session
        self._recorder = recorder
        self._intents: asyncio.Queue[Intent] = asyncio.Queue()
        self._leaving = ""
        self._starting = False
        self._warming: asyncio.Task[None] | None = None

    async def submit(self, intent: Intent) -> None:
        """Put an intent in line; what came of it shows in the updates."""
        await self._intents.put(intent)

    def updates(self) -> AsyncIterator[SessionUpdate]:
        """Yield the newest update whenever there is one."""
        return self._desk.publisher.updates()

    async def run(self) -> None:
        """Live until the user leaves; the journal, the workspace and the model are closed however it ends."""
        farewell = "the session ended unexpectedly"
        try:
            await self._begin()
            while not self._leaving:
                await self._advance()
            farewell = self._farewell()
        except WorkbenchError as error:
            farewell = f"{spoken(error)}\n{self._farewell()}"
        finally:
            await self._end(farewell)

    async def _begin(self) -> None:
        self._desk.publisher.show_activity("")
        self._warming = in_background(self._warm_up())
        try:
            await read_again(self._desk)
        except WorkbenchError as error:
            self._desk.publisher.notify(spoken(error))
            if not self._desk.state.plan_path:
                self._desk.publisher.show_live(replace(self._desk.publisher.live, no_plan=spoken(error)))

    async def _warm_up(self) -> None:
        """Make the model ready behind the first screen, so that the first step need not wait for it."""
        try:
            await observe_model(self._desk)
        except WorkbenchError as error:
            self._desk.publisher.notify(spoken(error))
        if not self._desk.state.unfinished:
            self._desk.publisher.show_activity("")

    async def _advance(self) -> None:
        move = next_move(self._desk.state)
        if isinstance(move, Idle):
            intent = await self._intents.get()
            if isinstance(intent, StartTask):
                await self._listen_during(self._start(intent), stopped_by=(Leave, AbortTask))
            else:
                await self._take(intent)
        elif isinstance(move, AwaitRetry | AwaitGo):
            await self._take(await self._intents.get())
        elif isinstance(move, Decide):
            verdict = ruling(self._desk.state, move.proposal)
            if verdict is None:
                await self._take(await self._intents.get())
            else:
                await decide(self._desk, move.proposal, verdict.verdict, verdict.by, verdict.reason)
        else:
            await self._do(move)

    async def _do(self, move: Move) -> None:
        """Make a move that waits for nobody; the user may stop it, as far as it can be given up halfway."""
        doing = self._guarded(move)
        if isinstance(move, Carry) and move.proposal.kind is Permission.MERGE:
            await self._listen_during(uninterrupted(doing), stopped_by=())
            return
        # What a task's end writes down is not to be given up halfway.
        stopped_by = (Leave,) if isinstance(move, Close) else (Leave, AbortTask, UndoStep)
        await self._listen_during(doing, stopped_by)

    async def _listen_during(self, doing: Coroutine[None, None, None], stopped_by: tuple[type[Intent], ...]) -> None:
        """Do something while listening: the user may leave, abort, undo, or write in the scratchpad meanwhile."""
        work = asyncio.create_task(doing)
        try:
            while not work.done():
                listening = asyncio.create_task(self._intents.get())
                await asyncio.wait({work, listening}, return_when=asyncio.FIRST_COMPLETED)
                if not listening.done():
                    listening.cancel()
                    await asyncio.gather(listening, return_exceptions=True)
                    continue
                intent = listening.result()
                if isinstance(intent, stopped_by) and not self._is_vain(intent):
                    work.cancel()
                    await asyncio.gather(work, return_exceptions=True)
                await self._take(intent)
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
        if not work.cancelled():
            work.result()

    def _is_vain(self, intent: Intent) -> bool:
        """Return whether it is an undo that cannot be: nothing is stopped for it."""
        return isinstance(intent, UndoStep) and bool(why_not_undo(self._desk.state, intent.proposal))

    async def _start(self, intent: StartTask) -> None:
        self._starting = True
        try:
            await start_task(self._desk, intent.task)
        except WorkbenchError as error:
            self._desk.publisher.notify(spoken(error))
        finally:
            self._starting = False
            self._desk.publisher.show_activity("")

    async def _guarded(self, move: Move) -> None:
        try:
            await perform(self._desk, move)
        except StorageError as error:
            # The journal itself may be what cannot be written: the trouble is shown, and recorded if it can be.
            self._desk.publisher.notify(spoken(error))
            await self._desk.record(trouble_event(move, error))
        except WorkbenchError as error:
            await self._desk.record(trouble_event(move, error))
        if isinstance(move, Close):
            await self._see_taken()
            await self._offer_merge()

    async def _see_taken(self) -> None:
        try:
            await find_taken_tasks(self._desk, self._desk.state.plan)
        except WorkbenchError as error:
            self._desk.publisher.notify(spoken(error))

    async def _offer_merge(self) -> None:
        run = self._desk.run
        headless = self._desk.state.config is not None and self._desk.state.config.headless
        if run.phase is not Phase.OVER or run.status is not TaskStatus.DONE or run.commit is None or headless:
            return
        try:
            await propose_merge(self._desk)
        except REFUSALS as refusal:
            self._desk.publisher.notify(spoken(refusal))

    async def _take(self, intent: Intent) -> None:
        try:
            await self._handle(intent)
        except WorkbenchError as error:
            self._desk.publisher.show_activity("")
            self._desk.publisher.notify(spoken(error))

    async def _handle(self, intent: Intent) -> None:
        match intent:
            case StartTask():
                self._desk.publisher.notify("a task is being worked on; finish or abort it first")
            case MergeTask() if self._starting:
                # It would be proposed in the run that begins.
                self._desk.publisher.notify(f"a task is being started; merge with `agent merge {intent.task}`")
            case Leave():
                self._leaving = intent.reason
            case _:
                await handle(self._desk, intent)

    def _farewell(self) -> str:
        state = self._desk.state
        if state.unfinished:
            return f"session {state.session} is kept; `agent tui` takes it up again"
        return f"session {state.session} is kept; `agent replay {state.session}` shows it"

    async def _end(self, farewell: str) -> None:
        session = self._desk
        if self._warming is not None:
            self._warming.cancel()
            await asyncio.gather(self._warming, return_exceptions=True)
        try:
            await session.record(SessionLeft(self._leaving or "ended"))
        except WorkbenchError as error:
            farewell = f"{farewell}\n{spoken(error)}"
        finally:
            try:
                await session.close()
            finally:
                try:
                    await self._recorder.close()
                finally:
                    session.publisher.end(farewell)
