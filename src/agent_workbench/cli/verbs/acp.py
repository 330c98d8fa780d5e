"""`agent acp`: the workbench as an agent in an editor, over the Agent Client Protocol."""

import argparse
import asyncio
import os
import sys
from pathlib import Path

from agent_workbench.cli.options import add_model_flags, overrides
from agent_workbench.cli.output import say, say_aside
from agent_workbench.core.errors import ExitCode, UsageError
from agent_workbench.core.session_request import Invocation


def configure(verb: argparse.ArgumentParser) -> None:
    """Add the flags of the verb, and the function that runs it."""
    verb.set_defaults(execute=execute)
    verb.add_argument(
        "--setup", action="store_true", help="choose a model for all your repos on this terminal, and end"
    )
    add_model_flags(verb)


def execute(options: argparse.Namespace) -> int:
    """Serve an editor, or set up what it needs."""
    return set_up() if options.setup else serve(options)


def set_up() -> int:
    """Ask for a model, which editors start in their terminal; exit with 5 without one, with 1 if none is chosen."""
    from agent_workbench.api.set_up import propose_model, write_model
    from agent_workbench.cli.verbs.init import chosen_model

    invocation = Invocation(Path.cwd(), os.environ, {})
    proposal = asyncio.run(propose_model(invocation))
    if proposal.models is None:
        say("a model is set: the editor can begin")
        return ExitCode.DONE
    choice = chosen_model(proposal)
    if choice is None:
        return ExitCode.FAILED if proposal.models.choices else ExitCode.MODEL
    say(f"wrote {asyncio.run(write_model(invocation, proposal, choice))}")
    return ExitCode.DONE


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
