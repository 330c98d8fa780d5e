"""`agent worker list`, `drain` and `remove`: the registered workers of a queue in the shared database."""

import argparse
import asyncio
from typing import TYPE_CHECKING

from agent_workbench.cli.options import add_verb, whole_number
from agent_workbench.cli.output import say, say_aside, say_json
from agent_workbench.cli.verbs.tasks.worker_place import add_place_flags, worker_invocation
from agent_workbench.core.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from agent_workbench.cli.options import Verbs


def configure_list(below: "Verbs") -> None:
    """Add `agent worker list`."""
    verb = add_verb(below, "list", "show the workers that share the queue, or those that could take a task now", show)
    verb.add_argument("--min-vram", metavar="GB", type=float, help="only those with this much free memory of one GPU")
    verb.add_argument("--min-cores", metavar="N", type=whole_number(1), help="only those with so many free cores")
    verb.add_argument("--model", metavar="NAME", action="append", default=[], help="only those where it answers")
    verb.add_argument("--tag", metavar="TAG", action="append", default=[], help="only those with this tag")
    verb.add_argument("--json", action="store_true", help="print them as JSON")
    add_place_flags(verb)


def configure_drain(below: "Verbs") -> None:
    """Add `agent worker drain`."""
    verb = add_verb(below, "drain", "let a worker finish what it has and take nothing new", drain)
    verb.add_argument("name", metavar="NAME", help="the worker's name in `agent worker list`")
    verb.add_argument("--undo", action="store_true", help="let it take tasks again")
    add_place_flags(verb)


def configure_remove(below: "Verbs") -> None:
    """Add `agent worker remove`."""
    verb = add_verb(below, "remove", "remove a worker that is offline", remove)
    verb.add_argument("name", metavar="NAME", help="the worker's name in `agent worker list`")
    add_place_flags(verb)


def show(options: argparse.Namespace) -> int:
    """Print workers; 1 if none of them could take a task with the needs that the flags say."""
    from agent_workbench.api.fleet import registered_fleet
    from agent_workbench.core.plan.needs import Needs
    from agent_workbench.core.queue.routing import able_workers, unmet_needs
    from agent_workbench.views.reports.fleet_report import fleet_document, fleet_lines

    if options.min_vram is not None and not 0 < options.min_vram < float("inf"):
        raise UsageError(f"--min-vram {options.min_vram} is no amount", advice="name a number above 0")
    needs = Needs(options.min_vram, options.min_cores, tuple(options.model), tuple(options.tag))
    fleet = asyncio.run(registered_fleet(worker_invocation(options), getattr(options, "project", "")))
    filtered = needs != Needs()
    workers = able_workers(needs, fleet.workers, fleet.now) if filtered else fleet.workers
    if options.json:
        say_json(fleet_document(fleet, workers))
    elif lines := fleet_lines(fleet, workers):
        say("\n".join(lines))
    elif not fleet.workers:
        say("no worker is registered")
    if filtered and not workers:
        say_aside(unmet_needs(needs, fleet.workers) or "the workers that fit are busy, offline or draining")
    return ExitCode.FAILED if filtered and not workers else ExitCode.DONE


def drain(options: argparse.Namespace) -> int:
    """Order a worker to drain, or undo it."""
    from agent_workbench.api.fleet import drain_worker

    project, draining = getattr(options, "project", ""), not options.undo
    asyncio.run(drain_worker(worker_invocation(options), project, options.name, draining=draining))
    say(f"{options.name} finishes what it has and takes nothing new" if draining else f"{options.name} takes tasks")
    return ExitCode.DONE


def remove(options: argparse.Namespace) -> int:
    """Remove an offline worker; 7 for one that is alive."""
    from agent_workbench.api.fleet import remove_worker

    asyncio.run(remove_worker(worker_invocation(options), getattr(options, "project", ""), options.name))
    say(f"{options.name} is removed")
    return ExitCode.DONE
