"""`agent mcp`: the workbench as an MCP server, and the verbs about servers that it uses."""

import argparse
import asyncio
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from agent_workbench.cli.options import MOST_PORT, add_verb, whole_number
from agent_workbench.cli.output import say, say_aside, say_json
from agent_workbench.core.errors import ExitCode, UsageError
from agent_workbench.core.session_request import Invocation

if TYPE_CHECKING:
    from agent_workbench.cli.options import Verbs
    from agent_workbench.core.diagnostics import ListedServer, ServerTest


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
        from agent_workbench.mcp.protocol_server import serve_http

        serve_http(invocation, options.port, _say_served, parent, name=options.host)
    elif options.host:
        raise UsageError(f"--host {options.host} goes with --http", advice="say: agent mcp serve --http --host NAME")
    else:
        from agent_workbench.mcp.protocol_server import serve_stdio

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


def add_client_verbs(below: "Verbs") -> None:
    """Add the verbs about the servers whose tools the workbench uses."""
    listing = add_verb(below, "list", "list the servers of the settings and of .mcp.json", list_all)
    listing.add_argument("--json", action="store_true", help="a line of JSON for each")
    testing = add_verb(below, "test", "start servers, list their tools, and stop them", test)
    testing.add_argument("names", nargs="*", metavar="NAME", help="servers to test (all trusted ones)")
    testing.add_argument("--json", action="store_true", help="a line of JSON for each")
    for word, told, run in (
        ("login", "sign in at a server with OAuth, in your browser", login),
        ("logout", "remove the tokens of a sign-in", logout),
    ):
        signing = add_verb(below, word, told, run)
        signing.add_argument("name", metavar="NAME", help="the server")
    adding = add_verb(below, "add", "add a server to your settings: a URL or a command", add)
    adding.add_argument("name", metavar="NAME", help="its name; its tools are called mcp__NAME__TOOL")
    adding.add_argument("--url", default="", help="the address of a server (Streamable HTTP)")
    for flag, told in (("--header", "a header for the address"), ("--env", "a variable for the command")):
        said = f"{told}; ${{NAME}} is a variable of yours"
        adding.add_argument(flag, action="append", default=[], type=_pair, metavar="NAME=VALUE", help=said)
    for flag, told in (("--read", "a path that the command may read"), ("--write", "a path that it may write")):
        adding.add_argument(flag, action="append", default=[], metavar="PATH", help=told)
    adding.add_argument("--network", action="store_true", help="let the command reach the network")
    # A positional argument would end at the next flag, and most commands have flags.
    adding.add_argument(
        *("--command",),
        nargs=argparse.REMAINDER,
        default=[],
        metavar="COMMAND",
        help="the program and its arguments; all words after it belong to them",
    )
    adding.add_argument("--repo", action="store_true", help="add it to the repository's .agent.yml instead")


def list_all(options: argparse.Namespace) -> int:
    """Print each server with its command or address, its grants and its origin."""
    from agent_workbench.subjects.mcp_client.calls import list_servers

    servers, left_out = asyncio.run(list_servers(_invocation()))
    for server in servers:
        _say_listed(server, as_json=options.json)
    for problem in left_out:
        say_aside(problem)
    if not servers and not options.json:
        say("no MCP server is set; `agent mcp add NAME --command COMMAND` adds one")
    return ExitCode.DONE


def _say_listed(server: "ListedServer", *, as_json: bool) -> None:
    if as_json:
        entry = server.settings
        said = {
            "name": server.name,
            "command": [entry.command, *entry.args] if entry.command else [],
            "url": entry.url,
            "variables": list(entry.variables),
            "read": list(entry.read),
            "write": list(entry.write),
            "network": entry.network,
            "unconfined": entry.unconfined,
            "origin": server.origin,
            "trusted": server.trusted,
        }
        say_json(said)
        return
    trust = "" if server.trusted else "  not trusted: `agent trust`"
    grants = f"  [{server.grants}]" if server.grants else ""
    say(f"{server.name:<16} {server.started_as}{grants}  ({server.origin}){trust}")


def test(options: argparse.Namespace) -> int:
    """Print what each server brings; exit with 4 if one brings nothing that can be used."""
    from agent_workbench.subjects.mcp_client.calls import run_server_tests

    tests = asyncio.run(run_server_tests(_invocation(), options.names, say_aside))
    for each in tests:
        if options.json:
            _say_test_json(each)
        else:
            _say_test(each)
    if not tests and not options.json:
        say("no trusted MCP server is set; `agent mcp list` shows the others")
    return ExitCode.DONE if all(each.usable for each in tests) else ExitCode.ENVIRONMENT


def _say_test(tested: "ServerTest") -> None:
    if tested.error:
        say(f"✗ {tested.name}: {tested.error}")
        if tested.advice:
            say(f"  → {tested.advice}")
    else:
        say(f"{'✓' if tested.usable else '✗'} {tested.name}: {tested.about} ({tested.seconds:.1f} s)")
    for tool in tested.tools:
        first = tool.spec.summary.split("\n", 1)[0]
        hints = f" [{', '.join(tool.spec.hints)}]" if tool.spec.hints else ""
        say(f"  {tool.spec.name}@{tool.spec.digest}{hints}: {first[:120]}")
        if tool.problem:
            say(f"    left out: {tool.problem}")
    for notice in tested.notices:
        say(f"  ! {notice}")


def _say_test_json(tested: "ServerTest") -> None:
    tools = [
        {
            "name": tool.spec.name,
            "digest": tool.spec.digest,
            "summary": tool.spec.summary,
            "schema": tool.spec.input_schema,
            "hints": list(tool.spec.hints),
            "problem": tool.problem,
        }
        for tool in tested.tools
    ]
    say_json(
        {
            "name": tested.name,
            "usable": tested.usable,
            "about": tested.about,
            "tools": tools,
            "notices": list(tested.notices),
            "error": tested.error,
            "seconds": round(tested.seconds, 3),
        }
    )


def login(options: argparse.Namespace) -> int:
    """Print the page for a person's browser, open it where there is one, and wait until it leads back here."""
    from agent_workbench.subjects.mcp_client.calls import sign_in

    asyncio.run(sign_in(_invocation(), options.name, _visit))
    say(f"signed in at {options.name}; `agent mcp logout {options.name}` removes the tokens")
    return ExitCode.DONE


def _visit(page: str) -> None:
    import webbrowser

    port = re.search(r"redirect_uri=http%3A%2F%2F127\.0\.0\.1%3A(\d+)", page)
    say("Sign in on this page:")
    say(page)
    if port is not None:
        at = port[1]
        say_aside(f"for a browser on another machine, first there: ssh -L {at}:127.0.0.1:{at} THIS_MACHINE")
    graphical = sys.platform == "darwin" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if graphical and sys.stdout is not None and sys.stdout.isatty():
        webbrowser.open(page)


def logout(options: argparse.Namespace) -> int:
    """Remove the tokens of a sign-in; exit with 1 if there are none."""
    from agent_workbench.subjects.mcp_client.calls import sign_out

    if not asyncio.run(sign_out(_invocation(), options.name)):
        say(f"nobody is signed in at {options.name}")
        return ExitCode.FAILED
    say(f"the tokens of {options.name} are removed here; its own pages say what still has access")
    return ExitCode.DONE


def add(options: argparse.Namespace) -> int:
    """Write the server into a settings file and print which."""
    from agent_workbench.core.settings.extensions import ToolServerSettings
    from agent_workbench.subjects.mcp_client.calls import add_server

    if bool(options.command) == bool(options.url):
        example = f"`agent mcp add {options.name} --command uvx some-server`, or --url https://host/mcp"
        raise UsageError("a server is a command or a URL: expected one of them", advice=example)
    command, *args = options.command or [""]
    entry = ToolServerSettings(
        command=command,
        args=tuple(args),
        env=tuple(options.env),
        url=options.url,
        headers=tuple(options.header),
        read=tuple(options.read),
        write=tuple(options.write),
        network=options.network,
    )
    file = asyncio.run(add_server(_invocation(), options.name, entry, for_repo=options.repo))
    trust = " `agent trust` asks for trust in it." if options.repo else ""
    say(f"added {options.name} to {file}.{trust} `agent mcp test {options.name}` tries it.")
    return ExitCode.DONE


def _pair(said: str) -> tuple[str, str]:
    name, equals, value = said.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, found {said!r}")
    return name, value


def _invocation() -> Invocation:
    return Invocation(Path.cwd(), os.environ, {})
