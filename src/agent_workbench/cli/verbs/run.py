"""`agent run`: unattended tasks under a policy."""

import argparse
import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING

from msgspec import to_builtins

from agent_workbench.cli.options import add_model_flags, add_words, overrides, show_examples, task_words
from agent_workbench.cli.output import drop_output, say_aside, say_last
from agent_workbench.core.errors import ExitCode, ModelError, UsageError
from agent_workbench.core.ids import task_id
from agent_workbench.core.session_request import Invocation, SessionEnd, TaskOutcomeKind
from agent_workbench.core.text.sanitizer import sanitize

if TYPE_CHECKING:
    from agent_workbench.core.events import Recorded
    from agent_workbench.core.history.summaries import SessionQuery
    from agent_workbench.core.ids import SessionId, TaskId


def configure(verb: argparse.ArgumentParser) -> None:
    """Add the flags of the verb, and the function that runs it."""
    verb.set_defaults(execute=execute)
    show_examples(
        verb,
        'agent run "round the total in @shop/cart.py to cents"',
        "agent run --task T-3 --yes        approve diffs, checks and the commit",
        "agent run --all --policy night.yaml",
    )
    add_words(verb)
    which = verb.add_mutually_exclusive_group()
    which.add_argument("-t", "--task", metavar="ID", action="append", help="this task (may be given more than once)")
    which.add_argument("-a", "--all", action="store_true", help="every task that is ready, in order")
    verb.add_argument("--session", metavar="ID", help="resume this session")
    verb.add_argument("--new", action="store_true", help="start a new session even if one is unfinished")
    add_policy_flags(verb)
    add_print_flags(verb)
    add_model_flags(verb)


def add_policy_flags(verb: argparse.ArgumentParser) -> None:
    """Add the flags of the policy."""
    rule = verb.add_mutually_exclusive_group()
    rule.add_argument("--yes", action="store_true", help="approve diffs, checks and commits (never merges)")
    verb.add_argument("--commands", action="store_true", help="with --yes: approve commands too, where a sandbox works")
    rule.add_argument("--policy", metavar="FILE", type=Path, help="approvals and limits from this YAML file")
    verb.add_argument("--unconfined", action="store_true", help="run although no sandbox confines tests and commands")


def add_print_flags(verb: argparse.ArgumentParser) -> None:
    """Add the flags for the output of events."""
    how = verb.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="print every event as a line of JSON")
    how.add_argument("-v", "--verbose", action="store_true", help="print answers, diffs and outputs in full")


def execute(options: argparse.Namespace) -> int:
    """Run the tasks; the exit code distinguishes done, failed, parked and defects."""
    from agent_workbench.core.history.summaries import SessionQuery

    words = task_words(options, "agent run")
    if bool(words) + bool(options.task) + options.all != 1:
        raise UsageError(
            "say which tasks", advice='name one of: --task ID, --all, or a new task in quotes ("fix the …")'
        )
    invocation = unattended_invocation(options)
    named = tuple(task_id(each) for each in options.task or ())
    tasks = None if options.all else named or (asyncio.run(_add_task(invocation, words)),)
    query = SessionQuery(options.session or "", options.new, tasks)
    run = run_tasks(invocation, query, as_json=options.json, verbose=options.verbose, summary=options.all)
    return asyncio.run(run)


async def _add_task(invocation: Invocation, words: str) -> "TaskId":
    """Add the task that the words ask for to the plan, tell what it is, and return its id."""
    from agent_workbench.api.plans import add_task_in_words

    draft = await add_task_in_words(invocation, words, say_aside)
    task = draft.task
    say_aside(f"{task.id} is added to the plan: {' '.join(task.description.split())}")
    scope = ", ".join(task.scope.allowed_write_globs)
    told = (
        ("goal", task.goal),
        ("scope", scope),
        ("checks", "; ".join(task.accept_tests)),
        ("pinned", ", ".join(draft.mentions)),
    )
    for label, text in (*told, *(("note", remark) for remark in draft.remarks)):
        if text:
            say_aside(f"  {label:<7} {' '.join(text.split())}")
    return task.id


def unattended_invocation(options: argparse.Namespace) -> Invocation:
    """Return the invocation of an unattended run, with the policy and the model that the options name.

    Raises `UsageError` for `--commands` without `--yes`.
    """
    if options.commands and not options.yes:
        raise UsageError("--commands goes with --yes", advice="say --yes --commands, or approvals in a --policy FILE")
    from agent_workbench.core.proposal_kinds import opened_by

    opened = {**(opened_by("--yes") if options.yes else {}), **(opened_by("--commands") if options.commands else {})}
    return Invocation(
        Path.cwd(),
        os.environ,
        {**overrides(options), **opened},
        policy=options.policy,
        unconfined=options.unconfined,
    )


async def run_tasks(
    invocation: Invocation,
    query: "SessionQuery",
    *,
    as_json: bool,
    verbose: bool = False,
    summary: bool = False,
    followed: bool = True,
) -> int:
    """Run the tasks of `query` headless, printing every event; return the exit code. A signal ends the run cleanly.

    With `summary` the last line of JSON holds the outcome of each task. It is not an event: no session, no number. If
    the run is to be `followed` by another command, the last remark names it.
    """
    from agent_workbench.api.sessions.session_host import LocalSessionHost
    from agent_workbench.api.sessions.unattended_run import UnattendedRun

    show = print_json if as_json else print_details if verbose else print_event
    run = UnattendedRun(LocalSessionHost(invocation, say=say_aside), query)

    async def work() -> None:
        async for session in run.sessions():
            async for recorded in session.events(session.opened_seq):
                show(recorded, session.session)

    working = asyncio.ensure_future(work())
    received = _stop_at_signals(lambda: run.stop() or working.cancel())
    try:
        await working
    except asyncio.CancelledError:
        if not received:
            raise
    again = " ".join(("agent run", *((f"-t {each}" for each in query.tasks) if query.tasks else ("--all",))))
    if received:
        say_aside(f"stopped by {received[0].name}; `{again}` continues from the recorded events")
        return ExitCode.INTERRUPTED
    if as_json and summary:
        _print(json.dumps({"kind": "run_ended", "body": to_builtins(run.end)}, ensure_ascii=True))
    say_last(run.end.reason, to=sys.stderr if as_json else sys.stdout)
    say_aside(f"next: {_next_command(run.end, again)}" if followed and run.end != SessionEnd() else "")
    if run.end.exit_code is ExitCode.MODEL:
        from agent_workbench.api.help_pages import page_address

        say_aside(page_address(ModelError.page))
    return run.end.exit_code


def _next_command(end: SessionEnd, again: str) -> str:
    """Return the command that goes on after the end of a run, with a remark; `again` is the run itself."""
    parked, failed = (
        [each.task for each in end.outcomes if each.outcome is kind]
        for kind in (TaskOutcomeKind.PARKED, TaskOutcomeKind.FAILED)
    )
    if parked:
        return "agent inbox" if parked[1:] else f"agent inbox show {parked[0]}"
    if failed:
        return f"agent run -t {failed[0]}   # starts it again"
    if end.exit_code is not ExitCode.DONE:
        return f"{again}   # goes on"
    return next((f"agent merge {each.task}" for each in end.outcomes if each.commit), "agent plan show")


def _stop_at_signals(cancel: Callable[[], object]) -> list[signal.Signals]:
    """Call `cancel` on the first signal; the next one ends the process. Return the list of received signals."""
    from agent_workbench.server_process import act_by_default, hear_signals, not_ignored

    heard = not_ignored()

    def stop(number: signal.Signals) -> None:
        del number
        act_by_default(heard)
        cancel()

    return hear_signals(heard, stop)


def print_json(recorded: "Recorded", session: "SessionId") -> None:
    """Print an event as recorded in the journal, with its session."""
    from agent_workbench.core.events.codec import encode_event

    kind, body = encode_event(recorded.event)
    line = {"session": session, "seq": recorded.seq, "time": recorded.time, "kind": kind, "body": body}
    _print(json.dumps(line, ensure_ascii=True))


def print_event(recorded: "Recorded", session: "SessionId") -> None:
    """Print an event of interest as a line for a person."""
    from agent_workbench.core.events.log_lines import log_line

    if line := log_line(recorded.event):
        _print(line)


def print_details(recorded: "Recorded", session: "SessionId") -> None:
    """Print an event as `print_event` does, with its full text below."""
    from agent_workbench.core.events.log_lines import detail

    print_event(recorded, session)
    if text := detail(recorded.event).strip("\n"):
        _print(indent(sanitize(text), "    "))


def _print(line: str) -> None:
    try:
        print(line, flush=True)
    except OSError:
        drop_output()  # the reader has gone; the work continues, and the journal has every event
