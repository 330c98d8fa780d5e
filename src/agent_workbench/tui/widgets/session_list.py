"""Tree of the recorded sessions: name, state, time, amount of work, tasks."""

from collections.abc import Iterable, Mapping, Sequence

from rich.cells import cell_len, set_cell_size
from textual.message import Message

from agent_workbench.core.history.journal_proof import JournalProof, Proof
from agent_workbench.core.ids import SessionId
from agent_workbench.core.text.amounts import counted_text
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.tui.keymap import bindings
from agent_workbench.tui.keys import Scope
from agent_workbench.tui.widgets.entry_list import EntryList
from agent_workbench.tui.widgets.rows import Row, Span
from agent_workbench.views.blocks import Block, Entry, Tone
from agent_workbench.views.reports.proofs import WORDS, journal_proof_lines
from agent_workbench.views.session_tree import SessionRow

# Each includes the blank before the next column, because texts are not cut to their columns.
STATE_CELLS = 10
WHEN_CELLS = 18
STEPS_CELLS = 10
TOKENS_CELLS = 16
WIDE_CELLS = 100
PROOFS = {Proof.GREEN: ("✓", Tone.GOOD), Proof.RED: ("✗", Tone.BAD), Proof.UNPROVABLE: ("?", Tone.WARN)}


class SessionList(EntryList):
    """Shows `SessionRow`s, one of them selected."""

    BINDINGS = bindings(Scope.SCROLL)
    scope = Scope.SESSIONS

    class Selected(Message):
        """A session was selected."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._sessions: dict[str, SessionRow] = {}
        self._found: Mapping[SessionId, JournalProof] = {}
        self._here = SessionId("")
        self._marked: SessionId | None = None
        self._name_cells = 0

    def show(
        self,
        rows: Sequence[SessionRow],
        found: Mapping[SessionId, JournalProof],
        here: SessionId,
        marked: SessionId | None = None,
        *,
        empty: str,
    ) -> None:
        """Show these sessions with their proofs (`found`); `here` is in front, `marked` is to be compared."""
        self._marked = marked
        self._sessions, self._found, self._here = {row.summary.id: row for row in rows}, dict(found), here
        self._name_cells = max((len(row.branch) + len(row.summary.id) for row in rows), default=0)
        # The entry holds all that is visible, so that a changed session is another entry.
        entries = tuple(
            Entry(row.summary.id, (Block(f"{row}{found.get(row.summary.id)}{row.summary.id == marked}"),))
            for row in rows
        )
        self.show_entries(entries, empty=empty)

    @property
    def selected_session(self) -> SessionRow | None:
        """The selected session."""
        return self._sessions[self.selected.key] if self.selected is not None else None

    def selection_changed(self) -> None:
        self.post_message(self.Selected())

    def action_expand(self) -> None:
        """Do nothing: sessions cannot be expanded."""

    def rows_of(self, number: int, entry: Entry, width: int) -> Iterable[Row]:
        row = self._sessions[entry.key]
        summary = row.summary
        here = summary.id == self._here
        gap = " " * (self._name_cells - len(row.branch) - len(summary.id) + 2)
        named = Tone.ACCENT if here else Tone.STRONG
        name: list[Span] = [(row.branch, Tone.DIM), (summary.id, named), (gap, Tone.DIM)]
        state: list[Span] = [(f"{row.glyph} {'here' if here else row.state} ".ljust(STATE_CELLS), row.tone)]
        figures: list[Span] = [(f"{row.when:<{WHEN_CELLS}}", Tone.DIM)]
        if width >= WIDE_CELLS:
            steps, tokens = counted_text(summary.steps, "step"), counted_text(summary.tokens, "token")
            figures += [(f" {steps:>{STEPS_CELLS}} {tokens:>{TOKENS_CELLS}}  ", Tone.PLAIN)]
        spans = [*name, *state, *figures]
        room = max(8, width - sum(cell_len(text) for text, _ in spans))
        task = _cut(sanitize_line(row.task), room)
        origin = _cut(row.origin, max(0, room - cell_len(task) - 2)) if row.origin else ""
        yield Row((*spans, (task, Tone.PLAIN), (f"  {origin}" if origin else "", Tone.DIM)), number)
        indent = " " * (cell_len(row.branch) + 2)
        for text, tone in self._below(row):
            yield Row(((indent, Tone.DIM), (_cut(text, width - len(indent)), tone)), number)

    def _below(self, row: SessionRow) -> Iterable[Span]:
        if row.note and row.summary.id != self._here:
            yield row.note, Tone.BAD if row.summary.problem else Tone.DIM
        if row.summary.id == self._marked:
            yield "marked: another one is compared with it", Tone.ACCENT
        if row.summary.id in self._found:
            yield from self._proved(self._found[row.summary.id])

    def _proved(self, found: JournalProof) -> Iterable[Span]:
        glyph, tone = PROOFS[found.proof]
        said = next(journal_proof_lines(found))
        yield f"{glyph} {WORDS[found.proof]}: {said}", tone


def _cut(text: str, cells: int) -> str:
    if cells < 2:
        return ""
    return text if cell_len(text) <= cells else f"{set_cell_size(text, cells - 1)}…"
