"""`agent mcp`: the workbench as a server of the Model Context Protocol, and the servers whose tools it uses."""

import argparse
import os
import re
import sys
from pathlib import Path

from agent_workbench.cli.options import MOST_PORT, add_verb, whole_number
from agent_workbench.cli.output import say, say_aside
from agent_workbench.cli.verbs.repo.mcp_servers import add_client_verbs
from agent_workbench.core.errors import ExitCode, UsageError
from agent_workbench.core.invocation import Invocation


def configure(verb: argparse.ArgumentParser) -> None:
    """Add the flags of the verb, the verbs below it, and the function that runs it."""
    verb.set_defaults(execute=serve, http=False, port=0, host="", unconfined=False)
    below = verb.add_subparsers(title="verbs", metavar="VERB")
    serving = add_verb(below, "serve", "serve this repository to a client until it leaves", serve)
    for each in (verb, serving):
        # No default here: it would replace what was said before the word `serve`.
        each.add_argument(
            *("--http",),
            action="store_true",
            default=argparse.SUPPRESS,
            help="listen on a port (of loopback) instead of standard input and output",
        )
        each.add_argument(
            *("--port",),
            type=whole_number(0, MOST_PORT),
            default=argparse.SUPPRESS,
            metavar="N",
            help="with --http: the port (a free one)",
        )
        each.add_argument(
            *("--host",),
            type=_host_name,
            default=argparse.SUPPRESS,
            metavar="NAME",
            help="with --http: listen on every interface, for requests that name this host or loopback",
        )
        each.add_argument(
            *("--unconfined",),
            action="store_true",
            default=argparse.SUPPRESS,
            help="let clients start tasks although no sandbox confines tests and commands",
        )
    add_client_verbs(below)


def serve(options: argparse.Namespace) -> int:
    """Serve until the client leaves, the parent process ends, or a signal comes."""
    parent = os.getppid()  # before the SDK is loaded, which takes a moment
    invocation = Invocation(Path.cwd(), os.environ, {}, unconfined=options.unconfined)
    if options.http:
        from agent_workbench.mcp.transport.http_server import serve_http

        serve_http(invocation, options.port, _say_served, parent, name=options.host)
    elif options.host:
        raise UsageError(f"--host {options.host} goes with --http", advice="say: agent mcp serve --http --host NAME")
    else:
        from agent_workbench.mcp.transport.stdio_server import serve_stdio

        if sys.stdin is None or sys.stdout is None:
            raise UsageError("standard input or output is closed", advice="a client starts this with a pipe for both")
        if sys.stdin.isatty():
            say_aside("a client of the Model Context Protocol is expected on standard input; Ctrl-C ends this")
        serve_stdio(invocation, parent)
    return ExitCode.DONE


def _host_name(text: str) -> str:
    if re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?", text):
        return text.lower()
    raise argparse.ArgumentTypeError(f"{text!r} is not the name of a host, such as agent.example")


def _say_served(address: str, token: str) -> None:
    say(address)
    say(f"Authorization: Bearer {token or '$AGENT_MCP_TOKEN'}")
    say("Who has the token can read, search, ask the models and start tasks here, and decide nothing. Ctrl-C ends it.")
