"""Drawing of a session's screen without a terminal, a clock or anything of the environment."""

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
from agent_workbench.tui.keymap import Keymap
from agent_workbench.tui.panes.workbench_screen import WorkbenchScreen
from agent_workbench.tui.styles import STYLES
from agent_workbench.tui.terminal.terminal_driver import ControlGuard

if TYPE_CHECKING:
    from textual.screen import Screen

THEME = "textual-dark"
Result = TypeVar("Result")
Lines = tuple[Strip, ...]
"""Lines of a screen from top to bottom."""
MOST_ROUNDS = 50
FAILED = "the screen could not be drawn, which is a defect of the workbench"


class StillClock:
    """Clock that stands still, so that a picture depends on the journal alone."""

    def now(self) -> str:
        """Return always the same time."""
        return "1970-01-01T00:00:00.000000Z"

    def monotonic_seconds(self) -> float:
        """Return always the same time."""
        return 0.0


class DrawingApp(App[None]):
    """Panes and bars on an invisible screen."""

    CSS_PATH = [*STYLES]

    def __init__(self) -> None:
        super().__init__()
        self.workbench = WorkbenchScreen(StillClock(), Keymap({}))
        self.ready = asyncio.Event()
        self.living: asyncio.Task[None]
        self.animation_level = "none"
        self.theme = THEME
        self._guard = ControlGuard()

    def get_default_screen(self) -> "Screen[None]":
        """Return the main screen."""
        return self.workbench

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Return the control guard alone: all colours are drawn, whatever the terminal and `NO_COLOR` say."""
        return [self._guard]

    def on_ready(self) -> None:
        self.ready.set()

    async def draw(self, update: SessionUpdate) -> Lines:
        """Return the lines of the screen that shows an update, when nothing changes any more.

        Raises `WorkbenchError` if the screen fails.
        """
        drawn = asyncio.create_task(self._draw(update))
        await asyncio.wait({drawn, self.living}, return_when=asyncio.FIRST_COMPLETED)
        if not drawn.done():
            drawn.cancel()
            raise WorkbenchError(FAILED)
        return drawn.result()

    async def _draw(self, update: SessionUpdate) -> Lines:
        self.workbench.updates.show(update)
        before: Lines = ()
        for _ in range(MOST_ROUNDS):
            await self._settle()
            now = screen_lines(self)
            if now == before and all(worker.is_finished for worker in self.workers):
                break
            before = now
        return before

    async def _settle(self) -> None:
        """Wait until every widget handled its messages, the layout is done and colours were found."""
        widgets = [each for each in self.workbench.walk_children(Widget, with_self=True) if each.is_attached]
        done = [_done(widget) for widget in widgets]
        await asyncio.gather(*done)
        refreshed = asyncio.Event()
        self.workbench.call_after_refresh(refreshed.set)
        await refreshed.wait()
        await self.workers.wait_for_complete()


def _done(widget: Widget) -> "asyncio.Future[None]":
    """Return a future that is done when a widget has handled the messages it has now."""
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    if not widget.call_later(done.set_result, None):
        done.set_result(None)
    return done


@asynccontextmanager
async def drawing(size: tuple[int, int]) -> AsyncIterator[DrawingApp]:
    """Yield an app that draws on a screen of this size in cells and lines."""
    app = DrawingApp()
    app.living = asyncio.create_task(app.run_async(headless=True, size=size))
    ready = asyncio.create_task(app.ready.wait())
    await asyncio.wait({app.living, ready}, return_when=asyncio.FIRST_COMPLETED)
    try:
        if not app.ready.is_set():
            raise WorkbenchError(FAILED)
        with app._context():  # widgets look for the app there when they are drawn from outside of it
            yield app
    finally:
        ready.cancel()
        app.exit()
        await app.living


def screen_lines(app: "App[Result]") -> Lines:
    """Return the lines of the screen, with what shows through from behind a dialog."""
    # Textual's own export to SVG misplaces wide characters, and there is no public way to the lines.
    visible_screen_stack.set(app._background_screens)
    return tuple(strip.simplify() for strip in app.screen._compositor.render_strips())
