"""`agent database`: the schema and the state of the database that machines share."""

import argparse
import asyncio
import os
from pathlib import Path

from msgspec import to_builtins

from agent_workbench.cli.options import add_verb
from agent_workbench.cli.output import say, say_json
from agent_workbench.core.errors import ExitCode
from agent_workbench.core.session_request import Invocation


def configure(verb: argparse.ArgumentParser) -> None:
    """Add the flags of the verb, the verbs below it, and the function that runs it."""
    verb.set_defaults(execute=check, json=False, project="")
    below = verb.add_subparsers(title="verbs", metavar="VERB")
    migrating = add_verb(below, "migrate", "create what the database lacks of the schema", migrate)
    migrating.add_argument("--json", action="store_true", help="print it as one line of JSON")
    checking = add_verb(below, "check", "show what answers, the schema, keys, clocks, and what was not copied", check)
    checking.add_argument("--project", metavar="NAME", default="", help="the queue of this project (default)")
    checking.add_argument("--json", action="store_true", help="print it as one line of JSON")


def migrate(options: argparse.Namespace) -> int:
    """Apply the schema; print what was applied."""
    from agent_workbench.api.database import migrate_database

    place, applied = asyncio.run(migrate_database(_invocation()))
    if options.json:
        say_json({"place": place, "applied": applied})
    else:
        say(f"{place}: " + (f"applied {', '.join(applied)}" if applied else "nothing to apply"))
    return ExitCode.DONE


def check(options: argparse.Namespace) -> int:
    """Print the state; the exit code is 4 if something is missing, 1 if tasks do not count."""
    from agent_workbench.api.database import check_database
    from agent_workbench.subjects.worker.view import database_lines

    report = asyncio.run(check_database(_invocation(), options.project))
    if options.json:
        say_json(to_builtins(report))
    else:
        say("\n".join(database_lines(report)))
    if report.problems:
        return ExitCode.ENVIRONMENT
    return ExitCode.FAILED if report.uncounted else ExitCode.DONE


def _invocation() -> Invocation:
    return Invocation(Path.cwd(), os.environ, {})
