"""Context of a session: its ports, settings, recorder and publisher, the workspace that is open, and who is asked."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, aclosing

from msgspec.structs import replace

from agent_workbench.core.errors import ConfigError, ModelRefused, WorkspaceError
from agent_workbench.core.model import AnswerItem, ModelFacts, ModelRequest, Purpose
from agent_workbench.core.plan import Task
from agent_workbench.core.plan.estimates import Complexity
from agent_workbench.core.ports.model import EndpointModels, Model
from agent_workbench.core.ports.workspace import ReadableFiles, Sources, Workspace
from agent_workbench.core.proposals import USER
from agent_workbench.core.repo.workspace import WorkspaceRequest
from agent_workbench.core.settings import Settings
from agent_workbench.core.state.session_state import SessionState, TaskRun
from agent_workbench.engine.recorder import Record, Recorder
from agent_workbench.engine.runtime.background_holder import BackgroundHolder
from agent_workbench.engine.runtime.event_hooks import EventHooks
from agent_workbench.engine.runtime.file_names import FileNames
from agent_workbench.engine.runtime.publisher import OutputTail, UpdatePublisher, show_index
from agent_workbench.engine.runtime.stoppable import BackgroundTask, StoppableCall
from agent_workbench.engine.runtime.tool import Tools
from agent_workbench.engine.runtime.tool_context import Ports, ToolContext

OF_TASK = frozenset({Purpose.EXECUTOR, Purpose.REFLEXION, Purpose.SUMMARY})
"""Purposes whose answers serve the task at work: the others keep the model of the settings."""


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
