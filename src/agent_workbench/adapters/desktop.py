"""Desktop notifications through the program of each system."""

import asyncio
import contextlib
import html
import sys
from collections.abc import Mapping

from agent_workbench.system.programs import child_environment, find_program

MAX_SECONDS = 5.0
_SCRIPT = (
    "on run argv",
    "display notification (item 2 of argv) with title (item 1 of argv)",
    "end run",
)
# Variables through which a program reaches the desktop.
_OF_DESKTOPS = ("DBUS_", "XDG_", "DISPLAY", "WAYLAND_", "XAUTHORITY")


class DesktopNotifications:
    """The port `Desktop` with `notify-send`, on macOS `osascript`, from the PATH of `environ`."""

    def __init__(self, environ: Mapping[str, str], platform: str = sys.platform) -> None:
        self._environ = environ
        self._platform = platform

    async def notify(self, title: str, text: str) -> None:
        """Show a notification; without the program or a desktop nothing happens."""
        command = self._command(title, text)
        program = await asyncio.to_thread(find_program, command[0], self._environ.get("PATH", ""))
        if program is None:
            return
        with contextlib.suppress(OSError):
            process = await asyncio.create_subprocess_exec(
                program,
                *command[1:],
                env=child_environment(self._environ, *_OF_DESKTOPS),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
            )
            try:
                await asyncio.wait_for(process.wait(), MAX_SECONDS)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()

    def _command(self, title: str, text: str) -> tuple[str, ...]:
        """Return the program and its arguments. The texts cannot act as an option, a script or markup."""
        if self._platform == "darwin":
            lines = tuple(word for line in _SCRIPT for word in ("-e", line))
            return ("osascript", *lines, "--", title, text)
        return ("notify-send", "--app-name", title, "--", title, html.escape(text, quote=False))
