"""One sitting at the screen: a session, and those that are opened from it, one after the other."""

from dataclasses import replace

from agent_workbench.core.errors import WorkbenchError
from agent_workbench.core.place import Place
from agent_workbench.core.sessions import Onward


async def sit(
    place: Place, *, welcome: bool = False, served: bool = False, replayed: bool = False, at: int = 0
) -> None:
    """Show the session of `place` live, or (`replayed`) as it was recorded, and then each that is asked for next.

    A recording is opened at its event `at`.
    Raises `WorkbenchError` for what kept one from being opened, or ended it.
    """
    onward = await (_replay(place, served=served, at=at) if replayed else _live(place, welcome=welcome, served=served))
    while onward is not None:
        # What was asked for once, a new session or the welcome, is not asked for again.
        place = replace(place, session=onward.session, fresh=False)
        onward = await (_replay(place, served=served) if onward.replayed else _live(place, served=served))


async def _live(place: Place, *, served: bool, welcome: bool = False) -> Onward | None:
    from agent_workbench.calls.past_sessions import RepoSessions
    from agent_workbench.calls.working import terminal_session
    from agent_workbench.cli.front_end import show

    session, onward = await show(
        lambda: terminal_session(place),
        lambda session: session.run(),
        first_run=welcome,
        served=served,
        past=RepoSessions(place),
    )
    failure: WorkbenchError | None = session.failure if session is not None else None
    if failure is not None:
        raise failure
    return onward


async def _replay(place: Place, *, served: bool, at: int = 0) -> Onward | None:
    from agent_workbench.calls.past_sessions import RepoSessions
    from agent_workbench.calls.records import replay_session
    from agent_workbench.cli.front_end import show

    session = await replay_session(place, at)
    _, onward = await show(lambda: session, None, served=served, past=RepoSessions(place))
    return onward
