"""`agent init`: set-up of a repository."""

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
    """Write missing starter files and print their names."""
    from agent_workbench.api.plans import set_up

    written = asyncio.run(set_up(Invocation(Path.cwd(), os.environ, {})))
    for path in written:
        say(f"wrote {path}")
    say('next: `agent plan add "what is to be done"`, then `agent tui`' if written else "all files exist already")
    return ExitCode.DONE
