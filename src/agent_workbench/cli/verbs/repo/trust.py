"""`agent trust`: what this repository would run, and the user's trust in it."""

import argparse
import asyncio
import os
import sys
from pathlib import Path

from agent_workbench.cli.output import say
from agent_workbench.cli.questions import agrees
from agent_workbench.core.errors import ExitCode
from agent_workbench.core.invocation import Invocation


def configure(verb: argparse.ArgumentParser) -> None:
    """Add the flags of the verb, and the function that runs it."""
    verb.set_defaults(execute=execute)
    which = verb.add_mutually_exclusive_group()
    which.add_argument("--show", action="store_true", help="only show it")
    which.add_argument("--yes", action="store_true", help="trust it without asking")
    which.add_argument("--revoke", action="store_true", help="stop trusting it")


def execute(options: argparse.Namespace) -> int:
    """Show, ask and trust, or revoke. Without a terminal only `--yes` trusts."""
    from agent_workbench.api.plans import repo_trust

    trust = asyncio.run(repo_trust(Invocation(Path.cwd(), os.environ, {})))
    if options.revoke:
        say("no longer trusted" if asyncio.run(trust.revoke()) else "it was not trusted")
        return ExitCode.DONE
    lines = asyncio.run(trust.question())
    say("\n".join(lines) or "there is nothing left to trust here")
    if not lines or options.show:
        return ExitCode.DONE
    if not (options.yes or agrees("trust exactly this?")):
        say("nothing was trusted; `agent trust --yes` trusts exactly this", to=sys.stderr)
        return ExitCode.PARKED
    asyncio.run(trust.accept())
    say("trusted, exactly this; a change to it asks again")
    return ExitCode.DONE
