"""`agent doctor`: a check of what works on this machine and in this repository."""

import argparse
import asyncio
import os
import shutil
import sys
from pathlib import Path

from agent_workbench.cli.options import add_model_flags, overrides
from agent_workbench.cli.output import say
from agent_workbench.cli.questions import ProgressLine
from agent_workbench.core.diagnostics import Finding, Health
from agent_workbench.core.errors import ExitCode
from agent_workbench.core.session_request import Invocation

MARKS = {Health.GOOD: "✓", Health.WARNING: "!", Health.BAD: "✗"}


def configure(verb: argparse.ArgumentParser) -> None:
    """Add the flags of the verb, and the function that runs it."""
    verb.set_defaults(execute=execute)
    add_model_flags(verb)


def execute(options: argparse.Namespace) -> int:
    """Print a line for each part; exit with 4 if one fails."""
    from agent_workbench.subjects.models.calls import examine_place

    with ProgressLine() as progress:
        progress.show("checking this machine and repository")
        findings = asyncio.run(examine_place(Invocation(Path.cwd(), os.environ, overrides(options)), progress.show))
    told = (*findings, _terminal())
    width = max(14, *(len(finding.part) for finding in told))
    for finding in told:
        say(f"{MARKS[finding.health]} {finding.part:<{width}} {finding.seen}")
        if finding.advice:
            say(f"{'':<{width + 3}}→ {finding.advice}")
    failed = any(finding.health is Health.BAD for finding in findings)
    return ExitCode.ENVIRONMENT if failed else ExitCode.DONE


def _terminal() -> Finding:
    size = shutil.get_terminal_size()
    term = os.environ.get("TERM", "")
    seen = f"{term or 'TERM is not set'}, {size.columns}×{size.lines}"
    if not sys.stdout.isatty():
        return Finding("terminal", Health.WARNING, "standard output is not a terminal", "`agent tui` needs one")
    if term in ("", "dumb"):
        return Finding("terminal", Health.BAD, seen, "set TERM, such as xterm-256color")
    if size.columns < 80 or size.lines < 24:
        return Finding("terminal", Health.WARNING, seen, "use at least 80×24")
    return Finding("terminal", Health.GOOD, seen)
