"""`agent tui`: the workbench in the terminal or a browser."""

import argparse
import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from agent_workbench.cli.options import MOST_PORT, add_model_flags, add_words, overrides, task_words, whole_number
from agent_workbench.cli.output import say
from agent_workbench.core.errors import ExitCode, UsageError
from agent_workbench.core.session_request import Invocation, OpenMode, SessionRequest

if TYPE_CHECKING:
    from agent_workbench.core.session_request import SessionRequest


def configure(verb: argparse.ArgumentParser) -> None:
    """Add the flags of the verb, and the function that runs it."""
    verb.set_defaults(execute=execute)
    which = verb.add_mutually_exclusive_group()
    which.add_argument("--session", metavar="ID", help="resume this session (its first or last letters are enough)")
    which.add_argument("--new", action="store_true", help="start a new session even if one is unfinished")
    add_words(verb)
    add_model_flags(verb)
    verb.add_argument("--web", action="store_true", help="serve it to a browser on this machine instead")
    verb.add_argument(
        "--port", type=whole_number(0, MOST_PORT), default=0, metavar="N", help="with --web: the port (a free one)"
    )
    verb.add_argument("--served", action="store_true", help=argparse.SUPPRESS)


def execute(options: argparse.Namespace) -> int:
    """Open the workbench, and print its farewell."""
    words = task_words(options, "agent tui")
    if options.web:
        return _serve(options)
    if not options.served:
        check_terminal("agent tui", "`agent run` works without one, `agent tui --web` in a browser")
    from agent_workbench.api.screen_services import first_run

    invocation = Invocation(Path.cwd(), os.environ, overrides(options))
    # A task in words is a new one, whatever is unfinished; in a session that is named they are said to it.
    new = options.new or (bool(words) and not options.session)
    request = SessionRequest(OpenMode.NEW if new else OpenMode.RESUME, options.session or "", words=words)
    return open_workbench(invocation, request, welcome=first_run(), served=options.served)


def _serve(options: argparse.Namespace) -> int:
    """Serve the workbench until it is stopped; each page runs `agent tui` with the same flags."""
    from agent_workbench.api.screen_services import serve_workbench

    flags = {name: getattr(options, name) for name in ("session", "model", "model_url", "model_name", "endpoint")}
    words = ["tui", "--served", *(["--new"] if options.new else [])]
    words += [word for name, said in flags.items() if said for word in (f"--{name.replace('_', '-')}", said)]
    words += ["--", *options.words] if options.words else []
    asyncio.run(serve_workbench(Path.cwd(), words, options.port, _say_served))
    return ExitCode.DONE


def _say_served(address: str) -> None:
    say(address)
    say("Open it in a browser on this machine. Anyone who has the address can do what you can. Ctrl-C ends the server.")


def check_terminal(what: str, otherwise: str) -> None:
    """Raise `UsageError` if there is no terminal."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(f"{what} needs a terminal as standard input and output", advice=otherwise)


def open_workbench(
    invocation: Invocation, request: "SessionRequest", *, welcome: bool = False, served: bool = False
) -> int:
    """Run the workbench until it is left (`served`: in a browser); return the exit code."""
    from agent_workbench.cli.front_end import open_screen, watch_terminal

    watch_terminal()
    asyncio.run(open_screen(invocation, request, welcome=welcome, served=served))
    return ExitCode.DONE
