"""One sitting at the screen: a session, and those that are opened beside it."""

import contextlib

from agent_workbench.cli.output import say
from agent_workbench.core.invocation import Place


async def sit(
    place: Place, *, welcome: bool = False, served: bool = False, replayed: bool = False, at: int = 0
) -> None:
    """Show the session of `place` live, or (`replayed`) as it was recorded, and beside it those that are opened.

    A recording is opened at its event `at`. Prints the farewells.
    Raises `WorkbenchError` for what kept it from being opened, or ended it.
    """
    from agent_workbench.api.past_sessions import RepoSessions
    from agent_workbench.api.records import replay_session
    from agent_workbench.api.session_host import Lives
    from agent_workbench.cli.front_end import show

    lives = Lives(place)
    past = RepoSessions(place)
    if replayed:
        session = await replay_session(place, at)
        farewells = await show(lambda: session, lives, past=past, served=served)
    else:
        farewells = await show(lambda: lives.begin(place), lives, past=past, first_run=welcome, served=served)
        lives.check()  # before the farewell, which would say the same
    for farewell in farewells:
        with contextlib.suppress(OSError):  # the terminal may be gone
            say(farewell)
