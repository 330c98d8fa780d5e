"""`agent sessions`: what was done here, and whether its record is whole."""

import argparse
import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from agent_workbench.cli.options import add_verb
from agent_workbench.cli.saying import say
from agent_workbench.core.errors import ExitCode
from agent_workbench.core.place import Place

if TYPE_CHECKING:
    from agent_workbench.cli.options import Verbs


def add(verbs: "Verbs") -> None:
    """Add the verb with its own verbs."""
    verb = add_verb(verbs, "sessions", "list, show or verify the sessions of this repository", list_all)
    below = verb.add_subparsers(title="verbs", metavar="VERB")
    add_verb(below, "list", "list sessions, newest first", list_all)
    for name, summary, execute in (
        ("show", "print what happened in a session", show),
        ("verify", "prove that a session's journal is whole and unchanged", verify),
    ):
        each = add_verb(below, name, summary, execute)
        each.add_argument("session", nargs="?", default="", help="its first or last letters; the newest when left out")


def list_all(_: argparse.Namespace) -> int:
    """Print a line for each session."""
    from agent_workbench.calls.records import session_summaries

    summaries = asyncio.run(session_summaries(Place(Path.cwd(), os.environ, {})))
    if not summaries:
        say("no sessions yet; `agent tui` begins one")
    for each in summaries:
        tasks = ", ".join(each.tasks) or "no task"
        state = each.problem or (f"open: {each.holder}" if each.holder else str(each.status or "left"))
        say(f"{each.id}  {each.last[:16].replace('T', ' ')}  {each.events:>5} events  {tasks}  {state}")
    return ExitCode.DONE


def show(options: argparse.Namespace) -> int:
    """Print a line for each event that a person cares about."""
    from agent_workbench.calls.records import recorded_events
    from agent_workbench.core.narration import narrate

    for recorded in asyncio.run(recorded_events(Place(Path.cwd(), os.environ, {}, options.session))):
        if line := narrate(recorded.event):
            say(f"{recorded.seq:>5}  {recorded.time[11:19]}  {line}")
    return ExitCode.DONE


def verify(options: argparse.Namespace) -> int:
    """Print whether the journal proves itself; exit with 6 when it does not."""
    from agent_workbench.calls.records import verify_session

    report = asyncio.run(verify_session(Place(Path.cwd(), os.environ, {}, options.session)))
    if report.ok:
        say(f"green  {report.events} events, head {report.head}")
        return ExitCode.DONE
    say(f"RED    {len(report.problems)} of {report.events} lines do not fit", to=sys.stderr)
    for problem in report.problems:
        say(f"       {problem}", to=sys.stderr)
    return ExitCode.JOURNAL
