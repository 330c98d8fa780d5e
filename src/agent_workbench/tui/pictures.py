"""Pictures of the screen: a session drawn by the panes on an invisible screen, as an SVG that loads nothing."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from html import escape
from typing import TYPE_CHECKING, TypeVar

from rich.cells import cell_len
from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual._context import visible_screen_stack
from textual.app import App
from textual.filter import LineFilter
from textual.strip import Strip
from textual.widget import Widget

from agent_workbench.core.errors import WorkbenchError
from agent_workbench.core.live import SessionUpdate
from agent_workbench.tui.keys import Keymap
from agent_workbench.tui.panes.workbench_screen import WorkbenchScreen
from agent_workbench.tui.terminal_app import STYLES
from agent_workbench.tui.terminal_driver import ControlGuard

if TYPE_CHECKING:
    from textual.screen import Screen


THEME = "textual-dark"
Result = TypeVar("Result")
Lines = tuple[Strip, ...]
"""Lines of a screen from top to bottom."""
MOST_ROUNDS = 50
FAILED = "the screen could not be drawn, which is a defect of the workbench"

FONT_PX = 14
CELL_PX, LINE_PX = 8.4, 17
BASE_PX = 13
MARGIN_PX = 10
FONTS = "'DejaVu Sans Mono', Menlo, Consolas, ui-monospace, monospace"
TEXT, GROUND = "#e0e0e0", "#121212"
"""Colours where a style names none."""
# Characters that XML cannot hold, not even escaped.
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_WORDS = re.compile(r"[^ ]+(?: [^ ]+)*")


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


def to_svg(lines: Iterable[Iterable[Segment]], title: str) -> str:
    """Return these lines as an SVG with a `title` for readers who do not see it.

    The same lines give the same bytes.
    """
    rows = [list(line) for line in lines]
    cells = max((sum(cell_len(each.text) for each in row) for row in rows), default=0)
    ground = next((_ground(each.style) for row in rows for each in row), GROUND)
    width, height = cells * CELL_PX + 2 * MARGIN_PX, len(rows) * LINE_PX + 2 * MARGIN_PX
    behind = [each for number, row in enumerate(rows) for each in _behind(row, number, ground)]
    text = [each for number, row in enumerate(rows) for each in _text(row, number)]
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_px(width)} {_px(height)}" '
            f'width="{_px(width)}" height="{_px(height)}" role="img">',
            f"<title>{_plain(title)}</title>",
            f'<rect width="100%" height="100%" rx="6" fill="{ground}"/>',
            f'<g transform="translate({MARGIN_PX},{MARGIN_PX})" shape-rendering="crispEdges">',
            *behind,
            "</g>",
            f'<g transform="translate({MARGIN_PX},{MARGIN_PX})" font-family="{FONTS}" font-size="{FONT_PX}">',
            *text,
            "</g>",
            "</svg>\n",
        )
    )


def _behind(row: Sequence[Segment], number: int, ground: str) -> Iterator[str]:
    at = start = 0
    colour = ground
    for segment in (*row, Segment("")):
        mine = _ground(segment.style) if segment.text else ""
        if mine != colour:
            if at > start and colour != ground:
                yield (
                    f'<rect x="{_px(start * CELL_PX)}" y="{number * LINE_PX}" '
                    f'width="{_px((at - start) * CELL_PX)}" height="{LINE_PX}" fill="{colour}"/>'
                )
            start, colour = at, mine
        at += cell_len(segment.text)


def _text(row: Sequence[Segment], number: int) -> Iterator[str]:
    at = 0
    for segment in row:
        look = _look(segment.style or Style())
        for run, cells in _runs(segment.text):
            # Runs of spaces are skipped: renderers of SVG do not agree on how to keep them.
            for words in _WORDS.finditer(run):
                start, width = at + cell_len(run[: words.start()]), cell_len(words[0])
                yield (
                    f'<text x="{_px(start * CELL_PX)}" y="{number * LINE_PX + BASE_PX}" '
                    f'textLength="{_px(width * CELL_PX)}"{look}>{_plain(words[0])}</text>'
                )
            at += cells


def _runs(text: str) -> Iterator[tuple[str, int]]:
    """Yield runs of characters that are one cell wide, and runs of wide ones, each with its number of cells.

    With a run for each width, text is placed as in a terminal whatever the fonts are.
    """
    if text.isascii():
        yield text, len(text)
        return
    run, wide = "", False
    for char in text:
        cells = cell_len(char)
        if run and cells and (cells > 1) != wide:
            yield run, cell_len(run)
            run = ""
        wide = cells > 1 if cells else wide
        run += char
    yield run, cell_len(run)


def _look(style: Style) -> str:
    fore = _hex(style.bgcolor, GROUND) if style.reverse else _hex(style.color, TEXT)
    lines = " ".join(name for name, on in (("underline", style.underline), ("line-through", style.strike)) if on)
    return "".join(
        (
            f' fill="{fore}"',
            ' font-weight="bold"' if style.bold else "",
            ' font-style="italic"' if style.italic else "",
            ' fill-opacity="0.6"' if style.dim else "",
            f' text-decoration="{lines}"' if lines else "",
        )
    )


def _ground(style: Style | None) -> str:
    if style is None:
        return GROUND
    return _hex(style.color, TEXT) if style.reverse else _hex(style.bgcolor, GROUND)


def _hex(color: Color | None, default: str) -> str:
    return default if color is None or color.is_default else color.get_truecolor().hex


def _plain(text: str) -> str:
    return escape(_NO_XML.sub("�", text), quote=False)


def _px(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")
