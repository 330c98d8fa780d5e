"""Calls that work: a session for a front end, a run without anybody, the demo."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from agent_workbench.api.repo_context import find_site, open_desk
from agent_workbench.bootstrap import Say, Site
from agent_workbench.bootstrap.shared_resources import SharedResources
from agent_workbench.core.errors import TrustError, task_locked
from agent_workbench.core.ids import NO_SESSION, TaskId
from agent_workbench.core.invocation import Place

if TYPE_CHECKING:  # engine and adapters are loaded by the calls that need them
    from agent_workbench.core.history.session_choice import SessionQuery
    from agent_workbench.core.ports.services import Clock, Desktop
    from agent_workbench.core.settings import Settings
    from agent_workbench.engine.recorder import OnRecorded
    from agent_workbench.engine.session.outcomes import Ending, TaskOutcome
    from agent_workbench.engine.session.preflight import Preflight

    Outcomes = tuple[TaskOutcome, ...]
    Work = Callable[[SessionQuery, Outcomes, Collection[TaskId]], Awaitable[Ending]]

UNTRUSTED = "`agent trust` shows what it would run and asks; `agent trust --yes` says yes"


def terminal_session(place: Place, house: SharedResources) -> "Preflight":
    """Return a session for a front end, beside others of its `house`: what has to be settled first is asked in it."""
    from agent_workbench.engine.session.preflight import Preflight

    return Preflight(lambda: find_site(place, house))


async def run_unattended(place: Place, on_recorded: "OnRecorded", say: Say) -> "Ending":
    """Work on the tasks of `place` under the policy, saying what is waited for; raise `TrustError`."""
    from agent_workbench.core.state.session_state import SessionState
    from agent_workbench.engine.runtime.publisher import UpdatePublisher
    from agent_workbench.engine.session.unattended import run_unattended

    site = await find_site(place)
    trust = await site.trust()
    if await trust.question():
        raise TrustError(f"what {site.root} would run is not trusted", advice=UNTRUSTED)
    settings = await asyncio.to_thread(lambda: site.settings(trusted=True))

    async def work(wanted: "SessionQuery", before: "Outcomes" = (), elsewhere: Collection[TaskId] = ()) -> "Ending":
        session, recorder = await open_desk(
            site,
            UpdatePublisher(SessionState()),
            trusted=True,
            wanted=wanted,
            headless=True,
            on_recorded=on_recorded,
            say=say,
        )
        return await run_unattended(session, recorder, place.tasks, before, elsewhere)

    if place.tasks is None:
        return await _run_all(site, settings, work)
    return await _check_named(site, settings, place.tasks) or await work(site.wanted)


async def _run_all(site: Site, settings: "Settings", work: "Work") -> "Ending":
    """Take up every session that stopped in a task, then do all that is ready; a parked task keeps its session."""
    from agent_workbench.core.history.session_choice import unfinished_tasks
    from agent_workbench.engine.session.outcomes import OF_TASKS, settled, sum_up, taken_outcome

    sessions, plans, wanted = await asyncio.to_thread(site.sessions, settings), site.plans(settings), site.wanted
    before: Outcomes = ()
    while True:
        plan = await plans.read()
        stopped = unfinished_tasks(await sessions.summaries())
        taken = await site.repository.taken([each.id for each in plan.tasks if each.open], NO_SESSION)
        held = {**{task: holder for task, holder in stopped.items() if holder}, **taken}
        outcomes = {task: taken_outcome(task, holder) for task, holder in held.items()}
        outcomes |= {each.task: each for each in before}
        if plan.next_task(outcomes) is None and await sessions.find(wanted) is None:
            return sum_up(outcomes.values(), plan)
        ending = await work(wanted, tuple(outcomes.values()), () if wanted.fresh else stopped)
        if ending.exit_code not in OF_TASKS:
            return ending
        before = settled(ending.outcomes)
        over = {each.id for each in (await plans.read()).tasks if not each.open}
        wanted = replace(wanted, name="", passing=frozenset(over.union(each.task for each in before)))


async def _check_named(site: Site, settings: "Settings", tasks: tuple[TaskId, ...]) -> "Ending | None":
    """Return the ending where there is nothing to do, so that no empty session is left of it.

    Raises `PlanError`, and `LockedError` where another session works on the first of the tasks.
    """
    from agent_workbench.core.history.session_choice import was_killed_when_done
    from agent_workbench.engine.session.unattended import all_done, already_done
    from agent_workbench.engine.task.task_start import check_startable

    sessions = await asyncio.to_thread(site.sessions, settings)
    if await sessions.find(site.wanted) is not None:
        return None
    plan = await site.plans(settings).read()
    again = not site.wanted.fresh and all_done(plan, tasks)
    if again and was_killed_when_done(await sessions.summaries(), tasks):
        return already_done(tasks)
    check_startable(plan, tasks)
    for task, holder in (await site.repository.taken(tasks[:1], NO_SESSION)).items():
        raise task_locked(task, holder)
    return None


async def demo_place(folder: Path, place: Place) -> Place:
    """Write the demo's model and repo, trust what we wrote, and return where it is."""

    def write() -> None:
        from agent_workbench.adapters.demo.sample_repo import write_sample
        from agent_workbench.adapters.llama_cpp.tiny_model import write_tiny_gguf
        from agent_workbench.system.atomic_files import make_directories, storage_error
        from agent_workbench.system.user_dirs import cache_dir

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
    from agent_workbench.adapters.journal.clock import SystemClock

    return SystemClock()
