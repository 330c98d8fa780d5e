"""`agent sessions`: list, show and verify the sessions of a repository."""

import argparse
import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import to_builtins

from agent_workbench.cli.options import add_verb, is_number
from agent_workbench.cli.output import say, say_json
from agent_workbench.cli.verbs import export as sessions_export
from agent_workbench.cli.verbs import fork as sessions_made
from agent_workbench.cli.verbs import record_search as sessions_search
from agent_workbench.cli.verbs import resume as sessions_resume
from agent_workbench.cli.verbs.verify import exit_code, say_proof
from agent_workbench.core.errors import ExitCode, UsageError
from agent_workbench.core.session_request import Invocation

if TYPE_CHECKING:
    pass


def configure(verb: argparse.ArgumentParser) -> None:
    """Add the flags of the verb, the verbs below it, and the function that runs it."""
    verb.set_defaults(execute=list_all)
    below = verb.add_subparsers(title="verbs", metavar="VERB")
    listing = add_verb(below, "list", "list sessions, newest first", list_all)
    for each in (verb, listing):
        each.add_argument("--tree", action="store_true", help="list forks below their parents")
    for name, summary, execute in (
        ("show", "print what happened in a session", show),
        ("verify", "verify a session's journal by its hash chain and the commits that name it", verify),
    ):
        each = add_verb(below, name, summary, execute)
        each.add_argument("session", nargs="?", default="", help="its first or last letters (default: the newest)")
        if execute is show:
            each.add_argument("--prompt", metavar="N", help="print the receipt of this prompt: its number, or `last`")
            each.add_argument("--text", action="store_true", help="with --prompt: also print its messages")
            each.add_argument("--json", action="store_true", help="with --prompt: as JSON")
        else:
            each.add_argument("--json", action="store_true", help="print the proof as JSON")

    taking = add_verb(below, "take-over", "continue the sessions of a repository that is gone, in its copy", take_over)
    taking.add_argument("--leave", action="store_true", help="leave them where they are, and start without them")
    sessions_resume.add(below)
    sessions_made.add(below)
    sessions_export.add(below)
    sessions_search.add(below)


def list_all(options: argparse.Namespace) -> int:
    """Print a line for each session."""
    from agent_workbench.api.session_queries import session_summaries
    from agent_workbench.views.session_tree import view_sessions

    summaries = asyncio.run(session_summaries(Invocation(Path.cwd(), os.environ, {})))
    if not summaries:
        say("no sessions yet; `agent tui` starts one")
    rows = view_sessions(summaries)
    for row in rows if options.tree else sorted(rows, key=lambda row: row.summary.id, reverse=True):
        each, branch = row.summary, row.branch if options.tree else ""
        done = f"{each.steps:>4} steps  {each.tokens:>9,} tokens"
        about = "".join(f"  {told}" for told in (row.origin, row.note) if told)
        told = "  ".join(filter(None, (row.task, row.state)))
        say(f"{branch}{each.id}  {row.when}  {done}  {told}{about}")
    return ExitCode.DONE


def take_over(options: argparse.Namespace) -> int:
    """Take over the sessions and worktrees of the repository that was copied here, or leave them for good."""
    from agent_workbench.api.session_queries import take_over_sessions

    invocation = Invocation(Path.cwd(), os.environ, {})
    former = asyncio.run(take_over_sessions(invocation, leave=options.leave))
    done = "this repository starts without" if options.leave else "this repository continues"
    say(f"{done} the sessions and worktrees of {former}")
    return ExitCode.DONE


def show(options: argparse.Namespace) -> int:
    """Print a line for each event of interest, or the receipt of one prompt."""
    from agent_workbench.api.session_queries import recorded_events
    from agent_workbench.core.events.log_lines import log_line, time_taken

    invocation = Invocation(Path.cwd(), os.environ, {})
    if options.prompt is not None:
        return show_prompt(invocation, options)
    if options.text or options.json:
        raise UsageError("--text and --json need a prompt", advice="add --prompt 1, or --prompt last")
    for recorded in asyncio.run(recorded_events(invocation, options.session)):
        if line := log_line(recorded.event) or time_taken(recorded.event):
            say(f"{recorded.seq:>5}  {recorded.time[11:19]}  {line}")
    return ExitCode.DONE


def show_prompt(invocation: Invocation, options: argparse.Namespace) -> int:
    """Print the receipt of a prompt, with `--text` also its messages."""
    from agent_workbench.api.session_queries import prompt_receipt
    from agent_workbench.views.receipt import head_lines, table_lines

    view, messages = asyncio.run(prompt_receipt(invocation, options.session, _prompt_number(options.prompt)))
    told = messages if options.text else ()
    if options.json:
        said = {"messages": [{"role": each.role, "text": each.text} for each in told]} if options.text else {}
        say_json({**to_builtins(view), **said})
        return ExitCode.DONE
    say(f"Prompt {view.number} of {view.count} · step {view.step} · {view.purpose}")
    for line in (*head_lines(view), "", *table_lines(view)):
        say(line)
    for message in told:
        say(f"\n--- {message.role} ---\n{message.text}")
    return ExitCode.DONE


def _prompt_number(said: str) -> int:
    """Return the number of a prompt, 0 for the newest; raise `UsageError`."""
    if said == "last":
        return 0
    if is_number(said) and int(said) > 0:
        return int(said)
    raise UsageError(f"{said!r} is not a prompt", advice="give its number, from 1, or `last`")


def verify(options: argparse.Namespace) -> int:
    """Print the proof of the journal; exit with 6 if something differs, with 1 if there is no anchor."""
    from agent_workbench.api.proofs import prove_session
    from agent_workbench.views.reports.proofs import journal_proof_lines, journal_summary

    proof = asyncio.run(prove_session(Invocation(Path.cwd(), os.environ, {}), options.session))
    if options.json:
        say_json({"proof": proof.proof, **to_builtins(proof)})
        return exit_code(proof.proof)
    return say_proof(proof.proof, journal_summary(proof), journal_proof_lines(proof))
