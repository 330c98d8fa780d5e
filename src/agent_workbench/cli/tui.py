"""`agent tui`: the workbench."""

import argparse
import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from agent_workbench.cli.options import add_model_flags, add_verb, overrides
from agent_workbench.core.errors import ExitCode, UsageError, WorkbenchError
from agent_workbench.core.place import Place

if TYPE_CHECKING:
    from agent_workbench.cli.options import Verbs


def add(verbs: "Verbs") -> None:
    """Add the verb."""
    verb = add_verb(verbs, "tui", "open the workbench on the repository you are in", execute)
    which = verb.add_mutually_exclusive_group()
    which.add_argument("--session", metavar="ID", help="take up this session (its first or last letters are enough)")
    which.add_argument("--new", action="store_true", help="begin a new session even if one is unfinished")
    add_model_flags(verb)


def execute(options: argparse.Namespace) -> int:
    """Open the workbench, and print how it was left."""
    check_terminal("agent tui", "`agent run` works without one")
    from agent_workbench.calls.working import first_run

    place = Place(Path.cwd(), os.environ, overrides(options), session=options.session or "", fresh=options.new)
    return open_workbench(place, welcome=first_run())


def check_terminal(what: str, otherwise: str) -> None:
    """Raise `UsageError` when there is no terminal to draw on."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(f"{what} needs a terminal, and standard input or output is none", advice=otherwise)


def open_workbench(place: Place, *, welcome: bool) -> int:
    """Run the workbench until it is left; return the exit code."""
    failure = asyncio.run(_live(place, welcome))
    if failure is not None:
        raise failure
    return ExitCode.DONE


async def _live(place: Place, welcome: bool) -> WorkbenchError | None:
    from agent_workbench.calls.working import terminal_session
    from agent_workbench.cli.front_end import show

    session = await show(lambda: terminal_session(place), lambda session: session.run(), first_run=welcome)
    return session.failure if session is not None else None
