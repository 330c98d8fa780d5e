"""`agent sessions search`: text search in the records of all sessions."""

import argparse
import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from agent_workbench.cli.options import add_verb
from agent_workbench.cli.output import say, say_json
from agent_workbench.core.errors import ExitCode, UsageError
from agent_workbench.core.session_request import Invocation
from agent_workbench.core.text.sanitizer import sanitize_line

if TYPE_CHECKING:
    from agent_workbench.api.session_queries import FoundInSession
    from agent_workbench.cli.options import Verbs

CLOSEST = 5


def add(verbs: "Verbs") -> None:
    """Add the verb below `agent sessions`."""
    verb = add_verb(verbs, "search", "search the records of all sessions for words", execute)
    verb.add_argument("words", nargs="+", help="searched literally; case counts only if you use capitals")
    verb.add_argument("--json", action="store_true", help="print a line of JSON for each match")


def execute(options: argparse.Namespace) -> int:
    """Print the matching lines of each session; exit with 6 if a session could not be read."""
    asked = " ".join(options.words)
    if not asked.strip():
        raise UsageError("the query is empty", advice="give words to search for")
    return asyncio.run(_search(Invocation(Path.cwd(), os.environ, {}), asked, as_json=options.json))


async def _search(invocation: Invocation, asked: str, *, as_json: bool) -> int:
    from agent_workbench.api.session_queries import closest_sessions, search_sessions

    count, exit_code = 0, ExitCode.DONE
    async for each in search_sessions(invocation, asked):
        if each.problem:
            say(f"{each.session.id} was not searched: {each.problem}", to=sys.stderr)
            exit_code = ExitCode.JOURNAL
        else:
            count += each.found.count
            _tell(each, as_json=as_json)
    if not count and not as_json:
        say(f"no session contains “{sanitize_line(asked)}”")
        if closest := await closest_sessions(invocation, asked, CLOSEST):
            say("closest by its words:")
        for session in closest:
            say(f"  {session.id}  {sanitize_line(session.subject)}")
    return exit_code


def _tell(each: "FoundInSession", *, as_json: bool) -> None:
    found = each.found
    if as_json:
        for match in found.matches:
            told: dict[str, object] = {"session": each.session.id, "seq": match.seq, "time": match.time}
            say_json(told | {"kind": match.kind, "line": match.line})
        return
    more = len(found.matches) < found.count
    first = f", the first {len(found.matches):,} are shown" if more else ""
    say(f"{each.session.id}  {found.count:,} line{'' if found.count == 1 else 's'}{first}")
    for match in found.matches:
        say(f"{match.seq:>6}  {match.time[11:19]}  {match.kind:<10}  {sanitize_line(match.line)}")
