"""A fluent driver of the workbench: presses keys, lets things happen in the session, waits until all is shown."""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import TypeVar

from rich.style import Style
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Static

from agent_workbench.core.events import Event
from agent_workbench.core.history.summaries import PastSessions
from agent_workbench.core.inbox import InboxItem
from agent_workbench.core.live import Live, SessionUpdate
from agent_workbench.core.outcomes import Outcome
from agent_workbench.core.ports.forge import PullRequests
from agent_workbench.core.session_request import SessionRequest
from agent_workbench.subjects.dispatch.progress import PlanWork
from agent_workbench.tui.app import WorkbenchApp
from agent_workbench.tui.session.window import AppEnvironment
from agent_workbench.tui.widgets.row_list import RowList
from tests.fakes.scripted_session import FakeClock, ScriptedHost, ScriptedSession
from tests.tui.parts import Diff, Gate, PlanPart, Replay, Steps

SMALL, MIDDLE, LARGE = (80, 24), (120, 32), (200, 50)
ROUNDS = 400
AnyWidget = TypeVar("AnyWidget", bound=Widget)


class Driver:
    """One workbench on a scripted session."""

    def __init__(
        self,
        app: WorkbenchApp,
        session: ScriptedSession,
        clock: FakeClock,
        pilot: Pilot[SessionUpdate],
        host: ScriptedHost | None = None,
    ) -> None:
        self.app = app
        self.session = session
        self.clock = clock
        self.pilot = pilot
        self.host = host or ScriptedHost(session)
        self.diff, self.gate, self.plan = Diff(self), Gate(self), PlanPart(self)
        self.steps, self.replay = Steps(self), Replay(self)

    async def idle(self) -> "Driver":
        """Wait until the newest update is shown and nothing is left to do."""
        for _ in range(ROUNDS):
            await self.pilot.pause()
            if self._shows_newest() or self.app.return_value is not None:
                break
        else:
            raise AssertionError("the newest update was never shown")
        await self.pilot.pause()
        return self

    def _shows_newest(self) -> bool:
        """Return whether the newest update of the session in front is shown."""
        if not self.app.tabs.all:
            return False
        session = self.app.tabs.front.session
        return isinstance(session, ScriptedSession) and self.app.update_shown is session.newest

    async def until(self, condition: Callable[[], bool]) -> "Driver":
        """Wait until something is true; what runs in a thread cannot be waited for otherwise."""
        for _ in range(ROUNDS):
            if condition():
                return self
            await self.pilot.pause(0.02)
        raise AssertionError("it never came true")

    async def press(self, *keys: str) -> "Driver":
        """Press keys at once, one after the other."""
        await self.pilot.press(*keys)
        return await self.idle()

    async def look(self) -> "Driver":
        """Let a moment pass, so that what is on screen was seen."""
        await self.idle()
        self.clock.advance(1.0)
        return self

    async def record(self, *events: Event) -> "Driver":
        """Let these happen in the session."""
        self.session.record(*events)
        return await self.idle()

    @property
    def opened(self) -> list[SessionRequest]:
        """The sessions that were asked for beside the first one."""
        return self.host.requests[1:]

    async def answer(self, outcome: Outcome) -> "Driver":
        """Answer the oldest open question of the session, and wait until that is shown."""
        self.session.answer(outcome)
        return await self.idle()

    async def live(self, live: Live) -> "Driver":
        """Let this be the moment."""
        self.session.show(live)
        return await self.idle()

    async def resize(self, width: int, height: int) -> "Driver":
        """Make the terminal another size."""
        await self.pilot.resize_terminal(width, height)
        return await self.idle()

    @property
    def screen(self) -> Screen[object]:
        """The screen in front."""
        return self.app.screen

    def pane(self, name: str) -> RowList:
        """Return a pane by its name."""
        return self.app.workbench.query_one(f"#{name}", RowList)

    def text(self) -> str:
        """Return what is on screen, line by line."""
        width, height = self.app.size
        lines = self.app.screen._compositor.render_strips()
        return "\n".join("".join(segment.text for segment in line)[:width] for line in lines[:height])

    def styled(self) -> list[list[tuple[str, Style | None]]]:
        """Return what the terminal gets, line by line: texts in their styles; its own colours count as none."""
        strips = self.app.screen._compositor.render_strips()
        return [[(text, _coloured(style)) for text, style, _ in line] for line in strips]

    def static(self, selector: str) -> str:
        """Return the text of a plain widget."""
        return str(self.app.screen.query_one(selector, Static).content)


def _coloured(style: Style | None) -> Style | None:
    """Return a style in which a colour that is the terminal's default is none."""
    if style is None:
        return None
    color, behind = (None if each is None or each.is_default else each for each in (style.color, style.bgcolor))
    return style.without_color + Style(color=color, bgcolor=behind)


@asynccontextmanager
async def driving(
    session: ScriptedSession,
    size: tuple[int, int] = MIDDLE,
    *,
    first_run: bool = False,
    keys: dict[str, str] | None = None,
    past: PastSessions | None = None,
    others: Iterable[ScriptedSession] = (),
    waiting: Iterable[tuple[InboxItem, ScriptedSession]] = (),
    plan_work: Callable[[], PlanWork] | None = None,
    pull_requests: Callable[[], PullRequests] | None = None,
) -> AsyncIterator[Driver]:
    """Yield a driver of a workbench that shows `session`; in further tabs it opens `others`, one after the other.

    `waiting` are the items of the inbox, each with its session as it is followed.
    """
    clock = FakeClock()
    host = ScriptedHost(session, *others)
    host.waiting = list(waiting)
    environment = AppEnvironment(past, plan_work=plan_work, pull_requests=pull_requests)
    app = WorkbenchApp(host, SessionRequest(), clock=clock, first_run=first_run, keys=keys, environment=environment)
    async with app.run_test(size=size, notifications=True) as pilot:
        yield await Driver(app, session, clock, pilot, host).idle()
