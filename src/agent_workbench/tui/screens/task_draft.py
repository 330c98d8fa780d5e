"""Dialog that shows the task that the user's words became, before anything is written or started."""

from collections.abc import Iterable
from enum import StrEnum

from textual import events
from textual.containers import Horizontal, VerticalScroll
from textual.widget import Widget
from textual.widgets import Static

from agent_workbench.core.plan import Task, TaskDraft
from agent_workbench.core.ports.machine import Clock
from agent_workbench.core.text.sanitizer import sanitize
from agent_workbench.tui.keymap import Keymap, bindings
from agent_workbench.tui.keys import Scope
from agent_workbench.tui.screens.dialog import Dialog
from agent_workbench.tui.widgets.bar import hint_line
from agent_workbench.tui.widgets.row_list import Readiness, queued_seconds

SHOWN = "draft"
MOST_CHARS = 4_000


class DraftVerdict(StrEnum):
    """Answer of the user to a proposed task."""

    START = "start"
    ADD = "add"
    EDIT = "edit"
    BACK = "back"


class TaskDraftDialog(Dialog[DraftVerdict]):
    """Returns what is to be done with the task. A start counts only after the task was on screen for a moment."""

    BINDINGS = bindings(Scope.DRAFT)

    def __init__(self, draft: TaskDraft, clock: Clock, keymap: Keymap) -> None:
        super().__init__(f"New task {draft.task.id}", "", name="draft")
        self._draft = draft
        self._keymap = keymap
        self._readiness = Readiness(clock)
        self._pressed_at: float | None = None

    def body(self) -> Iterable[Widget]:
        rows = [_row(label, text) for label, text in _parts(self._draft) if text]
        return (VerticalScroll(_text(self._draft.task.description), *rows, classes="text", can_focus=True),)

    def on_mount(self) -> None:
        self.show_keys(self._hints())
        self.call_after_refresh(self._readiness.painted, SHOWN)

    def _hints(self) -> str:
        return hint_line((self._keymap.first(Scope.DRAFT, name), label) for name, label in _HINTS.items())

    def on_key(self, event: events.Key) -> None:
        """Remember when the key was pressed; Textual looks up bindings after this."""
        self._pressed_at = event.time

    def action_start_draft(self) -> None:
        queued = 0.0 if self._pressed_at is None else queued_seconds(self._pressed_at)
        if self._readiness.ready(SHOWN, queued):
            self.dismiss(DraftVerdict.START)
        else:
            self.show_keys(f"too quick: read it first   {self._hints()}")

    def action_add_draft(self) -> None:
        self.dismiss(DraftVerdict.ADD)

    def action_edit_draft(self) -> None:
        self.dismiss(DraftVerdict.EDIT)

    def action_close_draft(self) -> None:
        self.dismiss(DraftVerdict.BACK)


_HINTS = {
    "start_draft": "start it",
    "add_draft": "only add it",
    "edit_draft": "edit it",
    "close_draft": "back to the words",
}


def _parts(draft: TaskDraft) -> Iterable[tuple[str, str]]:
    """Yield the parts of the task that are proposed, each with its label."""
    task = draft.task
    yield "Goal", task.goal
    yield "Scope", _scope(task)
    yield "Checks", "\n".join(task.accept_tests) or "none"
    yield "Pinned", "\n".join(draft.mentions)
    yield "Note", "\n".join(draft.remarks)


def _row(label: str, text: str) -> Widget:
    return Horizontal(Static(label, classes="label"), _text(text), classes="row")


def _text(text: str) -> Static:
    return Static(sanitize(text, limit_chars=MOST_CHARS), markup=False)


def _scope(task: Task) -> str:
    globs = task.scope.allowed_write_globs
    return "all files" if globs == ("**",) else "  ".join(globs)
