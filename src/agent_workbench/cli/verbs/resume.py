"""`agent sessions resume`: resumption of a session that stopped in a task."""

import argparse
import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

from agent_workbench.cli.options import add_model_flags, add_verb, overrides
from agent_workbench.cli.verbs.run import add_policy_flags, add_print_flags, run_tasks, unattended_invocation
from agent_workbench.cli.verbs.tui import check_terminal, open_workbench
from agent_workbench.core.errors import UsageError
from agent_workbench.core.session_request import Invocation, SessionRequest

if TYPE_CHECKING:
    from agent_workbench.cli.options import Verbs

HEADLESS = "--headless"


def add(verbs: "Verbs") -> None:
    """Add the verb below `agent sessions`."""
    verb = add_verb(verbs, "resume", "resume a session that stopped in a task", resume)
    verb.add_argument(
        "session", nargs="?", default="", help="its first or last letters (default: the newest that stopped)"
    )
    verb.add_argument(HEADLESS, action="store_true", help="continue unattended, as `agent run` does")
    add_policy_flags(verb)
    add_print_flags(verb)
    add_model_flags(verb)


def resume(options: argparse.Namespace) -> int:
    """Open the workbench on the session, or continue its task unattended."""
    from agent_workbench.api.session_queries import stopped_session
    from agent_workbench.core.history.summaries import SessionQuery

    said = [name for name in ("yes", "commands", "policy", "unconfined", "json", "verbose") if getattr(options, name)]
    if said and not options.headless:
        raise UsageError(f"--{said[0]} is for an unattended session", advice=f"add {HEADLESS}")
    if not options.headless:
        check_terminal("agent sessions resume", f"{HEADLESS} continues without one")
    session, task = asyncio.run(stopped_session(Invocation(Path.cwd(), os.environ, {}), options.session))
    if options.headless:
        query = SessionQuery(session, tasks=(task,))
        return asyncio.run(
            run_tasks(unattended_invocation(options), query, as_json=options.json, verbose=options.verbose)
        )
    return open_workbench(Invocation(Path.cwd(), os.environ, overrides(options)), SessionRequest(session=session))
