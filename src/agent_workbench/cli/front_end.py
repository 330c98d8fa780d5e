"""The terminal UI on the sessions of a host, and the signals that end it."""

import asyncio
import contextlib
import gc
import os
import select
import signal
import sys
import traceback
from collections.abc import Mapping
from threading import Thread
from typing import TYPE_CHECKING, Any

from agent_workbench.cli.output import say
from agent_workbench.core.background import in_background
from agent_workbench.core.errors import ExitCode, WorkbenchError
from agent_workbench.core.session_request import Invocation

if TYPE_CHECKING:  # what a session is made of is loaded behind the first frame
    from agent_workbench.api.sessions.session_host import LocalSessionHost
    from agent_workbench.core.history.summaries import PastSessions
    from agent_workbench.core.ports.forge import PullRequests
    from agent_workbench.core.session_request import SessionRequest
    from agent_workbench.subjects.dispatch.progress import PlanWork
    from agent_workbench.tui.app import WorkbenchApp

MAX_DEFECTS = 10
"""Limit for repeated defects."""
FULL_GENERATION = 2
"""Oldest generation of objects: a collection of it goes through all that are not left out."""
THOROUGH_EACH = 50
"""Full collections from one of all objects to the next."""


def watch_terminal() -> None:
    """Send SIGHUP to this process when its terminal or web server is gone: not every process gets one then.

    Until the screen listens, the signal ends the process. Textual would read the end of its input again and again.
    """
    hang_ups = select.poll()
    hang_ups.register(sys.__stdin__ or sys.stdin, 0)  # no events: what is typed wakes nobody

    def watch() -> None:
        hang_ups.poll()
        os.kill(os.getpid(), signal.SIGHUP)

    Thread(target=watch, name="terminal", daemon=True).start()


async def open_screen(
    invocation: Invocation, request: "SessionRequest", *, welcome: bool = False, served: bool = False
) -> None:
    """Show a session and those opened beside it until all of them have ended; print the farewells.

    Raises `WorkbenchError` if the first session could not be opened, or ended with an error.
    """
    ready = asyncio.Event()
    collecting = _collect_after(ready)
    from agent_workbench.api.repo_sessions import RepoSessions
    from agent_workbench.api.session_queries import named_session
    from agent_workbench.api.sessions.followed_session import followed_if_held
    from agent_workbench.api.sessions.session_host import LocalSessionHost

    if request.replayed:  # an unknown name is an error before the screen is opened
        await named_session(invocation, request.session)
    request = await followed_if_held(invocation, request)
    host = LocalSessionHost(invocation, ready=ready)
    farewells = await show(host, request, past=RepoSessions(invocation), first_run=welcome, served=served)
    await collecting
    host.raise_if_none_opened()  # before the farewell, which would repeat it
    for farewell in farewells:
        with contextlib.suppress(OSError):  # the terminal may be gone
            say(farewell)


def _plan_work(invocation: Invocation) -> "PlanWork":
    from agent_workbench.subjects.dispatch.calls import LocalPlanWork

    return LocalPlanWork(invocation)


def _pull_requests(invocation: Invocation) -> "PullRequests":
    from agent_workbench.subjects.forge.report_calls import RepoPullRequests

    return RepoPullRequests(invocation)


def _collect_after(shown: asyncio.Event) -> "asyncio.Task[None]":
    """Collect no garbage until `shown` is set: what is loaded before that is kept to the end."""
    gc.disable()

    async def collect() -> None:
        await shown.wait()
        gc.freeze()
        gc.callbacks.append(SurvivorsKept())
        gc.enable()

    return in_background(collect())


class SurvivorsKept:
    """Callback of the garbage collector: leave out what a full collection has kept from those after it.

    Going through all of a long session blocks the screen for 0.1 s. Once in `THOROUGH_EACH` times it is done
    nevertheless: what is no longer used of the objects left out is found only then.
    """

    def __init__(self) -> None:
        self._full = 0

    def __call__(self, phase: str, info: Mapping[str, int]) -> None:
        """Act at the start and the stop of a collection (`gc.callbacks` says what comes in)."""
        if info["generation"] < FULL_GENERATION:
            return
        if phase == "stop":
            gc.freeze()
            return
        self._full += 1
        if self._full % THOROUGH_EACH == 0:
            gc.unfreeze()


async def show(
    host: "LocalSessionHost",
    first: "SessionRequest",
    *,
    past: "PastSessions",
    first_run: bool = False,
    served: bool = False,
) -> tuple[str, ...]:
    """Show the session `first` and those opened beside it until all of them are left; return the farewells.

    SIGHUP and SIGTERM leave them cleanly. `served`: the web server draws the screen. Raises `WorkbenchError` if `first`
    cannot be opened, or the screen fails.
    """
    from agent_workbench.api.screen_services import desktop, edit_text, system_clock
    from agent_workbench.tui.app import WorkbenchApp
    from agent_workbench.tui.session.window import AppEnvironment

    environ = host.invocation.environ
    app = WorkbenchApp(
        host,
        first,
        clock=system_clock(),
        first_run=first_run,
        first_screen=host.ready,
        environment=AppEnvironment(
            past=past,
            plan_work=lambda: _plan_work(host.invocation),
            pull_requests=lambda: _pull_requests(host.invocation),
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
        host.leave("the screen was closed")
        await host.join()
    if signal.SIGHUP in signals or app.terminal_stuck:
        os._exit(ExitCode.INTERRUPTED)  # Python would wait for the terminal, to write what is left
    for defect in defects:
        traceback.print_exception(defect)
    if app.failure is not None:
        raise app.failure
    if app.return_code:
        raise WorkbenchError(
            "the screen failed, which is a defect of the workbench",
            advice="the session's journal is kept; `agent tui` resumes an unfinished task",
        )
    return tuple(dict.fromkeys(filter(None, app.farewells)))


def _tell_defects(app: "WorkbenchApp") -> list[BaseException]:
    """Show defects of background tasks when they happen; return the list that collects them."""
    defects: list[BaseException] = []

    def tell(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if not isinstance(error, Exception):
            loop.default_exception_handler(context)
        elif len(defects) < MAX_DEFECTS:
            defects.append(error)
            app.tell(f"{context['message']}: {type(error).__name__}; its traceback is printed at the end", "error")

    asyncio.get_running_loop().set_exception_handler(tell)
    return defects


def _leave_on_signals(app: "WorkbenchApp", host: "LocalSessionHost") -> list[signal.Signals]:
    """Leave the sessions on SIGHUP and SIGTERM; return the list of received signals."""
    from agent_workbench.server_process import hear_signals

    leaving: dict[signal.Signals, asyncio.Task[None]] = {}

    def leave(number: signal.Signals) -> None:
        if number not in leaving:  # a terminal that is gone sends one, and so does `watch_terminal`
            leaving[number] = in_background(_leave(app, number, host))

    return hear_signals((signal.SIGHUP, signal.SIGTERM), leave)


async def _leave(app: "WorkbenchApp", number: signal.Signals, host: "LocalSessionHost") -> None:
    """Leave the sessions, and after SIGHUP end the process: Textual would wait for the lost terminal."""
    await app.leave(f"ended by {number.name}")
    if number is signal.SIGHUP:
        app.first_screen.set()
        await host.join()
        os._exit(ExitCode.INTERRUPTED)
