"""`agent demo`: the workbench on a sample repo with scripted answers."""

import argparse
import asyncio
import os
import shlex
import shutil
import sys
import tempfile
from pathlib import Path

from agent_workbench.cli.output import say_last
from agent_workbench.cli.verbs.run import run_tasks
from agent_workbench.cli.verbs.tui import check_terminal, open_workbench
from agent_workbench.core.session_request import Invocation, SessionRequest

READABLE_TOKENS_PER_SECOND = 90.0


def configure(verb: argparse.ArgumentParser) -> None:
    """Add the flags of the verb, and the function that runs it."""
    verb.set_defaults(execute=execute)
    verb.add_argument("--headless", action="store_true", help="without a terminal: approve everything and print it")
    verb.add_argument("--folder", type=Path, help="folder of the sample repo (default: a new temporary folder)")
    verb.add_argument("--json", action="store_true", help="with --headless: print every event as a line of JSON")


def execute(options: argparse.Namespace) -> int:
    """Write the sample repo and open it."""
    if not options.headless:
        check_terminal("agent demo", "`agent demo --headless` works without one")
    from agent_workbench.api.set_up import write_demo
    from agent_workbench.core.history.summaries import SessionQuery
    from agent_workbench.core.proposal_kinds import opened_by

    folder = options.folder or Path(tempfile.mkdtemp(prefix="agent-demo-")) / "shop"
    flags, pace = (opened_by("--yes"), 0.0) if options.headless else ({}, READABLE_TOKENS_PER_SECOND)
    start = Invocation(folder, os.environ, flags, unconfined=True, demo_tokens_per_second=pace)
    invocation = asyncio.run(write_demo(folder.absolute(), start))
    if not options.json:
        say_last(
            f"The sample repo is {folder}. Its model is tiny and its answers are scripted; everything else is real."
        )
    if options.headless:
        return asyncio.run(run_tasks(invocation, SessionQuery(), as_json=options.json, followed=False))
    code = open_workbench(invocation, SessionRequest(), welcome=True)
    print(f"See it again: cd {shlex.quote(str(folder))} && {_own_command()} replay")
    return code


def _own_command() -> str:
    """Return the command line of `agent` for another folder."""
    return "agent" if shutil.which("agent") else str(Path(sys.argv[0]).absolute())
