"""Dialogs about one hunk of a proposed diff: the reason why it is left out, and its text."""

from agent_workbench.core.errors import PatchError
from agent_workbench.core.intents import EditProposal
from agent_workbench.core.patch.selection.partial_patch import hunk_text, with_hunk_text
from agent_workbench.core.proposals import Proposal
from agent_workbench.tui.panes.diff import DiffPane
from agent_workbench.tui.panes.diff.messages import HunkEditWanted, ReasonWanted
from agent_workbench.tui.session.window import SessionWindow, UserDraft, is_read_only


class HunkDialogs:
    """Dialogs about hunks in the diff pane of a session."""

    def __init__(self, window: SessionWindow) -> None:
        self._window = window

    def ask_reason(self, message: ReasonWanted) -> None:
        """Ask why hunks are left out; Esc takes them again, or keeps a reason that they have."""
        from agent_workbench.tui.dialogs.reason import ReasonDialog

        pane = self._window.workbench.query_one(DiffPane)
        shown = pane.view.proposal

        def explain(reason: str | None) -> None:
            if pane.view.proposal == shown and (reason is not None or not message.known):
                pane.hunks.explain(message.ids, None if reason is None else reason.strip())

        enter, escape = "leave it out, with or without a reason", "as it was" if message.known else "take it again"
        asks = "why, in a line; the model reads it when the rest is approved"
        update = self._window.update_shown
        waiting = update.state.waiting if update is not None else None
        about = waiting.id if waiting is not None else None
        dialog = ReasonDialog(f"Leave {message.what} out", enter, escape, asks, message.reason, about=about)
        self._window.push_screen(dialog, explain)

    async def edit(self, message: HunkEditWanted) -> None:
        """Let the user edit one hunk; the whole diff with it replaces the proposal."""
        from agent_workbench.tui.dialogs.text_edit import EditDialog

        update = self._window.update_shown
        run = update.state.run if update is not None else None
        if run is None or run.waiting is None or is_read_only(self._window):
            return
        proposal, before = run.waiting, hunk_text(message.patch, message.hunk)

        async def replace(text: str | None) -> None:
            if text is not None and text != before:
                await self._replace(proposal, message, text)

        if message.outside:
            await replace(await self._window.edit_outside(before, ".diff"))
            return
        remark = "Each line begins with a space, + or -. It is shown again before it counts."
        self._window.push_screen(EditDialog(f"Edit {message.what}", before, remark), replace)

    async def _replace(self, proposal: Proposal, message: HunkEditWanted, text: str) -> None:
        try:
            diff = with_hunk_text(message.patch, message.hunk, text)
        except PatchError as error:
            self._window.tell(f"{error}. {error.advice}", "warning")
            return
        if not diff:
            self._window.tell("nothing would be left of the diff; reject it instead", "warning")
            return
        self._window.draft = UserDraft(proposal, diff)
        await self._window.want(EditProposal(proposal.id, diff))
