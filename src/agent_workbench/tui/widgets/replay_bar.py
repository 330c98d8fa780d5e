"""The replay bar: where in a recorded session we stand, and the keys that move us."""

from dataclasses import dataclass

from textual.message import Message

from agent_workbench.core.intents import Intent, PlayReplay, SeekReplay, StepReplay
from agent_workbench.core.views.replay import ReplayView
from agent_workbench.core.views.tones import Tone
from agent_workbench.tui.keymap import Keymap, bindings
from agent_workbench.tui.keys import Scope
from agent_workbench.tui.widgets.bar import Bar
from agent_workbench.tui.widgets.hints import Hint
from agent_workbench.tui.widgets.rows import Span

TRACK_CELLS = 20


class ReplayBar(Bar):
    """Shows a `ReplayView`; nothing can be decided here."""

    BINDINGS = bindings(Scope.REPLAY, Scope.SCROLL)
    scope = Scope.REPLAY

    @dataclass
    class Moved(Message):
        """The user wants to be elsewhere in the session."""

        intent: Intent

    def __init__(self, keymap: Keymap) -> None:
        super().__init__(id="replay")
        self._keymap = keymap
        self._view = ReplayView(0, 0, "", "", playing=False)

    def show(self, view: ReplayView) -> None:
        """Show where we are now."""
        if view != self._view:
            self._view = view
            self.refresh()

    def badge(self) -> str:
        return "replay, playing" if self._view.playing else "replay"

    def headline(self) -> tuple[list[Span], list[Span]]:
        view = self._view
        done = round(view.share * TRACK_CELLS)
        track: list[Span] = [("━" * done, Tone.ACCENT), ("─" * (TRACK_CELLS - done), Tone.RULE)]
        place = f"  {view.position:,} of {view.count:,}  "
        return [*track, (place, Tone.STRONG), (view.event, Tone.PLAIN)], [(view.time, Tone.DIM)]

    def hints(self) -> list[Hint]:
        actions = ("back", "forward", "back_ten", "forward_ten", "to_start", "to_end", "play")
        labels = {"play": "stop" if self._view.playing else "play", "forward": "next", "back_ten": "−10"}
        labels |= {"forward_ten": "+10", "to_start": "start", "to_end": "end"}
        moves = [Hint(self._keymap.first(Scope.REPLAY, each), labels.get(each, each), each) for each in actions]
        leave = Hint(self._keymap.first(Scope.EVERYWHERE, "leave"), "leave", "screen.leave")
        help_hint = Hint(self._keymap.first(Scope.EVERYWHERE, "help"), "help", "screen.help")
        context = Hint(self._keymap.first(Scope.EVERYWHERE, "context"), "context", "screen.context")
        return [*moves, help_hint, leave, context]

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
