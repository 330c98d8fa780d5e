"""Context of a session: ports, settings, recorder, publisher, the open workspace, and hooks that are told of events."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.background import in_background
from agent_workbench.core.errors import ConfigError, ModelRefused, WorkbenchError, WorkspaceError, error_text
from agent_workbench.core.events import Event, HookAnswered, HookStarted
from agent_workbench.core.hook_answers import as_notice
from agent_workbench.core.hook_document import (
    HookDocument,
    event_document,
    point_of_event,
    proposal_document,
)
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.model import AnswerItem, ModelFacts, ModelRequest, Purpose
from agent_workbench.core.plan import Task
from agent_workbench.core.ports.extensions import Hooks
from agent_workbench.core.ports.machine import Clock
from agent_workbench.core.ports.model import EndpointModels, Model
from agent_workbench.core.ports.workspace import ReadableFiles, Sources, Workspace
from agent_workbench.core.proposals import USER, Proposal
from agent_workbench.core.repo.workspace import WorkspaceRequest
from agent_workbench.core.settings import Settings
from agent_workbench.core.settings.extensions import HookPoint, HookSettings
from agent_workbench.core.state.proposal_hooks import began
from agent_workbench.core.state.session_state import SessionState, TaskRun
from agent_workbench.core.task_estimates import Complexity
from agent_workbench.engine.recorder import Record, Recorder
from agent_workbench.engine.runtime.background_holder import BackgroundHolder
from agent_workbench.engine.runtime.publisher import OutputTail, UpdatePublisher, show_index
from agent_workbench.engine.runtime.stoppable import BackgroundTask, StoppableCall
from agent_workbench.engine.runtime.tool import Tools
from agent_workbench.engine.runtime.tool_context import Ports, ToolContext

OF_TASK = frozenset({Purpose.EXECUTOR, Purpose.REFLEXION, Purpose.SUMMARY})
"""Purposes whose answers serve the task at work: the others keep the model of the settings."""

MAX_QUEUED = 100
_ROOM_SECONDS = 1.0
"""Time beyond a hook's own limit in which its process ends."""

FRESH_SECONDS = 10.0


class SessionContext:
    """Ports, recorder and settings that the functions of the engine share in one session."""

    def __init__(
        self, ports: Ports, settings: Settings, recorder: Recorder, publisher: UpdatePublisher, tools: Tools
    ) -> None:
        self.ports = replace(ports, model=TaskModel(ports.model, ports.endpoints, lambda: self.state))
        self.settings = settings
        self.publisher = publisher
        self.tools = tools
        self.person = USER
        """The `by` of the decisions of whoever attends the session."""
        self._recorder = recorder
        self._workspace: Workspace | None = None
        # Background tasks use the workspace too. Opened twice at once, one of the two would never be released.
        self._workspace_lock = asyncio.Lock()
        self._index_progress = BackgroundTask()
        self.lookup = BackgroundTask()
        self.consultation = BackgroundTask()
        self.model_loading = BackgroundTask()
        self.file_names = FileNames(ports.clock)
        self.stoppable = StoppableCall()
        self.background = BackgroundHolder(publisher)
        self.ending = asyncio.Event()
        """Set when an unattended session is to end before its next move."""
        self.hooks = EventHooks(ports.hooks, dict(settings.hooks), publisher, self.record)
        recorder.listeners.append(lambda recorded: self.hooks.tell(recorded.event, self.state))

    @property
    def state(self) -> SessionState:
        """The state after the last event."""
        return self._recorder.state

    @property
    def record(self) -> Record:
        """Record an event: `Recorder.record`."""
        return self._recorder.record

    @property
    def run(self) -> TaskRun:
        """The run being worked on; raise `WorkspaceError` when there is none."""
        if self.state.run is None:
            raise WorkspaceError("no task is being worked on")
        return self.state.run

    async def take_workspace(self, request: WorkspaceRequest) -> Workspace:
        """Open another workspace; the one that is open is released first."""
        await self.lookup.stop()
        async with self._workspace_lock:
            await self._release()
            return await self._open(request)

    async def workspace(self) -> Workspace:
        """Return the run's workspace, opened again if this process has not done so yet."""
        async with self._workspace_lock:
            facts = self.run.workspace
            # A cancelled start leaves the workspace of its task open.
            if self._workspace is not None and self._workspace.facts.branch != facts.branch:
                await self._release()
            if self._workspace is not None:
                return self._workspace
            opened = await self._open(
                WorkspaceRequest(
                    self.state.session, self.run.task, facts.branch, facts.base, self.settings.workspace.link
                )
            )
            if opened.facts.rebuilt and not self._begins_fork:
                self.publisher.notify(
                    f"the worktree of {self.run.task} was not there; it was made as it was recorded last"
                )
            return opened

    async def sources(self) -> Sources:
        """Return the files that the user sees: the workspace of the task, or their checkout if there is no task."""
        return await self.workspace() if self.state.unfinished else await self.ports.workspaces.checkout_files()

    async def _open(self, request: WorkspaceRequest) -> Workspace:
        self._workspace = await self.ports.workspaces.open(request)
        self.ports.retriever.prepare(self._workspace)
        await self._index_progress.start(show_index(self.publisher, self.ports.retriever, self._workspace))
        return self._workspace

    @property
    def _begins_fork(self) -> bool:
        """True while a fork is at the checkpoint it was made from: its worktree never existed."""
        state, checkpoint = self.state, self.run.checkpoint
        made_with = f"refs/agent/{state.session}/{state.parent_seq}"
        return bool(self.run.fork) and checkpoint is not None and checkpoint.ref == made_with

    async def release_workspace(self) -> None:
        """Release the open workspace, if there is one."""
        await self.lookup.stop()
        async with self._workspace_lock:
            await self._release()

    async def _release(self) -> None:
        await self._index_progress.stop()
        await self.background.stop()
        if self._workspace is not None:
            workspace, self._workspace = self._workspace, None
            await workspace.release(keep=self.settings.workspace.keep)

    async def stop_background(self) -> None:
        """Stop the consultation, the loading of a model, the hooks and the command that run beside the session."""
        await asyncio.gather(
            self.consultation.stop(), self.model_loading.stop(), self.hooks.stop(), self.background.stop()
        )

    async def close(self) -> None:
        """Release workspace, index, tools, notes and model; an error in one does not keep the others open."""
        ports = self.ports
        async with AsyncExitStack() as closing:
            for held in (ports.model, ports.endpoints, ports.knowledge, self.tools, ports.retriever):
                closing.push_async_callback(held.close)
            if ports.playbooks is not None:
                closing.push_async_callback(ports.playbooks.close)
            if ports.language_servers is not None:
                closing.push_async_callback(ports.language_servers.close)
            closing.push_async_callback(self.release_workspace)
            closing.push_async_callback(self.file_names.close)
            closing.push_async_callback(self.stop_background)

    async def tool_context(self) -> ToolContext:
        """Return the context of a tool call made now."""
        workspace = await self.workspace()
        return self.context_of(self.run.definition, workspace, workspace)

    def context_of(self, task: Task, files: ReadableFiles, workspace: Workspace | None = None) -> ToolContext:
        """Return the context of a call that reads `files`, and may change those of `workspace` (None: nothing)."""
        return ToolContext(
            self.ports,
            self.settings,
            task,
            files,
            self.state,
            OutputTail(self.publisher, self.ports.clock),
            self.stoppable,
            self.background,
            self.record,
            lambda: self.state,
            workspace,
        )


class TaskModel:
    """Implements `core.ports.model.Model`; `state` returns the state, which says what the task was switched to.

    `settled` is the model of the settings, `endpoints` has the others, and is closed by its owner.
    """

    def __init__(self, settled: Model, endpoints: EndpointModels, state: Callable[[], SessionState]) -> None:
        self._settled = settled
        self._endpoints = endpoints
        self._state = state

    async def observe(
        self, purpose: Purpose = Purpose.EXECUTOR, complexity: Complexity = Complexity.SIMPLE
    ) -> ModelFacts:
        """Return the facts of the model that answers for `purpose`; raise `ModelError`."""
        asked = await self._for(purpose)
        if asked is self._settled:
            return await asked.observe(purpose, complexity)
        # A model that was chosen is alone: it answers for every purpose, however complex the task is.
        return await asked.observe()

    async def answer(self, request: ModelRequest) -> AsyncGenerator[AnswerItem]:
        """Stream an answer; raise `ModelError`."""
        asked = await self._for(request.purpose)
        async with aclosing(asked.answer(request)) as items:
            async for item in items:
                yield item

    async def count_tokens(self, texts: Sequence[str], purpose: Purpose = Purpose.EXECUTOR) -> tuple[int, ...]:
        """Return the tokens of each text for the model that answers for `purpose`."""
        return await (await self._for(purpose)).count_tokens(texts, purpose)

    async def close(self) -> None:
        """Close the model of the settings."""
        await self._settled.close()

    async def _for(self, purpose: Purpose) -> Model:
        """Return the model to ask; raise `ModelRefused` if its endpoint is no longer in the settings."""
        switched = self._state().switched
        if switched is None or purpose not in OF_TASK:
            return self._settled
        try:
            return await self._endpoints.named(switched.endpoint, switched.model)
        except ConfigError as error:
            raise ModelRefused(
                f"the task was switched to {switched.model}, and {error}",
                advice="switch it back to the model of the settings (O, then b), or name the endpoint again",
            ) from error


class _Call(Struct, frozen=True):
    """An event for one hook."""

    point: HookPoint
    document: HookDocument
    proposal: ProposalId


class EventHooks:
    """Runs the hooks of one session. No event waits for them, and none of their failures is one of the session."""

    def __init__(
        self,
        hooks: Hooks,
        settings: Mapping[str, HookSettings],
        publisher: UpdatePublisher,
        record: Callable[[Event], Awaitable[object]],
    ) -> None:
        self._hooks = hooks
        self._settings = settings
        self._publisher = publisher
        self._record = record
        self._told: Proposal | None = None
        self._queues: dict[str, asyncio.Queue[_Call]] = {}
        self._working: dict[str, asyncio.Task[None]] = {}

    def tell(self, event: Event, state: SessionState) -> None:
        """Tell the hooks of an event that was recorded; `state` is the one after it."""
        point = point_of_event(event) if self._settings else None
        if point is not None:
            for name in self._named(point):
                self._queue(name, _Call(point, event_document(state, point, name, event), ProposalId("")))

    def tell_waiting(self, proposal: Proposal, state: SessionState) -> None:
        """Tell the hooks that a proposal waits for a person: once for each content of it."""
        point = HookPoint.WAITS_FOR_PERSON
        if proposal is self._told:
            return
        self._told = proposal
        for name in self._named(point):
            if not began(state, proposal, name, point):
                self._queue(name, _Call(point, proposal_document(state, point, name, proposal), proposal.id))

    async def finish(self) -> None:
        """Wait for what is queued, for each hook at most as long as one run of it may take."""
        waits = [asyncio.create_task(self._finish(name)) for name in self._working]
        await asyncio.gather(*waits)

    async def stop(self) -> None:
        """Stop what runs; nothing that is queued runs any more."""
        working, self._working = self._working, {}
        self._queues.clear()
        for task in working.values():
            task.cancel()
        if working:
            await asyncio.wait(working.values())

    def _named(self, point: HookPoint) -> list[str]:
        return [name for name, hook in self._settings.items() if point in hook.events]

    def _queue(self, name: str, call: _Call) -> None:
        queue = self._queues.setdefault(name, asyncio.Queue(MAX_QUEUED))
        try:
            queue.put_nowait(call)
        except asyncio.QueueFull:
            self._publisher.notify(f"hook {name} was not told of {call.point}: {MAX_QUEUED} events wait for it")
            return
        if name not in self._working:
            self._working[name] = in_background(self._work(name, queue))

    async def _work(self, name: str, queue: "asyncio.Queue[_Call]") -> None:
        while True:
            call = await queue.get()
            try:
                await self._run(name, call)
            except WorkbenchError as error:  # of the journal, which also stops the session itself
                self._publisher.notify(f"hook {name} at {call.point}: {error_text(error)}")
            finally:
                queue.task_done()

    async def _run(self, name: str, call: _Call) -> None:
        await self._record(HookStarted(name, call.point, call.proposal))
        outcome = await self._hooks.run(name, call.point, call.document.text, call.document.workspace)
        answer = as_notice(outcome)
        if answer.failed:
            self._publisher.notify(f"hook {name} failed at {call.point}: {answer.reason}")
        seconds = round(outcome.seconds, 3)
        await self._record(
            HookAnswered(name, call.point, answer.verdict, call.proposal, answer.reason, seconds, answer.failed)
        )

    async def _finish(self, name: str) -> None:
        done = asyncio.create_task(self._queues[name].join())
        await asyncio.wait({done}, timeout=self._settings[name].timeout_seconds + _ROOM_SECONDS)
        if not done.done():
            done.cancel()
            self._publisher.notify(f"hook {name} was stopped: it had not ended with the session")


class FileNames:
    """Keeps the names of the files of one folder at a time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._root = ""
        self._since = 0.0
        self._listing: asyncio.Task[tuple[str, ...]] | None = None

    async def of(self, sources: Sources) -> tuple[str, ...]:
        """Return the files of a folder as `Sources.list_files` does; a question that is cancelled keeps the listing."""
        now = self._clock.monotonic_seconds()
        if self._listing is None or self._root != sources.root or now - self._since > FRESH_SECONDS:
            await self.close()
            self._root, self._since = sources.root, now
            self._listing = asyncio.create_task(_listed(sources))
        listing = self._listing
        try:
            return await asyncio.shield(listing)
        except WorkbenchError:
            self._listing = None
            raise

    async def close(self) -> None:
        """Cancel the listing that runs."""
        if self._listing is not None:
            self._listing.cancel()
            await asyncio.gather(self._listing, return_exceptions=True)
            self._listing = None


async def _listed(sources: Sources) -> tuple[str, ...]:
    return await sources.list_files()
