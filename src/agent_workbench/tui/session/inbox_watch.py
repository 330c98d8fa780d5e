"""Watch of the inbox while the app runs: it tells the user of what comes to wait in sessions that no tab shows."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent_workbench.core.errors import WorkbenchError
from agent_workbench.core.inbox import InboxFilter, InboxItem
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.tui.keys import Scope

if TYPE_CHECKING:
    from agent_workbench.core.live import SessionUpdate
    from agent_workbench.tui.session.session_app import SessionApp
    from agent_workbench.tui.session.tabs import Tabs

LOOK_SECONDS, MOST_SECONDS = 10.0, 60.0
SHARE = 200
"""Least ratio of the time between two looks to that of a look, up to `MOST_SECONDS`: many sessions are looked at less
often."""


def inbox_summary(items: Sequence[InboxItem]) -> str:
    """Return the number of items that need a decision as text, empty if none does."""
    count = sum(item.decided is None for item in items)
    return "" if not count else f"{count} proposal waits" if count == 1 else f"{count} proposals wait"


class InboxWatch:
    """Tells once of each item. It ends without a word where there is no inbox, as without trust in the repository."""

    def __init__(self, app: "SessionApp[SessionUpdate]", tabs: "Tabs") -> None:
        self._app = app
        self._tabs = tabs
        self._known: set[str] = set()

    async def run(self) -> None:
        """Look again and again until it is cancelled."""
        clock, first = self._app.clock, True
        while True:
            begun = clock.monotonic_seconds()
            try:
                items = await self._app.host.inbox(InboxFilter())
            except WorkbenchError:
                return  # the session's own start says what is wrong
            self._look(items, first=first)
            first = False
            took = clock.monotonic_seconds() - begun
            await asyncio.sleep(min(MOST_SECONDS, max(LOOK_SECONDS, SHARE * took)))

    def _look(self, items: Sequence[InboxItem], *, first: bool) -> None:
        new = [each for each in items if each.decided is None and each.id not in self._known]
        self._known.update(each.id for each in items)
        elsewhere = [each for each in new if not self._tabs.shows(each.session)]
        if not elsewhere:
            return
        keys = self._app.keymap
        if first or len(elsewhere) > 1:
            self._tell(
                f"{inbox_summary(elsewhere)} in other sessions; {keys.first(Scope.EVERYWHERE, 'inbox')} opens the inbox"
            )
            return
        (item,) = elsewhere
        name = sanitize_line(item.task or "a session", 60)
        self._tell(f"{name}: {item.proposal.kind} waits; {keys.first(Scope.EVERYWHERE, 'waiting_tab')} goes to it")

    def _tell(self, text: str) -> None:
        self._app.tell(text)
        self._app.notifier.call(text)
