"""`agent sessions fork` and `agent sessions export`: what is made of a session."""

import argparse
import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from agent_workbench.cli.options import add_verb, event_number
from agent_workbench.cli.saying import say, say_json
from agent_workbench.core.errors import ExitCode
from agent_workbench.core.place import Place

if TYPE_CHECKING:
    from agent_workbench.cli.options import Verbs

FORMATS = ("markdown", "json")


def add(verbs: "Verbs") -> None:
    """Add the verbs below `agent sessions`."""
    forking = add_verb(verbs, "fork", "begin a new session from any step of another one, which stays as it is", fork)
    forking.add_argument("session", nargs="?", default="", help="its first or last letters; the newest when left out")
    forking.add_argument("--at", metavar="SEQ", help="go on from after this event (`agent sessions show` numbers them)")
    forking.add_argument("--json", action="store_true", help="print the new session as a line of JSON")
    exporting = add_verb(verbs, "export", "write a session down: markdown for a pull request, or JSON", export)
    exporting.add_argument("session", nargs="?", default="", help="its first or last letters; the newest when left out")
    exporting.add_argument("--format", choices=FORMATS, default=FORMATS[0], help="markdown when left out")
    exporting.add_argument("--output", metavar="FILE", type=Path, help="a new file; standard output when left out")


def fork(options: argparse.Namespace) -> int:
    """Fork a session and print how to go on with the new one."""
    from agent_workbench.calls.forking import fork_session

    place = Place(Path.cwd(), os.environ, {}, options.session)
    child, lines = asyncio.run(fork_session(place, event_number(options.at)))
    if options.json:
        say_json({"session": child})
        return ExitCode.DONE
    for line in lines:
        say(line)
    say(f"\nforked: {child}\n`agent tui --session {child}` goes on with it")
    return ExitCode.DONE


def export(options: argparse.Namespace) -> int:
    """Print a session as a document, or write it to a file."""
    from agent_workbench.calls.exporting import ExportFormat, export_session, write_export

    place, form = Place(Path.cwd(), os.environ, {}, options.session), ExportFormat(options.format)
    if options.output is None:
        say(asyncio.run(export_session(place, form)).removesuffix("\n"))
        return ExitCode.DONE
    asyncio.run(write_export(place, form, options.output))
    say(f"written to {options.output}", to=sys.stderr)
    return ExitCode.DONE
