"""Dialogs with consultants, whose question follows from what is focused, and about the notes that outlive a task."""

from agent_workbench.core.ids import TaskId
from agent_workbench.core.intents import AskConsultant, EditNote, StopConsultation
from agent_workbench.core.knowledge import KnowledgeNote
from agent_workbench.core.outcomes import Refused
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.tui.panes.plan import PlanPane
from agent_workbench.tui.panes.steps import StepsPane
from agent_workbench.tui.session.window import SessionWindow, is_read_only

NOTHING = "nothing to ask about: a review needs a diff that waits, a debug a failed check, a spec a task in the plan"


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
