"""`agent sessions export`: a session as a document or pictures."""

import argparse
import asyncio
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from agent_workbench.cli.options import add_verb, event_number
from agent_workbench.cli.output import say, say_document
from agent_workbench.core.errors import ExitCode, UsageError
from agent_workbench.core.session_request import Invocation

if TYPE_CHECKING:
    from agent_workbench.cli.options import Verbs

SVG = "svg"
FORMATS = ("markdown", "json", SVG)
SIZE = (120, 40)


def add(verbs: "Verbs") -> None:
    """Add the verb below `agent sessions`."""
    verb = add_verb(verbs, "export", "export a session as markdown, JSON or pictures", export)
    verb.add_argument("session", nargs="?", default="", help="its first or last letters (default: the newest)")
    verb.add_argument("--format", choices=FORMATS, default=FORMATS[0], help="default: markdown for a pull request")
    verb.add_argument("--output", metavar="FILE", type=Path, help="a new file (default: standard output)")
    verb.add_argument("--at", metavar="SEQ", help="svg: the screen after this event")
    verb.add_argument("--size", metavar="WxH", help="svg: columns and rows of the screen (120x40)")
    verb.add_argument("--gates", action="store_true", help="svg: a picture of each gate, into the folder --output")


def export(options: argparse.Namespace) -> int:
    """Print a session as a document, or write it to a file."""
    invocation = Invocation(Path.cwd(), os.environ, {})
    _check(options)
    if options.gates:
        return _export_gates(invocation, options)
    document = asyncio.run(_document(invocation, options))
    if options.output is None:
        say_document(document)
        return ExitCode.DONE
    from agent_workbench.api.session_export import write_new

    asyncio.run(write_new(options.output, document))
    say(f"written to {options.output}", to=sys.stderr)
    return ExitCode.DONE


def _check(options: argparse.Namespace) -> None:
    """Raise `UsageError` for a flag that the format does not have."""
    if options.format != SVG and (options.at is not None or options.size is not None):
        raise UsageError(f"--at and --size are for pictures, not for {options.format}", advice="add --format svg")
    if options.gates and (options.format != SVG or options.at is not None or options.output is None):
        raise UsageError(
            "--gates writes a picture of each gate into a folder",
            advice="use --format svg --gates --output FOLDER, without --at",
        )


async def _document(invocation: Invocation, options: argparse.Namespace) -> str:
    at, size = event_number(options.at), screen_size(options.size)
    if options.format == SVG:
        from agent_workbench.api.pictures import picture

        return await picture(invocation, options.session, at, size)
    from agent_workbench.api.session_export import ExportFormat, export_session

    return await export_session(invocation, options.session, ExportFormat(options.format))


def _export_gates(invocation: Invocation, options: argparse.Namespace) -> int:
    from agent_workbench.api.pictures import write_gates

    paths = asyncio.run(write_gates(invocation, options.session, screen_size(options.size), options.output))
    for path in paths:
        say(str(path))
    if not paths:
        say("the session has no gate with a diff, commit, merge or decision", to=sys.stderr)
    return ExitCode.DONE


def screen_size(said: str | None) -> tuple[int, int]:
    """Return columns and rows, by default 120 and 40; raise `UsageError`."""
    if said is None:
        return SIZE
    found = re.fullmatch(r"([0-9]{1,4})[x×]([0-9]{1,4})", said)
    if found is None:
        raise UsageError(f"{said!r} is not a size", advice="give columns and rows, such as 120x40")
    return int(found[1]), int(found[2])
