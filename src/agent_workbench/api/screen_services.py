"""Services of the machine that front ends need: editor, notifications, clock, web server, first run, parent."""

import os
import shlex
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agent_workbench.core.settings import CallBy
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.views.sessions import NOTIFICATION_TITLE

if TYPE_CHECKING:  # loaded when a screen asks for them
    from agent_workbench.core.ports.machine import Clock, Desktop
    from agent_workbench.core.settings import Settings


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
    from agent_workbench.adapters.local_machine import DesktopNotifications

    return DesktopNotifications(environ)


def tell_parked(settings: "Settings", environ: Mapping[str, str]) -> "Callable[[str], Awaitable[None]] | None":
    """Return the function that tells a user's desktop what was parked, None unless `ui.notify` has the desktop."""
    if CallBy.DESKTOP not in settings.ui.notify:
        return None

    async def tell(text: str) -> None:
        await desktop(environ).notify(NOTIFICATION_TITLE, sanitize_line(text, 200))

    return tell


async def parent_gone(parent: int) -> None:
    """Wait until the process that started this one, `parent`, has ended."""
    from agent_workbench.system.processes import parent_gone as wait

    await wait(parent)


def system_clock() -> "Clock":
    """Return the machine's clock."""
    from agent_workbench.bootstrap import stores

    return stores.system_clock()


async def serve_workbench(folder: Path, words: Sequence[str], port: int, on_ready: Callable[[str], None]) -> None:
    """Serve `agent` with these arguments on loopback until a signal ends it; `on_ready` gets the address to open.

    Raises `UsageError` if `port` is not free.
    """
    from agent_workbench.adapters.web.server import WorkbenchServer

    # `-P`: modules of the current folder must not shadow ours. `exec`: no shell survives the end of the server.
    command = "exec " + shlex.join([sys.executable, "-P", "-m", "agent_workbench", *words])
    await WorkbenchServer(command, title=f"Agent Workbench · {folder.name}").serve_until_stopped(port, on_ready)
