"""The command `agent`: picks the verb, and turns errors into one clear message and an exit code."""

import argparse
import io
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from agent_workbench import __version__
from agent_workbench.cli.output import drop_output, say_last
from agent_workbench.cli.session_verbs import sessions
from agent_workbench.cli.verbs import (
    demo,
    doctor,
    index,
    init,
    merge,
    model,
    new,
    plan,
    replay,
    rules,
    run,
    search,
    trust,
    tui,
    verify,
)
from agent_workbench.core.errors import ExitCode, RepoError, WorkbenchError
from agent_workbench.core.text.sanitizer import sanitize

VERBS = (tui, run, replay, init, new, plan, sessions, verify, merge, search, index, model, rules, trust, doctor, demo)
EPILOG = "Start with `agent tui` in a git repository. Exit codes are listed in docs/exit-codes.md."


def main() -> None:
    """Run the command line and exit with its code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that knows no ✓ shows something else
    sys.exit(execute(sys.argv[1:]))


def execute(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    options = parser().parse_args(arguments)
    try:
        _check_folder()
        return int(options.execute(options))
    except WorkbenchError as error:
        print_error(error)
        return error.exit_code
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        drop_output()
        return ExitCode.DONE
    except Exception:
        traceback.print_exc()
        print("agent: this is a defect of the workbench; the session's journal is kept", file=sys.stderr)
        return ExitCode.BROKEN


def _check_folder() -> None:
    try:
        Path.cwd()
    except OSError:
        raise RepoError("the folder you are in is gone", advice="go to one that exists") from None


class Grammar(argparse.ArgumentParser):
    """A command line's grammar whose messages repeat what was typed without letting it control the terminal."""

    def error(self, message: str) -> NoReturn:
        """Print the usage and the message, and exit."""
        super().error(sanitize(message))


def parser() -> argparse.ArgumentParser:
    """Return the command line's grammar, a verb from each module."""
    root = Grammar(
        prog="agent", description="A terminal workbench for coding agents on your own machine.", epilog=EPILOG
    )
    root.add_argument("--version", action="version", version=f"agent {__version__}")
    verbs = root.add_subparsers(title="verbs", metavar="VERB", required=True)
    for verb in VERBS:
        verb.add(verbs)
    return root


def print_error(error: WorkbenchError) -> None:
    """Print what failed and what to do to standard error."""
    say_last(f"agent: {error}", to=sys.stderr)
    if error.advice:
        say_last(f"       {error.advice}", to=sys.stderr)
