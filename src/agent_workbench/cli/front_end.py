"""The terminal UI on the sessions of a host, with the signals that end it."""

import asyncio
import os
import signal
import traceback
from typing import TYPE_CHECKING, Any

from agent_workbench.core.background import in_background
from agent_workbench.core.errors import ExitCode, WorkbenchError

if TYPE_CHECKING:  # what a session is made of is loaded behind the first frame
    from agent_workbench.api.sessions.session_host import LocalSessionHost
    from agent_workbench.core.history.summaries import PastSessions
    from agent_workbench.core.session_request import SessionRequest
    from agent_workbench.tui.app import WorkbenchApp

MOST_DEFECTS = 10
"""One that repeats is told no more often than this."""


async def show(
    host: "LocalSessionHost",
    first: "SessionRequest",
    *,
    past: "PastSessions",
    first_run: bool = False,
    served: bool = False,
) -> tuple[str, ...]:
    """Show the session `first`, and those that are opened beside it, until all of them are left.

    A hang-up or a request to end leaves them cleanly. `served`: a web server of ours draws the screen.
    Returns the farewells. Raises `WorkbenchError` if `first` cannot be opened, or the screen itself failed.
    """
    from agent_workbench.api.screen_services import desktop, edit_text, system_clock
    from agent_workbench.tui.app import WorkbenchApp
    from agent_workbench.tui.environment import AppEnvironment

    environ = host.invocation.environ
    app = WorkbenchApp(
        host,
        first,
        clock=system_clock(),
        first_run=first_run,
        first_screen=host.ready,
        around=AppEnvironment(
            past=past,
            edit_text=None if served else edit_text,
            desktop=desktop(environ),
            served=served,
            in_tmux=not served and bool(environ.get("TMUX")),
        ),
    )
    signals = _leave_on_signals(app, host)
    defects = _tell_defects(app)
    try:
        await app.run_async()
    finally:
        app.first_screen.set()
        if host.has_sessions:
            await app.leave("the terminal went away")
        await host.join()
    if signal.SIGHUP in signals:
        os._exit(ExitCode.INTERRUPTED)
    for defect in defects:
        traceback.print_exception(defect)
    if app.failure is not None:
        raise app.failure
    if app.return_code:
        raise WorkbenchError(
            "the screen failed, which is a defect of the workbench",
            advice="the session's journal is kept; `agent tui` takes an unfinished task up again",
        )
    return tuple(dict.fromkeys(filter(None, app.farewells)))


def _tell_defects(app: "WorkbenchApp") -> list[BaseException]:
    """Have a defect in a background task shown when it happens; return the list that then holds it."""
    defects: list[BaseException] = []

    def tell(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if not isinstance(error, Exception):
            loop.default_exception_handler(context)
        elif len(defects) < MOST_DEFECTS:
            defects.append(error)
            app.tell(f"{context['message']}: {type(error).__name__}; its traceback is printed at the end", "error")

    asyncio.get_running_loop().set_exception_handler(tell)
    return defects


def _leave_on_signals(app: "WorkbenchApp", host: "LocalSessionHost") -> list[signal.Signals]:
    """Have the sessions left at a hang-up or a request to end; return the list that then holds the signal."""
    received: list[signal.Signals] = []
    leaving: set[asyncio.Task[None]] = set()

    def leave(number: signal.Signals) -> None:
        received.append(number)
        task = in_background(_leave(app, number, host))
        leaving.add(task)
        task.add_done_callback(leaving.discard)

    for number in (signal.SIGHUP, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, leave, number)
    return received


async def _leave(app: "WorkbenchApp", number: signal.Signals, host: "LocalSessionHost") -> None:
    """Leave the sessions, and after a hang-up the process: Textual would wait for a terminal that is gone."""
    await app.leave(f"ended by {number.name}")
    if number is signal.SIGHUP:
        app.first_screen.set()
        await host.join()
        os._exit(ExitCode.INTERRUPTED)
