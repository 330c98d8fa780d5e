"""`agent clean`: branches, worktrees, checkpoints and sessions that are no longer needed."""

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agent_workbench.cli.options import whole_number
from agent_workbench.cli.output import say, say_json
from agent_workbench.core.errors import ExitCode, WorkbenchError, error_text
from agent_workbench.core.session_request import Invocation
from agent_workbench.core.text.amounts import bytes_text, counted_text
from agent_workbench.core.text.sanitizer import sanitize_line

if TYPE_CHECKING:
    from agent_workbench.core.history.leftovers import Leftover

DAYS = 30
QUESTION = "\nremove which? (names, numbers such as 1 3-5, `all` for those with *) "


def configure(verb: argparse.ArgumentParser) -> None:
    """Add the flags of the verb, and the function that runs it."""
    verb.set_defaults(execute=execute)
    verb.add_argument("wanted", metavar="WHAT", nargs="*", help="a name or number of the list, 2-4, or `all`")
    verb.add_argument(
        "--days",
        metavar="N",
        type=whole_number(0, 9_999),
        default=DAYS,
        help="`all`: sessions over this many days old (30)",
    )
    verb.add_argument("--yes", action="store_true", help="remove what is named without asking")
    verb.add_argument("--json", action="store_true", help="print the list as JSON, and remove nothing")


def execute(options: argparse.Namespace) -> int:
    """List what can be removed, and remove what is named after a question; without names ask for them."""
    from agent_workbench.api.cleanup import find_leftovers, remove_leftovers
    from agent_workbench.core.history.leftovers import select_leftovers

    invocation = Invocation(Path.cwd(), os.environ, {})
    found = asyncio.run(find_leftovers(invocation, options.days))
    if options.json:
        from msgspec import to_builtins

        say_json([to_builtins(each) for each in found])
        return ExitCode.DONE
    asks = sys.stdin.isatty() and sys.stdout.isatty()
    if not options.wanted:
        _say_list(found)
        if not found or not asks:
            return ExitCode.DONE
    wanted = options.wanted or _answer(QUESTION).split()
    chosen = select_leftovers(found, wanted)
    if not chosen:
        say("nothing was removed")
        return ExitCode.DONE if options.yes or not options.wanted else ExitCode.PARKED
    if options.wanted and not options.yes:
        for each in chosen:
            say(_line(each))
        if not asks or _answer(f"remove {_counted(chosen)}? [y/N] ").lower() not in {"y", "yes"}:
            say("nothing was removed; --yes removes without asking", to=sys.stderr)
            return ExitCode.PARKED
    whole = asyncio.run(remove_leftovers(invocation, chosen, _tell))
    return ExitCode.DONE if whole else ExitCode.FAILED


def _say_list(found: "Sequence[Leftover]") -> None:
    """Print the list with numbers; `*` is what `all` removes, `-` what stays."""
    if not found:
        say("nothing to clean")
    for number, each in enumerate(found, 1):
        mark = "-" if each.kept else "*" if each.safe else " "
        say(f"{number:>3} {mark} {_line(each)}")
    safe = [each for each in found if each.safe and not each.kept]
    if found:
        say(f"* merged or over: `agent clean all` removes {_counted(safe)}")


def _line(leftover: "Leftover") -> str:
    why = f"; stays: {sanitize_line(leftover.kept, 300)}" if leftover.kept else ""
    size = bytes_text(leftover.size_bytes)
    return f"{leftover.kind:<11} {size:>8}  {sanitize_line(leftover.name, 200)}  {sanitize_line(leftover.state)}{why}"


def _counted(chosen: "Sequence[Leftover]") -> str:
    return f"{counted_text(len(chosen), 'item')}, {bytes_text(sum(each.size_bytes for each in chosen))}"


def _answer(question: str) -> str:
    try:
        return input(question).strip()
    except EOFError:
        say("")
        return ""


def _tell(leftover: "Leftover", error: WorkbenchError | None) -> None:
    name = sanitize_line(leftover.name, 200)
    if error is None:
        say(f"removed {name}")
    else:
        say(f"{name} stays: {sanitize_line(error_text(error))}", to=sys.stderr)
