"""`agent init`: sets a repository up."""

import argparse
import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

from agent_workbench.cli.options import add_verb
from agent_workbench.cli.output import say
from agent_workbench.core.errors import ExitCode
from agent_workbench.core.invocation import Place

if TYPE_CHECKING:
    from agent_workbench.cli.options import Verbs


def add(verbs: "Verbs") -> None:
    """Add the verb."""
    add_verb(verbs, "init", "write .agent.yml and memory/ for this repository, changing nothing that is there", execute)


def execute(_: argparse.Namespace) -> int:
    """Write what is missing and say what was written."""
    from agent_workbench.api.repo_context import find_site

    async def write() -> tuple[str, ...]:
        site = await find_site(Place(Path.cwd(), os.environ, {}))
        return await site.setup.write()

    written = asyncio.run(write())
    for path in written:
        say(f"wrote {path}")
    say('next: `agent plan add "what is to be done"`, then `agent tui`' if written else "everything is there already")
    return ExitCode.DONE
