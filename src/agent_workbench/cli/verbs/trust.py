"""`agent trust`: what this repository would run, and the user's trust in it."""

import argparse
import asyncio
import os
import sys
from pathlib import Path

from agent_workbench.cli.output import say
from agent_workbench.cli.questions import agrees
from agent_workbench.core.errors import ExitCode, TrustError
from agent_workbench.core.session_request import Invocation

# `--yes` without a digest.
ANYTHING = "*"


def configure(verb: argparse.ArgumentParser) -> None:
    """Add the flags of the verb, and the function that runs it."""
    verb.set_defaults(execute=execute)
    which = verb.add_mutually_exclusive_group()
    which.add_argument("--show", action="store_true", help="only show it")
    which.add_argument(
        "--yes",
        metavar="DIGEST",
        nargs="?",
        const=ANYTHING,
        help="trust it without asking; with a digest (see --show) only if it is exactly that content",
    )
    which.add_argument("--revoke", action="store_true", help="stop trusting it")


def execute(options: argparse.Namespace) -> int:
    """Show, ask and trust, or revoke. Without a terminal only `--yes` trusts.

    Raises `TrustError` if the content has another digest than `--yes` names.
    """
    from agent_workbench.api.trusted_repo import repo_trust

    trust = asyncio.run(repo_trust(Invocation(Path.cwd(), os.environ, {})))
    if options.revoke:
        say("no longer trusted" if asyncio.run(trust.revoke()) else "it was not trusted")
        return ExitCode.DONE
    lines = asyncio.run(trust.question())
    say("\n".join(lines) or "there is nothing left to trust here")
    if lines and options.show:
        say(f"\ndigest {trust.digest}")
    if not lines or options.show:
        return ExitCode.DONE
    if options.yes not in {None, ANYTHING, trust.digest}:
        raise TrustError(
            f"nothing was trusted: the digest of this content is {trust.digest}, not {options.yes}",
            advice="check the content with `agent trust --show`, and name its digest",
        )
    if options.yes is None and not agrees("trust exactly this?"):
        say("nothing was trusted; `agent trust --yes` trusts exactly this", to=sys.stderr)
        return ExitCode.PARKED
    asyncio.run(trust.accept())
    say("trusted, exactly this; a change to it asks again")
    return ExitCode.DONE
