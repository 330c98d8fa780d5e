"""`python -m bench.lived STEPS FILE`: the workbench on a terminal while a session of so many steps happens.

Each event is folded and published as the engine does it, as fast as the screen lets it. A line of FILE for each tenth:
the steps so far and the memory of the process in bytes.
"""

import asyncio
import sys
from collections.abc import Awaitable
from pathlib import Path

import psutil

from agent_workbench.api.screen_services import system_clock
from agent_workbench.api.sessions.session_handle import EventFeed, LocalSession, UpdateFeed
from agent_workbench.core.events import ModelAnswered
from agent_workbench.core.fold import fold
from agent_workbench.core.intents import Intent
from agent_workbench.core.outcomes import Accepted, Outcome
from agent_workbench.core.session_request import SessionEnd, SessionRequest
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.engine.runtime.intent_queue import answered
from agent_workbench.engine.runtime.publisher import UpdatePublisher
from agent_workbench.tui.app import WorkbenchApp
from bench.given_host import GivenHost
from bench.long_session import story_of
from bench.tui_scenes import EVENTS_PER_STEP, task_count

TENTHS = 10


class _Unsteered:
    """Driver of a session that nobody steers."""

    def submit(self, intent: Intent) -> Awaitable[Outcome]:
        """Accept an intent and do nothing."""
        del intent
        return answered(Accepted())

    async def run(self) -> SessionEnd:
        """Return at once."""
        return SessionEnd()


async def live(steps: int, told: Path) -> None:
    """Show a session of so many steps from its beginning to its end."""
    updates = UpdateFeed()
    publisher = UpdatePublisher(updates.publish)
    session = LocalSession(_Unsteered(), updates, EventFeed())
    app = WorkbenchApp(GivenHost(session), SessionRequest(), clock=system_clock())
    shown = asyncio.create_task(app.run_async())
    await app.first_screen.wait()
    state, answered, lines = SessionState(), 0, list[str]()
    for recorded in story_of(steps * EVENTS_PER_STEP, task_count(steps)):
        state = fold(state, recorded)
        publisher.show_state(state)
        await asyncio.sleep(0)
        if isinstance(recorded.event, ModelAnswered):
            answered += 1
            if answered % (steps // TENTHS) == 0:
                lines.append(f"{answered} {psutil.Process().memory_info().rss}")
    await asyncio.to_thread(told.write_text, "\n".join(lines))
    publisher.end("")
    await shown


if __name__ == "__main__":
    asyncio.run(live(int(sys.argv[1]), Path(sys.argv[2])))
