"""External editor: runs the user's own editor on a text while the app is suspended."""

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from textual.app import App, SuspendNotSupported
from textual.notifications import SeverityLevel

from agent_workbench.core.errors import WorkbenchError

Result = TypeVar("Result")


class ShowNotice(Protocol):
    """Callback that shows a notice to the user."""

    def __call__(self, text: str, severity: SeverityLevel = "information") -> None:
        """Show a notice."""


async def edit_outside(
    app: App[Result], edit_text: Callable[[str, str], Awaitable[str]] | None, text: str, suffix: str, tell: ShowNotice
) -> str | None:
    """Return `text` as edited in an external editor; None if it cannot run.

    The editor has the terminal meanwhile. The session continues and is drawn afterwards.
    """
    if edit_text is None:
        tell("there is no editor here; e edits in the workbench", "warning")
        return None
    try:
        with app.batch_update(), app.suspend():
            return await edit_text(text, suffix)
    except SuspendNotSupported:
        tell("an editor cannot have this terminal; e edits in the workbench", "warning")
    except WorkbenchError as error:
        tell(f"{error}: {error.advice}" if error.advice else str(error), "warning")
    return None
