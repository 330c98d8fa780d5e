"""Dialogs of the inbox: what waits in all sessions of the repository, and decisions about it."""

from agent_workbench.core.inbox import InboxFilter, InboxItem
from agent_workbench.core.session_request import SessionRequest
from agent_workbench.tui.session.window import SessionWindow


class InboxDialogs:
    """Dialogs about proposals of any session of the repository."""

    def __init__(self, window: SessionWindow) -> None:
        self._window = window

    def show(self) -> None:
        """List what waits; a session that is chosen opens in a tab."""
        from agent_workbench.tui.screens.inbox import InboxScreen

        window = self._window
        if window.screen is not window.workbench:
            return  # a key that was queued opens no second screen

        async def load() -> tuple[InboxItem, ...]:
            return tuple(await window.host.inbox(InboxFilter()))

        async def go(request: SessionRequest | None) -> None:
            if request is not None:
                await window.open_session(request)

        window.push_screen(InboxScreen(window.keymap, window.clock, load), go)
