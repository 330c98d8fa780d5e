"""Notes on the screen: the scratchpad of a task, and those that outlive it as list entries."""

from collections.abc import Iterable

from msgspec import Struct

from agent_workbench.core.ids import TaskId
from agent_workbench.core.intents.outcomes import NotesFound
from agent_workbench.core.knowledge import KnowledgeHit, read_head
from agent_workbench.core.settings import Permission
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.core.text.amounts import counted_text
from agent_workbench.core.text.sanitizer import sanitize, sanitize_line
from agent_workbench.views.blocks import Block, Entry, Tone

TEXT_CHARS = 100_000
FOLD_LINES = 2


def note_entries(hits: Iterable[KnowledgeHit]) -> tuple[Entry, ...]:
    """Return an entry for each note, in the order of the search."""
    return tuple(Entry(hit.note.name, _blocks(hit)) for hit in hits)


def notes_line(found: NotesFound | None, state: SessionState | None) -> str:
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


class ScratchpadView(Struct, frozen=True):
    """Notes of `task` (None: no task); `text` is the unsanitized text for editing."""

    title: str
    task: TaskId | None
    text: str
    entries: tuple[Entry, ...]
    empty: str


def view_scratchpad(state: SessionState, selected: str = "") -> ScratchpadView:
    """Return the notes of the running task, else of the one selected in the plan."""
    task = state.run.task if state.run is not None and state.unfinished else _known(state, selected)
    if task is None and state.run is not None:
        task = state.run.task
    if task is None:
        return ScratchpadView("Scratchpad", None, "", (), "the notes of a task appear here once it runs")
    text = state.scratchpad(task)
    empty = "no notes yet: the model adds them with `note`, you with i"
    return ScratchpadView(f"Scratchpad · {task}", task, text, _entries(text), empty)


def _known(state: SessionState, selected: str) -> TaskId | None:
    return next((task.id for task in state.plan.tasks if task.id == selected), None)


def _entries(text: str) -> tuple[Entry, ...]:
    lines = sanitize(text).rstrip("\n").split("\n") if text.strip() else []
    return tuple(Entry(str(number), (Block(line, _tone(line)),)) for number, line in enumerate(lines))


def _tone(line: str) -> Tone:
    return Tone.TITLE if line.startswith("#") else Tone.PLAIN
