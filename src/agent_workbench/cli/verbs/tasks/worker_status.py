"""Printing of `agent worker status`."""

import argparse

from msgspec import to_builtins

from agent_workbench.cli.output import say, say_json
from agent_workbench.core.errors import ExitCode
from agent_workbench.core.invocation import Invocation


async def print_status(invocation: Invocation, options: argparse.Namespace) -> int:
    """Print what runs, waits and is parked; return the exit code."""
    from agent_workbench.api.screen_services import system_clock
    from agent_workbench.api.worker.status import worker_status
    from agent_workbench.views.reports.worker_report import worker_lines

    report = await worker_status(invocation, getattr(options, "project", ""), getattr(options, "queue", None))
    if options.json:
        say_json(to_builtins(report))
    else:
        say("\n".join(worker_lines(report, system_clock().now())))
    return ExitCode.DONE
