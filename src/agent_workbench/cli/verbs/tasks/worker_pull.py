"""`agent worker pull`: one look at the forge."""

import argparse
import asyncio
from typing import TYPE_CHECKING

from agent_workbench.cli.options import add_verb
from agent_workbench.cli.output import say
from agent_workbench.cli.verbs.tasks.worker_place import add_place_flags, worker_invocation
from agent_workbench.core.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from agent_workbench.cli.options import Verbs

SUMMARY = "queue issues of the forge that have the label, and take up decisions in comments"


def configure_pull(below: "Verbs") -> None:
    """Add `agent worker pull`."""
    add_place_flags(add_verb(below, "pull", SUMMARY, pull))


def pull(options: argparse.Namespace) -> int:
    """Look once, and print what was done, a line each."""
    return asyncio.run(_pull(options))


async def _pull(options: argparse.Namespace) -> int:
    from agent_workbench.api.forge.rounds import open_rounds

    invocation = worker_invocation(options)
    rounds = await open_rounds(invocation, getattr(options, "project", ""), getattr(options, "queue", None))
    if rounds is None:
        raise UsageError(
            "no forge is set", advice="set forge.url and forge.repo in .agent.yml, and trust it (`agent trust`)"
        )
    try:
        outcome = await rounds.round()
    finally:
        await rounds.close()
    for line in outcome.done:
        say(line)
    if outcome.problem:
        raise outcome.problem
    if not outcome.done:
        say("nothing new")
    return ExitCode.DONE
