"""Replay bar: position in a recorded session, timeline, and keys that move in it."""

from dataclasses import dataclass

from rich.segment import Segment
from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from agent_workbench.core.history.replay_marks import MarkKind, Marks, nearest_mark
from agent_workbench.core.intents import (
    ChangeReplaySpeed,
    GoToEvent,
    Intent,
    JumpReplay,
    PlayReplay,
    SeekReplay,
    StepReplay,
)
from agent_workbench.tui.keys import Keymap, Scope, bindings
from agent_workbench.tui.widgets.bar import INDENT, Bar, Hint
from agent_workbench.tui.widgets.rows import Span
from agent_workbench.views.blocks import Tone
from agent_workbench.views.timeline import Cell, ReplayView, seq_at, view_timeline, with_position

TIMELINE_ROW = 1
HINTS = {
    "back": "back",
    "forward": "next",
    "next_diff": "diff",
    "next_failure": "failure",
    "next_decision": "decision",
    "play": "play",
    "search_record": "search",
    "faster": "faster",
    "slower": "slower",
    "next_match": "next match",
    "previous_match": "match before",
}


class ReplayBar(Bar):
    """Shows a `ReplayView`. Nothing can be decided here."""

    BINDINGS = bindings(Scope.REPLAY, Scope.SCROLL)
    scope = Scope.REPLAY

    @dataclass
    class Moved(Message):
        """The user moves to another event."""

        intent: Intent

    class SearchWanted(Message):
        """The user searches the recording."""

    class ForkWanted(Message):
        """The user forks the session at this event."""

    def __init__(self, keymap: Keymap) -> None:
        super().__init__(id="replay")
        self._keymap = keymap
        self._view = ReplayView(0, 0, "", "", playing=False, speed=1.0, marks=Marks())
        self._line: tuple[Marks, tuple[Cell | None, ...]] = (self._view.marks, ())
        self._asked, self._matches = "", tuple[int, ...]()
        self._drags = False

    def show(self, view: ReplayView) -> None:
        """Show a view."""
        if view != self._view:
            self._view = view
            self.refresh()

    def stop(self) -> None:
        """Stop playing."""
        if self._view.playing:
            self.post_message(self.Moved(PlayReplay(False)))

    def take_matches(self, asked: str, matches: tuple[int, ...]) -> None:
        """Take the events that match a search."""
        self._asked, self._matches = asked, tuple(dict.fromkeys(matches))
        self.refresh()

    def badge(self) -> str:
        speed = "" if self._view.speed == 1.0 else f" {self._view.speed:g}×"
        return f"replay, playing{speed}" if self._view.playing else f"replay{speed}"

    def headline(self) -> tuple[list[Span], list[Span]]:
        view = self._view
        place = f"{view.seq:,} of {max(0, view.count - 1):,}  "
        return [(place, Tone.STRONG), (view.event, Tone.PLAIN)], [(self._found(), Tone.DIM)]

    def _found(self) -> str:
        """Return the time of the event; at a match its number and the search before it."""
        if self._view.seq not in self._matches:
            return self._view.time
        return f"“{self._asked}” {self._matches.index(self._view.seq) + 1} of {len(self._matches)}  {self._view.time}"

    def render_line(self, y: int) -> Strip:
        if y != TIMELINE_ROW or self.size.height <= TIMELINE_ROW + 1:
            return super().render_line(y)
        width = self.size.width
        cells = max(0, width - 2 * INDENT)
        if self._line[0] is not self._view.marks or len(self._line[1]) != cells:
            self._line = (self._view.marks, view_timeline(self._view.marks, cells))
        drawn: list[Span] = [*with_position(self._line[1], self._view.seq, self._view.count)]
        line = Strip([Segment(" " * INDENT, self.rich_style), *self._segments(drawn)])
        return line.adjust_cell_length(width, self.rich_style)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return the number of lines: headline, timeline and hints."""
        return super().get_content_height(container, viewport, width) + 1

    def hints(self) -> list[Hint]:
        labels = HINTS | {"play": "stop" if self._view.playing else "play"}
        order = ["back", "forward", "play"]
        order += ["faster", "slower"] if self._view.playing else []
        order += ["next_match", "previous_match"] if self._matches else []
        order += ["next_diff", "next_failure", "next_decision", "search_record"]
        moves = [Hint(self._keymap.first(Scope.REPLAY, each), labels[each], each) for each in order]
        fork = Hint(self._keymap.first(Scope.REPLAY, "fork"), "fork", "fork", kept=True)
        everywhere = ((action, self._keymap.first(Scope.EVERYWHERE, action)) for action in ("help", "leave", "context"))
        general = (Hint(key, action, f"screen.{action}", action == "help") for action, key in everywhere)
        return [*moves, fork, *general]

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Begin to drag along the timeline."""
        offset = event.get_content_offset(self)
        if offset is not None and offset.y == TIMELINE_ROW:
            self._drags = True
            self.capture_mouse()
            self._seek_to(offset.x)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Follow the mouse while it drags."""
        if self._drags:
            self._seek_to(event.get_content_offset_capture(self).x)

    def on_mouse_up(self) -> None:
        """Stop dragging."""
        if self._drags:
            self._drags = False
            self.release_mouse()

    def _seek_to(self, x: int) -> None:
        wanted = seq_at(x - INDENT, self._view.count, self.size.width - 2 * INDENT)
        if wanted != self._view.seq:
            self.post_message(self.Moved(GoToEvent(wanted)))

    def action_forward(self) -> None:
        self.post_message(self.Moved(StepReplay(1)))

    def action_back(self) -> None:
        self.post_message(self.Moved(StepReplay(-1)))

    def action_forward_ten(self) -> None:
        self.post_message(self.Moved(StepReplay(10)))

    def action_back_ten(self) -> None:
        self.post_message(self.Moved(StepReplay(-10)))

    def action_to_start(self) -> None:
        self.post_message(self.Moved(SeekReplay(0.0)))

    def action_to_end(self) -> None:
        self.post_message(self.Moved(SeekReplay(1.0)))

    def action_play(self) -> None:
        self.post_message(self.Moved(PlayReplay(not self._view.playing)))

    def action_faster(self) -> None:
        self.post_message(self.Moved(ChangeReplaySpeed(faster=True)))

    def action_slower(self) -> None:
        self.post_message(self.Moved(ChangeReplaySpeed(faster=False)))

    def action_next_diff(self) -> None:
        self._jump(MarkKind.DIFF, forward=True)

    def action_previous_diff(self) -> None:
        self._jump(MarkKind.DIFF, forward=False)

    def action_next_failure(self) -> None:
        self._jump(MarkKind.FAILURE, forward=True)

    def action_previous_failure(self) -> None:
        self._jump(MarkKind.FAILURE, forward=False)

    def action_next_decision(self) -> None:
        self._jump(MarkKind.DECISION, forward=True)

    def action_previous_decision(self) -> None:
        self._jump(MarkKind.DECISION, forward=False)

    def action_next_word(self) -> None:
        self._jump(MarkKind.WORD, forward=True)

    def action_previous_word(self) -> None:
        self._jump(MarkKind.WORD, forward=False)

    def action_next_prompt(self) -> None:
        self._jump(MarkKind.PROMPT, forward=True)

    def action_previous_prompt(self) -> None:
        self._jump(MarkKind.PROMPT, forward=False)

    def action_next_task(self) -> None:
        self._jump(MarkKind.TASK, forward=True)

    def action_previous_task(self) -> None:
        self._jump(MarkKind.TASK, forward=False)

    def _jump(self, kind: MarkKind, *, forward: bool) -> None:
        self.post_message(self.Moved(JumpReplay(kind, forward)))

    def action_search_record(self) -> None:
        self.post_message(self.SearchWanted())

    def action_next_match(self) -> None:
        self._to_match(forward=True)

    def action_previous_match(self) -> None:
        self._to_match(forward=False)

    def _to_match(self, *, forward: bool) -> None:
        if not self._matches:
            self.action_search_record()
            return
        seq = nearest_mark(self._matches, self._view.seq, forward=forward)
        if seq is None:
            self.remark_on(f"no “{self._asked}” {'after' if forward else 'before'} this")
        else:
            self.post_message(self.Moved(GoToEvent(seq)))

    def action_fork(self) -> None:
        self.post_message(self.ForkWanted())
