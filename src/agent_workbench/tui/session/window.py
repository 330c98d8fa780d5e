"""Interfaces between a tab and its dialogs, the base class of the app, and its optional services."""

from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Protocol, TypeVar

from msgspec import Struct

from agent_workbench.core.proposals import Proposal
from agent_workbench.core.text.sanitizer import sanitize
from agent_workbench.tui.terminal_app import TerminalApp
from agent_workbench.views.sessions import read_only_reason

if TYPE_CHECKING:
    from textual.notifications import SeverityLevel
    from textual.screen import Screen

    from agent_workbench.core.history.summaries import PastSessions
    from agent_workbench.core.intents import Intent
    from agent_workbench.core.live import SessionUpdate
    from agent_workbench.core.outcomes import Outcome
    from agent_workbench.core.ports.forge import PullRequests
    from agent_workbench.core.ports.machine import Clock, Desktop
    from agent_workbench.core.ports.session_host import SessionHost
    from agent_workbench.core.session_request import SessionRequest
    from agent_workbench.subjects.dispatch.progress import PlanWork
    from agent_workbench.tui.keys import Keymap
    from agent_workbench.tui.notifier import Notifier
    from agent_workbench.tui.panes.workbench_screen import WorkbenchScreen

Answer = TypeVar("Answer")
Result = TypeVar("Result")
NOTICE_SECONDS = 8.0


class UserDraft(Struct, frozen=True):
    """Text that the user wrote for a proposal, kept until the session takes it."""

    proposal: Proposal
    text: str


class SessionWindow(Protocol):
    """Tab of a session as its dialogs use it."""

    update_shown: "SessionUpdate | None"
    draft: UserDraft | None
    opens_chat: bool
    """True if the session was opened as a new chat."""

    @property
    def clock(self) -> "Clock":
        """Clock of the app."""

    @property
    def keymap(self) -> "Keymap":
        """Keys as the user has them."""

    @property
    def past(self) -> "PastSessions | None":
        """Recorded sessions of the repository, None if there are none here."""

    @property
    def plan_work(self) -> "Callable[[], PlanWork] | None":
        """Maker of what dispatches the tasks of the plan, None if there is none here."""

    @property
    def pull_requests(self) -> "Callable[[], PullRequests] | None":
        """Maker of what opens pull requests of tasks, None if there is none here."""

    @property
    def host(self) -> "SessionHost":
        """Host of all sessions."""

    @property
    def workbench(self) -> "WorkbenchScreen":
        """Main screen of the session."""

    @property
    def screens(self) -> "list[Screen[object]]":
        """Screens of the tab, the main screen first."""

    @property
    def screen(self) -> "Screen[object]":
        """The topmost screen of the tab."""

    async def want(self, intent: "Intent") -> None:
        """Submit an intent; the user is told if it is refused."""

    def ask(self, intent: "Intent") -> "Awaitable[Outcome]":
        """Submit an intent and return its outcome."""

    def tell(self, text: str, severity: "SeverityLevel" = "information") -> None:
        """Show a notice in a corner for a while."""

    def push_screen(
        self,
        screen: "Screen[Answer]",
        callback: "Callable[[Answer | None], None] | Callable[[Answer | None], Awaitable[None]] | None" = None,
    ) -> Awaitable[None]:
        """Open a screen above the others of this tab."""

    def pop_screen(self) -> None:
        """Close the topmost screen."""

    def run_worker(self, work: Coroutine[None, None, None], *, group: str, exclusive: bool = False) -> None:
        """Run work until it is done or the tab is closed."""

    async def edit_outside(self, text: str, suffix: str) -> str | None:
        """Return `text` as edited in an external editor, None if there is none."""

    async def open_session(self, request: "SessionRequest") -> None:
        """Open a session in a tab of its own."""

    def picture(self, title: str) -> str:
        """Return the screen as an SVG."""


class TabNavigation(Protocol):
    """Tabs of the app as one of them uses them."""

    async def go(self, by: int) -> None:
        """Go to the tab `by` places on."""

    async def go_to_waiting(self, *, after_decision: bool = False) -> None:
        """Go to what waits next for the user, in a tab or in the inbox."""

    async def go_to_number(self, number: int) -> None:
        """Go to a tab by its number, from 0."""

    async def open(self, request: "SessionRequest") -> None:
        """Open a session in a tab of its own."""

    def show_strip(self) -> None:
        """Show the states of all tabs."""


class AppEnvironment(Struct, frozen=True):
    """Optional services of an app. Features whose service is missing (None) are hidden.

    `past` are the recorded sessions of the repository. `edit_text` runs the user's own editor in the terminal: it takes
    a text and the suffix of a file, and returns the edited text. `served`: a browser is the terminal; `in_tmux`: tmux.
    `plan_work` makes what dispatches the tasks of the plan, `pull_requests` what opens pull requests of them.
    """

    past: "PastSessions | None" = None
    edit_text: "Callable[[str, str], Awaitable[str]] | None" = None
    desktop: "Desktop | None" = None
    served: bool = False
    in_tmux: bool = False
    plan_work: "Callable[[], PlanWork] | None" = None
    pull_requests: "Callable[[], PullRequests] | None" = None


class SessionApp(TerminalApp[Result]):
    """Base class of the app that shows sessions. Subclasses set `notifier` before they open a tab."""

    notifier: "Notifier"

    def __init__(self, host: "SessionHost", clock: "Clock", keymap: "Keymap", environment: AppEnvironment) -> None:
        super().__init__(served=environment.served)
        self.host = host
        self.clock = clock
        self.keymap = keymap
        self.environment = environment

    def tell(self, text: str, severity: "SeverityLevel" = "information") -> None:
        """Show a notice in a corner for a while."""
        self.notify(sanitize(text, limit_chars=2000), severity=severity, timeout=NOTICE_SECONDS, markup=False)


def is_read_only(window: SessionWindow) -> bool:
    """Return True if nothing in the session can be changed here; show a notice then."""
    update = window.update_shown
    reason = read_only_reason(update.live) if update is not None else ""
    if reason:
        window.tell(reason, "warning")
    return bool(reason)


def has_open_task(window: SessionWindow) -> bool:
    """Return True if a task is unfinished; show a notice if not."""
    update = window.update_shown
    if is_read_only(window):
        return False
    if update is None or not update.state.unfinished:
        window.tell("no task is being worked on", "warning")
        return False
    return True


def is_chat(window: SessionWindow) -> bool:
    """Return True for a chat, also before it is open."""
    update = window.update_shown
    return window.opens_chat or (update is not None and update.state.in_chat)
