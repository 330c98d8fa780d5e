"""`agent worker`: unattended tasks from a queue, their log and status, the forge, and the registered workers."""

import argparse
import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from msgspec import to_builtins

from agent_workbench.cli.options import add_model_flags, add_verb, whole_number
from agent_workbench.cli.output import drop_output, say, say_aside, say_json, say_last
from agent_workbench.core.errors import ExitCode, StorageError, UsageError
from agent_workbench.core.session_request import Invocation
from agent_workbench.core.settings.worker import MOST_JOBS
from agent_workbench.core.text.amounts import quoted
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.core.workers import LogLevel, WorkerLine
from agent_workbench.subjects.queue.verb import (
    add_place_flags,
    configure_add,
    configure_check,
    queue_place,
    worker_invocation,
)

if TYPE_CHECKING:
    from agent_workbench.cli.options import Verbs
    from agent_workbench.core.session_request import SessionEnd
    from agent_workbench.subjects.worker.run_calls import WorkerOptions


SUMMARY = "queue issues of the forge that have the label, and take up decisions in comments"

LEVELS = ("debug", "info", "warning", "error")

MOST_CHARS = 2_000
_ORDER = tuple(LogLevel)


def configure_withdraw(below: "Verbs") -> None:
    """Add `agent worker withdraw`."""
    verb = add_verb(below, "withdraw", "take a task back that has not ended; its session stays", withdraw)
    verb.add_argument("task", metavar="TASK", help="the task's id")
    verb.add_argument("--reason", metavar="TEXT", default="it was withdrawn", help="why, for whoever looks back")
    add_place_flags(verb)


def configure_resume(below: "Verbs") -> None:
    """Add `agent worker resume`."""
    verb = add_verb(below, "resume", "free a parked task, such as one that three workers lost", resume)
    verb.add_argument("task", metavar="TASK", help="the task's id")
    add_place_flags(verb)


def withdraw(options: argparse.Namespace) -> int:
    """Withdraw a task; 1 if it ended before."""
    from agent_workbench.subjects.queue.calls import withdraw_task

    taken = asyncio.run(withdraw_task(worker_invocation(options), options.task, options.reason, queue_place(options)))
    say(f"{options.task} is withdrawn" if taken else f"{options.task} has ended; nothing changed")
    return ExitCode.DONE if taken else ExitCode.FAILED


def resume(options: argparse.Namespace) -> int:
    """Free a parked task."""
    from agent_workbench.subjects.queue.calls import resume_task

    state = asyncio.run(resume_task(worker_invocation(options), options.task, queue_place(options)))
    say(f"{options.task} is {state}")
    return ExitCode.DONE


def configure_pull(below: "Verbs") -> None:
    """Add `agent worker pull`."""
    add_place_flags(add_verb(below, "pull", SUMMARY, pull))


def pull(options: argparse.Namespace) -> int:
    """Look once, and print what was done, a line each."""
    return asyncio.run(_pull(options))


async def _pull(options: argparse.Namespace) -> int:
    from agent_workbench.subjects.forge.round_calls import open_rounds

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
    from agent_workbench.core.task_estimates import Needs
    from agent_workbench.core.task_routing import able_workers, unmet_needs
    from agent_workbench.subjects.queue.calls import registered_fleet
    from agent_workbench.subjects.worker.view import fleet_document, fleet_lines

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
    from agent_workbench.subjects.queue.calls import drain_worker

    project, draining = getattr(options, "project", ""), not options.undo
    asyncio.run(drain_worker(worker_invocation(options), project, options.name, draining=draining))
    say(f"{options.name} finishes what it has and takes nothing new" if draining else f"{options.name} takes tasks")
    return ExitCode.DONE


def remove(options: argparse.Namespace) -> int:
    """Remove an offline worker; 7 for one that is alive."""
    from agent_workbench.subjects.queue.calls import remove_worker

    asyncio.run(remove_worker(worker_invocation(options), getattr(options, "project", ""), options.name))
    say(f"{options.name} is removed")
    return ExitCode.DONE


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
    from agent_workbench.subjects.worker.run_calls import WorkerOptions
    from agent_workbench.subjects.worker.schedule import parse_schedule

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
    from agent_workbench.subjects.worker.run_calls import WorkerRun

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
    from agent_workbench.server_process import act_by_default, hear_signals, not_ignored

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

    return asyncio.run(print_status(worker_invocation(options), options))


SUBVERBS = (
    *(configure_add, configure_check, configure_withdraw, configure_resume, configure_status, configure_pull),
    *(configure_list, configure_drain, configure_remove),
)
"""The verbs below `agent worker`; each function adds one."""


async def print_status(invocation: Invocation, options: argparse.Namespace) -> int:
    """Print what runs, waits and is parked; return the exit code."""
    from agent_workbench.api.screen_services import system_clock
    from agent_workbench.subjects.worker.status_calls import worker_status
    from agent_workbench.subjects.worker.view import worker_lines

    report = await worker_status(invocation, getattr(options, "project", ""), getattr(options, "queue", None))
    if options.json:
        say_json(to_builtins(report))
    else:
        say("\n".join(worker_lines(report, system_clock().now())))
    return ExitCode.DONE


@contextmanager
def log_lines(form: str, level: str, file: Path | None) -> Iterator[Callable[[WorkerLine], None]]:
    """Yield a function that writes a line; raise `UsageError` for an unknown level, `StorageError` for the file."""
    try:
        least = LogLevel(level.strip().lower() or LogLevel.INFO)
    except ValueError:
        known = ", ".join(LogLevel)
        raise UsageError(f"the log level {quoted(level)} is unknown", advice=f"LOG_LEVEL is one of {known}") from None
    kept = _open(file) if file is not None else None
    spell = _as_json if form == "json" else _as_text
    try:
        sinks = _Sinks(kept)
        yield lambda line: sinks.write(spell(line)) if _ORDER.index(line.level) >= _ORDER.index(least) else None
    finally:
        if kept is not None:
            kept.close()


class _Sinks:
    """Standard output and a file; the work goes on where one of them cannot be written."""

    def __init__(self, file: TextIO | None) -> None:
        self._file = file
        self._file_fails = False

    def write(self, line: str) -> None:
        try:
            print(line, flush=True)
        except OSError:
            drop_output()  # the reader has gone
        if self._file is not None:
            self._keep(line, self._file)

    def _keep(self, line: str, file: TextIO) -> None:
        try:
            file.write(f"{line}\n")
            file.flush()
        except OSError as error:
            if not self._file_fails:
                say_aside(f"the log file cannot be written: {error.strerror}; the worker goes on without it")
            self._file_fails = True
        else:
            self._file_fails = False


def _open(path: Path) -> TextIO:
    try:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        return os.fdopen(os.open(path, flags, 0o600), "a", encoding="utf-8", errors="replace")
    except OSError as error:
        raise StorageError(
            f"the log file {path} cannot be opened: {error.strerror}", advice="name another file with --log-file"
        ) from error


def _as_text(line: WorkerLine) -> str:
    named = " ".join(filter(None, (line.time[:19] + "Z", f"{line.level:<7}", line.task)))
    return f"{named} {sanitize_line(line.text, MOST_CHARS)}"


def _as_json(line: WorkerLine) -> str:
    told = {
        "time": line.time,
        "level": line.level,
        "event": line.event,
        "task": line.task,
        "session": line.session,
        "text": sanitize_line(line.text, MOST_CHARS),
    }
    return json.dumps({name: value for name, value in told.items() if value}, ensure_ascii=True)
