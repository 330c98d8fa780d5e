"""Tabs of the sessions, side by side: open, go to, and close them."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from agent_workbench.core.errors import WorkbenchError
from agent_workbench.core.session_request import OpenMode
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.tui.keys import Scope
from agent_workbench.tui.session.session_app import SessionApp
from agent_workbench.tui.session.session_tab import SessionTab

if TYPE_CHECKING:
    from agent_workbench.core.live import SessionUpdate
    from agent_workbench.core.ports.session_host import SessionHandle
    from agent_workbench.core.session_request import SessionRequest

MODE = "tab"
"""First word of the modes of tabs; a number follows."""
ONE_ONLY = "there is one session here; {key} opens another beside it"


class Tabs:
    """The tabs of an app. `front` is the visible one, the first from the start; `show` shows its newest update."""

    def __init__(self, app: "SessionApp[SessionUpdate]", show: Callable[[SessionTab], Awaitable[None]]) -> None:
        self._app = app
        self._show = show
        self._all: list[SessionTab] = []
        self._made = 0
        self.front = self._make()

    @property
    def all(self) -> tuple[SessionTab, ...]:
        """All tabs whose session is open, from left to right."""
        return tuple(self._all)

    def _make(self) -> SessionTab:
        self._made += 1
        return SessionTab(self._app, f"{MODE} {self._made}", self)

    async def _add(self, session: "SessionHandle", *, new_chat: bool) -> None:
        """Open a tab behind the one in front, and bring it to the front."""
        tab = self._make()
        tab.opens_chat = new_chat
        self._all.insert(self._all.index(self.front) + 1, tab)
        self._app.add_mode(tab.mode, lambda: tab.workbench)
        self.front = tab
        await self._app.switch_mode(tab.mode)
        tab.connect(session)
        self.show_strip()

    async def open_first(self, request: "SessionRequest") -> WorkbenchError | None:
        """Open the session of the first tab; return the error if it cannot be opened."""
        try:
            session = await self._app.host.open(request)
        except WorkbenchError as error:
            return error
        tab = self.front
        self._all.append(tab)
        self._app.add_mode(tab.mode, lambda: tab.workbench)  # it is there already, and may be removed now
        tab.dialogs.words = request.words
        tab.connect(session)
        self.show_strip()
        return None

    async def open(self, request: "SessionRequest") -> None:
        """Open a session in a tab of its own, or go to the tab that shows it; tell the user if it cannot be opened."""
        if tab := self._with(request):
            await self.go_to(tab)
            return
        try:
            session = await self._app.host.open(request)
        except WorkbenchError as error:
            self._app.tell("\n".join(filter(None, (str(error), error.advice))), "error")
            return
        new_chat = request.chat and request.mode is OpenMode.NEW
        await self._add(session, new_chat=new_chat)
        if new_chat:  # at once: keys that follow are its first words
            self.front.dialogs.task.open_line()

    def _with(self, request: "SessionRequest") -> SessionTab | None:
        """Return the tab of the session, None if it has none."""
        for tab in self._all:
            update = tab.update_shown
            if update is not None and request.session and update.state.session == request.session and not update.ended:
                return tab if (update.live.replay is not None) == request.replayed else None
        return None

    async def go_to(self, tab: SessionTab) -> None:
        """Bring a tab to the front, with its newest update."""
        if tab is self.front:
            return
        self.front = tab
        await self._app.switch_mode(tab.mode)
        tab.workbench.shown_again()
        self.show_strip()
        await self._show(tab)

    async def go(self, by: int, *, waiting: bool = False) -> None:
        """Go to the tab `by` places on, around the end; with `waiting` to the next one that waits for the user."""
        at = self._all.index(self.front)
        order = [self._all[(at + by * n) % len(self._all)] for n in range(1, len(self._all))]
        found = [tab for tab in order if tab.view.needs_user or not waiting]
        if found:
            await self.go_to(found[0])
        elif waiting:
            self._app.tell("no other session waits")
        else:
            self._app.tell(ONE_ONLY.format(key=self._app.keymap.first(Scope.EVERYWHERE, "new_tab")))

    async def go_to_number(self, number: int) -> None:
        """Go to a tab by its number, from 0."""
        if number < len(self._all):
            await self.go_to(self._all[number])

    async def close(self, tab: SessionTab, farewell: str) -> bool:
        """Close the tab of a session that has ended; return False if it is the last one, which stays."""
        if tab not in self._all:
            return True
        if len(self._all) == 1:
            return False
        at = self._all.index(tab)
        self._all.remove(tab)
        if tab is self.front:
            await self.go_to(self._all[max(0, at - 1)])
        await self._app.remove_mode(tab.mode)
        self.show_strip()
        if farewell:
            self._app.tell(f"{sanitize_line(tab.view.name)}: {farewell}")
        return True

    def show_strip(self) -> None:
        """Show the states of all sessions in the tab in front."""
        if self._all:
            self.front.workbench.show_tabs([tab.view for tab in self._all], self._all.index(self.front))
