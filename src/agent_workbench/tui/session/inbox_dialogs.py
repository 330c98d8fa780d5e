"""Dialogs of the inbox: what waits in all sessions of the repository, and decisions about it."""

from collections.abc import Callable

from agent_workbench.core.errors import UsageError, WorkbenchError
from agent_workbench.core.inbox import InboxFilter, InboxItem
from agent_workbench.core.session_request import SessionRequest
from agent_workbench.tui.keys import Scope
from agent_workbench.tui.session.window import SessionWindow


class InboxDialogs:
    """Dialogs about proposals of any session of the repository."""

    def __init__(self, window: SessionWindow) -> None:
        self._window = window

    async def tell_waiting(self) -> None:
        """Tell the user how many proposals wait in other sessions, if any do and the repository is trusted."""
        from agent_workbench.views.inbox import inbox_summary

        try:
            items = await self._window.host.inbox(InboxFilter())
        except WorkbenchError:
            return  # the session's own start says what is wrong
        update = self._window.update_shown
        here = update.state.session if update is not None else ""
        summary = inbox_summary([item for item in items if item.session != here])
        if summary:
            key = self._window.keymap.first(Scope.EVERYWHERE, "inbox")
            self._window.tell(f"{summary} in other sessions; {key} opens the inbox")

    def show(self) -> None:
        """List what waits; a session that is chosen opens in a tab."""
        from agent_workbench.tui.screens.inbox import InboxScreen

        window = self._window
        if window.screen is not window.workbench:
            return  # a key that was queued opens no second screen

        async def load() -> tuple[InboxItem, ...]:
            return tuple(await window.host.inbox(InboxFilter()))

        async def open_item(item: InboxItem) -> None:
            await self._open(item, screen.reload)

        async def go(request: SessionRequest | None) -> None:
            if request is not None:
                await window.open_session(request)

        screen = InboxScreen(window.keymap, window.clock, load, open_item)
        window.push_screen(screen, go)

    async def _open(self, item: InboxItem, closed: Callable[[str], None]) -> None:
        """Show a proposal; when it is closed, call `closed` with the outcome of a decision about it, empty if none."""
        from agent_workbench.tui.dialogs.reason import ReasonDialog
        from agent_workbench.tui.screens.inbox_proposal import InboxProposalScreen

        window = self._window
        state = await window.host.pending_state(item)
        proposal = state.waiting
        if proposal is None:
            raise UsageError(f"{item.id} does not wait any more", advice="close the inbox and open it again")

        def ask_reason(answer: Callable[[str | None], None]) -> None:
            keys = "Enter rejects and tells the model   Esc back to the proposal"
            window.push_screen(ReasonDialog(f"Reject the {proposal.kind}", keys), answer)

        screen = InboxProposalScreen(state, proposal, window.keymap, window.clock, window.host.decide, ask_reason)
        window.push_screen(screen, lambda outcome: closed(outcome or ""))
