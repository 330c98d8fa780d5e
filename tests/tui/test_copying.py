"""What is copied is what was written, not how it was laid out; a terminal gets it only where that is allowed."""

import pytest
from textual.geometry import Offset
from textual.selection import SELECT_ALL, Selection

from agent_workbench.core.events import ActionProposed
from agent_workbench.core.live import Live
from agent_workbench.core.settings import UiSettings
from agent_workbench.tui.screens.review import line_rows
from agent_workbench.tui.terminal_app import MOST_COPIED_BYTES
from agent_workbench.tui.widgets.row_list import selected_text
from agent_workbench.tui.widgets.rows import entry_rows
from agent_workbench.views.blocks import Block, Entry, Tone
from agent_workbench.views.diff_document import DiffLine
from tests.fakes import runs
from tests.fakes.scripted_session import ScriptedSession
from tests.tui.driver import SMALL, driving
from tests.tui.scenes import HUNKS
from tests.tui.test_hunks import proposal


def test_wrapped_rows_become_the_lines_they_were() -> None:
    text = "a word  and another one that is wrapped\nwörter 価格 and  two  spaces " + "x" * 40
    entry = Entry("k", (Block(text, Tone.PLAIN, "Result"), Block("and more " * 6, Tone.TITLE, rule=True)))
    narrow, rows = (list(entry_rows(entry, 0, width, 8, expanded=True)) for width in (24, 40))
    for each in (narrow, rows):
        assert len(each) > 5
        assert selected_text(each.__getitem__, len(each), SELECT_ALL) == f"{text}\n{'and more ' * 6}".rstrip()
    part = Selection.from_offsets(Offset(10, 0), Offset(13, 1))
    assert selected_text(rows.__getitem__, len(rows), part) == text[2 : text.index("wrapped") + 5]


def test_a_line_of_a_review_is_copied_without_its_numbers() -> None:
    text = "return sum(line.cents  * line.quantity for line in lines)  "
    rows = list(line_rows(DiffLine(text, Tone.ADDED, new=17), 2, 30))
    assert len(rows) > 2
    assert selected_text(rows.__getitem__, len(rows), SELECT_ALL) == text.rstrip()


async def test_the_hunk_the_lines_and_the_entry_under_the_cursor_are_copied() -> None:
    session = ScriptedSession(*runs.opening(), *runs.started(), ActionProposed(proposal(HUNKS)))
    async with driving(session, SMALL) as bench:
        copied = await bench.diff.hunk(2).copy()
        hunk = "@@ -31,5" + HUNKS.split("@@ -31,5")[1].split("--- /dev")[0]
        assert copied.splitlines()[1:] == hunk.rstrip("\n").splitlines()[1:]
        await bench.press("j", "j", "j", "v", "j", "y")
        assert bench.app.clipboard.startswith("    return cents - percent\n    if")
        await bench.plan.press("y")
        assert "Make the cart's total count quantities" in bench.app.clipboard
        assert "\n  count" not in bench.app.clipboard


async def test_text_is_selected_with_the_mouse_in_any_pane() -> None:
    async with driving(ScriptedSession(*runs.up_to_first_diff())) as bench:
        steps = bench.steps.pane
        top = steps.content_region.offset
        row = next(at for at, each in enumerate(bench.text().splitlines()) if "scripted" in each and at > 0)
        await bench.pilot.mouse_down(offset=top + Offset(steps.label_cells, row - top.y - 1))
        await bench.pilot.hover(offset=top + Offset(steps.label_cells + 7, row - top.y))
        await bench.pilot.mouse_up(offset=top + Offset(steps.label_cells + 7, row - top.y))
        await bench.press("ctrl+c")
        assert bench.app.clipboard
        assert "  " not in bench.app.clipboard
        assert not bench.screen.selections
        assert bench.session.intents == []


@pytest.mark.parametrize(("allowed", "lines", "said"), [(True, 2, "copied 2 lines"), (False, 2, "clipboard is false")])
async def test_a_terminal_gets_it_where_it_may(allowed: bool, lines: int, said: str) -> None:
    async with driving(ScriptedSession(*runs.opening()), SMALL) as bench:
        await bench.live(Live(ui=UiSettings(clipboard=allowed)))
        written: list[str] = []
        driver = bench.app._driver
        assert driver is not None
        driver.write = written.append  # type: ignore[method-assign, assignment]
        bench.app.copy_to_clipboard("one\n\x1b]0;two")
        await bench.idle()
        assert bench.app.clipboard == "one\n]0;two"
        assert any("]52;c;" in each for each in written) is allowed
        assert said in [*bench.app._notifications][-1].message
        written.clear()
        bench.app.copy_to_clipboard("x" * (MOST_COPIED_BYTES + 1))
        assert not any("]52;c;" in each for each in written)
