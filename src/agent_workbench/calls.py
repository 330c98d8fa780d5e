"""What can be asked of the workbench, as calls: the verbs of the command and Python programs use the same."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from agent_workbench import __version__
from agent_workbench.bootstrap import Say, Site
from agent_workbench.core.errors import RepoError, ShellError, TrustError
from agent_workbench.core.place import Place

if TYPE_CHECKING:  # engine and adapters are loaded by the calls that need them
    from agent_workbench.adapters.git.repository import Repository
    from agent_workbench.adapters.journal.reader import VerifyReport
    from agent_workbench.adapters.journal.sessions import SessionSummary
    from agent_workbench.adapters.llama_cpp.embedded import EmbeddedServer
    from agent_workbench.config.repo_trust import RepoTrust
    from agent_workbench.core.events import Recorded
    from agent_workbench.core.findings import Finding
    from agent_workbench.core.plan import Plan, Task
    from agent_workbench.core.ports import Clock, Model, Plans
    from agent_workbench.core.settings import Settings
    from agent_workbench.core.state import SessionState
    from agent_workbench.engine.board import Board
    from agent_workbench.engine.desk import Desk
    from agent_workbench.engine.headless import Ending
    from agent_workbench.engine.recorder import OnRecorded, Recorder
    from agent_workbench.engine.replay import ReplaySession
    from agent_workbench.engine.session import LiveSession
    from agent_workbench.engine.threshold import Threshold

UNCONFINED = "install bubblewrap, or say --unconfined to run tests and commands without a sandbox"
UNTRUSTED = "`agent trust` shows what it would run and asks; `agent trust --yes` says yes"


async def find_site(place: Place) -> "TerminalSite":
    """Return the repository around `place`; raise `RepoError` where there is none to work in."""
    found = await asyncio.to_thread(_repository, place)
    facts = await found.inspect()
    return TerminalSite(place, found, Path(facts.root))


def _repository(place: Place) -> "Repository":
    from agent_workbench.adapters.git.repository import Repository
    from agent_workbench.host.paths import state_dir

    return Repository(place.folder, state_dir() / "worktrees")


class TerminalSite(Site):
    """A site whose door leads to a live session. Satisfies `engine.threshold.Doors`."""

    async def open(self, board: "Board", *, trusted: bool) -> "LiveSession":
        """Open the journal and return the session, which lives when its `run()` is awaited."""
        from agent_workbench.engine.session import LiveSession

        desk, recorder = await open_desk(self, board, trusted=trusted, on_recorded=_unheard)
        board.show_ui(desk.settings.ui)
        return LiveSession(desk, recorder)


def _unheard(recorded: "Recorded", _: object) -> None:
    """Take no notice: the board shows the state."""


async def open_desk(
    site: Site,
    board: "Board",
    *,
    trusted: bool,
    on_recorded: "OnRecorded",
    headless: bool = False,
    say: Say | None = None,
) -> "tuple[Desk, Recorder]":
    """Take up or begin a session at `site`; raise `LockedError`, `JournalError`, `ConfigError`, `StorageError`."""
    from agent_workbench.core.events import SessionConfigured, SessionStarted
    from agent_workbench.core.fold import fold_all
    from agent_workbench.engine.beginning import begin
    from agent_workbench.engine.desk import Desk
    from agent_workbench.engine.recorder import Recorder

    settings = await asyncio.to_thread(lambda: site.settings(trusted=trusted))
    ports = await asyncio.to_thread(site.ports, settings, say or board.show_activity)
    sandbox, facts = await ports.shell.observe(), await ports.workspaces.inspect()
    if headless and not sandbox.holds and not site.place.unconfined:
        raise ShellError(f"nobody watches and nothing confines commands here: {sandbox.why}", advice=UNCONFINED)
    opening = await asyncio.to_thread(site.open_journal, settings)
    state = fold_all(opening.events)
    board.show_state(state)

    def heard(recorded: "Recorded", after: "SessionState") -> None:
        board.show_state(after)
        on_recorded(recorded, after)

    recorder = Recorder(opening.writer, ports.clock, state, heard)
    header = SessionStarted(opening.session, facts.root, facts.head, __version__)
    config = SessionConfigured(
        approvals=settings.approvals,
        limits=settings.limits,
        tools=settings.tools_allowed,
        test_command=settings.test_command,
        lint_command=settings.lint_command,
        answer_tokens=settings.model.answer_tokens,
        answer_seconds=settings.model.answer_seconds,
        sandbox=sandbox,
        headless=headless,
    )
    await begin(recorder, header, config, opening.torn_bytes)
    return Desk(ports, settings, recorder, board), recorder


def terminal_session(place: Place) -> "Threshold":
    """Return a session for a front end: what has to be settled first is asked in it."""
    from agent_workbench.engine.threshold import Threshold

    return Threshold(lambda: find_site(place))


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
    from agent_workbench.engine.headless import nothing_to_do
    from agent_workbench.engine.starting import check_startable

    settings = await asyncio.to_thread(lambda: site.settings(trusted=True))
    if await asyncio.to_thread(lambda: site.sessions(settings).find(site.wanted)) is not None:
        return None
    plan, tasks = await site.plans(settings).read(), site.place.tasks
    check_startable(plan, tasks or ())
    return nothing_to_do(plan) if tasks is None and plan.next_task() is None else None


async def repo_trust(place: Place) -> "RepoTrust":
    """Return what the repository at `place` would have run or obeyed, and the user's answer to it."""
    return await (await find_site(place)).trust()


async def trusted_site(place: Place) -> "tuple[Site, Settings]":
    """Return the site and the settings that count there."""
    site = await find_site(place)
    trust = await site.trust()
    trusted = await asyncio.to_thread(trust.is_trusted)
    return site, await asyncio.to_thread(lambda: site.settings(trusted=trusted))


async def _site_or_folder(place: Place) -> "tuple[Site, Settings]":
    """Return what `trusted_site` does; where there is no repository the folder, of which nothing is obeyed."""
    try:
        return await trusted_site(place)
    except RepoError:
        site = Site(place, await asyncio.to_thread(_repository, place), place.folder)
        return site, await asyncio.to_thread(lambda: site.settings(trusted=False))


async def session_folder(place: Place) -> Path:
    """Return the folder of the session that `place` names, the newest when it names none; raise `UsageError`."""
    from agent_workbench.adapters.journal.sessions import find_session

    site, settings = await trusted_site(place)
    return await asyncio.to_thread(lambda: find_session(site.sessions_dir(settings), place.session))


async def recorded_events(place: Place) -> "tuple[Recorded, ...]":
    """Return what stands in a session's journal; raise `JournalError` where it does not prove itself."""
    from agent_workbench.adapters.journal.reader import read_journal

    return (await asyncio.to_thread(read_journal, await session_folder(place))).events


async def replay_session(place: Place) -> "ReplaySession":
    """Return a past session to be seen again."""
    from agent_workbench.engine.replay import ReplaySession

    return ReplaySession(await recorded_events(place))


async def verify_session(place: Place) -> "VerifyReport":
    """Return whether a session's journal proves itself, with every line that does not fit."""
    from agent_workbench.adapters.journal.reader import verify_journal

    return await asyncio.to_thread(verify_journal, await session_folder(place))


async def session_summaries(place: Place) -> "tuple[SessionSummary, ...]":
    """Return the repo's sessions, newest first."""
    from agent_workbench.adapters.journal.sessions import list_sessions

    site, settings = await trusted_site(place)
    return await asyncio.to_thread(lambda: list_sessions(site.sessions_dir(settings)))


async def repo_plans(place: Place) -> "Plans":
    """Return the repo's plan file."""
    site, settings = await trusted_site(place)
    return site.plans(settings)


async def planned_tasks(place: Place, goal: str, existing: "Plan") -> "tuple[Task, ...]":
    """Ask the model for tasks that reach `goal`; raise `ModelError`, `PlanError`."""
    from agent_workbench.engine.planner import make_plan

    site, settings = await trusted_site(place)
    ports = await asyncio.to_thread(site.ports, settings, _say_nothing)
    try:
        files = await site.repository.list_tracked()
        return await make_plan(ports.model, goal, files, existing, settings.model.answer_seconds)
    finally:
        await ports.model.close()


async def configured_model(place: Place, say: Say) -> "Model":
    """Return the model that the settings ask for; it says what it waits for; close it when done."""
    site, settings = await _site_or_folder(place)
    return await asyncio.to_thread(site.model, settings, say)


async def embedded_server(place: Place, say: Say) -> "EmbeddedServer":
    """Return a server of ours for the model file, not yet started."""
    from agent_workbench.adapters.llama_cpp.factory import embedded_server as server_for

    site, settings = await _site_or_folder(place)
    return server_for(settings.model, place.environ, site.model_log, say)


async def examine_place(place: Place) -> "tuple[Finding, ...]":
    """Return what works at `place` and what does not."""
    from agent_workbench.engine.doctor import examine, examine_settings

    site, settings = await _site_or_folder(place)
    untrusted = await (await site.trust()).question()
    ports = await asyncio.to_thread(site.ports, settings, _say_nothing)
    try:
        about_settings = examine_settings(site.load().origins, untrusted)
        return (*about_settings, *await examine(ports, settings, str(site.model_log)))
    finally:
        await ports.retriever.close()
        await ports.model.close()


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


def system_clock() -> "Clock":
    """Return the machine's clock."""
    from agent_workbench.adapters.journal.ids import SystemClock

    return SystemClock()


def _say_nothing(_: str) -> None:
    """Nobody listens."""
