"""The terminal UI on a session, whatever kind of session it is."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Coroutine

from agent_workbench.cli.saying import say
from agent_workbench.core.errors import ExitCode, WorkbenchError
from agent_workbench.core.intents import Leave
from agent_workbench.core.live import SessionUpdate
from agent_workbench.core.ports import Session


async def show(session: Session, life: Coroutine[None, None, None] | None, *, first_run: bool = False) -> None:
    """Show `session` while `life` goes on; a hang-up or a request to end leaves cleanly. Prints the farewell.

    Raises `WorkbenchError` when the screen itself failed.
    """
    from agent_workbench.calls import system_clock
    from agent_workbench.tui.app import WorkbenchApp

    app = WorkbenchApp(session, clock=system_clock(), first_run=first_run)
    living = asyncio.create_task(_live_behind(app.first_screen, life)) if life is not None else None
    loop = asyncio.get_running_loop()
    leaving: set[asyncio.Task[None]] = set()

    hung_up = False

    def leave(number: signal.Signals) -> None:
        nonlocal hung_up
        hung_up = hung_up or number is signal.SIGHUP
        task = asyncio.create_task(_leave(session, number, living))
        leaving.add(task)
        task.add_done_callback(leaving.discard)

    for number in (signal.SIGHUP, signal.SIGTERM):
        loop.add_signal_handler(number, leave, number)
    try:
        last = await app.run_async()
    finally:
        app.first_screen.set()
        if living is not None:
            if not living.done():
                await session.submit(Leave("the terminal went away"))
            await living
    if hung_up:
        os._exit(ExitCode.INTERRUPTED)
    if app.return_code:
        raise WorkbenchError(
            "the screen failed, which is a defect of the workbench",
            advice="the session's journal is kept; `agent tui` takes an unfinished task up again",
        )
    if isinstance(last, SessionUpdate) and last.farewell:
        with contextlib.suppress(OSError):  # the terminal may be gone
            say(last.farewell)


async def _leave(session: Session, number: signal.Signals, living: asyncio.Task[None] | None) -> None:
    """Leave the session, and after a hang-up the process: Textual would wait for a terminal that is gone."""
    await session.submit(Leave(f"ended by {number.name}"))
    if number is signal.SIGHUP:
        if living is not None:
            await asyncio.wait({living})
        os._exit(ExitCode.INTERRUPTED)


async def _live_behind(first_screen: asyncio.Event, life: Coroutine[None, None, None]) -> None:
    """Begin `life` when the screen stands: loading the adapters before would hold the first screen up."""
    try:
        await first_screen.wait()
    except BaseException:
        life.close()
        raise
    await life
