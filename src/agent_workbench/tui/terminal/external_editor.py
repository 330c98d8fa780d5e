"""Editing of texts in the user's own editor."""

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from textual.app import App, SuspendNotSupported
from textual.notifications import SeverityLevel

from agent_workbench.core.errors import WorkbenchError

Result = TypeVar("Result")


class Tell(Protocol):
    """Function that shows a notice."""

    def __call__(self, text: str, severity: SeverityLevel = "information") -> None:
        """Show a notice."""


async def edit_outside(
    app: App[Result], edit_text: Callable[[str, str], Awaitable[str]] | None, text: str, suffix: str, tell: Tell
) -> str | None:
    """Return `text` as edited in an external editor, which has the terminal meanwhile; None if it cannot run.

    The session goes on and is drawn afterwards.
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
