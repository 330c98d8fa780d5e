"""`agent init`: sets a repository up."""

import argparse
import asyncio
import os
from pathlib import Path

from agent_workbench.cli.output import say
from agent_workbench.core.errors import ExitCode
from agent_workbench.core.invocation import Place


def configure(verb: argparse.ArgumentParser) -> None:
    """Add the flags of the verb, and the function that runs it."""
    verb.set_defaults(execute=execute)


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
