"""Of a pane only the lines that are new are rendered, and what is on screen is what a fresh rendering gives."""

import pytest
from textual._styles_cache import StylesCache
from textual.strip import Strip
from textual.widget import Widget

from agent_workbench.core.live import Live, Streaming
from agent_workbench.tui.panes.diff_pane import DiffPane
from agent_workbench.tui.widgets.entry_list import EntryList
from agent_workbench.tui.widgets.rows import FramedLines
from tests.fakes import runs
from tests.fakes.scripted_session import ScriptedSession
from tests.tui.driver import LARGE, Driver, driving
from tests.tui.test_long_transcript import entries

WRITES = "Thought: the same everywhere\nAction: write_diff\n--- a/x.py\n+++ b/x.py\n@@ -1,90 +1,90 @@\n"
FEW = 12
"""Lines of borders, bars and new content, where each pane has more than twenty."""


@pytest.fixture
def rendered(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the list that grows by one for each line that Textual renders anew."""
    lines: list[int] = []
    render = StylesCache.render_line

    def count(self: StylesCache, *given: object) -> Strip:
        lines.append(0)
        return render(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(StylesCache, "render_line", count)
    return lines


def fresh(bench: Driver) -> object:
    """Return the screen as it is when nothing is kept of what was rendered before."""
    for widget in bench.app.screen.walk_children(Widget):
        if isinstance(widget._styles_cache, FramedLines):
            widget._styles_cache = FramedLines()
    for pane in bench.app.screen.query(EntryList):
        pane._painter.clear()
    bench.app.screen.query_one(DiffPane)._painter.clear()
    return bench.styled()


async def test_a_list_that_scrolls_renders_its_new_lines_alone(rendered: list[int]) -> None:
    async with driving(ScriptedSession(*runs.opening()), LARGE) as bench:
        steps = bench.app.workbench.query_one("#steps", EntryList)
        steps.show_entries(entries(400))
        await bench.press("2", "k", "k")
        for key in ("k", "ctrl+b", "j"):
            await bench.press(key)
            shown = bench.styled()
            rendered.clear()
            steps.scroll_relative(y=-1, animate=False)
            await bench.idle()
            assert len(rendered) < FEW
            assert bench.styled() != shown
            assert fresh(bench) == bench.styled()


async def test_a_diff_that_grows_renders_its_new_lines_alone(rendered: list[int]) -> None:
    async with driving(ScriptedSession(*runs.up_to_reflexion()), LARGE) as bench:
        for count in range(40, 50):
            text = WRITES + "".join(f"-old {number}\n+new {number}\n" for number in range(count))
            rendered.clear()
            await bench.live(Live(activity="thinking", streaming=Streaming(text=text, tokens=count, seconds=1.0)))
            assert "new 39" in bench.text() or count > 45
        assert len(rendered) < FEW
        assert fresh(bench) == bench.styled()


@pytest.mark.slow
async def test_a_line_that_is_known_has_the_border_of_its_pane(rendered: list[int]) -> None:
    async with driving(ScriptedSession(*runs.up_to_reflexion()), LARGE) as bench:
        for key in ("2", "1", "2"):  # the focus gives the border another colour
            await bench.press(key)
            assert fresh(bench) == bench.styled()
        shown = bench.styled()
        bench.app.choose_theme("textual-light")
        await bench.idle()
        assert bench.styled() != shown
        assert fresh(bench) == bench.styled()
