"""`agent trust`: what this repository would have the workbench run, and the user's yes to it."""

import argparse
import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

from agent_workbench.cli.options import add_verb
from agent_workbench.cli.saying import say
from agent_workbench.core.errors import ExitCode
from agent_workbench.core.place import Place

if TYPE_CHECKING:
    from agent_workbench.cli.options import Verbs


def add(verbs: "Verbs") -> None:
    """Add the verb."""
    verb = add_verb(verbs, "trust", "show what this repository would run, and trust exactly that", execute)
    which = verb.add_mutually_exclusive_group()
    which.add_argument("--show", action="store_true", help="only show it")
    which.add_argument("--revoke", action="store_true", help="trust it no longer")


def execute(options: argparse.Namespace) -> int:
    """Show, trust or revoke."""
    from agent_workbench.calls import find_site

    async def act() -> None:
        trust = await (await find_site(Place(Path.cwd(), os.environ, {}))).trust()
        if options.revoke:
            say("no longer trusted" if await trust.revoke() else "it was not trusted")
            return
        lines = await trust.question()
        say("\n".join(lines) or "there is nothing left to trust here")
        if lines and not options.show:
            await trust.accept()
            say("trusted, exactly this; a change to it asks again")

    asyncio.run(act())
    return ExitCode.DONE
