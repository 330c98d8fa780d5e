"""Base class of the Textual app: the members that session tabs may use. `tui.app` adds the rest."""

from typing import TYPE_CHECKING, TypeVar

from textual.notifications import SeverityLevel

from agent_workbench.core.text.sanitizer import sanitize
from agent_workbench.tui.environment import AppEnvironment
from agent_workbench.tui.keymap import Keymap
from agent_workbench.tui.terminal.terminal_app import TerminalApp

# Loaded before the first frame: types only.
if TYPE_CHECKING:
    from agent_workbench.core.ports.machine import Clock
    from agent_workbench.core.ports.session_host import SessionHost
    from agent_workbench.tui.terminal.notifier import Notifier

Result = TypeVar("Result")
NOTICE_SECONDS = 8.0


class SessionApp(TerminalApp[Result]):
    """Base class of the app that shows sessions. Subclasses set `notifier` before they open a tab."""

    notifier: "Notifier"

    def __init__(self, host: "SessionHost", clock: "Clock", keymap: Keymap, environment: AppEnvironment) -> None:
        super().__init__(served=environment.served)
        self.host = host
        self.clock = clock
        self.keymap = keymap
        self.environment = environment

    def tell(self, text: str, severity: SeverityLevel = "information") -> None:
        """Show a notice in a corner for a while."""
        self.notify(sanitize(text, limit_chars=2000), severity=severity, timeout=NOTICE_SECONDS, markup=False)
