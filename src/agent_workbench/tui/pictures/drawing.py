"""The screen of a session drawn without a terminal: no clock, no keys, and nothing of the environment is in it."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

from textual._context import visible_screen_stack
from textual.app import App
from textual.filter import LineFilter
from textual.strip import Strip
from textual.widget import Widget

from agent_workbench.core.errors import WorkbenchError
from agent_workbench.core.live import SessionUpdate
from agent_workbench.tui.app import FIRST_STYLES, HERE, MORE_STYLES
from agent_workbench.tui.keymap import Keymap
from agent_workbench.tui.panes.workbench_screen import WorkbenchScreen
from agent_workbench.tui.terminal.control_guard import ControlGuard

if TYPE_CHECKING:
    from textual.screen import Screen

THEME = "textual-dark"
Result = TypeVar("Result")
Lines = tuple[Strip, ...]
"""A screen from top to bottom."""
MOST_ROUNDS = 50
FAILED = "the screen could not be drawn, which is a defect of the workbench"


class StillClock:
    """A clock that stands: what is drawn depends on the journal alone."""

    def now(self) -> str:
        """Return always the same time."""
        return "1970-01-01T00:00:00.000000Z"

    def monotonic_seconds(self) -> float:
        """Return always the same."""
        return 0.0


class DrawingApp(App[None]):
    """The panes and bars on a screen that nobody sees."""

    CSS_PATH = [HERE / style for style in (*FIRST_STYLES, *MORE_STYLES)]

    def __init__(self) -> None:
        super().__init__()
        self.workbench = WorkbenchScreen(StillClock(), Keymap({}))
        self.ready = asyncio.Event()
        self.living: asyncio.Task[None]
        self.animation_level = "none"
        self.theme = THEME
        self._guard = ControlGuard()

    def get_default_screen(self) -> "Screen[None]":
        """Return the panes."""
        return self.workbench

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Return the guard alone: all colours are there, whatever the terminal and `NO_COLOR` say."""
        return [self._guard]

    def on_ready(self) -> None:
        self.ready.set()

    async def draw(self, update: SessionUpdate) -> Lines:
        """Return the lines of the screen when it shows an update and nothing of it changes any more.

        Raises `WorkbenchError` where the screen fails.
        """
        drawn = asyncio.create_task(self._draw(update))
        await asyncio.wait({drawn, self.living}, return_when=asyncio.FIRST_COMPLETED)
        if not drawn.done():
            drawn.cancel()
            raise WorkbenchError(FAILED)
        return drawn.result()

    async def _draw(self, update: SessionUpdate) -> Lines:
        self.workbench.show(update)
        before: Lines = ()
        for _ in range(MOST_ROUNDS):
            await self._settle()
            now = screen_lines(self)
            if now == before and all(worker.is_finished for worker in self.workers):
                break
            before = now
        return before

    async def _settle(self) -> None:
        """Let every widget do what it has before it, lay out what changed, and find colours that were asked for."""
        widgets = [each for each in self.workbench.walk_children(Widget, with_self=True) if each.is_attached]
        done = [_done(widget) for widget in widgets]
        await asyncio.gather(*done)
        refreshed = asyncio.Event()
        self.workbench.call_after_refresh(refreshed.set)
        await refreshed.wait()
        await self.workers.wait_for_complete()


def _done(widget: Widget) -> "asyncio.Future[None]":
    """Return what is done when a widget has come through the messages it has."""
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    if not widget.call_later(done.set_result, None):
        done.set_result(None)
    return done


@asynccontextmanager
async def drawing(size: tuple[int, int]) -> AsyncIterator[DrawingApp]:
    """Yield an app that draws on a screen of so many cells and lines."""
    app = DrawingApp()
    app.living = asyncio.create_task(app.run_async(headless=True, size=size))
    ready = asyncio.create_task(app.ready.wait())
    await asyncio.wait({app.living, ready}, return_when=asyncio.FIRST_COMPLETED)
    try:
        if not app.ready.is_set():
            raise WorkbenchError(FAILED)
        with app._context():  # what is drawn from outside of it looks for the app there
            yield app
    finally:
        ready.cancel()
        app.exit()
        await app.living


def screen_lines(app: "App[Result]") -> Lines:
    """Return what is on screen line by line, what shines through from behind a dialogue included."""
    # Textual has no other way to its lines but a picture of its own, which is wrong where characters are wide.
    visible_screen_stack.set(app._background_screens)
    return tuple(strip.simplify() for strip in app.screen._compositor.render_strips())
