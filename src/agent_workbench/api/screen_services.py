"""Services of the machine that a screen needs: editor, desktop notifications, clock, and the mark of the first run."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # loaded when a screen asks for them
    from agent_workbench.core.ports.services import Clock, Desktop


async def edit_text(text: str, suffix: str) -> str:
    """Return `text` as the user's own editor left it; the terminal has to be free. Raises `WorkbenchError`."""
    from agent_workbench.system.editor import edit_in_editor

    return await edit_in_editor(text, suffix, os.environ)


def first_run() -> bool:
    """Return True if this user opens the workbench for the first time, and remember that they did."""
    from agent_workbench.system.atomic_files import make_directories
    from agent_workbench.system.user_dirs import state_dir

    mark = state_dir() / "welcomed"
    if mark.exists():
        return False
    make_directories(mark.parent)
    mark.touch()
    return True


def desktop(environ: Mapping[str, str]) -> "Desktop":
    """Return the desktop that the terminal is on, if there is one."""
    from agent_workbench.adapters.desktop.notifications import DesktopNotifications

    return DesktopNotifications(environ)


def system_clock() -> "Clock":
    """Return the machine's clock."""
    from agent_workbench.bootstrap import stores

    return stores.system_clock()
