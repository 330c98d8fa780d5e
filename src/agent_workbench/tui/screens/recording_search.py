"""Screen to search a recording: lists the matches while the user types, and returns the chosen one."""

from collections.abc import Iterable, Sequence

from msgspec import Struct
from rich.cells import cell_len
from textual.widget import Widget
from textual.widgets import Input, Static

from agent_workbench.core.live import ReplayPosition
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.tui.keymap import Keymap, bindings
from agent_workbench.tui.keys import Scope
from agent_workbench.tui.screens.dialog import Dialog
from agent_workbench.tui.widgets.bar import hint_line
from agent_workbench.tui.widgets.entry_list import EntryList
from agent_workbench.tui.widgets.rows import Row, Span
from agent_workbench.views.blocks import Block, Entry, Tone
from agent_workbench.views.record_search import RecordMatch, RecordMatches, search_more

MOST_CHARS = 200
SLICE_EVENTS = 200
"""Events that are searched before keys are handled again."""
AFTER_CELLS = 8
"""Cells that are kept free after a match."""
HELP = "words, of the model, the files, the checks or yourself"


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
