"""What an app is given by where it runs: other sessions, an editor, a desktop, a browser or tmux."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from msgspec import Struct

# Only types: this is loaded before the first frame.
if TYPE_CHECKING:
    from agent_workbench.core.history.summaries import Onward, PastSessions
    from agent_workbench.core.ports.services import Desktop, Session


class AppEnvironment(Struct, frozen=True):
    """What an app has around it; of what is not there nothing is offered.

    `past` is what is known of the repo's sessions; `open_session` returns one of them, or a new one, for a tab, and may
    raise `WorkbenchError`. `edit_text` lets the user's own editor have the terminal: it takes a text and the ending of
    a file's name, and returns what became of the text. `served`: a browser is the terminal; `in_tmux`: tmux is.
    """

    past: "PastSessions | None" = None
    open_session: "Callable[[Onward], Awaitable[Session]] | None" = None
    edit_text: "Callable[[str, str], Awaitable[str]] | None" = None
    desktop: "Desktop | None" = None
    served: bool = False
    in_tmux: bool = False
