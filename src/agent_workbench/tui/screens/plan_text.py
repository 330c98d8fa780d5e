"""Dialogs of tasks as text: the YAML of the plan or of a task, and the task that the user's words became."""

import re
from collections.abc import Awaitable, Callable, Iterable
from enum import StrEnum

from textual import events
from textual.binding import Binding
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static, TextArea
from textual.widgets.text_area import Selection

from agent_workbench.core.intents import EditPlan, EditProposal, Intent, OpenPlan
from agent_workbench.core.outcomes import Outcome, PlanOpened, Refused
from agent_workbench.core.plan import PlanPiece, Task, TaskDraft
from agent_workbench.core.ports.machine import Clock
from agent_workbench.core.text.sanitizer import sanitize, sanitize_line
from agent_workbench.tui.keys import Keymap, Scope, bindings
from agent_workbench.tui.screens.dialog import SAVE_KEYS, Dialog
from agent_workbench.tui.widgets.bar import hint_line
from agent_workbench.tui.widgets.row_list import Readiness, queued_seconds

EDITS = f"{hint_line(SAVE_KEYS)}   What runs goes on as it began; comments stay."
LOOKS = hint_line([("Esc", "close")])
UNWRITTEN = "nothing was saved: the description is still a placeholder; write what is to be done"
INDENT = 2
MOST_COLUMNS = 10_000
_FAULT = re.compile(r":(\d+):(\d+): ")

SHOWN = "draft"
MOST_CHARS = 4_000


class YamlArea(TextArea):
    """Text area in which a new line begins where the last one's text does, or deeper after a colon."""

    async def _on_key(self, event: events.Key) -> None:
        if event.key != "enter" or self.read_only:
            return  # Textual calls the handler of the base class next
        event.stop()
        event.prevent_default()
        row, column = self.selection.start
        self.replace(f"\n{' ' * indent_after(self.document.get_line(row)[:column])}", *self.selection)


def indent_after(line: str) -> int:
    """Return the indent of the line after one of YAML."""
    dash = re.match(r" *(?:- +(?=\w+:( |$)))?", line)
    indent = len(dash[0]) if dash is not None else 0
    return indent + INDENT if line.rstrip().endswith(":") else indent


class PlanTextDialog(Dialog[None]):
    """Editor for a part of the plan; it closes when the edited text was written.

    A text with an error stays open, with the error shown and the cursor at its place.
    """

    BINDINGS = [
        Binding("ctrl+s", "save", "save", priority=True),
        Binding("escape", "cancel", "cancel", priority=True),
    ]

    def __init__(
        self, title: str, wanted: OpenPlan, ask: Callable[[Intent], Awaitable[Outcome]], *, editable: bool
    ) -> None:
        super().__init__(title, EDITS if editable else LOOKS, name="plan-text")
        self._title = title
        self._wanted = wanted
        self._ask = ask
        self._editable = editable
        self._piece: PlanPiece | None = None
        self._saving = False

    def on_mount(self) -> None:
        self.run_worker(self._load(), group="plan-text")

    def body(self) -> Iterable[Widget]:
        area = YamlArea(show_line_numbers=True, tab_behavior="indent", compact=True, read_only=True, soft_wrap=True)
        area.indent_width = INDENT
        return area, Static("reading the plan …", id="plan-said", markup=False)

    async def _load(self) -> None:
        outcome = await self._ask(self._wanted)
        if isinstance(outcome, PlanOpened):
            self._fill(outcome.piece)
        elif isinstance(outcome, Refused):
            self._say(f"{outcome.reason}\n\nE in the plan opens the whole of it")

    async def _save(self, piece: PlanPiece, text: str) -> None:
        proposal = self._wanted.proposal
        edits = EditPlan(piece, text) if proposal is None else EditProposal(proposal, piece.whole_with(text))
        outcome = await self._ask(edits)
        self._saving = False
        if isinstance(outcome, Refused):
            self._show_fault(outcome.reason)
        else:
            self.dismiss(None)

    def _fill(self, piece: PlanPiece) -> None:
        self._piece = piece
        area = self.query_one(YamlArea)
        area.line_number_start = piece.first_line
        area.load_text(piece.text)
        area.read_only = not self._editable
        self._go_to(piece.at_line, MOST_COLUMNS if piece.new else 0)
        self._select(piece.placeholder)
        self._say("")
        where = f"{sanitize_line(piece.path, 200)}:{piece.first_line}"
        self.query_one(".frame").border_title = Content(f"{self._title} · {where}")
        area.focus()

    def _select(self, placeholder: str) -> None:
        """Select the words of a new task that the user replaces by typing."""
        area = self.query_one(YamlArea)
        at = area.text.find(placeholder) if placeholder else -1
        if at >= 0:
            row, column = area.text.count("\n", 0, at), at - area.text.rfind("\n", 0, at) - 1
            area.selection = Selection((row, column), (row, column + len(placeholder)))

    def _show_fault(self, fault: str) -> None:
        self._say(fault)
        if self._piece is not None and fault.startswith(f"{self._piece.path}:"):
            found = _FAULT.search(fault)
            if found is not None and int(found[1]) != self._line:
                self._go_to(int(found[1]), int(found[2]) - 1)

    @property
    def _line(self) -> int:
        """The line of the file that has the cursor."""
        area = self.query_one(YamlArea)
        return area.cursor_location[0] + area.line_number_start

    def _go_to(self, line: int, column: int) -> None:
        """Move the cursor to a line of the file, as far as it is in this text."""
        area = self.query_one(YamlArea)
        first = self._piece.first_line if self._piece is not None else 1
        row = max(0, min(line - first, area.document.line_count - 1))
        area.move_cursor((row, min(column, len(area.document.get_line(row)))), center=True)
        # Centring also scrolls sideways, which would hide the beginnings of lines.
        area.scroll_to(x=0, animate=False)
        area.call_after_refresh(area.scroll_cursor_visible)

    def _say(self, text: str) -> None:
        said = self.query_one("#plan-said", Static)
        said.update(sanitize(text, limit_chars=2000))
        said.display = bool(text)

    async def action_save(self) -> None:
        if not self._editable or self._piece is None or self._saving:
            return
        if self._piece.placeholder and self._piece.placeholder in self.query_one(YamlArea).text:
            self._say(UNWRITTEN)
            self._select(self._piece.placeholder)
        else:
            self._saving = True
            self.run_worker(self._save(self._piece, self.query_one(YamlArea).text), group="plan-text")

    def action_cancel(self) -> None:
        self.dismiss(None)


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
