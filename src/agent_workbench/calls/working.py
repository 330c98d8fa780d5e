"""Calls that work: a session for a front end, a run without anybody, the demo."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from agent_workbench.bootstrap import Say, Site
from agent_workbench.bootstrap.house import House
from agent_workbench.calls.sites import find_site, open_desk
from agent_workbench.core.errors import TrustError
from agent_workbench.core.place import Place

if TYPE_CHECKING:  # engine and adapters are loaded by the calls that need them
    from agent_workbench.core.ports import Clock, Desktop
    from agent_workbench.engine.headless import Ending
    from agent_workbench.engine.recorder import OnRecorded
    from agent_workbench.engine.threshold import Threshold

UNTRUSTED = "`agent trust` shows what it would run and asks; `agent trust --yes` says yes"


def terminal_session(place: Place, house: House) -> "Threshold":
    """Return a session for a front end, beside others of its `house`: what has to be settled first is asked in it."""
    from agent_workbench.engine.threshold import Threshold

    return Threshold(lambda: find_site(place, house))


async def run_unattended(place: Place, on_recorded: "OnRecorded", say: Say) -> "Ending":
    """Work on the tasks of `place` under the policy, saying what is waited for; raise `TrustError`."""
    from agent_workbench.core.state import SessionState
    from agent_workbench.engine.board import Board
    from agent_workbench.engine.headless import run_headless

    site = await find_site(place)
    trust = await site.trust()
    if await trust.question():
        raise TrustError(f"what {site.root} would run is not trusted", advice=UNTRUSTED)
    if ending := await _check_begin(site):
        return ending
    board = Board(SessionState())
    desk, recorder = await open_desk(site, board, trusted=True, headless=True, on_recorded=on_recorded, say=say)
    return await run_headless(desk, recorder, place.tasks)


async def _check_begin(site: Site) -> "Ending | None":
    """Return the ending where there is nothing to do, so that no empty session is left of it; raise `PlanError`."""
    from agent_workbench.engine.headless import all_done, already_done, nothing_to_do
    from agent_workbench.engine.starting import check_startable

    settings = await asyncio.to_thread(lambda: site.settings(trusted=True))
    sessions = site.sessions(settings)
    if await asyncio.to_thread(sessions.find, site.wanted) is not None:
        return None
    plan, tasks = await site.plans(settings).read(), site.place.tasks or ()
    again = not site.wanted.fresh and all_done(plan, tasks)
    if again and await asyncio.to_thread(sessions.was_killed_when_done, tasks):
        return already_done(tasks)
    check_startable(plan, tasks)
    return nothing_to_do(plan) if site.place.tasks is None and plan.next_task() is None else None


async def demo_place(folder: Path, place: Place) -> Place:
    """Write the demo's model and repo, trust what we wrote, and return where it is."""

    def write() -> None:
        from agent_workbench.adapters.demo.sample import write_sample
        from agent_workbench.adapters.llama_cpp.tiny import write_tiny_gguf
        from agent_workbench.host.atomic import make_directories, storage_error
        from agent_workbench.host.paths import cache_dir

        model = cache_dir() / "demo-model.gguf"
        try:
            make_directories(model.parent)
            write_tiny_gguf(model)
            write_sample(folder, model)
        except OSError as error:
            raise storage_error(f"the demo cannot be written to {error.filename or folder}", error) from error

    await asyncio.to_thread(write)
    at = replace(place, folder=folder, demo=True)
    trust = await (await find_site(at)).trust()
    if await trust.question():
        await trust.accept()
    return at


def first_run() -> bool:
    """Return whether the workbench was never opened here by this user, and remember that it is now."""
    from agent_workbench.host.atomic import make_directories
    from agent_workbench.host.paths import state_dir

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
    from agent_workbench.adapters.journal.ids import SystemClock

    return SystemClock()
