"""Keyboard of a user who takes a task from its start to its merge, in front of the real screen."""

from collections.abc import Callable

from textual.pilot import Pilot

from agent_workbench.core.live import SessionUpdate
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.engine.flow import AwaitGo, Decide, Idle, next_move
from agent_workbench.engine.policy import ruling
from agent_workbench.tui.app import WorkbenchApp
from agent_workbench.tui.panes.diff_pane import DiffPane
from agent_workbench.tui.screens.plan_text import TaskDraftDialog
from agent_workbench.tui.screens.receipt import ReceiptScreen
from agent_workbench.tui.widgets.gate_bar import GateBar
from tests.fakes.scripted_session import FakeClock

START = SEND = "enter"
APPROVE = "a"
ROUNDS = 3_000


class Keyboard:
    """Presses the keys of a user who only starts, sends and approves. A key that scrolls is counted apart."""

    def __init__(self, app: WorkbenchApp, pilot: Pilot[SessionUpdate], clock: FakeClock) -> None:
        self.app, self._pilot, self._clock = app, pilot, clock
        self.pressed: list[str] = []
        self.scrolled = 0

    @property
    def state(self) -> SessionState:
        update = self.app.update_shown
        return update.state if update is not None else SessionState()

    @property
    def shown(self) -> str:
        """Text of the screen."""
        return "\n".join("".join(each.text for each in strip) for strip in self.app.screen._compositor.render_strips())

    @property
    def asks_to_send(self) -> bool:
        """True if the preview of a first prompt is shown in full."""
        screen = self.app.screen
        return isinstance(next_move(self.state), AwaitGo) and isinstance(screen, ReceiptScreen) and screen.ready_to_send

    async def until(self, holds: Callable[[], object]) -> None:
        for _ in range(ROUNDS):
            if holds():
                return
            await self._pilot.pause(0.02)
        raise AssertionError(f"never came; pressed {self.pressed}, state {next_move(self.state)}")

    async def press(self, key: str) -> None:
        """Press a key after a look at the screen, and wait until it had an effect."""
        await self._pilot.pause()
        self._clock.advance(1.0)
        before, seen = next_move(self.state), self._unseen

        async def pressed() -> bool:
            """Press it again where the test was quicker than the screen; the bar then says so."""
            if next_move(self.state) == before and self._unseen >= seen and self._too_quick:
                self._clock.advance(1.0)
                await self._pilot.press(key)
            return next_move(self.state) != before or self._unseen < seen

        await self._pilot.press(key)
        for _ in range(ROUNDS):
            if await pressed():
                break
            await self._pilot.pause(0.02)
        else:
            raise AssertionError(f"{key} did nothing after {self.pressed}: {before}")
        if next_move(self.state) == before:
            self.scrolled += 1
        else:
            self.pressed.append(key)

    async def say(self, words: str) -> None:
        """Say a task in words, and wait until it is shown as the task that they became."""
        await self.until(lambda: self.state.plan.next_task() is not None)
        await self._pilot.press(":", *words, "enter")
        await self.until(lambda: isinstance(self.app.screen, TaskDraftDialog))

    async def merge(self) -> list[str]:
        """Take the path from the start of the next task to its merge; return the keys that decided something."""
        self.pressed, self.scrolled = [], 0
        await self.until(lambda: self.state.plan.next_task() is not None)
        await self.go_on(lambda: self._merged)
        return self.pressed

    async def go_on(self, holds: Callable[[], object]) -> None:
        """Press what the screen asks for until something holds."""
        while not holds():
            await self.until(lambda: self._key() or holds())
            if not holds():
                await self.press(self._key())

    @property
    def _too_quick(self) -> bool:
        return "too quick" in self.app.workbench.query_one(GateBar).remark

    @property
    def _unseen(self) -> int:
        return self.app.workbench.query_one(DiffPane).unseen

    @property
    def _merged(self) -> bool:
        return bool(self.pressed) and self.state.run is not None and self.state.run.merged is not None

    def _key(self) -> str:
        """Return the key that the screen asks for now, empty while the workbench is at work."""
        match next_move(self.state):
            case Idle() if not self.pressed:
                return START
            case AwaitGo() if self.asks_to_send:
                return SEND
            case Decide(proposal=proposal) if ruling(self.state, proposal) is None:
                return APPROVE
            case _:
                return ""
