"""All keys of the workbench as data, and the bindings and hints made from them and from the user's changes."""

from collections import Counter
from collections.abc import Iterator, Mapping
from enum import StrEnum

from msgspec import Struct
from textual.binding import Binding, BindingType


class Scope(StrEnum):
    """Part of the workbench in which a key works; the values are headings of the help."""

    GATE = "Gate bar"
    REPLAY = "Replay bar"
    PLAN = "Plan"
    STEPS = "Steps"
    DIFF = "Diff"
    SCRATCHPAD = "Scratchpad"
    CODE = "Retrieved code"
    ADVICE = "Advice"
    PIECE = "Piece of code"
    FIND = "Code to add"
    SEARCH = "Search of a recording"
    RECEIPT = "Context receipt"
    REVIEW = "Review"
    FILE = "File"
    TOUR = "Tour"
    SESSIONS = "Sessions"
    COMPARISON = "Comparison of sessions"
    DRAFT = "Task to start"
    ALLOW = "Rule to keep"
    RULES = "Rules"
    MODELS = "Models"
    KNOWLEDGE = "Knowledge"
    INBOX = "Inbox"
    PROGRESS = "Plan in the queue"
    AUDIT = "Audit"
    HELP = "Help"
    SCROLL = "Every pane"
    EVERYWHERE = "Everywhere"
    ALWAYS = "Also in dialogs"


class Key(Struct, frozen=True):
    """A key binding: action, keys by Textual's names, label for hints, and a sentence for the help."""

    scope: Scope
    action: str
    keys: str
    label: str
    help: str


KEYS = (
    Key(Scope.GATE, "approve", "a", "approve", "Approve exactly what is shown."),
    Key(Scope.GATE, "reject", "r", "reject", "Reject it; the model reads your reason."),
    Key(Scope.GATE, "edit", "e", "edit", "Edit the proposal; it is shown again before you approve it."),
    Key(Scope.GATE, "edit_outside", "E", "$EDITOR", "Edit it in your own editor ($VISUAL or $EDITOR)."),
    Key(Scope.GATE, "skip", "s", "skip", "Skip these checks, this command, this merge or this summary."),
    Key(Scope.GATE, "always", "A", "always", "Approve such proposals by a rule from now on; asks for the rule."),
    Key(Scope.GATE, "method", "m", "method", "Merge by another method: fast-forward, merge, squash or rebase."),
    Key(Scope.GATE, "pause", "p", "pause", "Pause before the next request to the model, or continue."),
    Key(Scope.GATE, "retry", "t", "try again", "Retry after an error outside of the workbench."),
    Key(Scope.GATE, "start", "enter", "start", "Start the next task, or send its first prompt."),
    Key(Scope.REPLAY, "forward", "right,l", "next", "Go one event forward."),
    Key(Scope.REPLAY, "back", "left,h", "back", "Go one event back."),
    Key(Scope.REPLAY, "forward_ten", "]", "+10", "Go ten events forward."),
    Key(Scope.REPLAY, "back_ten", "[", "−10", "Go ten events back."),
    Key(Scope.REPLAY, "to_start", "home", "start", "Go to the first event."),
    Key(Scope.REPLAY, "to_end", "end", "end", "Go to the last event."),
    Key(Scope.REPLAY, "play", "space", "play", "Play, or stop."),
    Key(Scope.REPLAY, "faster", "plus,>", "faster", "Play faster, up to eight times the recorded speed."),
    Key(Scope.REPLAY, "slower", "minus,<", "slower", "Play slower, down to half the recorded speed."),
    Key(Scope.REPLAY, "next_diff", "d", "next diff", "Go to the next proposed diff."),
    Key(Scope.REPLAY, "previous_diff", "D", "previous diff", "Go to the previous proposed diff."),
    Key(Scope.REPLAY, "next_failure", "e", "next failure", "Go to the next failure of checks, an action or an answer."),
    Key(Scope.REPLAY, "previous_failure", "E", "previous failure", "Go to the previous failure."),
    Key(Scope.REPLAY, "next_decision", "v", "next decision", "Go to the next decision, by the user or the policy."),
    Key(Scope.REPLAY, "previous_decision", "V", "previous decision", "Go to the previous decision."),
    Key(Scope.REPLAY, "next_word", "w", "next message", "Go to your next message to the model."),
    Key(Scope.REPLAY, "previous_word", "W", "previous message", "Go to your previous message to the model."),
    Key(Scope.REPLAY, "next_prompt", "p", "next prompt", "Go to the next prompt; the context key shows its receipt."),
    Key(Scope.REPLAY, "previous_prompt", "P", "previous prompt", "Go to the previous prompt."),
    Key(Scope.REPLAY, "next_task", "t", "next task", "Go to the next start or end of a task."),
    Key(Scope.REPLAY, "previous_task", "T", "previous task", "Go to the previous start or end of a task."),
    Key(Scope.REPLAY, "search_record", "slash", "search", "Search the recording."),
    Key(Scope.REPLAY, "next_match", "n", "next match", "Go to the next match of the search."),
    Key(Scope.REPLAY, "previous_match", "N", "previous match", "Go to the previous match of the search."),
    Key(Scope.REPLAY, "fork", "F", "fork", "Fork: start a new session from this event; asks first."),
    Key(Scope.PLAN, "take_task", "space", "take or leave", "Leave out the selected proposed task, or take it."),
    Key(Scope.PLAN, "append_or_replace", "=", "append or replace", "Append the proposed tasks, or replace the plan."),
    Key(Scope.PLAN, "start_selected", "enter,s", "start", "Start the selected task."),
    Key(Scope.PLAN, "merge", "m", "merge", "Propose to merge the selected task, if it is done and not merged."),
    Key(Scope.PLAN, "pull_request", "p", "pull request", "Open a pull request of the selected task, if it is done."),
    Key(Scope.PLAN, "edit_task", "e", "edit", "Edit the YAML of the selected task; a running task keeps its own copy."),
    Key(Scope.PLAN, "new_task", "n", "new task", "Add a task after the selected one."),
    Key(Scope.PLAN, "block", "b", "block", "Block or unblock the selected task."),
    Key(Scope.PLAN, "move_down", "J", "move down", "Move the selected task down."),
    Key(Scope.PLAN, "move_up", "K", "move up", "Move the selected task up."),
    Key(Scope.PLAN, "ask_plan", "P", "ask for a plan", "Ask the model for a plan; its tasks are proposed here."),
    Key(Scope.PLAN, "show_yaml", "o", "YAML", "Show the YAML of the selected task as it is in the plan's file."),
    Key(Scope.PLAN, "edit_plan", "E", "edit all", "Edit the YAML of the whole plan, even if it is invalid."),
    Key(Scope.STEPS, "expand", "enter,space", "expand", "Expand or fold the selected entry."),
    Key(Scope.STEPS, "expand_all", "o", "expand all", "Expand or fold all entries."),
    Key(Scope.STEPS, "go_to_failure", "f", "failure", "Go to the line of the selected failure, in diff or file."),
    Key(Scope.DIFF, "go_right", "right,l", "right", "Scroll right."),
    Key(Scope.DIFF, "go_left", "left,h", "left", "Scroll left."),
    Key(Scope.DIFF, "wrap", "w", "wrap", "Wrap long lines, or cut them at the edge."),
    Key(Scope.DIFF, "take_hunk", "space", "take or leave", "Leave out the hunk or the selected lines, or take them."),
    Key(Scope.DIFF, "select_lines", "v", "range", "Select a range of lines; space leaves out only these."),
    Key(Scope.DIFF, "next_change", "n,J,}", "next change", "Go to the next hunk or file."),
    Key(Scope.DIFF, "previous_change", "N,K,{", "previous change", "Go to the previous hunk or file."),
    Key(Scope.DIFF, "result", "=", "result", "Show the diff as it would be applied, or all of it again."),
    Key(Scope.DIFF, "why_left", "W", "why", "Give or change the reason why this hunk is left out; the model reads it."),
    Key(Scope.DIFF, "edit_hunk", "e", "edit", "Edit the hunk under the cursor; the diff is shown again."),
    Key(Scope.DIFF, "edit_hunk_outside", "E", "$EDITOR", "Edit the hunk under the cursor in your own editor."),
    Key(Scope.DIFF, "side_by_side", "s", "side by side", "Show old and new side by side, or in one column."),
    Key(Scope.DIFF, "fold", "enter,o", "fold", "Fold or unfold the file or the unchanged lines here."),
    Key(Scope.SCRATCHPAD, "edit_notes", "enter,i", "edit", "Edit the notes of the task."),
    Key(Scope.CODE, "expand", "enter,space", "expand", "Expand or fold the selected piece of code."),
    Key(Scope.CODE, "open", "o", "open", "Open the selected piece: its lines, and why it was retrieved."),
    Key(Scope.CODE, "add", "plus,at", "add", "Add other code to the prompt, by path or search words."),
    Key(Scope.CODE, "pin", "p", "pin", "Pin the selected piece, so that it stays in the prompt, or unpin it."),
    Key(Scope.CODE, "drop", "x", "drop", "Drop the selected piece from the prompt at the next summary."),
    Key(Scope.ADVICE, "go_to_finding", "enter,f", "go there", "Go to the line of the finding, in diff or file."),
    Key(Scope.ADVICE, "next_finding", "n,J", "next finding", "Go to the next finding that names a line."),
    Key(Scope.ADVICE, "previous_finding", "N,K", "previous finding", "Go to the previous finding that names a line."),
    Key(Scope.ADVICE, "close_advice", "x", "close", "Close the pane until the next consultation."),
    Key(Scope.PIECE, "next_hit", "n", "next hit", "Go to the next line with a search word."),
    Key(Scope.PIECE, "previous_hit", "N", "previous hit", "Go to the previous line with a search word."),
    Key(Scope.PIECE, "pin", "p", "pin", "Pin this piece, so that it stays in the prompt, or unpin it."),
    Key(Scope.PIECE, "drop", "x", "drop", "Drop this piece from the prompt at the next summary."),
    Key(Scope.PIECE, "close_piece", "o,escape,q", "close", "Back to where it was opened."),
    Key(Scope.FIND, "take", "enter", "add", "Add the selected piece to the prompt, pinned, or remove it."),
    Key(Scope.FIND, "expand", "space", "expand", "Expand or fold the selected piece of code."),
    Key(Scope.FIND, "ask", "slash,i", "search", "Search again."),
    Key(Scope.FIND, "close_found", "escape,q", "close", "Back to the workbench."),
    Key(Scope.SEARCH, "go_to_match", "enter", "go there", "Go to the selected match; n and N go to others."),
    Key(Scope.SEARCH, "search_again", "slash,i", "search", "Search for other words."),
    Key(Scope.SEARCH, "close_search", "escape,q", "close", "Back to the recording."),
    Key(Scope.RECEIPT, "pin", "p", "pin", "Pin the selected piece of code, so that it stays, or unpin it."),
    Key(Scope.RECEIPT, "drop", "x", "drop", "Drop the selected piece of code; from a sent prompt at the next summary."),
    Key(Scope.RECEIPT, "add_code", "at,plus", "add", "Add other code to the prompt, by path or search words."),
    Key(Scope.RECEIPT, "send", "enter", "send", "Send the first prompt of the task, which waits until then."),
    Key(Scope.RECEIPT, "prompt_before", "[", "previous prompt", "Go to the previous prompt."),
    Key(Scope.RECEIPT, "prompt_after", "]", "next prompt", "Go to the next prompt; after the last, show each new one."),
    Key(Scope.RECEIPT, "compact", "S", "summarize", "Summarize the older steps now; asks first."),
    Key(Scope.RECEIPT, "close", "c,escape,q", "close", "Back to the workbench."),
    Key(Scope.REVIEW, "go_to_step", "enter", "step", "Go to the step that made the selected change."),
    Key(Scope.REVIEW, "close_review", "R,escape,q", "close", "Back to the workbench."),
    Key(Scope.DRAFT, "start_draft", "enter", "start", "Add the task to the plan and start it."),
    Key(Scope.DRAFT, "add_draft", "a", "add", "Add the task to the plan, and start nothing."),
    Key(Scope.DRAFT, "edit_draft", "e", "edit", "Edit the YAML of the task before it is added."),
    Key(Scope.DRAFT, "close_draft", "escape,q", "back", "Back to the words; nothing is written."),
    Key(Scope.ALLOW, "keep_rule", "enter", "keep", "Keep the selected rule and approve the proposal by it."),
    Key(Scope.ALLOW, "next_place", "tab,right,l", "where", "Change for how long, and for whom, the rule is kept."),
    Key(Scope.ALLOW, "previous_place", "shift+tab,left,h", "where, back", "Go back in the same list."),
    Key(Scope.ALLOW, "close_offer", "escape,q", "close", "Keep no rule; the proposal still waits."),
    Key(Scope.KNOWLEDGE, "read_note", "enter,space", "read", "Show the whole text of the selected note, or fold it."),
    Key(Scope.KNOWLEDGE, "edit_note", "e", "edit", "Edit the selected note."),
    Key(Scope.KNOWLEDGE, "add_rejected", "plus,at", "add", "Offer notes of what you rejected in the newest task."),
    Key(Scope.KNOWLEDGE, "search_notes", "slash,i", "search", "Search the notes."),
    Key(Scope.KNOWLEDGE, "close_knowledge", "M,escape,q", "close", "Back to the workbench."),
    Key(Scope.RULES, "revoke_rule", "x", "revoke", "Revoke the selected rule; asks first."),
    Key(Scope.RULES, "close_rules", "L,escape,q", "close", "Back to the workbench."),
    Key(Scope.MODELS, "switch_model", "enter", "switch", "Switch the task to the selected model; it reads all again."),
    Key(Scope.MODELS, "settings_model", "b", "settings", "Switch the task back to the model of the settings."),
    Key(Scope.MODELS, "load_model", "plus", "load", "Load the selected model into the server's memory."),
    Key(Scope.MODELS, "unload_model", "x", "unload", "Unload the selected model from the server's memory."),
    Key(Scope.MODELS, "ask_servers", "ctrl+r", "ask again", "Ask the servers again for their models."),
    Key(Scope.MODELS, "close_models", "O,escape,q", "close", "Back to the workbench."),
    Key(Scope.SESSIONS, "open_session", "enter", "open", "Resume a session, replay an ended one, follow an open one."),
    Key(Scope.SESSIONS, "see_again", "r", "replay", "Replay the selected session, event by event."),
    Key(Scope.SESSIONS, "fork_session", "F", "fork", "Fork the selected session at its end; asks first."),
    Key(Scope.SESSIONS, "verify_session", "v", "verify", "Verify that the session's journal is whole and unchanged."),
    Key(Scope.SESSIONS, "export_session", "E", "export", "Export the session as Markdown into a new file."),
    Key(Scope.SESSIONS, "mark_session", "m", "mark", "Mark the selected session, to compare another one with it."),
    Key(Scope.SESSIONS, "compare_session", "=", "compare", "Compare with the marked session, or else with the parent."),
    Key(Scope.SESSIONS, "close_sessions", "S,escape,q", "close", "Back to the workbench."),
    Key(Scope.INBOX, "open_item", "enter", "open", "Show the session of the selected proposal, to decide it."),
    Key(Scope.INBOX, "open_its_session", "o", "open here", "Open the session, so that it goes on in this window."),
    Key(Scope.INBOX, "close_inbox", "I,escape,q", "close", "Back to the workbench."),
    Key(Scope.PROGRESS, "dispatch_plan", "D", "dispatch", "Put the approved tasks into the queue; asks first."),
    Key(Scope.PROGRESS, "open_task", "enter", "open", "Follow the session of the selected task, or replay it."),
    Key(Scope.PROGRESS, "cancel_task", "x", "take back", "Take the selected task back from the queue; asks first."),
    Key(Scope.PROGRESS, "cancel_rest", "X", "take all back", "Take back all that is queued or running; asks first."),
    Key(Scope.PROGRESS, "plan_rest", "P", "plan anew", "Ask the model for a new plan of what is not over."),
    Key(Scope.PROGRESS, "close_progress", "Q,escape,q", "close", "Back to the workbench."),
    Key(Scope.AUDIT, "open_record", "enter", "replay", "Replay the session of the selected record, at its event."),
    Key(Scope.AUDIT, "next_view", "]", "view", "List tasks, decisions or costs."),
    Key(Scope.AUDIT, "filter_status", "s", "status", "Show tasks of all states, failed ones, or done ones."),
    Key(Scope.AUDIT, "filter_service", "slash,i", "service", "Show what belongs to one service only."),
    Key(Scope.AUDIT, "filter_intent", "t", "intent", "Show one kind of work only: infra, research or code."),
    Key(Scope.AUDIT, "filter_days", "d", "days", "Look back over 30 days, 90, one, or seven."),
    Key(Scope.AUDIT, "close_audit", "U,escape,q", "close", "Back to the workbench."),
    Key(Scope.COMPARISON, "close_comparison", "=,escape,q", "close", "Back to the sessions."),
    Key(Scope.FILE, "close_file", "f,escape,q", "close", "Back to the workbench."),
    Key(Scope.TOUR, "next_page", "enter,right,l", "next", "The next page; after the last one, to the workbench."),
    Key(Scope.TOUR, "page_before", "left,h", "back", "The previous page."),
    Key(Scope.TOUR, "close_tour", "escape,q", "skip", "To the workbench."),
    Key(Scope.HELP, "search_keys", "slash,i", "search", "Search keys by what they do."),
    Key(Scope.HELP, "close_help", "?,escape,q", "close", "Back to the workbench; from a search to all keys first."),
    Key(Scope.SCROLL, "line_down", "down,j", "down", "One line or entry down."),
    Key(Scope.SCROLL, "line_up", "up,k", "up", "One line or entry up."),
    Key(Scope.SCROLL, "page_down", "pagedown,ctrl+f", "page down", "One page down."),
    Key(Scope.SCROLL, "page_up", "pageup,ctrl+b", "page up", "One page up."),
    Key(Scope.SCROLL, "to_top", "home,g", "top", "Go to the beginning."),
    Key(Scope.SCROLL, "to_bottom", "end,G", "end", "Go to the end, and follow new steps."),
    Key(Scope.SCROLL, "copy", "y", "copy", "Copy the selected text, or what the cursor is on."),
    Key(Scope.EVERYWHERE, "focus_plan", "1", "plan", "Focus the plan."),
    Key(Scope.EVERYWHERE, "focus_steps", "2", "steps", "Focus the steps."),
    Key(Scope.EVERYWHERE, "focus_diff", "3", "diff", "Focus the diff."),
    Key(Scope.EVERYWHERE, "focus_scratchpad", "4", "notes", "Focus the scratchpad."),
    Key(Scope.EVERYWHERE, "focus_code", "5", "code", "Focus the retrieved code."),
    Key(Scope.EVERYWHERE, "focus_advice", "6", "advice", "Focus the advice of a consultant, if there is any."),
    Key(Scope.EVERYWHERE, "focus_bar", "0", "gate", "Focus the gate bar; only there a proposal is approved."),
    Key(Scope.EVERYWHERE, "stop", "escape", "stop", "Back to the bar; there, stop what runs, and return to mode ask."),
    Key(Scope.EVERYWHERE, "change_mode", "shift+tab", "mode", "Change the mode: ask, accept edits, accept until done."),
    Key(Scope.EVERYWHERE, "focus_following", "tab", "next pane", "Focus the next pane."),
    Key(Scope.EVERYWHERE, "zoom", "z", "zoom", "Give the pane all the room, or give it back."),
    Key(Scope.EVERYWHERE, "tell", ":", "say", "Say in words a task, or a message to the model; @ and / complete."),
    Key(Scope.EVERYWHERE, "context", "c", "context", "Show the parts of the prompt, and what each of them cost."),
    Key(Scope.EVERYWHERE, "review", "R", "review", "Show all changes of the task as one diff, each with its step."),
    Key(Scope.EVERYWHERE, "consult", "C", "consult", "Ask a consultant: the waiting diff, a failed check, a task."),
    Key(Scope.EVERYWHERE, "rules", "L", "rules", "Show the rules in force, and revoke them."),
    Key(Scope.EVERYWHERE, "models", "O", "models", "Show the models of the servers: load, unload, switch the task."),
    Key(Scope.EVERYWHERE, "knowledge", "M", "knowledge", "Search, read and edit the notes that outlive a task."),
    Key(Scope.EVERYWHERE, "sessions", "S", "sessions", "List the sessions: resume, replay, fork or verify one."),
    Key(Scope.EVERYWHERE, "inbox", "I", "inbox", "Show what waits in all sessions of the repository, and decide it."),
    Key(Scope.EVERYWHERE, "progress", "Q", "queue", "Show the plan in the queue: dispatch, follow and cancel tasks."),
    Key(Scope.EVERYWHERE, "audit", "U", "audit", "List how tasks ended, who decided what, and what it cost."),
    Key(Scope.EVERYWHERE, "new_tab", "ctrl+t", "new tab", "Start another session in a new tab."),
    Key(Scope.EVERYWHERE, "new_chat", "H", "new chat", "Talk with the model in a new tab; it changes nothing."),
    Key(Scope.EVERYWHERE, "make_task", "Y", "make a task", "Make a task of your newest message in a chat."),
    Key(Scope.EVERYWHERE, "next_tab", "full_stop", "next tab", "Go to the next tab."),
    Key(Scope.EVERYWHERE, "previous_tab", "comma", "previous tab", "Go to the previous tab."),
    Key(Scope.EVERYWHERE, "waiting_tab", "exclamation_mark", "next item", "Go to what waits next, also in the inbox."),
    Key(Scope.EVERYWHERE, "undo", "u", "undo", "Undo the last diff, files included; asks first, tells the model."),
    Key(Scope.EVERYWHERE, "abort", "X", "abort", "Abort the task and roll back; asks first, keeps the journal."),
    Key(Scope.EVERYWHERE, "help", "?", "help", "Show all keys, those of the focused pane first."),
    Key(Scope.EVERYWHERE, "suspend", "ctrl+z", "suspend", "Go to the shell that opened it; `fg` there comes back."),
    Key(Scope.EVERYWHERE, "tour", "f1", "tour", "Take a short tour of the workbench."),
    Key(Scope.EVERYWHERE, "leave", "q", "leave", "Leave this session; it can be resumed."),
    Key(Scope.ALWAYS, "next_tab", "ctrl+pagedown", "next tab", "Go to the next tab."),
    Key(Scope.ALWAYS, "previous_tab", "ctrl+pageup", "previous tab", "Go to the previous tab."),
    Key(Scope.ALWAYS, "leave_anyway", "ctrl+q", "leave", "Leave all sessions, also from a dialog."),
    Key(Scope.ALWAYS, "interrupt", "ctrl+c", "leave", "Copy in text; elsewhere, twice within 2 s, leave this session."),
    Key(Scope.ALWAYS, "picture", "ctrl+o", "picture", "Save a picture (SVG) of the screen in a new file here."),
    Key(Scope.ALWAYS, "palette", "ctrl+p", "palette", "Find any action by its name."),
)  # fmt: skip

PRIORITY = frozenset({Scope.ALWAYS})
DIALOG_SCOPES = frozenset(
    {
        Scope.DRAFT,
        Scope.ALLOW,
        Scope.RULES,
        Scope.MODELS,
        Scope.KNOWLEDGE,
        Scope.INBOX,
        Scope.PROGRESS,
        Scope.AUDIT,
        Scope.RECEIPT,
        Scope.REVIEW,
        Scope.FILE,
        Scope.TOUR,
        Scope.SESSIONS,
        Scope.COMPARISON,
        Scope.PIECE,
        Scope.FIND,
        Scope.SEARCH,
        Scope.HELP,
    }
)
NAMES = {
    "enter": "Enter",
    "space": "Space",
    "escape": "Esc",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
    "pagedown": "PgDn",
    "pageup": "PgUp",
    "home": "Home",
    "end": "End",
    "tab": "Tab",
    "shift+tab": "Shift-Tab",
    "plus": "+",
    "at": "@",
    "minus": "-",
    "slash": "/",
    "full_stop": ".",
    "comma": ",",
    "exclamation_mark": "!",
}

REPLACED = {f"{name}_item": name for name in ("approve", "reject", "skip")} | {"close_item": "leave"}
"""Names of earlier versions, each with the name of the key that does the same now."""

_USES = Counter(key.action for key in KEYS)


def binding_id(key: Key) -> str:
    """Return the name by which a user changes a key (the setting `ui.keys`)."""
    return f"{key.scope.name.lower()}_{key.action}" if _USES[key.action] > 1 else key.action


def bindings(*scopes: Scope) -> list[BindingType]:
    """Return the bindings of these scopes, for the `BINDINGS` of a widget, screen or app."""
    return [
        Binding(key.keys, key.action, key.label, show=False, priority=key.scope in PRIORITY, id=binding_id(key))
        for key in KEYS
        if key.scope in scopes
    ]


def key_name(key: str) -> str:
    """Return a key as people write it."""
    if key.startswith("ctrl+"):
        rest = key.removeprefix("ctrl+")
        return f"Ctrl-{NAMES.get(rest, rest.upper())}"
    return NAMES.get(key, key)


class Keymap:
    """The keys with the user's changes (`moved`). `unknown` are names of changes that no key has."""

    def __init__(self, moved: Mapping[str, str]) -> None:
        self.move(moved)

    def move(self, moved: Mapping[str, str]) -> None:
        """Replace the user's changes."""
        known = {binding_id(key) for key in KEYS}
        self.moved = {name: keys for name, keys in moved.items() if name in known and keys.strip()}
        self.unknown = tuple(name for name in moved if name not in known)

    def names(self, key: Key) -> tuple[str, ...]:
        """Return the keys of an action as people write them."""
        keys = self.moved.get(binding_id(key), key.keys)
        return tuple(key_name(each.strip()) for each in keys.split(",") if each.strip())

    def first(self, scope: Scope, action: str) -> str:
        """Return the first key of an action, for a hint."""
        key = next(each for each in KEYS if each.scope is scope and each.action == action)
        return self.names(key)[0]

    def troubles(self) -> Iterator[str]:
        """Yield the errors in the user's changes: unknown names, and keys with two meanings in one place."""
        for name in self.unknown:
            instead = f"{REPLACED[name]!r} does the same" if name in REPLACED else "the help (`?`) finds the names"
            yield f"there is no key named {name!r}; {instead}"
        if not self.moved:
            return
        told = set()
        for scope in Scope:
            meant: dict[str, Key] = {}
            for key in (each for each in KEYS if each.scope in reachable(scope)):
                for name in self.names(key):
                    other = meant.setdefault(name, key)
                    both = frozenset({binding_id(key), binding_id(other)})
                    if other is not key and both not in told and not both.isdisjoint(self.moved):
                        told.add(both)
                        yield f"{name} means two things: {' and '.join(sorted(both))}"


def reachable(scope: Scope) -> tuple[Scope, ...]:
    """Return the scopes whose keys work at the same time as those of `scope`, that one first."""
    everywhere = () if scope in DIALOG_SCOPES else (Scope.EVERYWHERE,)
    return tuple(dict.fromkeys((scope, Scope.SCROLL, *everywhere, Scope.ALWAYS)))


def keys_of(scope: Scope) -> list[Key]:
    """Return the keys of a scope, in their order."""
    return [key for key in KEYS if key.scope is scope]
