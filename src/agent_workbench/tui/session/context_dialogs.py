"""Dialogs about the prompt: its receipt, the retrieved code, and compaction."""

from typing import TYPE_CHECKING

from agent_workbench.core.intents import CompactContext
from agent_workbench.core.live import SessionUpdate
from agent_workbench.tui.panes.code import CodeAction
from agent_workbench.tui.session.window import SessionWindow, has_open_task, is_read_only
from agent_workbench.views.code import CodeRow

if TYPE_CHECKING:
    from agent_workbench.views.receipt import CompactionEstimate


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
        from agent_workbench.tui.screens.code_piece import PieceScreen

        update = self._window.update_shown
        if update is not None:
            screen = PieceScreen(key, self._window.keymap, self._window.want)
            screen.show(update)
            self._window.push_screen(screen)

    def _search_code(self) -> None:
        from agent_workbench.tui.screens.code_search import CodeSearchScreen

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
