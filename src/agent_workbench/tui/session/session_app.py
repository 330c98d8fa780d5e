"""Base class of the Textual app, for session tabs, and the optional services that it gets from the machine."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct
from textual.notifications import SeverityLevel

from agent_workbench.core.extras import missing_subject
from agent_workbench.core.text.sanitizer import sanitize
from agent_workbench.tui.keys import Keymap
from agent_workbench.tui.terminal_app import TerminalApp

# Loaded before the first frame: types only.
if TYPE_CHECKING:
    from textual.actions import ActionParseResult
    from textual.dom import DOMNode

    from agent_workbench.core.history.summaries import PastSessions
    from agent_workbench.core.ports.forge import PullRequests
    from agent_workbench.core.ports.machine import Clock, Desktop
    from agent_workbench.core.ports.session_host import SessionHost
    from agent_workbench.subjects.dispatch.progress import PlanWork
    from agent_workbench.tui.notifier import Notifier


Result = TypeVar("Result")
NOTICE_SECONDS = 8.0


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

    def __init__(self, host: "SessionHost", clock: "Clock", keymap: Keymap, environment: AppEnvironment) -> None:
        super().__init__(served=environment.served)
        self.host = host
        self.clock = clock
        self.keymap = keymap
        self.environment = environment

    def tell(self, text: str, severity: SeverityLevel = "information") -> None:
        """Show a notice in a corner for a while."""
        self.notify(sanitize(text, limit_chars=2000), severity=severity, timeout=NOTICE_SECONDS, markup=False)

    async def run_action(
        self,
        action: "str | ActionParseResult",
        default_namespace: "DOMNode | None" = None,
        namespaces: "Mapping[str, DOMNode] | None" = None,
    ) -> bool:
        """Do as Textual does; tell of a subject that a key needs and that is not installed."""
        try:
            return await super().run_action(action, default_namespace, namespaces)
        except ModuleNotFoundError as error:
            if (missing := missing_subject(error)) is None:
                raise
            self.tell(f"{missing}; {missing.advice}", "error")
            return True
