"""Publisher of session updates and of progress: the engine writes them and cannot read them back."""

import asyncio
from collections.abc import Callable

from msgspec.structs import replace

from agent_workbench.core.consult_requests import EndpointTier
from agent_workbench.core.database_report import Backlog
from agent_workbench.core.ids import TaskId
from agent_workbench.core.live import (
    Consulting,
    Followed,
    LeftRunning,
    Live,
    Notice,
    PreflightQuestion,
    ReplayPosition,
    Running,
    SessionUpdate,
    Streaming,
)
from agent_workbench.core.ports.machine import Clock
from agent_workbench.core.ports.search import Retriever
from agent_workbench.core.ports.workspace import Sources
from agent_workbench.core.repo.retrieval import IndexStatus
from agent_workbench.core.settings import UiSettings
from agent_workbench.core.state.session_state import SessionState

KEPT_NOTICES = 50
"""Notices that an update carries, so that a reader who misses updates shows every one of them."""

Publish = Callable[[SessionUpdate], None]

TICK_SECONDS = 1.0
TAIL_CHARS = 4_000
BUSY_SECONDS = 0.25
# Vectors follow the files, and other sessions may drop them.
COMPLETE_SECONDS = 2.0


class UpdatePublisher:
    """Hands each update of a session to `publish`. What the engine acts on is in the journal or in its arguments."""

    def __init__(self, publish: Publish, state: SessionState | None = None) -> None:
        self._publish = publish
        self._update = SessionUpdate(state if state is not None else SessionState())
        self._notices = 0
        self._held = ""
        self._told_once: set[str] = set()

    def show_state(self, state: SessionState) -> None:
        """Publish a new state."""
        self._update = replace(self._update, state=state)
        self._publish(self._update)

    def show_activity(self, activity: str) -> None:
        """Publish in one line what is being done; an empty line clears it and all that streams."""
        self._show(activity=activity, seconds=0.0, quiet_seconds=0.0, streaming=None, running=None)

    def hold_activity(self) -> None:
        """Keep the line about what is being done, while something beside it has a line of its own."""
        self._held = self._update.live.activity

    def show_held_activity(self) -> None:
        """Publish the line again that was kept."""
        self.show_activity(self._held)

    def pass_time(self, seconds: float) -> None:
        """Publish that this much time passed; while nothing is being done there is nothing to publish."""
        live = self._update.live
        if live.activity:
            now = live.seconds + seconds
            running = replace(live.running, seconds=now) if live.running is not None else None
            self._show(seconds=now, quiet_seconds=live.quiet_seconds + seconds, running=running)

    def show_waits(self) -> None:
        """Publish that the session does nothing until an intent comes."""
        self._show(waits=True)

    def stop_waiting(self) -> None:
        """Note that an intent came. The next update says so: what comes of the intent is published once, recorded."""
        self._update = replace(self._update, live=replace(self._update.live, waits=False))

    def show_backlog(self, backlog: Backlog) -> None:
        """Publish what other machines cannot read of the session yet."""
        before = self._update.live.backlog
        if backlog == before:
            return
        self._show(backlog=backlog)
        if backlog.cause and backlog.cause != before.cause:
            self.notify(f"events are not copied to the database: {backlog.cause}")

    def show_streaming(self, streaming: Streaming) -> None:
        """Publish an answer as far as it has come."""
        self._show(streaming=streaming, quiet_seconds=0.0)

    def show_consulting(self, consulting: Consulting | None) -> None:
        """Publish a consultation as far as it has come; None when it has ended."""
        self._show(consulting=consulting)

    def show_output(self, tail: str, seconds: float) -> None:
        """Publish the end of a running command's output and how long it has run."""
        self._show(running=Running(self._update.live.activity, tail, seconds), quiet_seconds=0.0)

    def show_left_running(self, left: LeftRunning | None) -> None:
        """Publish the command that is left running, as far as it has come; None when there is none."""
        if left != self._update.live.left_running:
            self._show(left_running=left)

    def show_index(self, index: IndexStatus | None) -> None:
        """Publish the progress of the index of the open workspace, if it changed."""
        if index != self._update.live.index:
            self._show(index=index)

    def show_model_wait(self) -> None:
        """Publish that a model is still to become ready in this process."""
        self._show(awaits_model=True)

    def show_model_ready(self, tier: EndpointTier) -> None:
        """Publish that a model is ready, at an endpoint of this kind."""
        if self._update.live.awaits_model or tier is not self._update.live.tier:
            self._show(awaits_model=False, tier=tier)

    def show_taken(self, taken: tuple[TaskId, ...]) -> None:
        """Publish which tasks other sessions work on, if that changed."""
        if taken != self._update.live.taken:
            self._show(taken=taken)

    def show_plan_problem(self, problem: str) -> None:
        """Publish why the plan cannot be read (empty: it can), if that changed."""
        if problem != self._update.live.no_plan:
            self._show(no_plan=problem)

    def show_question(self, question: PreflightQuestion | None) -> None:
        """Publish the question to settle before the session opens; None when it is settled."""
        self._show(activity="", question=question)

    def show_replay(self, position: ReplayPosition) -> None:
        """Publish the position of a replay, in which nothing can be decided."""
        self._show(replay=position, decidable=False)

    def show_followed(self, followed: Followed) -> None:
        """Publish who works on the session instead of this process, if that changed."""
        if followed != self._update.live.followed:
            self._show(followed=followed, decidable=False)

    def show_ui(self, ui: UiSettings) -> None:
        """Publish the user's settings of the screen."""
        self._show(ui=ui)

    def notify(self, text: str) -> None:
        """Tell the user something once."""
        self._notices += 1
        kept = (*self._update.live.notices, Notice(self._notices, text))
        self._show(notices=kept[-KEPT_NOTICES:])

    def notify_once(self, text: str) -> None:
        """Tell the user something that was not told in this session yet."""
        if text not in self._told_once:
            self._told_once.add(text)
            self.notify(text)

    def end(self, farewell: str) -> None:
        """Publish the last update."""
        self._update = replace(self._update, ended=True, farewell=farewell)
        self._publish(self._update)

    def _show(self, **changes: object) -> None:
        live: Live = replace(self._update.live, **changes)
        self._update = replace(self._update, live=live)
        self._publish(self._update)


async def show_time(publisher: UpdatePublisher, clock: Clock, backlog: Callable[[], Backlog]) -> None:
    """Publish how long the activity takes, and how far copies are behind, until cancelled."""
    before = clock.monotonic_seconds()
    while True:
        await asyncio.sleep(TICK_SECONDS)
        now = clock.monotonic_seconds()
        publisher.pass_time(now - before)
        publisher.show_backlog(backlog())
        before = now


class OutputTail:
    """Takes the output of one tool call; `text` is its end so far."""

    def __init__(self, publisher: UpdatePublisher, clock: Clock) -> None:
        self.text = ""
        self._publisher = publisher
        self._clock = clock
        self._started = clock.monotonic_seconds()

    def __call__(self, text: str) -> None:
        """Take the next piece of output."""
        self.text = (self.text + text)[-TAIL_CHARS:]
        seconds = self._clock.monotonic_seconds() - self._started
        self._publisher.show_output(self.text, seconds)


async def show_index(publisher: UpdatePublisher, retriever: Retriever, sources: Sources) -> None:
    """Publish the status of the index until cancelled, then that there is none."""
    try:
        while True:
            status = retriever.status(sources)
            publisher.show_index(status)
            await asyncio.sleep(COMPLETE_SECONDS if status.complete and status.files else BUSY_SECONDS)
    finally:
        publisher.show_index(None)
