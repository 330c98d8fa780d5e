"""`agent worker`: unattended tasks from a queue, once, as they come, or on a schedule."""

import argparse
import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from agent_workbench.cli.options import add_model_flags, add_verb, whole_number
from agent_workbench.cli.output import say_aside, say_last
from agent_workbench.cli.verbs.tasks.worker_add import configure_add, configure_check
from agent_workbench.cli.verbs.tasks.worker_fleet import configure_drain, configure_list, configure_remove
from agent_workbench.cli.verbs.tasks.worker_place import add_place_flags, worker_invocation
from agent_workbench.cli.verbs.tasks.worker_pull import configure_pull
from agent_workbench.cli.verbs.tasks.worker_task import configure_resume, configure_withdraw
from agent_workbench.core.errors import ExitCode, UsageError
from agent_workbench.core.settings.worker import MOST_JOBS

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_workbench.api.worker.worker_run import WorkerOptions
    from agent_workbench.cli.options import Verbs
    from agent_workbench.core.session_end import SessionEnd

LEVELS = ("debug", "info", "warning", "error")


def configure(verb: argparse.ArgumentParser) -> None:
    """Add the flags of the verb, the verbs below it, and the function that runs it."""
    verb.set_defaults(execute=execute)
    how = verb.add_mutually_exclusive_group()
    how.add_argument("--once", action="store_true", help="continue what was begun, do one task of the queue, and exit")
    how.add_argument("--watch", action="store_true", help="do tasks as they come, until a signal ends it")
    how.add_argument("--schedule", metavar="CRON", help='do what is queued at these times: "*/30 * * * *"')
    add_place_flags(verb)
    verb.add_argument(
        "--jobs",
        metavar="N",
        type=whole_number(1, MOST_JOBS),
        help=f"tasks at the same time, 1 to {MOST_JOBS} (worker.jobs)",
    )
    verb.add_argument("--policy", metavar="FILE", type=Path, help="approvals and limits from this YAML file")
    verb.add_argument("--unconfined", action="store_true", help="work although no sandbox confines tests and commands")
    verb.add_argument("--log-format", choices=("text", "json"), default="text", help="form of the lines it prints")
    verb.add_argument("--log-level", choices=LEVELS, help="least level that is printed (LOG_LEVEL, else info)")
    verb.add_argument("--log-file", metavar="FILE", type=Path, help="append the same lines to this file")
    add_model_flags(verb)
    below = verb.add_subparsers(title="verbs", metavar="VERB")
    for configure_verb in SUBVERBS:
        configure_verb(below)


def execute(options: argparse.Namespace) -> int:
    """Run the worker; the exit codes are those of `agent run`."""
    from agent_workbench.api.worker.worker_run import WorkerOptions
    from agent_workbench.core.queue.schedule import parse_schedule

    if not (options.once or options.watch or options.schedule):
        raise UsageError("say when to work", advice='name one of --once, --watch, --schedule "*/30 * * * *"')
    schedule = parse_schedule(options.schedule) if options.schedule else None
    wanted = WorkerOptions(
        getattr(options, "project", ""),
        getattr(options, "queue", None),
        once=options.once,
        schedule=schedule,
        jobs=options.jobs,
    )
    return asyncio.run(_work(options, wanted))


async def _work(options: argparse.Namespace, wanted: "WorkerOptions") -> int:
    from agent_workbench.api.worker.worker_run import WorkerRun
    from agent_workbench.cli.verbs.tasks.worker_log import log_lines

    with log_lines(options.log_format, options.log_level or os.environ.get("LOG_LEVEL", ""), options.log_file) as log:
        run = WorkerRun(worker_invocation(options), wanted, log)
        working = asyncio.ensure_future(run.work())
        received = _end_at_signals(run.stop, working)
        try:
            end: SessionEnd = await working
        except asyncio.CancelledError:
            if not received:
                raise
            return ExitCode.INTERRUPTED
    if received:
        say_aside(f"stopped by {received[0].name}; the next worker continues from the recorded events")
        return ExitCode.INTERRUPTED
    say_last(end.reason, to=sys.stderr if options.log_format == "json" else sys.stdout)
    return end.exit_code


def _end_at_signals(stop: "Callable[[], bool]", working: "asyncio.Future[SessionEnd]") -> list[signal.Signals]:
    """End the work between two steps on the first signal, at once on the second; return those received.

    `stop` returns False if there is nothing to bring to an end.
    """
    from agent_workbench.server_process.process_end import act_by_default, hear_signals, not_ignored

    heard = not_ignored()

    def end(number: signal.Signals) -> None:
        del number
        if not stop():
            working.cancel()
        if len(received) > 1:
            act_by_default(heard)

    received = hear_signals(heard, end, ending=2)
    return received


def configure_status(below: "Verbs") -> None:
    """Add `agent worker status`."""
    verb = add_verb(below, "status", "show the workers of a queue, its tasks, and what today cost", show_status)
    add_place_flags(verb)
    verb.add_argument("--json", action="store_true", help="print the status as JSON")


def show_status(options: argparse.Namespace) -> int:
    """Print what runs, waits and is parked."""
    from agent_workbench.cli.verbs.tasks.worker_status import print_status

    return asyncio.run(print_status(worker_invocation(options), options))


SUBVERBS = (
    *(configure_add, configure_check, configure_withdraw, configure_resume, configure_status, configure_pull),
    *(configure_list, configure_drain, configure_remove),
)
"""The verbs below `agent worker`; each function adds one."""
