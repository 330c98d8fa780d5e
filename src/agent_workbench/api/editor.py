"""A call that hands a text to the user's own editor."""

import os


async def edit_text(text: str, suffix: str) -> str:
    """Return what the user made of `text`; the terminal has to be free. Raises `WorkbenchError`."""
    from agent_workbench.system.editor import edit_in_editor

    return await edit_in_editor(text, suffix, os.environ)
