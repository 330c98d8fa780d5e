"""Texts that are edited outside of the workbench, in the user's own editor."""

from typing import TYPE_CHECKING

from textual.app import SuspendNotSupported

from agent_workbench.core.errors import WorkbenchError

if TYPE_CHECKING:
    from agent_workbench.tui.session.session_tab import SessionTab


async def edit_outside(tab: "SessionTab", text: str, suffix: str) -> str | None:
    """Return what the user made of `text` in an editor that has the terminal meanwhile; None when that cannot be.

    What happens in the session goes on and is drawn afterwards.
    """
    if tab.app.around.edit_text is None:
        tab.tell("there is no editor here; e edits in the workbench", "warning")
        return None
    try:
        with tab.app.batch_update(), tab.app.suspend():
            return await tab.app.around.edit_text(text, suffix)
    except SuspendNotSupported:
        tab.tell("an editor cannot have this terminal; e edits in the workbench", "warning")
    except WorkbenchError as error:
        tab.tell(f"{error}: {error.advice}" if error.advice else str(error), "warning")
    return None
