"""Optional services that the app gets from the machine: recorded sessions, editor, desktop, terminal."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from msgspec import Struct

# Types only: this is loaded before the first frame.
if TYPE_CHECKING:
    from agent_workbench.core.history.summaries import PastSessions
    from agent_workbench.core.ports.forge import PullRequests
    from agent_workbench.core.ports.machine import Desktop
    from agent_workbench.subjects.dispatch.progress import PlanWork


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
