"""Every key of the workbench as data."""

from enum import StrEnum

from msgspec import Struct


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
    SEARCH = "Search of a recording"
    RECEIPT = "Context receipt"
    REVIEW = "Review"
    FILE = "File"
    TOUR = "Tour"
    SESSIONS = "Sessions"
    COMPARISON = "Comparison of sessions"
    ALLOW = "Rule to keep"
    RULES = "Rules"
    HELP = "Help"
    SCROLL = "Every pane"
    EVERYWHERE = "Everywhere"
    ALWAYS = "Also while something is asked"


class Key(Struct, frozen=True):
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
    Key(Scope.GATE, "edit_outside", "E", "$EDITOR", "Change it in your own editor ($VISUAL or $EDITOR)."),
    Key(Scope.GATE, "skip", "s", "skip", "Go on without these checks, this command, this merge, this summary."),
    Key(Scope.GATE, "always", "A", "always", "Let such things through by a rule from now on; asks by which."),
    Key(Scope.GATE, "pause", "p", "pause", "Stop before the model is asked again; the same key goes on."),
    Key(Scope.GATE, "retry", "t", "try again", "Try again what something outside had stopped."),
    Key(Scope.GATE, "start", "enter", "start", "Start the next task when nothing runs."),
    Key(Scope.REPLAY, "forward", "right,l", "next", "One event on."),
    Key(Scope.REPLAY, "back", "left,h", "back", "One event back."),
    Key(Scope.REPLAY, "forward_ten", "]", "+10", "Ten events on."),
    Key(Scope.REPLAY, "back_ten", "[", "−10", "Ten events back."),
    Key(Scope.REPLAY, "to_start", "home", "start", "To the first event."),
    Key(Scope.REPLAY, "to_end", "end", "end", "To the last event."),
    Key(Scope.REPLAY, "play", "space", "play", "Play, or stop playing."),
    Key(Scope.REPLAY, "faster", "plus,>", "faster", "Play faster, up to eight times as fast as it was recorded."),
    Key(Scope.REPLAY, "slower", "minus,<", "slower", "Play slower, down to half as fast."),
    Key(Scope.REPLAY, "next_diff", "d", "next diff", "To the next diff that was proposed."),
    Key(Scope.REPLAY, "previous_diff", "D", "diff before", "To the diff before."),
    Key(Scope.REPLAY, "next_failure", "e", "next failure", "To the next failure: of checks, an action, an answer."),
    Key(Scope.REPLAY, "previous_failure", "E", "failure before", "To the failure before."),
    Key(Scope.REPLAY, "next_decision", "v", "next decision", "To the next verdict of the gate, by whomever."),
    Key(Scope.REPLAY, "previous_decision", "V", "decision before", "To the decision before."),
    Key(Scope.REPLAY, "next_word", "w", "next word", "To the next word of yours to the model."),
    Key(Scope.REPLAY, "previous_word", "W", "word before", "To the word of yours before."),
    Key(Scope.REPLAY, "next_prompt", "p", "next prompt", "To the next prompt; its receipt is behind the context key."),
    Key(Scope.REPLAY, "previous_prompt", "P", "prompt before", "To the prompt before."),
    Key(Scope.REPLAY, "next_task", "t", "next task", "To the next beginning or end of a task."),
    Key(Scope.REPLAY, "previous_task", "T", "task before", "To the beginning or end of a task before."),
    Key(Scope.REPLAY, "search_record", "slash", "search", "Look for words in everything that was said and done."),
    Key(Scope.REPLAY, "next_match", "n", "next match", "To the next event that holds the words."),
    Key(Scope.REPLAY, "previous_match", "N", "match before", "To the event before that holds the words."),
    Key(Scope.REPLAY, "fork", "F", "fork", "Begin a new session from here, which goes its own way; asks first."),
    Key(Scope.PLAN, "start_selected", "enter,s", "start", "Start the selected task when nothing runs."),
    Key(Scope.PLAN, "merge", "m", "merge", "Propose to merge the selected task, when it is done and not merged."),
    Key(Scope.PLAN, "edit_task", "e", "edit", "Edit the YAML of the selected task; what runs goes on as it began."),
    Key(Scope.PLAN, "new_task", "n", "new task", "Write a new task behind the selected one."),
    Key(Scope.PLAN, "block", "b", "block", "Keep the selected task from being started, with a reason; or let it be."),
    Key(Scope.PLAN, "move_down", "J", "move down", "Bring the selected task behind the one below it."),
    Key(Scope.PLAN, "move_up", "K", "move up", "Bring the selected task before the one above it."),
    Key(Scope.PLAN, "show_yaml", "o", "YAML", "Show the YAML of the selected task as it stands in the plan's file."),
    Key(Scope.PLAN, "edit_plan", "E", "edit all", "Edit the YAML of the whole plan, also of one that cannot be read."),
    Key(Scope.STEPS, "expand", "enter,space", "expand", "Show all of the selected entry, or fold it."),
    Key(Scope.STEPS, "expand_all", "o", "expand all", "Show all of every entry, or fold them."),
    Key(Scope.STEPS, "go_to_failure", "f", "failure", "To the line of the selected failure, in diff or file."),
    Key(Scope.DIFF, "go_right", "right,l", "right", "See more of long lines."),
    Key(Scope.DIFF, "go_left", "left,h", "left", "Back towards the beginning of long lines."),
    Key(Scope.DIFF, "wrap", "w", "wrap", "Wrap long lines, or cut them at the edge."),
    Key(Scope.DIFF, "take_hunk", "space", "take or leave", "Leave the hunk or the range under the cursor, or take it."),
    Key(Scope.DIFF, "select_lines", "v", "range", "Begin a range of lines at the cursor; space leaves only these."),
    Key(Scope.DIFF, "next_change", "n,J,}", "next change", "To the next hunk or file."),
    Key(Scope.DIFF, "previous_change", "N,K,{", "previous change", "To the hunk or file before."),
    Key(Scope.DIFF, "result", "=", "result", "The diff as it would be applied, without what is left; or all of it."),
    Key(Scope.DIFF, "why_left", "W", "why", "Say why this hunk is left, or say it otherwise; the model reads it."),
    Key(Scope.DIFF, "edit_hunk", "e", "edit", "Change the hunk under the cursor; the diff is shown again after that."),
    Key(Scope.DIFF, "edit_hunk_outside", "E", "$EDITOR", "Change the hunk under the cursor in your own editor."),
    Key(Scope.DIFF, "side_by_side", "s", "side by side", "Old and new side by side, or in one; wide panes begin so."),
    Key(Scope.DIFF, "fold", "enter,o", "fold", "Fold the file here, or unfold what is folded."),
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
    Key(Scope.SEARCH, "go_to_match", "enter", "go there", "Go to the selected match; n and N go on to others."),
    Key(Scope.SEARCH, "search_again", "slash,i", "words", "Look for other words."),
    Key(Scope.SEARCH, "close_search", "escape,q", "close", "Back to the recording."),
    Key(Scope.RECEIPT, "pin", "p", "pin", "Keep the selected piece of code before the model, or no longer."),
    Key(Scope.RECEIPT, "drop", "x", "drop", "Drop the selected piece of code; the next summary leaves it out."),
    Key(Scope.RECEIPT, "prompt_before", "[", "prompt before", "To the prompt before."),
    Key(Scope.RECEIPT, "prompt_after", "]", "next prompt", "To the prompt after; from the last one on, the newest."),
    Key(Scope.RECEIPT, "compact", "S", "sum up", "Make the older steps a summary now; asks first, says what it saves."),
    Key(Scope.RECEIPT, "close", "c,escape,q", "close", "Back to the workbench."),
    Key(Scope.REVIEW, "go_to_step", "enter", "step", "To the step that made the selected change, in the steps."),
    Key(Scope.REVIEW, "close_review", "R,escape,q", "close", "Back to the workbench."),
    Key(Scope.ALLOW, "keep_rule", "enter", "keep", "Keep the selected rule; what waits goes through by it."),
    Key(Scope.ALLOW, "next_place", "tab,right,l", "where", "Keep it for somebody else, or for longer."),
    Key(Scope.ALLOW, "previous_place", "shift+tab,left,h", "where before", "The place before."),
    Key(Scope.ALLOW, "close_offer", "escape,q", "close", "Keep no rule; what waits goes on waiting."),
    Key(Scope.RULES, "revoke_rule", "x", "revoke", "Take the selected rule back, where it is kept too; asks first."),
    Key(Scope.RULES, "close_rules", "L,escape,q", "close", "Back to the workbench."),
    Key(Scope.SESSIONS, "open_session", "enter", "open", "Go on with the selected session, or see it again."),
    Key(Scope.SESSIONS, "see_again", "r", "see again", "See the selected session again, step by step."),
    Key(Scope.SESSIONS, "fork_session", "F", "fork", "Begin a new session where the selected one ends; asks first."),
    Key(Scope.SESSIONS, "verify_session", "v", "prove", "Prove that the session's journal is whole and unchanged."),
    Key(Scope.SESSIONS, "export_session", "x", "export", "Write the session as markdown into a new file of the repo."),
    Key(Scope.SESSIONS, "mark_session", "m", "mark", "Mark the selected session, to compare another one with it."),
    Key(Scope.SESSIONS, "compare_session", "=", "compare", "The marked session, or else its parent, beside this one."),
    Key(Scope.SESSIONS, "close_sessions", "S,escape,q", "close", "Back to the workbench."),
    Key(Scope.COMPARISON, "close_comparison", "=,escape,q", "close", "Back to the sessions."),
    Key(Scope.FILE, "close_file", "f,escape,q", "close", "Back to the workbench."),
    Key(Scope.TOUR, "next_page", "enter,right,l,space", "next", "The next page; after the last one, to the workbench."),
    Key(Scope.TOUR, "page_before", "left,h", "back", "The page before."),
    Key(Scope.TOUR, "close_tour", "escape,q", "skip", "To the workbench."),
    Key(Scope.HELP, "search_keys", "slash,i", "words", "Look for keys by words of what they do."),
    Key(Scope.HELP, "close_help", "?,escape,q", "close", "Back to the workbench; from the words to all keys first."),
    Key(Scope.SCROLL, "line_down", "down,j", "down", "One line or entry down."),
    Key(Scope.SCROLL, "line_up", "up,k", "up", "One line or entry up."),
    Key(Scope.SCROLL, "page_down", "pagedown,ctrl+f", "page down", "One page down."),
    Key(Scope.SCROLL, "page_up", "pageup,ctrl+b", "page up", "One page up."),
    Key(Scope.SCROLL, "to_top", "home,g", "top", "To the beginning."),
    Key(Scope.SCROLL, "to_bottom", "end,G", "end", "To the end; new steps are followed from there."),
    Key(Scope.SCROLL, "copy", "y", "copy", "Copy what the mouse selected, else what the cursor is on."),
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
    Key(Scope.EVERYWHERE, "review", "R", "review", "All changes of the task as one diff, with the step behind each."),
    Key(Scope.EVERYWHERE, "rules", "L", "rules", "The rules that count, and how often each was used; revokes them."),
    Key(Scope.EVERYWHERE, "sessions", "S", "sessions", "All sessions of the repo: open, fork, export or prove one."),
    Key(Scope.EVERYWHERE, "new_tab", "ctrl+t", "new tab", "Another session in a tab beside this one."),
    Key(Scope.EVERYWHERE, "next_tab", "full_stop", "next tab", "To the next session's tab."),
    Key(Scope.EVERYWHERE, "previous_tab", "comma", "tab before", "To the session's tab before."),
    Key(Scope.EVERYWHERE, "waiting_tab", "exclamation_mark", "who waits", "To the next tab in which something waits."),
    Key(Scope.EVERYWHERE, "undo", "u", "undo", "Take the last diff back, files and all; asks first, tells the model."),
    Key(Scope.EVERYWHERE, "abort", "X", "abort", "Give the task up and roll back; asks first, keeps what was tried."),
    Key(Scope.EVERYWHERE, "help", "?", "help", "This list, the focused pane first."),
    Key(Scope.EVERYWHERE, "tour", "f1", "tour", "A short tour of the workbench."),
    Key(Scope.EVERYWHERE, "leave", "q", "leave", "Leave this session; it is kept and can be taken up again."),
    Key(Scope.ALWAYS, "next_tab", "ctrl+pagedown", "next tab", "To the next session's tab."),
    Key(Scope.ALWAYS, "previous_tab", "ctrl+pageup", "tab before", "To the session's tab before."),
    Key(Scope.ALWAYS, "leave_anyway", "ctrl+q", "leave", "Leave all sessions, also from a dialogue."),
    Key(Scope.ALWAYS, "interrupt", "ctrl+c", "leave", "The same; while text is edited or selected it copies."),
    Key(Scope.ALWAYS, "picture", "ctrl+o", "picture", "Keep a picture (SVG) of the screen in a new file here."),
    Key(Scope.ALWAYS, "palette", "ctrl+p", "palette", "Find any of these by its name."),
)  # fmt: skip
