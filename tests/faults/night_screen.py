"""A person who decides in the inbox of the screen, in front of the real session host."""

import asyncio
import os
from unittest.mock import patch

from agent_workbench.api.sessions.session_host import LocalSessionHost
from agent_workbench.core.session_request import Invocation, SessionRequest
from agent_workbench.subjects.inbox.screen import InboxList
from agent_workbench.tui.app import WorkbenchApp
from agent_workbench.tui.session.window import AppEnvironment
from tests.e2e.keyboard import APPROVE, Keyboard
from tests.e2e.machine import Machine
from tests.fakes.scripted_session import FakeClock
from tests.faults.night_scene import Scene

MOST_LOOKS = 100
LOOK_SECONDS = 0.05


def approve_on_screen(machine: Machine, scene: Scene, *tasks: str) -> None:
    """Open the inbox, and approve what waits of these tasks with the keys of the gate."""
    with patch.dict(os.environ, machine.environ):
        asyncio.run(_approve(Invocation(scene.repo, {**os.environ}, {}), tasks))


async def _approve(invocation: Invocation, tasks: tuple[str, ...]) -> None:
    host, clock = LocalSessionHost(invocation), FakeClock()
    request = SessionRequest(preflight=False)
    app = WorkbenchApp(host, request, clock=clock, first_run=False, environment=AppEnvironment(None))
    async with app.run_test(size=(120, 40)) as pilot:
        keyboard = Keyboard(app, pilot, clock)
        await keyboard.until(lambda: app.update_shown is not None)
        for task in tasks:
            await pilot.press("I")
            await keyboard.until(lambda task=task: task in keyboard.shown)  # type: ignore[misc]
            for _ in range(MOST_LOOKS):
                row = app.screen.query_one(InboxList).selected_row
                if row is not None and row.task == task:
                    break
                await pilot.press("down")
            await pilot.press("enter")
            await keyboard.until(lambda task=task: _shows_diff(keyboard, task))  # type: ignore[misc]
            while _shows_diff(keyboard, task):
                clock.advance(1.0)
                await pilot.press(APPROVE)
                # Once it is decided, the next item of the inbox opens by itself.
                for _ in range(MOST_LOOKS):
                    if not _shows_diff(keyboard, task):
                        break
                    await pilot.pause(LOOK_SECONDS)
        await app.leave("done")
    await host.join()


def _shows_diff(keyboard: Keyboard, task: str) -> bool:
    """Return True if the followed session of a task is in front, with the diff that waits."""
    run, waiting = keyboard.state.run, keyboard.state.waiting
    return keyboard.app.tabs.front.followed and run is not None and run.task == task and waiting is not None
