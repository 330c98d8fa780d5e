"""`agent init`: sets a repository up."""

import argparse
import asyncio
import os
from pathlib import Path

from agent_workbench.cli.output import say
from agent_workbench.core.errors import ExitCode
from agent_workbench.core.invocation import Invocation


def configure(verb: argparse.ArgumentParser) -> None:
    """Add the flags of the verb, and the function that runs it."""
    verb.set_defaults(execute=execute)


def execute(_: argparse.Namespace) -> int:
    """Write what is missing and say what was written."""
    from agent_workbench.api.plans import set_up

    written = asyncio.run(set_up(Invocation(Path.cwd(), os.environ, {})))
    for path in written:
        say(f"wrote {path}")
    say('next: `agent plan add "what is to be done"`, then `agent tui`' if written else "everything is there already")
    return ExitCode.DONE
