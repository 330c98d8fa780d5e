"""Screen of the notes that outlive a task: searched while the user types, read, and edited."""

from collections.abc import Awaitable, Callable, Iterable

from textual.widget import Widget
from textual.widgets import Input, Static

from agent_workbench.core.intents import FindNotes, Intent, OfferNotes
from agent_workbench.core.knowledge import KnowledgeHit, KnowledgeNote, read_head
from agent_workbench.core.live import SessionUpdate
from agent_workbench.core.outcomes import NotesFound, Outcome, Refused
from agent_workbench.core.settings import Permission
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.core.text.amounts import counted_text
from agent_workbench.core.text.sanitizer import sanitize, sanitize_line
from agent_workbench.tui.keys import Keymap, Scope, bindings
from agent_workbench.tui.screens.dialog import Dialog
from agent_workbench.tui.widgets.bar import hint_line
from agent_workbench.tui.widgets.entry_list import EntryList
from agent_workbench.views.blocks import Block, Entry, Tone
from agent_workbench.views.sessions import read_only_reason

MOST_CHARS = 400
TEXT_CHARS = 100_000
FOLD_LINES = 2
HELP = "words to search the notes for"


class NoteList(EntryList):
    """List of notes. Enter expands one."""

    BINDINGS = bindings(Scope.SCROLL)
    scope = Scope.KNOWLEDGE


class KnowledgeScreen(Dialog[None]):
    """Shows the notes that fit the words, all without words; `edit` lets the user change one."""

    BINDINGS = bindings(Scope.KNOWLEDGE)

    def __init__(
        self,
        keymap: Keymap,
        ask: Callable[[Intent], Awaitable[Outcome]],
        edit: Callable[[KnowledgeNote], None],
    ) -> None:
        super().__init__("Knowledge", "", name="knowledge")
        self._keymap = keymap
        self._ask = ask
        self._edit = edit
        self._found: NotesFound | None = None
        self._refused = ""
        self._state: SessionState | None = None
        self._fixed = ""

    def body(self) -> Iterable[Widget]:
        return (
            Input(placeholder=HELP, max_length=MOST_CHARS, compact=True),
            Static("", id="knowledge-said", markup=False),
            NoteList(id="notes"),
        )

    def on_mount(self) -> None:
        self.query_one(NoteList).focus()
        self._search("")
        self._show()

    def show(self, update: SessionUpdate) -> None:
        """Say if new notes wait at the gate."""
        self._fixed = read_only_reason(update.live)
        if update.state is not self._state:
            self._state = update.state
            if self.is_mounted:
                self._show()

    def search_again(self) -> None:
        """Search for the same words again, as after an edit."""
        self._search(self.query_one(Input).value)

    def _search(self, words: str) -> None:
        self.run_worker(self._find(words), group="notes", exclusive=True)

    async def _find(self, words: str) -> None:
        outcome = await self._ask(FindNotes(words))
        self._refused = outcome.reason if isinstance(outcome, Refused) else ""
        if isinstance(outcome, NotesFound):
            self._found = outcome
        notes = self.query_one(NoteList)
        self._show()
        if self._found is not None and self._found.hits:
            notes.select(min(max(0, notes.cursor), len(self._found.hits) - 1))

    def _show(self) -> None:
        hits = self._found.hits if self._found is not None else ()
        empty = ""
        if self._found is not None:
            empty = "no note fits" if self._found.asked else "`agent knowledge add TITLE` writes the first note"
        self.query_one(NoteList).show_entries(_note_entries(hits), empty=empty)
        said = sanitize(self._refused, limit_chars=400) or _notes_line(self._found, self._state)
        self.query_one("#knowledge-said", Static).update(said)
        names = ("read_note", "edit_note", "add_rejected", "search_notes", "close_knowledge")
        key = {action: self._keymap.first(Scope.KNOWLEDGE, action) for action in names}
        labels = ("read", "edit", "add what you rejected", "search", "close")
        told = list(zip(key.values(), labels, strict=True))
        self.show_keys(hint_line([("Enter", "to the notes"), told[-1]] if self.query_one(Input).has_focus else told))

    def on_input_changed(self, message: Input.Changed) -> None:
        self._search(message.value)

    def on_input_submitted(self) -> None:
        self.query_one(NoteList).focus()

    def on_descendant_focus(self) -> None:
        self._show()

    def action_search_notes(self) -> None:
        self.query_one(Input).focus()

    def action_read_note(self) -> None:
        self.query_one(NoteList).action_expand()

    def action_edit_note(self) -> None:
        cursor = self.query_one(NoteList).cursor
        hits = self._found.hits if self._found is not None else ()
        if self._fixed:
            self.show_keys(self._fixed)
        elif 0 <= cursor < len(hits) and not hits[cursor].note.problem:
            self._edit(hits[cursor].note)

    def action_add_rejected(self) -> None:
        """Offer notes of what was rejected; they wait at the gate."""
        if self._fixed:
            self.show_keys(self._fixed)
        else:
            self.run_worker(self._add_rejected(), group="offer", exclusive=True)

    async def _add_rejected(self) -> None:
        outcome = await self._ask(OfferNotes())
        if isinstance(outcome, Refused):
            self.show_keys(outcome.reason)
        else:
            self.dismiss(None)

    def action_close_knowledge(self) -> None:
        self.dismiss(None)


def _note_entries(hits: Iterable[KnowledgeHit]) -> tuple[Entry, ...]:
    """Return an entry for each note, in the order of the search."""
    return tuple(Entry(hit.note.name, _blocks(hit)) for hit in hits)


def _notes_line(found: NotesFound | None, state: SessionState | None) -> str:
    """Return how many notes are shown, what is not searched, and whether new ones wait at the gate."""
    if found is None:
        return "reading the notes…"
    many = counted_text(len(found.hits), "note")
    shown = f"{many} for “{sanitize_line(found.asked, 80)}”" if found.asked else f"{many}, by name"
    waiting = state.waiting if state is not None else None
    waits = "new notes wait at the gate" if waiting is not None and waiting.kind is Permission.KNOWLEDGE else ""
    return " · ".join(filter(None, (shown, waits, sanitize_line(found.problem, 300))))


def _blocks(hit: KnowledgeHit) -> tuple[Block, ...]:
    note = hit.note
    head = read_head(note.text)
    title = head.title or sanitize_line(note.name, 120)
    if note.problem:
        return (Block(title, Tone.STRONG), Block(f"it {sanitize_line(note.problem, 200)}", Tone.WARN))
    reasons = (f"{each.kind} {each.share:.0%} {' '.join(each.words[:6])}".rstrip() for each in hit.signals)
    about = (f"{note.name}.md", head.type, head.domain, *reasons)
    said = " · ".join(sanitize_line(each, 200) for each in about if each)
    body = "\n".join(note.text.split("\n")[head.body_line - 1 :]).strip("\n")
    text = Block(sanitize(body, limit_chars=TEXT_CHARS), fold_lines=FOLD_LINES)
    return (Block(title, Tone.STRONG, space_before=True), Block(said, Tone.DIM), text)
