"""Review of a task as one diff below the steps that made it, and the comparison of two sessions."""

from collections.abc import Callable, Iterable, Iterator

from textual.content import Content
from textual.widget import Widget

from agent_workbench.core.history.comparison import Comparison
from agent_workbench.tui.keymap import Keymap, bindings
from agent_workbench.tui.keys import Scope
from agent_workbench.tui.panes.diff_pane import ReadOnlyDiff
from agent_workbench.tui.screens.dialog import Dialog
from agent_workbench.tui.widgets.bar import hint_line
from agent_workbench.tui.widgets.entry_list import EntryList
from agent_workbench.tui.widgets.rows import SIGNS, Row, cut_line, entry_rows
from agent_workbench.views.blocks import Block, Entry, Tone
from agent_workbench.views.diff_lines import DiffLine
from agent_workbench.views.reports.comparison import view_comparison
from agent_workbench.views.task_review import ReviewHunk, ReviewStep, ReviewView

MARK = "▸"
NO_STEP = ReviewStep("", "")
EMPTY = "no change of this task stands"

HINTS = {"next_change": "next change", "side_by_side": "side by side", "fold": "fold"}


class ReviewScreen(Dialog[None]):
    """Shows a review as of its opening; `go_to` goes to the step of a change."""

    BINDINGS = bindings(Scope.REVIEW)

    def __init__(self, view: ReviewView, keymap: Keymap, go_to: Callable[[str], None]) -> None:
        keys = {action: keymap.first(Scope.REVIEW, action) for action in ("go_to_step", "close_review")}
        super().__init__(
            f"Review of {view.title}",
            hint_line(((keys["go_to_step"], "go to the step"), (keys["close_review"], "close"))),
            name="review",
        )
        self._view = view
        self._go_to = go_to

    def body(self) -> Iterable[Widget]:
        return (ReviewList(),)

    def on_mount(self) -> None:
        self.query_one(".frame").border_subtitle = Content(self._view.remark)
        reviewed = self.query_one(ReviewList)
        reviewed.focus()
        reviewed.show_review(self._view)

    def action_go_to_step(self) -> None:
        entry = self.query_one(ReviewList).selected
        if entry is not None and entry.key:
            self.dismiss(None)
            self._go_to(entry.key)

    def action_close_review(self) -> None:
        self.dismiss(None)


class ReviewList(EntryList):
    """Shows the hunks of a `ReviewView`."""

    BINDINGS = bindings(Scope.SCROLL)
    scope = Scope.REVIEW

    def __init__(self) -> None:
        super().__init__(id="review-list")
        self._items: list[tuple[ReviewStep, ReviewHunk, bool, bool]] = []

    def show_review(self, view: ReviewView) -> None:
        """Show a review and select its first step."""
        self._items = [
            (step, hunk, number == 0, number + 1 == max(1, len(hunk.steps)))
            for hunk in view.hunks
            for number, step in enumerate(hunk.steps or (NO_STEP,))
        ]
        entries = tuple(Entry(step.key, (Block(f"{MARK} {step.text}", Tone.ACCENT),)) for step, *_ in self._items)
        self.show_entries(entries, empty=EMPTY)
        if entries and self.cursor < 0:
            self.select(0)

    def rows_of(self, number: int, entry: Entry, width: int) -> Iterable[Row]:
        """Return the rows of a step; the last step of a hunk is followed by the hunk's lines."""
        step, hunk, first, last = self._items[number]
        if first and hunk.head:
            yield from (Row((("", Tone.PLAIN),)),) if number else ()
            yield Row(((hunk.head, Tone.FILE),))
        elif first:
            yield Row((("", Tone.PLAIN),))
        if step is not NO_STEP:
            yield from entry_rows(entry, number, width, 0, expanded=True)
        if last:
            digits = len(str(max((max(line.old, line.new) for line in hunk.lines), default=0)))
            for line in hunk.lines:
                yield from line_rows(line, digits, width)

    def action_expand(self) -> None:
        """Do nothing: going to a step takes a key."""


def line_rows(line: DiffLine, digits: int, width: int) -> Iterator[Row]:
    """Yield the numbered and wrapped rows of one line of a diff."""
    if not (line.old or line.new):
        yield Row(((line.text, line.tone),))
        return
    gutter = f"{line.old or '':>{digits}} {line.new or '':>{digits}} {SIGNS.get(line.tone, ' ')} "
    fill = line.tone if line.tone in SIGNS else None
    lead, link = gutter, "\n"
    for piece in cut_line(line.text, max(8, width - len(gutter))):
        yield Row(((lead, Tone.NUMBER), (piece, line.tone)), fill=fill, lead=len(gutter), link=link)
        lead, link = " " * len(gutter), ""


class ComparisonScreen(Dialog[None]):
    """Shows a comparison."""

    BINDINGS = bindings(Scope.COMPARISON)

    def __init__(self, comparison: Comparison, keymap: Keymap) -> None:
        self._view = view_comparison(comparison)
        hints = [(keymap.first(Scope.DIFF, action), said) for action, said in HINTS.items()] if self._view.diff else []
        hints.append((keymap.first(Scope.COMPARISON, "close_comparison"), "close"))
        super().__init__(self._view.title, hint_line(hints), name="comparison")

    def body(self) -> Iterable[Widget]:
        return (ReadOnlyDiff(),)

    def on_mount(self) -> None:
        diff = self.query_one(ReadOnlyDiff)
        diff.focus()
        diff.show(self._view)

    def action_close_comparison(self) -> None:
        self.dismiss(None)
