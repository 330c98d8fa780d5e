"""`agent run`: tasks without a person at the keyboard, under a policy."""

import argparse
import asyncio
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from agent_workbench.cli.options import add_model_flags, add_verb, overrides
from agent_workbench.cli.saying import say
from agent_workbench.core.ids import TaskId, task_id
from agent_workbench.core.place import Place

if TYPE_CHECKING:
    from agent_workbench.cli.options import Verbs
    from agent_workbench.core.events import Recorded
    from agent_workbench.core.state import SessionState

YES = {"approvals.diff": "auto", "approvals.check": "auto", "approvals.commit": "auto", "approvals.command": "auto"}


def add(verbs: "Verbs") -> None:
    """Add the verb."""
    verb = add_verb(verbs, "run", "do tasks without a person; what needs one is parked", execute)
    which = verb.add_mutually_exclusive_group(required=True)
    which.add_argument("--task", metavar="ID", action="append", help="this task (may be given more than once)")
    which.add_argument("--all", action="store_true", help="every task that is ready, in order")
    rule = verb.add_mutually_exclusive_group()
    rule.add_argument("--yes", action="store_true", help="approve diffs, checks and commits (never merges)")
    rule.add_argument("--policy", metavar="FILE", type=Path, help="approvals and limits from this YAML file")
    verb.add_argument("--session", metavar="ID", help="take up this session")
    verb.add_argument("--new", action="store_true", help="begin a new session even if one is unfinished")
    verb.add_argument("--json", action="store_true", help="print every event as a line of JSON")
    add_model_flags(verb)


def execute(options: argparse.Namespace) -> int:
    """Run the tasks; the exit code tells done, failed, parked and broken apart."""

    flags = {**overrides(options), **(YES if options.yes else {})}
    place = Place(Path.cwd(), os.environ, flags, options.session or "", fresh=options.new, policy=options.policy)
    tasks = None if options.all else tuple(task_id(each) for each in options.task)
    return asyncio.run(run_tasks(place, tasks, as_json=options.json))


async def run_tasks(place: Place, tasks: tuple[TaskId, ...] | None, *, as_json: bool) -> int:
    """Run tasks headless at a place, printing what happens; return the exit code."""
    from agent_workbench.calls import run_unattended

    ending = await run_unattended(place, tasks, print_json if as_json else print_event)
    say(ending.reason, to=sys.stderr if as_json else sys.stdout)
    return ending.exit_code


def print_json(recorded: "Recorded", state: "SessionState") -> None:
    """Print an event as it stands in the journal, with its session."""
    from agent_workbench.core.codec import encode_event

    kind, body = encode_event(recorded.event)
    line = {"session": state.session, "seq": recorded.seq, "time": recorded.time, "kind": kind, "body": body}
    print(json.dumps(line, ensure_ascii=True), flush=True)


def print_event(recorded: "Recorded", state: "SessionState") -> None:
    """Print an event as a line for a person, where it is one they care about."""
    from agent_workbench.core.narration import narrate

    if line := narrate(recorded.event):
        print(line, flush=True)
