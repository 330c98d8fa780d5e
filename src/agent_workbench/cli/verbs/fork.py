"""`agent sessions fork` and `agent sessions compare`."""

import argparse
import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import to_builtins

from agent_workbench.cli.options import add_verb, event_number
from agent_workbench.cli.output import say, say_json
from agent_workbench.core.errors import ExitCode
from agent_workbench.core.session_request import Invocation

if TYPE_CHECKING:
    from agent_workbench.cli.options import Verbs


def add(verbs: "Verbs") -> None:
    """Add the verbs below `agent sessions`."""
    forking = add_verb(verbs, "fork", "start a new session from any step of another one, which does not change", fork)
    forking.add_argument("session", nargs="?", default="", help="its first or last letters (default: the newest)")
    forking.add_argument(
        "--at", metavar="SEQ", help="continue after this event (`agent sessions show` prints the numbers)"
    )
    forking.add_argument("--json", action="store_true", help="print the new session as a line of JSON")
    comparing = add_verb(verbs, "compare", "compare two sessions, such as a fork and its parent", compare)
    comparing.add_argument("first", metavar="A", help="its first or last letters")
    comparing.add_argument("second", metavar="B", help="its first or last letters")
    comparing.add_argument("--json", action="store_true", help="print the comparison as a line of JSON")


def fork(options: argparse.Namespace) -> int:
    """Fork a session and print how to continue the new one."""
    from agent_workbench.api.session_fork import fork_session

    invocation = Invocation(Path.cwd(), os.environ, {})
    child, lines = asyncio.run(fork_session(invocation, options.session, event_number(options.at)))
    if options.json:
        say_json({"session": child})
        return ExitCode.DONE
    for line in lines:
        say(line)
    say(f"\nforked: {child}\ncontinue it with `agent tui --session {child}`")
    return ExitCode.DONE


def compare(options: argparse.Namespace) -> int:
    """Print where two sessions diverge, their costs and outcomes, and the differences of their results."""
    from agent_workbench.api.repo_sessions import compare_sessions
    from agent_workbench.views.reports.comparison import file_lines, parting_line, result_line, table_lines

    invocation = Invocation(Path.cwd(), os.environ, {})
    comparison = asyncio.run(compare_sessions(invocation, options.first, options.second))
    if options.json:
        say_json(to_builtins(comparison))
        return ExitCode.DONE
    files = file_lines(comparison)
    for line in (parting_line(comparison), "", *table_lines(comparison), *(("", *files) if files else ())):
        say(line)
    say(f"\n{result_line(comparison)}")
    if comparison.diff:
        say(comparison.diff.removesuffix("\n"))
    return ExitCode.DONE
