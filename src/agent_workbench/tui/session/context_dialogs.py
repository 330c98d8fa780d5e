"""Dialogs about the prompt, the retrieved code and compaction, with consultants, and about lasting notes."""

from typing import TYPE_CHECKING

from agent_workbench.core.ids import TaskId
from agent_workbench.core.intents import AskConsultant, CompactContext, EditNote, StopConsultation
from agent_workbench.core.knowledge import KnowledgeNote
from agent_workbench.core.live import SessionUpdate
from agent_workbench.core.outcomes import Refused
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.tui.panes.plan import PlanPane
from agent_workbench.tui.panes.side_panes import CodeAction
from agent_workbench.tui.panes.steps import StepsPane
from agent_workbench.tui.session.window import SessionWindow, has_open_task, is_read_only
from agent_workbench.views.code import CodeRow

if TYPE_CHECKING:
    from agent_workbench.views.receipt import CompactionEstimate


NOTHING = "nothing to ask about: a review needs a diff that waits, a debug a failed check, a spec a task in the plan"


class ContextDialogs:
    """Dialogs about the context of the model."""

    def __init__(self, window: SessionWindow) -> None:
        self._window = window
        self._previewed = -1

    def show_receipt(self) -> None:
        """Show the parts of the newest prompt, or of the next one while the first waits to be sent."""
        from agent_workbench.views.receipt import count_prompts

        update = self._window.update_shown
        run = update.state.run if update is not None else None
        if update is None or not (count_prompts(update.state) or (run is not None and run.awaits_send)):
            self._window.tell("no prompt was made yet", "warning")
        else:
            self._show_receipt(update)

    def show_models(self) -> None:
        """Show the models of the servers."""
        from agent_workbench.subjects.models.screen import ModelsScreen

        window, update = self._window, self._window.update_shown
        if update is not None and not is_read_only(window):
            screen = ModelsScreen(window.keymap, window.ask)
            screen.show(update)
            window.push_screen(screen)

    def preview(self, update: SessionUpdate) -> None:
        """Show the first prompt of a task before it is sent, once, unless another screen is above the main one."""
        run, runs = update.state.run, len(update.state.past)
        waits = run is not None and run.awaits_send and update.state.reviews_context
        free = self._window.screen is self._window.workbench and not update.live.activity
        if waits and free and update.live.decidable and self._previewed != runs:
            self._previewed = runs
            self._show_receipt(update)

    def _show_receipt(self, update: SessionUpdate) -> None:
        from agent_workbench.tui.screens.receipt import ReceiptScreen

        window = self._window
        screen = ReceiptScreen(
            window.keymap,
            window.clock,
            want=window.want,
            ask=window.ask,
            compact=self._confirm_compaction,
            add_code=self._search_code,
        )
        screen.show(update)
        window.push_screen(screen)

    async def run(self, action: CodeAction, row: CodeRow | None) -> None:
        """Run an action on a piece of retrieved code (None for `ADD`)."""
        match action, row:
            case CodeAction.OPEN, CodeRow() as row:
                self._show_piece(row.key)
            case CodeAction.PIN, CodeRow() as row if has_open_task(self._window):
                await self._window.want(row.pin)
            case CodeAction.DROP, CodeRow() as row if has_open_task(self._window):
                await self._window.want(row.drop)
            case CodeAction.ADD, _ if has_open_task(self._window):
                self._search_code()

    def _show_piece(self, key: str) -> None:
        from agent_workbench.tui.screens.code import PieceScreen

        update = self._window.update_shown
        if update is not None:
            screen = PieceScreen(key, self._window.keymap, self._window.want)
            screen.show(update)
            self._window.push_screen(screen)

    def _search_code(self) -> None:
        from agent_workbench.tui.screens.code import CodeSearchScreen

        update = self._window.update_shown
        if update is not None:
            screen = CodeSearchScreen(self._window.keymap, self._window.want, self._window.ask)
            screen.show(update)
            self._window.push_screen(screen)

    def _confirm_compaction(self, estimate: "CompactionEstimate") -> None:
        """Ask whether the older steps become a summary now, with its gain and cost."""
        from agent_workbench.tui.screens.dialog import ConfirmDialog

        seconds = f" (about {estimate.seconds:.1f} s)" if estimate.seconds >= 0.05 else ""
        reads = f", and {estimate.reads:,} tokens that stay are re-read{seconds}" if estimate.reads else ""
        lines = (
            f"A summary replaces the older steps and frees up to {estimate.frees:,} tokens.",
            f"It costs one answer of the model{reads}.",
            "",
            "Rules, task, pinned code, the change so far and the failing output",
            "stay as they are. You see the summary before it is used.",
        )

        async def compact(yes: bool | None) -> None:
            if yes:
                await self._window.want(CompactContext())

        self._window.push_screen(ConfirmDialog("Summarize the older steps now?", lines, self._window.clock), compact)


class ConsultDialogs:
    """Questions to consultants."""

    def __init__(self, window: SessionWindow) -> None:
        self._window = window

    async def ask(self) -> None:
        """Ask about the selected task, the failed checks, or the diff that waits; show the answer as it arrives."""
        window, update = self._window, self._window.update_shown
        if update is None:
            return
        if is_read_only(window):
            return
        if update.live.consulting is not None:
            window.tell("a consultant is answering; stop it first")
            return
        intent = self._question(update.state)
        if intent is None:
            window.tell(NOTHING, "warning")
            return
        window.workbench.updates.advice_wanted = True
        await window.want(intent)

    def _question(self, state: SessionState) -> AskConsultant | None:
        """Return the question that the focus asks for, else the one about what waits or failed."""
        workbench = self._window.workbench
        plan, steps = workbench.query_one(PlanPane), workbench.query_one(StepsPane)
        waiting = state.waiting
        if plan.has_focus and plan.selected_row is not None:
            task = TaskId(plan.selected_row.id)
            begun = next((each.status for each in state.plan.tasks if each.id == task), None)
            return AskConsultant("spec", task=task) if begun is TaskStatus.PENDING else None
        if waiting is not None and waiting.diff and not steps.has_focus:
            return AskConsultant("review", waiting.id)
        return AskConsultant("debug") if _has_failed(state) else None

    async def stop(self) -> None:
        """Stop the answer that arrives."""
        await self._window.want(StopConsultation())

    @property
    def runs(self) -> bool:
        """True while a consultant answers."""
        update = self._window.update_shown
        return update is not None and update.live.consulting is not None


def _has_failed(state: SessionState) -> bool:
    results = (state.run.results or state.run.baseline or ()) if state.run is not None else ()
    return any(not each.passed for each in results)


class KnowledgeDialogs:
    """Dialogs about the notes of the repository."""

    def __init__(self, window: SessionWindow) -> None:
        self._window = window

    def show(self) -> None:
        """Show the notes."""
        from agent_workbench.subjects.knowledge.screen import KnowledgeScreen

        update = self._window.update_shown
        if update is not None:
            screen = KnowledgeScreen(self._window.keymap, self._window.ask, self._edit)
            screen.show(update)
            self._window.push_screen(screen)

    def _edit(self, note: KnowledgeNote, text: str | None = None) -> None:
        """Let the user edit a note; a text that was refused is offered again."""
        from agent_workbench.subjects.knowledge.screen import KnowledgeScreen
        from agent_workbench.tui.screens.dialog import EditDialog

        window = self._window

        async def write(edited: str | None) -> None:
            if edited is None or edited == note.text:
                return
            outcome = await window.ask(EditNote(note.name, note.text, edited))
            if isinstance(outcome, Refused):
                window.tell(outcome.reason, "warning")
                self._edit(note, edited)
                return
            for screen in window.screens:
                if isinstance(screen, KnowledgeScreen):
                    screen.search_again()

        said = "It is written when you leave." if text is None else "This is the text that was refused."
        window.push_screen(EditDialog(f"Edit {note.name}.md", text or note.text, said, wraps=True), write)
