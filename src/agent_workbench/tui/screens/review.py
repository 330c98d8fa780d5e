"""Screens of what was done: the search in a recording, the review of a task, and the comparison of two sessions."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct
from rich.cells import cell_len
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Input, Static

from agent_workbench.core.history.comparison import Comparison
from agent_workbench.core.live import ReplayPosition
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.tui.keys import Keymap, Scope, bindings
from agent_workbench.tui.panes.diff_pane import ReadOnlyDiff
from agent_workbench.tui.screens.dialog import Dialog
from agent_workbench.tui.widgets.bar import hint_line
from agent_workbench.tui.widgets.entry_list import EntryList
from agent_workbench.tui.widgets.rows import SIGNS, Row, Span, cut_line, entry_rows
from agent_workbench.views.blocks import Block, Entry, Tone
from agent_workbench.views.diff_document import DiffLine
from agent_workbench.views.record_search import RecordMatch, RecordMatches, search_more
from agent_workbench.views.reports.comparison import view_comparison
from agent_workbench.views.task_review import ReviewHunk, ReviewStep, ReviewView

MARK = "▸"
NO_STEP = ReviewStep("", "")
EMPTY = "no change of this task stands"

HINTS = {"next_change": "next change", "side_by_side": "side by side", "fold": "fold"}

MOST_CHARS = 200
SLICE_EVENTS = 200
"""Events that are searched before keys are handled again."""
AFTER_CELLS = 8
"""Cells that are kept free after a match."""
HELP = "words, of the model, the files, the checks or yourself"


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


class ChosenMatch(Struct, frozen=True):
    """The event to go to, and all events that match."""

    asked: str
    seq: int
    seqs: tuple[int, ...]


class MatchList(EntryList):
    """List of matches. Enter is handled by the screen, not by the list."""

    BINDINGS = bindings(Scope.SCROLL)
    scope = Scope.SEARCH

    def __init__(self) -> None:
        super().__init__(id="matches")
        self._matches: Sequence[RecordMatch] = ()

    def show_matches(self, matches: Sequence[RecordMatch], empty: str) -> None:
        """Show these matches."""
        self._matches = matches
        named = ((f"{number}:{each.at}:{each.length}", each) for number, each in enumerate(matches))
        self.show_entries(tuple(Entry(key, (Block(each.line),)) for key, each in named), empty=empty)

    def rows_of(self, number: int, entry: Entry, width: int) -> Iterable[Row]:
        match = self._matches[number]
        end = match.at + match.length
        parts = (match.line[: match.at], match.line[match.at : end], match.line[end:])
        before, hit, after = (_shown(part) for part in parts)
        where, kind = f"{match.seq:>6,}  {match.time[11:19]}  ", f"{match.kind:<10}  "
        room = max(0, width - len(where) - len(kind) - cell_len(hit) - AFTER_CELLS)
        if cell_len(before) > room:
            before = f"…{before[len(before) - room // 2 :]}"
        spans: tuple[Span, ...] = ((where, Tone.NUMBER), (kind, Tone.DIM), (before.lstrip(), Tone.PLAIN))
        yield Row((*spans, (hit, Tone.HIT), (after, Tone.PLAIN)), number)


def _shown(part: str) -> str:
    """Return a part of a line as inert text, with the blanks at its ends."""
    return sanitize_line(f".{part}.")[1:-1]


class RecordingSearchScreen(Dialog[ChosenMatch]):
    """Returns the chosen match."""

    BINDINGS = bindings(Scope.SEARCH, Scope.SCROLL)

    def __init__(self, keymap: Keymap, place: ReplayPosition) -> None:
        super().__init__("Search this recording", "", name="search")
        self._keymap = keymap
        self._events = place.recording.events
        self._seq = place.seq
        self._found = RecordMatches("", len(self._events))

    def body(self) -> Iterable[Widget]:
        return Input(placeholder=HELP, max_length=MOST_CHARS, compact=True), Static("", id="search-said"), MatchList()

    def on_mount(self) -> None:
        self.query_one(Input).focus()
        self._show()

    def on_input_changed(self, message: Input.Changed) -> None:
        """Start a new search; stop the previous one."""
        if message.value.strip() != self._found.asked:
            self._found = RecordMatches(message.value.strip())
            self._go_on(self._found.asked)

    def _go_on(self, asked: str) -> None:
        """Search a slice of the recording, and continue after the pending messages."""
        if asked != self._found.asked or not self.is_mounted:
            return
        self._found = search_more(self._found, self._events, SLICE_EVENTS)
        if self._found.searched < len(self._events):
            self.call_later(self._go_on, asked)
        self._show()
        if self._found.searched >= len(self._events):
            nearest = (at for at, match in enumerate(self._found.matches) if match.seq >= self._seq)
            self.query_one(MatchList).select(next(nearest, 0))

    def _show(self) -> None:
        found, matches = self._found, self.query_one(MatchList)
        done = found.searched >= len(self._events)
        matches.show_matches(found.matches, "nothing found" if done and found.asked else "")
        self.query_one("#search-said", Static).update(self._said(done=done))
        key = {each: self._keymap.first(Scope.SEARCH, each) for each in ("go_to_match", "search_again", "close_search")}
        typing = self.query_one(Input).has_focus
        others = ("↓ ↑", "choose") if typing else (key["search_again"], "words")
        self.show_keys(hint_line(((key["go_to_match"], "go there"), others, (key["close_search"], "close"))))

    def _said(self, *, done: bool) -> str:
        found = self._found
        if not found.asked:
            return "capitals count only where you write some"
        lines = f"{found.count:,} line{'' if found.count == 1 else 's'}"
        if len(found.matches) < found.count:
            lines += f", the first {len(found.matches):,} are shown"
        return lines if done else f"{lines} in {found.searched:,} of {len(self._events):,} events"

    def on_descendant_focus(self) -> None:
        self._show()

    def on_input_submitted(self) -> None:
        self.action_go_to_match()

    def action_go_to_match(self) -> None:
        at, matches = self.query_one(MatchList).cursor, self._found.matches
        if 0 <= at < len(matches):
            self.dismiss(ChosenMatch(self._found.asked, matches[at].seq, tuple(match.seq for match in matches)))

    # These keys move in the list also while the user types.
    def action_line_down(self) -> None:
        self.query_one(MatchList).action_line_down()

    def action_line_up(self) -> None:
        self.query_one(MatchList).action_line_up()

    def action_page_down(self) -> None:
        self.query_one(MatchList).action_page_down()

    def action_page_up(self) -> None:
        self.query_one(MatchList).action_page_up()

    def action_search_again(self) -> None:
        self.query_one(Input).focus()

    def action_close_search(self) -> None:
        self.dismiss(None)
