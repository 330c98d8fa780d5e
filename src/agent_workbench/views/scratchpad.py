"""The scratchpad pane: the notes of a task."""

from msgspec import Struct

from agent_workbench.core.ids import TaskId
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.core.text.sanitizer import sanitize
from agent_workbench.views.blocks import Block, Entry, Tone


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
