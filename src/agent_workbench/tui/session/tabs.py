"""Tabs of the sessions, side by side: open, go to, and close them; and a watch of the sessions that no tab shows."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from agent_workbench.core.errors import WorkbenchError
from agent_workbench.core.inbox import InboxFilter, InboxItem
from agent_workbench.core.intents import Leave
from agent_workbench.core.session_request import OpenMode, SessionRequest
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.tui.keys import Scope
from agent_workbench.tui.session.session_tab import SessionTab
from agent_workbench.tui.session.window import SessionApp

if TYPE_CHECKING:
    from agent_workbench.core.live import SessionUpdate
    from agent_workbench.core.ports.session_host import SessionHandle


MODE = "tab"
"""First word of the modes of tabs; a number follows."""
NOTHING_ELSE = "nothing else waits for you"
ONE_ONLY = "there is one session here; {key} opens another beside it"
TOO_LATE = "the screen was closed before it was opened"

LOOK_SECONDS, MOST_SECONDS = 10.0, 60.0
SHARE = 200
"""Least ratio of the time between two looks to that of a look, up to `MOST_SECONDS`: many sessions are looked at less
often."""


class Tabs:
    """The tabs of an app. `front` is the visible one, the first from the start; `show` shows its newest update.

    Once the app is ending, no stack of screens is added or removed: Textual goes through them to close them.
    """

    def __init__(self, app: "SessionApp[SessionUpdate]", show: Callable[[SessionTab.Updated], Awaitable[None]]) -> None:
        self._app = app
        self._show = show
        self._all: list[SessionTab] = []
        self._made = 0
        self._passed: set[str] = set()
        self.front = self._make()

    @property
    def all(self) -> tuple[SessionTab, ...]:
        """All tabs whose session is open, from left to right."""
        return tuple(self._all)

    def _make(self) -> SessionTab:
        self._made += 1
        return SessionTab(self._app, f"{MODE} {self._made}", self)

    async def _add(self, session: "SessionHandle", request: "SessionRequest") -> None:
        """Open a tab behind the one in front, and bring it to the front."""
        tab = self._make()
        tab.opens_chat, tab.followed = request.chat and request.mode is OpenMode.NEW, request.followed
        self._all.insert(self._all.index(self.front) + 1, tab)
        self._app.add_mode(tab.mode, lambda: tab.workbench)
        self.front = tab
        await self._app.switch_mode(tab.mode)
        tab.connect(session)
        self.show_strip()

    async def open_first(self, request: "SessionRequest") -> WorkbenchError | None:
        """Open the session of the first tab; return the error if it cannot be opened."""
        try:
            session = await self._opened(request)
        except WorkbenchError as error:
            return error
        if session is None:
            return None
        tab = self.front
        self._all.append(tab)
        self._app.add_mode(tab.mode, lambda: tab.workbench)  # it is there already, and may be removed now
        tab.dialogs.task.early_words = request.words
        tab.connect(session)
        self.show_strip()
        return None

    async def _opened(self, request: "SessionRequest") -> "SessionHandle | None":
        """Open a session and return it; leave it again and return None if the app was ending meanwhile."""
        session = await self._app.host.open(request)
        if self._app.is_running:
            return session
        session.submit(Leave(TOO_LATE))
        return None

    async def open(self, request: "SessionRequest") -> None:
        """Open a session in a tab of its own, or go to the tab that shows it; tell the user if it cannot be opened.

        A followed session takes the place of another followed one in front; one that is opened, that of its followed
        tab.
        """
        front = self.front
        if tab := self._with(request):
            await self.go_to(tab)
            return
        try:
            session = await self._opened(request)
        except WorkbenchError as error:
            self._app.tell("\n".join(filter(None, (str(error), error.advice))), "error")
            return
        if session is None:
            return
        await self._add(session, request)
        if self.front.opens_chat:  # at once: keys that follow are its first words
            self.front.dialogs.task.open_line()
        await self._close_followed(request, front)

    async def _close_followed(self, request: "SessionRequest", front: SessionTab) -> None:
        """Close followed tabs whose place was taken: that of the session opened now, and the one it was opened from."""
        stale = [tab for tab in self._of(request.session) if tab.followed]
        stale += [front] if front.followed and request.followed else []
        for tab in dict.fromkeys(stale):
            if tab is not self.front and not request.replayed:
                await tab.leave()

    def _with(self, request: "SessionRequest") -> SessionTab | None:
        """Return the tab in which a session is shown as it is asked for, None if it has none."""
        for tab in self._of(request.session):
            replayed = tab.update_shown is not None and tab.update_shown.live.replay is not None
            if replayed == request.replayed and (request.followed or not tab.followed):
                return tab
        return None

    def shows(self, session: str) -> bool:
        """Return True if a tab shows a session as it is now."""
        return any(tab.update_shown is not None and tab.update_shown.live.replay is None for tab in self._of(session))

    def _of(self, session: str) -> list[SessionTab]:
        """Return the tabs that show a session."""
        shown = [(tab, tab.update_shown) for tab in self._all if session and not tab.leaving]
        return [tab for tab, at in shown if at is not None and at.state.session == session and not at.ended]

    async def go_to(self, tab: SessionTab) -> None:
        """Bring a tab to the front, with its newest update."""
        if tab is self.front or not self._app.is_running:
            return
        self.front = tab
        await self._app.switch_mode(tab.mode)
        tab.workbench.shown_again()
        self.show_strip()
        await self._show(SessionTab.Updated(tab))

    async def go(self, by: int) -> None:
        """Go to the tab `by` places on, around the end."""
        if len(self._all) > 1:
            await self.go_to(self._all[(self._all.index(self.front) + by) % len(self._all)])
        else:
            self._app.tell(ONE_ONLY.format(key=self._app.keymap.first(Scope.EVERYWHERE, "new_tab")))

    async def go_to_waiting(self, *, after_decision: bool = False) -> None:
        """Go to what waits next: a tab, or an item of the inbox, each once before any of them again.

        Where nothing else waits, the user is told so, or after a decision stays where it was made.
        """
        try:
            items = await self._app.host.inbox(InboxFilter())
        except WorkbenchError:
            items = ()  # the session's own start says what is wrong; its tabs wait all the same
        stops = {item.id: self._stop(item) for item in items if item.decided is None}
        stops |= {tab.mode: tab for tab in self._all if tab.view.needs_user and tab not in stops.values()}
        here = {key for key, stop in stops.items() if stop is self.front}
        self._passed = self._passed & stops.keys() | here
        if self._passed >= stops.keys():
            self._passed = here
        key = next((key for key in stops if key not in self._passed), "")
        if not key:
            if not after_decision:
                self._app.tell(NOTHING_ELSE)
            return
        self._passed.add(key)
        stop, before = stops[key], self.front
        if not isinstance(stop, SessionTab):
            await self.open(stop)
            return
        await self.go_to(stop)
        if before.followed:
            await before.leave()

    def _stop(self, item: "InboxItem") -> "SessionTab | SessionRequest":
        """Return the tab in which an item waits, or else how it is shown."""
        request = SessionRequest(OpenMode.FOLLOW, item.session)
        return self._with(request) or request

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
        if self._app.is_running:
            await self._app.remove_mode(tab.mode)
        self.show_strip()
        if farewell:
            self._app.tell(f"{sanitize_line(tab.view.name)}: {farewell}")
        return True

    def show_strip(self) -> None:
        """Show the states of all sessions in the tab in front."""
        if self._all:
            self.front.workbench.show_tabs([tab.view for tab in self._all], self._all.index(self.front))


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
