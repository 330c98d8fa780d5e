"""Where the calls begin: the repository around a place, and what of its settings counts."""

import asyncio
import gc
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from agent_workbench import __version__
from agent_workbench.bootstrap import Say, Site
from agent_workbench.bootstrap.shared_resources import SharedResources
from agent_workbench.core.errors import RepoError, ShellError
from agent_workbench.core.invocation import Place

if TYPE_CHECKING:  # engine and adapters are loaded by the calls that need them
    from agent_workbench.adapters.git.repository import Repository
    from agent_workbench.adapters.journal.redaction import Redactor
    from agent_workbench.core.events import Recorded
    from agent_workbench.core.history.session_choice import SessionQuery
    from agent_workbench.core.ports.services import Clock
    from agent_workbench.core.ports.stores import OpenedSession
    from agent_workbench.core.settings import Settings
    from agent_workbench.core.state.session_state import SessionState
    from agent_workbench.engine.recorder import OnRecorded, Recorder
    from agent_workbench.engine.runtime.publisher import UpdatePublisher
    from agent_workbench.engine.runtime.session_context import SessionContext
    from agent_workbench.engine.session.live_session import LiveSession

UNTRUSTED = "what the settings of this repo would run or ask is not trusted and does not count; `agent trust` shows it"
UNCONFINED = "install bubblewrap, or say --unconfined to run tests and commands without a sandbox"


async def find_site(place: Place, house: SharedResources | None = None) -> "TerminalRepoContext":
    """Return the repository around `place`, in the `house` of its process; raise `RepoError` where there is none."""
    found = await asyncio.to_thread(_repository, place)
    facts = await found.inspect()
    return TerminalRepoContext(place, found, Path(facts.root), house)


def _repository(place: Place) -> "Repository":
    from agent_workbench.adapters.git.repository import Repository
    from agent_workbench.system.user_dirs import state_dir

    return Repository(place.folder, state_dir() / "worktrees")


class TerminalRepoContext(Site):
    """A site whose door leads to a live session. Satisfies `engine.threshold.PreflightSteps`."""

    async def open(self, board: "UpdatePublisher", *, trusted: bool) -> "LiveSession":
        """Open the journal and return the session, which lives when its `run()` is awaited."""
        from agent_workbench.engine.session.live_session import LiveSession

        session, recorder = await open_desk(self, board, trusted=trusted, on_recorded=_unheard)
        board.show_ui(session.settings.ui)
        return LiveSession(session, recorder)


def redactor_of(place: Place, settings: "Settings") -> "Redactor":
    """Return what replaces the secrets of the environment in texts."""
    from agent_workbench.adapters.journal.redaction import environment_redactor

    return environment_redactor(place.environ, settings.key_variables)


def _unheard(recorded: "Recorded", _: object) -> None:
    """Take no notice: the board shows the state."""


MANY_EVENTS = 1_000


async def open_desk(
    site: Site,
    board: "UpdatePublisher",
    *,
    trusted: bool,
    on_recorded: "OnRecorded",
    wanted: "SessionQuery | None" = None,
    headless: bool = False,
    say: Say | None = None,
) -> "tuple[SessionContext, Recorder]":
    """Take up or begin the session that is `wanted` at `site`, None: the one its place asks for.

    Raises `LockedError`, `JournalError`, `ConfigError`, `StorageError`.
    """
    from agent_workbench.core.events import SessionConfigured, SessionStarted
    from agent_workbench.engine.runtime.session_context import SessionContext
    from agent_workbench.engine.session.session_start import begin, session_tools

    settings = await asyncio.to_thread(lambda: site.settings(trusted=trusted))
    async with AsyncExitStack() as opened:
        ports = await asyncio.to_thread(site.ports, settings, say or board.show_activity)
        opened.push_async_callback(ports.model.close)
        opened.push_async_callback(ports.retriever.close)
        sandbox, facts = await ports.shell.observe(), await ports.workspaces.inspect()
        if headless and not sandbox.holds and not site.place.unconfined:
            raise ShellError(f"nobody watches and nothing confines commands here: {sandbox.why}", advice=UNCONFINED)
        if headless and not sandbox.holds and say is not None:
            say(f"tests and commands are not confined here: {sandbox.why}")
        own_rules = await ports.rules.kept() if trusted else ()
        sessions = await asyncio.to_thread(site.sessions, settings)
        opening = await sessions.open(wanted or site.wanted)
        opened.push_async_callback(sessions.discard, opening)
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
            own_rules=own_rules,
        )
        header = SessionStarted(opening.id, facts.root, facts.head, __version__)
        recorder = _recorder(opening, ports.clock, board, on_recorded)
        await begin(recorder, header, config, opening.torn_bytes)
        opened.pop_all()
        return SessionContext(ports, settings, recorder, board, session_tools(ports)), recorder


def _recorder(
    opening: "OpenedSession", clock: "Clock", board: "UpdatePublisher", on_recorded: "OnRecorded"
) -> "Recorder":
    """Return the recorder behind what the journal holds; the board shows every state."""
    from agent_workbench.core.fold import fold_all
    from agent_workbench.engine.recorder import Recorder

    state = fold_all(opening.events)
    if len(opening.events) > MANY_EVENTS:
        gc.freeze()  # all of it is kept to the end: to go through it for garbage holds up the screen for half a second
    board.show_state(state)

    def heard(recorded: "Recorded", after: "SessionState") -> None:
        board.show_state(after)
        on_recorded(recorded, after)

    return Recorder(opening.journal, clock, state, heard)


async def trusted_site(place: Place) -> "tuple[Site, Settings]":
    """Return the site and the settings that count there."""
    site = await find_site(place)
    trust = await site.trust()
    trusted = await asyncio.to_thread(trust.is_trusted)
    return site, await asyncio.to_thread(lambda: site.settings(trusted=trusted))


async def site_or_folder(place: Place) -> "tuple[Site, Settings]":
    """Return what `trusted_site` does; where there is no repository the folder, of which nothing is obeyed."""
    try:
        return await trusted_site(place)
    except RepoError:
        site = Site(place, await asyncio.to_thread(_repository, place), place.folder)
        return site, await asyncio.to_thread(lambda: site.settings(trusted=False))


async def told_site(place: Place, say: Say) -> "tuple[Site, Settings]":
    """Return what `site_or_folder` does; say where not all that stands in the settings counts."""
    site, settings = await site_or_folder(place)
    if isinstance(site, TerminalRepoContext) and await (await site.trust()).question():
        say(UNTRUSTED)
    return site, settings


def say_nothing(_: str) -> None:
    """Nobody listens."""
