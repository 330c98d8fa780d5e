"""`agent replay`: a past session in the same panes."""

import argparse
import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

from agent_workbench.cli.options import add_verb
from agent_workbench.cli.tui import check_terminal
from agent_workbench.core.errors import ExitCode
from agent_workbench.core.place import Place

if TYPE_CHECKING:
    from agent_workbench.cli.options import Verbs


def add(verbs: "Verbs") -> None:
    """Add the verb."""
    verb = add_verb(verbs, "replay", "see a past session again, step by step", execute)
    verb.add_argument("session", nargs="?", default="", help="its first or last letters; the newest when left out")


def execute(options: argparse.Namespace) -> int:
    """Open the replay."""
    check_terminal("agent replay", "`agent sessions show` prints a session")
    from agent_workbench.calls.records import replay_session
    from agent_workbench.cli.front_end import show

    async def live() -> None:
        session = await replay_session(Place(Path.cwd(), os.environ, {}, options.session))
        await show(lambda: session, None)

    asyncio.run(live())
    return ExitCode.DONE
