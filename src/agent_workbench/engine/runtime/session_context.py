"""Where a session's work is done: its ports, its recorder, what it shows, and the workspace that is open."""

import asyncio

from agent_workbench.core.errors import WorkspaceError
from agent_workbench.core.events import Event
from agent_workbench.core.live import Running
from agent_workbench.core.ports.workspace import Workspace
from agent_workbench.core.settings import Settings
from agent_workbench.core.state.session_state import SessionState, TaskRun
from agent_workbench.core.workspace import WorkspaceRequest
from agent_workbench.engine.recorder import Recorder
from agent_workbench.engine.runtime.background_task import BackgroundTask
from agent_workbench.engine.runtime.index_progress import show_index
from agent_workbench.engine.runtime.publisher import UpdatePublisher
from agent_workbench.engine.runtime.tool import Tools
from agent_workbench.engine.runtime.tool_context import Ports, ToolContext

TAIL_CHARS = 4_000


class SessionContext:
    """What the functions that carry out moves share."""

    def __init__(
        self, ports: Ports, settings: Settings, recorder: Recorder, publisher: UpdatePublisher, tools: Tools
    ) -> None:
        self.ports = ports
        self.settings = settings
        self.publisher = publisher
        self.tools = tools
        self._recorder = recorder
        self._workspace: Workspace | None = None
        # What is begun beside the moves wants the workspace too: opened twice, one of the two would never be let go.
        self._at_workspace = asyncio.Lock()
        self._watching = BackgroundTask()
        self.looking = BackgroundTask()

    @property
    def state(self) -> SessionState:
        """The session as it stands."""
        return self._recorder.state

    @property
    def run(self) -> TaskRun:
        """The run being worked on; raise `WorkspaceError` when there is none."""
        if self.state.run is None:
            raise WorkspaceError("no task is being worked on")
        return self.state.run

    async def record(self, event: Event, *, after: int | None = None) -> None:
        """Make an event part of the session; raise `Overtaken` where `after` is not the last event's number."""
        await self._recorder.record(event, after=after)

    async def take_workspace(self, request: WorkspaceRequest) -> Workspace:
        """Open a workspace in place of the one that is open."""
        await self.looking.stop()
        async with self._at_workspace:
            await self._let_go()
            return await self._open(request)

    async def workspace(self) -> Workspace:
        """Return the run's workspace, opened again if this process has not done so yet."""
        async with self._at_workspace:
            facts = self.run.workspace
            # A start that was given up has left that of another task.
            if self._workspace is not None and self._workspace.facts.branch != facts.branch:
                await self._let_go()
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

    async def _open(self, request: WorkspaceRequest) -> Workspace:
        self._workspace = await self.ports.workspaces.open(request)
        self.ports.retriever.prepare(self._workspace)
        await self._watching.start(show_index(self.publisher, self.ports.retriever, self._workspace))
        return self._workspace

    @property
    def _begins_fork(self) -> bool:
        """True while a fork stands at the checkpoint it was made with: then no worktree is missing."""
        state, checkpoint = self.state, self.run.checkpoint
        made_with = f"refs/agent/{state.session}/{state.parent_seq}"
        return bool(self.run.fork) and checkpoint is not None and checkpoint.ref == made_with

    async def release_workspace(self) -> None:
        """Give the open workspace back, if there is one."""
        await self.looking.stop()
        async with self._at_workspace:
            await self._let_go()

    async def _let_go(self) -> None:
        await self._watching.stop()
        if self._workspace is not None:
            workspace, self._workspace = self._workspace, None
            await workspace.release(keep=self.settings.workspace.keep)

    async def close(self) -> None:
        """Release workspace, index, tools and model; each is tried whatever became of the one before."""
        try:
            await self.release_workspace()
        finally:
            try:
                await self.ports.retriever.close()
            finally:
                try:
                    await self.tools.close()
                finally:
                    await self.ports.model.close()

    async def tool_context(self) -> ToolContext:
        """Return the context of a tool call made now."""
        return ToolContext(
            self.ports,
            self.settings,
            self.run.definition,
            await self.workspace(),
            self.state,
            self._output_shower(),
        )

    def _output_shower(self) -> "OutputTail":
        return OutputTail(self.publisher, self.ports)


class OutputTail:
    """Shows the tail of a command's output while it runs."""

    def __init__(self, publisher: UpdatePublisher, ports: Ports) -> None:
        self._publisher = publisher
        self._clock = ports.clock
        self._started = ports.clock.monotonic_seconds()
        self._tail = ""

    def __call__(self, text: str) -> None:
        """Take the next piece of output."""
        self._tail = (self._tail + text)[-TAIL_CHARS:]
        seconds = self._clock.monotonic_seconds() - self._started
        self._publisher.show_running(Running(self._publisher.live.activity, self._tail, seconds))
