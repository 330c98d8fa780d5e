"""Of a long transcript only what is near the screen is laid out, and no more is needed to be anywhere in it."""

import pytest
from textual.geometry import Size
from textual.screen import Screen

from agent_workbench.core.live import Live, Streaming
from agent_workbench.tui.widgets.entry_list import WINDOW, EntryList
from agent_workbench.tui.widgets.row_list import RowList
from agent_workbench.views.blocks import Block, Entry
from tests.fakes import runs
from tests.fakes.scripted_session import ScriptedSession
from tests.tui.driver import Driver, driving

MANY = 6 * WINDOW


def entries(count: int) -> tuple[Entry, ...]:
    return tuple(Entry(str(number), (Block(f"entry {number}"),)) for number in range(count))


def shown(pane: EntryList) -> list[str]:
    top = pane.scroll_offset.y
    return ["".join(text for text, _ in row.spans).strip() for row in pane.rows[top : top + pane.room.height]]


async def scrolled(bench: Driver, pane: EntryList, row: int) -> None:
    pane.scroll_to(y=row, animate=False)
    await bench.idle()


async def test_a_long_transcript_is_laid_out_where_it_is_looked_at() -> None:
    async with driving(ScriptedSession(*runs.opening())) as bench:
        steps = bench.app.workbench.query_one("#steps", EntryList)
        everything = entries(MANY)
        steps.show_entries(everything)
        await bench.idle()
        assert shown(steps)[-1] == f"entry {MANY - 1}"
        assert len(steps.rows) <= WINDOW

        await scrolled(bench, steps, 0)
        before = shown(steps)[0]
        assert before == f"entry {MANY - WINDOW}"
        assert steps.scroll_offset.y == WINDOW, "more was laid out above, and nothing moved"

        await bench.press("2", "g")
        assert shown(steps)[0] == "entry 0"
        steps.show_entries(everything + entries(MANY + 1)[MANY:])
        await bench.idle()
        assert shown(steps)[0] == "entry 0", "what comes at the end moves nothing"
        await scrolled(bench, steps, len(steps.rows))
        assert len(steps.rows) == 2 * WINDOW

        await bench.press("G")
        assert shown(steps)[-1] == f"entry {MANY}"
        await bench.press("k")
        assert steps.selected is not None
        assert steps.selected.key == str(MANY - 1)


async def test_what_is_followed_for_hours_stays_small() -> None:
    async with driving(ScriptedSession(*runs.opening())) as bench:
        steps = bench.app.workbench.query_one("#steps", EntryList)
        everything = entries(MANY)
        for count in range(WINDOW, MANY, WINDOW // 2):
            steps.show_entries(everything[:count])
            await bench.idle()
            assert shown(steps)[-1] == f"entry {count - 1}"
            assert len(steps.rows) <= 3 * WINDOW
        steps.show_entries(everything[:7])
        await bench.idle()
        assert shown(steps)[:7] == [f"entry {number}" for number in range(7)]


async def test_what_grows_does_not_lay_the_screen_out_again(monkeypatch: pytest.MonkeyPatch) -> None:
    laid_out = 0
    plain = Screen._refresh_layout

    def counted(screen: Screen[object], size: Size | None = None, scroll: bool = False) -> None:
        nonlocal laid_out
        laid_out += 1
        plain(screen, size, scroll)

    async with driving(ScriptedSession(*runs.up_to_reflexion())) as bench:
        await bench.live(writes(40))
        monkeypatch.setattr(Screen, "_refresh_layout", counted)
        await bench.live(writes(60))
        diff = bench.app.workbench.query_one("#diff", RowList)
        assert diff.max_scroll_y == diff.row_count - diff.room.height
        assert diff.scroll_offset.y == diff.max_scroll_y, "its end is followed"
        assert diff.vertical_scrollbar.window_virtual_size == diff.row_count
        assert laid_out == 0


def writes(lines: int) -> Live:
    diff = "--- /dev/null\n+++ b/y.py\n@@ -0,0 +1,100 @@\n" + "".join(f"+line {number}\n" for number in range(lines))
    return Live(activity="thinking", streaming=Streaming(f"Thought: x\nAction: write_diff\n{diff}", 9, 1))
