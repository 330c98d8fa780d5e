"""Every key of the workbench as data."""

from dataclasses import dataclass
from enum import StrEnum


class Scope(StrEnum):
    """Where a key counts; the words are headings of the help."""

    GATE = "Gate bar"
    REPLAY = "Replay bar"
    PLAN = "Plan"
    STEPS = "Steps"
    DIFF = "Diff"
    SCRATCHPAD = "Scratchpad"
    CODE = "Retrieved code"
    PIECE = "Piece of code"
    FIND = "Code to add"
    RECEIPT = "Context receipt"
    SCROLL = "Every pane"
    EVERYWHERE = "Everywhere"
    ALWAYS = "Also while something is asked"


@dataclass(frozen=True, slots=True)
class Key:
    """A key: the action it stands for, the keys as Textual names them, a word for hints, a sentence for the help."""

    scope: Scope
    action: str
    keys: str
    label: str
    says: str


KEYS = (
    Key(Scope.GATE, "approve", "a", "approve", "Let what waits through, exactly as it is shown."),
    Key(Scope.GATE, "reject", "r", "reject", "Refuse it; the reason you give goes to the model."),
    Key(Scope.GATE, "edit", "e", "edit", "Change the text of what waits; it is shown again before it counts."),
    Key(Scope.GATE, "skip", "s", "skip", "Go on without these checks, this command, this merge, this summary."),
    Key(Scope.GATE, "always", "A", "always", "Let this kind through by itself until the session ends; never merges."),
    Key(Scope.GATE, "retry", "t", "try again", "Try again what something outside had stopped."),
    Key(Scope.GATE, "start", "enter", "start", "Start the next task when nothing runs."),
    Key(Scope.REPLAY, "forward", "right,l", "next", "One event on."),
    Key(Scope.REPLAY, "back", "left,h", "back", "One event back."),
    Key(Scope.REPLAY, "forward_ten", "]", "+10", "Ten events on."),
    Key(Scope.REPLAY, "back_ten", "[", "−10", "Ten events back."),
    Key(Scope.REPLAY, "to_start", "home", "start", "To the first event."),
    Key(Scope.REPLAY, "to_end", "end", "end", "To the last event."),
    Key(Scope.REPLAY, "play", "space", "play", "Play, or stop playing."),
    Key(Scope.PLAN, "start_selected", "enter,s", "start", "Start the selected task when nothing runs."),
    Key(Scope.PLAN, "merge", "m", "merge", "Propose to merge the selected task, when it is done and not merged."),
    Key(Scope.STEPS, "expand", "enter,space", "expand", "Show all of the selected entry, or fold it."),
    Key(Scope.STEPS, "expand_all", "o", "expand all", "Show all of every entry, or fold them."),
    Key(Scope.DIFF, "go_right", "right,l", "right", "See more of long lines."),
    Key(Scope.DIFF, "go_left", "left,h", "left", "Back towards the beginning of long lines."),
    Key(Scope.DIFF, "wrap", "w", "wrap", "Wrap long lines, or cut them at the edge."),
    Key(Scope.DIFF, "next_change", "n", "next change", "To the next hunk or file."),
    Key(Scope.DIFF, "previous_change", "N", "previous change", "To the hunk or file before."),
    Key(Scope.SCRATCHPAD, "edit_notes", "enter,i", "edit", "Edit the notes of the task."),
    Key(Scope.CODE, "expand", "enter,space", "expand", "Show the selected piece of code, or fold it."),
    Key(Scope.CODE, "open", "o", "open", "Look at the selected piece with more room: why it came, and its lines."),
    Key(Scope.CODE, "add", "plus", "add", "Put other code before the model, by its place or by words."),
    Key(Scope.CODE, "pin", "p", "pin", "Keep the selected piece before the model, or no longer."),
    Key(Scope.CODE, "drop", "x", "drop", "Say that the piece does not matter; the next summary leaves it out."),
    Key(Scope.PIECE, "next_hit", "n", "next hit", "To the next line with a word that hit."),
    Key(Scope.PIECE, "previous_hit", "N", "hit before", "To the line with a word that hit before."),
    Key(Scope.PIECE, "pin", "p", "pin", "Keep this piece before the model, or no longer."),
    Key(Scope.PIECE, "drop", "x", "drop", "Drop this piece; the next summary leaves it out."),
    Key(Scope.PIECE, "close_piece", "o,escape,q", "close", "Back to where it was opened."),
    Key(Scope.FIND, "take", "enter", "add", "Put the selected piece before the model, pinned; or take it back."),
    Key(Scope.FIND, "expand", "space", "expand", "Show the selected piece of code, or fold it."),
    Key(Scope.FIND, "ask", "slash,i", "ask", "Ask for something else."),
    Key(Scope.FIND, "close_found", "escape,q", "close", "Back to the workbench."),
    Key(Scope.RECEIPT, "pin", "p", "pin", "Keep the selected piece of code before the model, or no longer."),
    Key(Scope.RECEIPT, "drop", "x", "drop", "Drop the selected piece of code; the next summary leaves it out."),
    Key(Scope.RECEIPT, "prompt_before", "[", "prompt before", "To the prompt before."),
    Key(Scope.RECEIPT, "prompt_after", "]", "next prompt", "To the prompt after; from the last one on, the newest."),
    Key(Scope.RECEIPT, "compact", "S", "sum up", "Make the older steps a summary now; asks first, says what it saves."),
    Key(Scope.RECEIPT, "close", "c,escape,q", "close", "Back to the workbench."),
    Key(Scope.SCROLL, "line_down", "down,j", "down", "One line or entry down."),
    Key(Scope.SCROLL, "line_up", "up,k", "up", "One line or entry up."),
    Key(Scope.SCROLL, "page_down", "pagedown,ctrl+f", "page down", "One page down."),
    Key(Scope.SCROLL, "page_up", "pageup,ctrl+b", "page up", "One page up."),
    Key(Scope.SCROLL, "to_top", "home,g", "top", "To the beginning."),
    Key(Scope.SCROLL, "to_bottom", "end,G", "end", "To the end; new steps are followed from there."),
    Key(Scope.EVERYWHERE, "focus_plan", "1", "plan", "To the plan."),
    Key(Scope.EVERYWHERE, "focus_steps", "2", "steps", "To the steps."),
    Key(Scope.EVERYWHERE, "focus_diff", "3", "diff", "To the diff."),
    Key(Scope.EVERYWHERE, "focus_scratchpad", "4", "notes", "To the scratchpad."),
    Key(Scope.EVERYWHERE, "focus_code", "5", "code", "To the retrieved code."),
    Key(Scope.EVERYWHERE, "focus_bar", "0,escape", "gate", "Back to the bar; only there something is approved."),
    Key(Scope.EVERYWHERE, "focus_following", "tab", "next pane", "To the next pane."),
    Key(Scope.EVERYWHERE, "focus_preceding", "shift+tab", "previous pane", "To the pane before."),
    Key(Scope.EVERYWHERE, "zoom", "z", "zoom", "Give the pane all the room, or give it back."),
    Key(Scope.EVERYWHERE, "tell", ":", "tell", "Say a word to the model at any time; it reads it with its next step."),
    Key(Scope.EVERYWHERE, "context", "c", "context", "What the prompt is made of, what was read again, what it cost."),
    Key(Scope.EVERYWHERE, "abort", "X", "abort", "Give the task up and roll back; asks first, keeps what was tried."),
    Key(Scope.EVERYWHERE, "help", "?", "help", "This list, the focused pane first."),
    Key(Scope.EVERYWHERE, "leave", "q", "leave", "Leave; the session is kept and can be taken up again."),
    Key(Scope.ALWAYS, "leave_anyway", "ctrl+q", "leave", "Leave, also from a dialogue."),
    Key(Scope.ALWAYS, "interrupt", "ctrl+c", "leave", "The same; while a text is edited it copies."),
    Key(Scope.ALWAYS, "palette", "ctrl+p", "palette", "Find any of these by its name."),
)  # fmt: skip
