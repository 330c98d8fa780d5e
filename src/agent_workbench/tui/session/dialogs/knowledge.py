"""Dialogs about the notes that outlive a task: list, search and edit them."""

from agent_workbench.core.intents import EditNote
from agent_workbench.core.intents.outcomes import Refused
from agent_workbench.core.knowledge import KnowledgeNote
from agent_workbench.tui.session.window import SessionWindow


class KnowledgeDialogs:
    """Dialogs about the notes of the repository."""

    def __init__(self, window: SessionWindow) -> None:
        self._window = window

    def show(self) -> None:
        """Show the notes."""
        from agent_workbench.tui.screens.knowledge import KnowledgeScreen

        update = self._window.update_shown
        if update is not None:
            screen = KnowledgeScreen(self._window.keymap, self._window.ask, self._edit)
            screen.show(update)
            self._window.push_screen(screen)

    def _edit(self, note: KnowledgeNote, text: str | None = None) -> None:
        """Let the user edit a note; a text that was refused is offered again."""
        from agent_workbench.tui.dialogs.dialog import EditDialog
        from agent_workbench.tui.screens.knowledge import KnowledgeScreen

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
