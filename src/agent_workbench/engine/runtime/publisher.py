"""What is shown: the newest state with the moment, for any number of readers; older news are passed over."""

import asyncio
from collections.abc import AsyncIterator

from msgspec.structs import replace

from agent_workbench.core.history.past_actions import PastActions
from agent_workbench.core.ids import TaskId
from agent_workbench.core.live import (
    FoundCode,
    Live,
    OpenedFile,
    PastShown,
    PlanAnswer,
    Running,
    SessionUpdate,
    Streaming,
)
from agent_workbench.core.plan_text import PlanPiece
from agent_workbench.core.retrieval import Chunk, IndexStatus
from agent_workbench.core.settings import Permission, UiSettings
from agent_workbench.core.state.session_state import SessionState


class UpdatePublisher:
    """Publishes updates; a reader that is slow sees the newest only."""

    def __init__(self, state: SessionState) -> None:
        self._update = SessionUpdate(state)
        self._number = 0
        self._news = asyncio.Event()

    @property
    def live(self) -> Live:
        """The moment as it was published last."""
        return self._update.live

    def show_state(self, state: SessionState) -> None:
        """Publish a new state."""
        self._publish(replace(self._update, state=state))

    def show_activity(self, activity: str) -> None:
        """Say in one line what is being done; empty clears it and all that streams."""
        self._publish(replace(self._update, live=replace(self.live, activity=activity, streaming=None, running=None)))

    def show_streaming(self, streaming: Streaming) -> None:
        """Publish an answer as far as it has come."""
        self._publish(replace(self._update, live=replace(self.live, streaming=streaming)))

    def show_running(self, running: Running) -> None:
        """Publish a command's output as far as it has come."""
        self._publish(replace(self._update, live=replace(self.live, running=running)))

    def show_index(self, index: IndexStatus | None) -> None:
        """Say how far the index of the open workspace is, if that is news."""
        if index != self.live.index:
            self._publish(replace(self._update, live=replace(self.live, index=index)))

    def show_taken(self, taken: tuple[TaskId, ...]) -> None:
        """Say which tasks other sessions are at, if that is news."""
        if taken != self.live.taken:
            self._publish(replace(self._update, live=replace(self.live, taken=taken)))

    def show_found(self, asked: str, chunks: tuple[Chunk, ...]) -> None:
        """Publish what was found for the user."""
        number = _next_number(self.live.found)
        self._publish(replace(self._update, live=replace(self.live, found=FoundCode(asked, chunks, number))))

    def show_plan(self, piece: PlanPiece | None, fault: str = "") -> None:
        """Answer what the user wanted of the plan's text."""
        number = _next_number(self.live.plan)
        self._publish(replace(self._update, live=replace(self.live, plan=PlanAnswer(piece, number, fault))))

    def show_file(self, path: str, line: int, text: str) -> None:
        """Publish a file that the user wanted to see."""
        number = _next_number(self.live.opened)
        self._publish(replace(self._update, live=replace(self.live, opened=OpenedFile(path, line, text, number))))

    def show_past(self, kind: Permission, past: PastActions) -> None:
        """Publish past actions that the user wanted to see."""
        number = _next_number(self.live.past)
        self._publish(replace(self._update, live=replace(self.live, past=PastShown(kind, past, number))))

    def show_live(self, live: Live) -> None:
        """Publish another moment as a whole."""
        self._publish(replace(self._update, live=live))

    def show_ui(self, ui: UiSettings) -> None:
        """Say how the user wants the screen."""
        self._publish(replace(self._update, live=replace(self.live, ui=ui)))

    def notify(self, notice: str) -> None:
        """Tell the user something once."""
        number = self.live.notice_number + 1
        self._publish(replace(self._update, live=replace(self.live, notice=notice, notice_number=number)))

    def end(self, farewell: str) -> None:
        """Publish the last update."""
        self._publish(replace(self._update, ended=True, farewell=farewell))

    async def updates(self) -> AsyncIterator[SessionUpdate]:
        """Yield the newest update, then each newer one; ends after the last."""
        seen = -1
        while True:
            if seen != self._number:
                seen, update = self._number, self._update
                yield update
                if update.ended:
                    return
            else:
                await self._news.wait()

    def _publish(self, update: SessionUpdate) -> None:
        self._update = update
        self._number += 1
        self._news.set()
        self._news = asyncio.Event()


def _next_number(shown: FoundCode | PlanAnswer | OpenedFile | PastShown | None) -> int:
    """Return the number of the next answer: one like the one before is news too."""
    return shown.number + 1 if shown is not None else 1
