"""Where the lines of a diff stand, and that what is drawn is all of them, whatever is beside or behind what."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.style import Style

from agent_workbench.tui.panes.diff_layout import DiffLayout, LayoutOptions
from agent_workbench.tui.panes.diff_rows import DiffColours, DiffRows
from agent_workbench.tui.panes.diff_viewer import SeenLines
from agent_workbench.tui.widgets.colours import ThemeStyle, Tones
from agent_workbench.tui.widgets.rows import Piece, cut_line
from agent_workbench.views.blocks import Tone
from agent_workbench.views.diff_document import DiffDocument, DiffReader

LINES = st.lists(st.tuples(st.sampled_from("+- "), st.text("ab 全é\t", max_size=30)), min_size=1, max_size=12)


class PlainTones(Tones):
    """Tones of nobody's theme."""

    mixes = False

    def __init__(self) -> None:
        pass

    def __missing__(self, tone: Tone | ThemeStyle) -> Style:
        return Style()


def shown(lines: list[tuple[str, str]]) -> DiffDocument:
    old, new = (sum(sign in {" ", own} for sign, _ in lines) for own in "-+")
    body = "".join(f"{sign}{text}\n" for sign, text in lines)
    return DiffReader().read(f"--- a/x\n+++ b/x\n@@ -1,{old} +1,{new} @@\n{body}")


def rows_of(diff: DiffDocument, look: LayoutOptions) -> tuple[DiffLayout, DiffRows]:
    layout = DiffLayout()
    rows = DiffRows(
        layout,
        DiffColours(),
        PlainTones(),
        text_of=lambda number: diff.lines[number].text,
        mark_of=lambda number: "●",
        pointed=lambda number: False,
    )
    layout.lay_out(diff, look, lambda number: diff.lines[number].text)
    return layout, rows


@pytest.mark.parametrize("split", [False, True])
@given(LINES, st.integers(24, 80), st.booleans())
def test_every_line_is_drawn_to_its_end_within_the_edge(
    split: bool, lines: list[tuple[str, str]], width: int, marks: bool
) -> None:
    diff = shown(lines)
    layout, rows = rows_of(diff, LayoutOptions(width, split=split, marks=marks, whole=True))
    seen = SeenLines(len(diff.lines))
    for number in range(layout.row_count):
        row = rows.row(number)
        assert row.cells <= max(width, 60)
        for piece in row.pieces:
            seen.drawn(piece, piece.start, piece.start + piece.cells)
    assert seen.missing == 0


@given(LINES, st.integers(0, 400))
@example([*[("+", "")] * 5, ("+", "a" * 10), (" ", ""), *[("+", "")] * 3], 57)  # a tenth line makes the numbers wider
def test_a_diff_that_grows_is_laid_out_as_if_at_once(lines: list[tuple[str, str]], end: int) -> None:
    reader, layout = DiffReader(), DiffLayout()
    body = "".join(f"{sign}{text}\n" for sign, text in lines)
    text = f"--- a/x\n+++ b/x\n@@ -1,99 +1,99 @@\n{body}"
    look = LayoutOptions(30, split=True)
    begun = reader.read(text[:end])
    layout.lay_out(begun, look, lambda number: begun.lines[number].text)
    diff = reader.read(text)
    layout.lay_out(diff, look, lambda number: diff.lines[number].text)
    whole = DiffLayout()
    whole.lay_out(diff, look, lambda number: diff.lines[number].text)
    heights = [[each.height(number) for number in range(len(diff.lines))] for each in (layout, whole)]
    assert heights[0] == heights[1]
    assert layout.row_count == whole.row_count


@given(st.text("ab 全é", max_size=80), st.integers(2, 20))
def test_a_line_that_is_cut_is_whole_in_its_pieces(line: str, width: int) -> None:
    pieces = cut_line(line, width)
    assert "".join(pieces) == line
    assert all(cell_len(piece) <= width for piece in pieces)


def test_what_is_drawn_behind_a_gap_does_not_count() -> None:
    seen = SeenLines(2, exempt=[1])
    assert not seen.drawn(Piece(0, 40, 10, 0, 50), 40, 50)
    assert seen.missing == 1
    assert not seen.drawn(Piece(0, 0, 40, 0, 50), 0, 30)
    assert seen.reached(0) == 30
    assert seen.drawn(Piece(0, 0, 50, 0, 50), 30, 50)
    assert (seen.missing, seen.first_missing()) == (0, -1)


def test_unchanged_lines_fold_and_a_folded_file_is_its_header() -> None:
    diff = shown([*((" ", f"line {number}") for number in range(30)), ("+", "new")])
    layout, rows = rows_of(diff, LayoutOptions(60, whole=True))
    assert layout.row_count == 2 + 3 + 1 + 3 + 1
    assert "24 unchanged lines" in "".join(text for text, _ in rows.row(5).spans)
    folded, rows = rows_of(diff, LayoutOptions(60, whole=True, files=frozenset({0})))
    assert folded.row_count == 1
    assert "folded" in "".join(text for text, _ in rows.row(0).spans)
