"""`agent acp`: the workbench as an agent in an editor, over the Agent Client Protocol."""

import argparse
import os
import sys
from pathlib import Path

from agent_workbench.cli.options import add_model_flags, overrides
from agent_workbench.cli.output import say_aside
from agent_workbench.core.errors import ExitCode, UsageError
from agent_workbench.core.invocation import Invocation


def configure(verb: argparse.ArgumentParser) -> None:
    """Add the flags of the verb, and the function that runs it."""
    verb.set_defaults(execute=serve)
    add_model_flags(verb)


def serve(options: argparse.Namespace) -> int:
    """Serve until the editor leaves, the parent process ends, or a signal comes."""
    parent = os.getppid()  # before the SDK is loaded, which takes a moment
    if sys.stdin is None or sys.stdout is None:
        raise UsageError("standard input or output is closed", advice="an editor starts this with a pipe for both")
    if sys.stdin.isatty():
        from agent_workbench.api.help_pages import page_address

        say_aside(f"an editor is expected on standard input; Ctrl-C ends this\n{page_address('editors.md')}".strip())
    from agent_workbench.acp.protocol_agent import serve_stdio

    serve_stdio(Invocation(Path.cwd(), os.environ, overrides(options)), parent)
    return ExitCode.DONE
