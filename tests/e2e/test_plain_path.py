"""The plain path of a task, from its start to the merge, in keys: real server, git and tests behind the real screen."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

from agent_workbench.adapters.demo.scripted_answers import SCRIPTS, T1_AT_ONCE, T1_FINISH, T1_READ
from agent_workbench.api.demo import write_demo
from agent_workbench.api.sessions.session_host import LocalSessionHost
from agent_workbench.core.invocation import Invocation
from agent_workbench.core.live import SessionUpdate
from agent_workbench.core.session_request import SessionRequest
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.engine.approval.policy import ruling
from agent_workbench.engine.flow import AwaitGo, Decide, Idle, next_move
from agent_workbench.tui.app import WorkbenchApp
from agent_workbench.tui.bars.gate_bar import GateBar
from agent_workbench.tui.environment import AppEnvironment
from agent_workbench.tui.panes.diff import DiffPane
from agent_workbench.tui.screens.receipt import ReceiptScreen
from tests.fakes.scripted_session import FakeClock
from tests.tui.driver import SMALL

MOST_KEYS = 6
START = SEND = "enter"
BASELINE = DIFF = COMMIT = MERGE = "a"
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

    async def merge(self) -> list[str]:
        """Take the path from the start of the next task to its merge; return the keys that decided something."""
        self.pressed, self.scrolled = [], 0
        await self.until(lambda: self.state.plan.next_task() is not None)
        while not self._merged:
            await self.until(lambda: self._key() or self._merged)
            if not self._merged:
                await self.press(self._key())
        return self.pressed

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
            case AwaitGo() if isinstance(self.app.screen, ReceiptScreen) and self.app.screen.ready_to_send:
                return "enter"
            case Decide(proposal=proposal) if ruling(self.state, proposal) is None:
                return "a"
            case _:
                return ""


@pytest.mark.parametrize("size", [SMALL, (120, 40)])
async def test_the_plain_path_from_start_to_merge_takes_few_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    for name in ("HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    monkeypatch.setitem(SCRIPTS, "T-1", (T1_READ, T1_AT_ONCE, T1_FINISH))
    repo, clock = tmp_path / "shop", FakeClock()
    host = LocalSessionHost(await write_demo(repo, Invocation(repo, {**os.environ}, {}, unconfined=True)))
    app = WorkbenchApp(host, SessionRequest(), clock=clock, first_run=False, environment=AppEnvironment(None))
    async with app.run_test(size=size) as pilot:
        keyboard = Keyboard(app, pilot, clock)
        assert await keyboard.merge() == [START, BASELINE, SEND, DIFF, COMMIT, MERGE]
        assert keyboard.scrolled == 0, "commit and merge are on one screen"
        # The second task's diff is longer than the screen, and all of it has to be seen.
        assert len(await keyboard.merge()) <= MOST_KEYS
        assert keyboard.scrolled > 0
        await app.leave("done")
    await host.join()
