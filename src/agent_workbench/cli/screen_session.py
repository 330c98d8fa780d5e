"""Sessions at the screen: the one that was asked for, and those that are opened beside it."""

import asyncio
import contextlib
from typing import TYPE_CHECKING

from agent_workbench.cli.output import say
from agent_workbench.core.invocation import Invocation

if TYPE_CHECKING:
    from agent_workbench.core.session_request import SessionRequest


async def sit(
    invocation: Invocation, request: "SessionRequest", *, welcome: bool = False, served: bool = False
) -> None:
    """Show a session, and those that are opened beside it, until all of them have ended; print the farewells.

    Raises `WorkbenchError` for what kept the first one from being opened, or ended it.
    """
    from agent_workbench.api.records.past_sessions import RepoSessions
    from agent_workbench.api.sessions.session_host import LocalSessionHost
    from agent_workbench.cli.front_end import show

    host = LocalSessionHost(invocation, ready=asyncio.Event())
    farewells = await show(host, request, past=RepoSessions(invocation), first_run=welcome, served=served)
    host.raise_if_none_opened()  # before the farewell, which would say the same
    for farewell in farewells:
        with contextlib.suppress(OSError):  # the terminal may be gone
            say(farewell)
