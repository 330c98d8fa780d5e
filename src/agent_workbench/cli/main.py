"""The command `agent`: picks the verb, and turns errors into one clear message and an exit code."""

import argparse
import sys
import traceback
from collections.abc import Sequence

from agent_workbench import __version__
from agent_workbench.cli import demo, doctor, init, merge, model, plan, replay, run, sessions, trust, tui
from agent_workbench.core.errors import ExitCode, WorkbenchError

VERBS = (tui, run, replay, init, plan, sessions, merge, model, trust, doctor, demo)
EPILOG = "Start with `agent tui` in a git repository. Exit codes are listed in docs/exit-codes.md."


def main() -> None:
    """Run the command line and exit with its code."""
    sys.exit(execute(sys.argv[1:]))


def execute(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    options = parser().parse_args(arguments)
    try:
        return int(options.execute(options))
    except WorkbenchError as error:
        print_error(error)
        return error.exit_code
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()
        return ExitCode.DONE
    except Exception:
        traceback.print_exc()
        print("agent: this is a defect of the workbench; the session's journal is kept", file=sys.stderr)
        return ExitCode.BROKEN


def parser() -> argparse.ArgumentParser:
    """Return the command line's grammar, a verb from each module."""
    root = argparse.ArgumentParser(
        prog="agent", description="A terminal workbench for coding agents on your own machine.", epilog=EPILOG
    )
    root.add_argument("--version", action="version", version=f"agent {__version__}")
    verbs = root.add_subparsers(title="verbs", metavar="VERB", required=True)
    for verb in VERBS:
        verb.add(verbs)
    return root


def print_error(error: WorkbenchError) -> None:
    """Print what failed and what to do to standard error."""
    print(f"agent: {error}", file=sys.stderr)
    if error.advice:
        print(f"       {error.advice}", file=sys.stderr)
