"""The terminal UI on a session, whatever kind of session it is."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, TypeVar

from agent_workbench.cli.saying import say
from agent_workbench.core.errors import ExitCode, WorkbenchError

if TYPE_CHECKING:  # what a session is made of is loaded behind the first frame
    from agent_workbench.core.ports import Session
    from agent_workbench.core.sessions import Onward, PastSessions
    from agent_workbench.tui.app import WorkbenchApp

Shown = TypeVar("Shown", bound="Session")


async def show(
    begin: Callable[[], Shown],
    live: Callable[[Shown], Coroutine[None, None, None]] | None,
    *,
    first_run: bool = False,
    served: bool = False,
    past: "PastSessions | None" = None,
) -> "tuple[Shown | None, Onward | None]":
    """Show the session that `begin` returns, while it lives; a hang-up or a request to end leaves cleanly.

    Where it is `served`, a web server of ours draws it. Prints the farewell. Returns the session, None when it was left
    before there was one, and which one of the `past` is to be shown next. Raises `WorkbenchError` when the screen
    itself failed.
    """
    from agent_workbench.calls.editing import edit_text
    from agent_workbench.calls.working import system_clock
    from agent_workbench.tui.app import WorkbenchApp

    begun: list[Shown] = []

    def begin_once() -> Shown:
        begun.append(begin())
        return begun[0]

    app = WorkbenchApp(
        begin_once,
        clock=system_clock(),
        first_run=first_run,
        past=past,
        edit_text=None if served else edit_text,
        served=served,
    )
    living = asyncio.create_task(_live_behind(app.first_screen, begun, live)) if live is not None else None
    signals = _leave_on_signals(app, living)
    try:
        last = await app.run_async()
    finally:
        app.first_screen.set()
        if living is not None:
            if not living.done():
                await app.leave("the terminal went away")
            await living
    if signal.SIGHUP in signals:
        os._exit(ExitCode.INTERRUPTED)
    if app.return_code:
        raise WorkbenchError(
            "the screen failed, which is a defect of the workbench",
            advice="the session's journal is kept; `agent tui` takes an unfinished task up again",
        )
    if last is not None and last.farewell:
        with contextlib.suppress(OSError):  # the terminal may be gone
            say(last.farewell)
    return (begun[0] if begun else None), app.onward


def _leave_on_signals(app: "WorkbenchApp", living: asyncio.Task[None] | None) -> list[signal.Signals]:
    """Have the session left at a hang-up or a request to end; return the list that then holds the signal."""
    received: list[signal.Signals] = []
    leaving: set[asyncio.Task[None]] = set()

    def leave(number: signal.Signals) -> None:
        received.append(number)
        task = asyncio.create_task(_leave(app, number, living))
        leaving.add(task)
        task.add_done_callback(leaving.discard)

    for number in (signal.SIGHUP, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, leave, number)
    return received


async def _leave(app: "WorkbenchApp", number: signal.Signals, living: asyncio.Task[None] | None) -> None:
    """Leave the session, and after a hang-up the process: Textual would wait for a terminal that is gone."""
    await app.leave(f"ended by {number.name}")
    if number is signal.SIGHUP:
        app.first_screen.set()
        if living is not None:
            await asyncio.wait({living})
        os._exit(ExitCode.INTERRUPTED)


async def _live_behind(
    first_screen: asyncio.Event, begun: list[Shown], live: Callable[[Shown], Coroutine[None, None, None]]
) -> None:
    """Let the session live when the screen stands: loading the adapters before would hold the first screen up."""
    await first_screen.wait()
    for session in begun:
        await live(session)
