"""`agent sessions`: list, search, show, verify, resume, fork, compare and export the sessions of a repository."""

import argparse
import asyncio
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import to_builtins

from agent_workbench.cli.options import add_model_flags, add_verb, event_number, is_number, overrides
from agent_workbench.cli.output import say, say_document, say_json
from agent_workbench.cli.verbs.run import add_policy_flags, add_print_flags, run_tasks, unattended_invocation
from agent_workbench.cli.verbs.tui import check_terminal, open_workbench
from agent_workbench.cli.verbs.verify import exit_code, say_proof
from agent_workbench.core.errors import ExitCode, UsageError
from agent_workbench.core.session_request import Invocation, SessionRequest
from agent_workbench.core.text.sanitizer import sanitize_line

if TYPE_CHECKING:
    from agent_workbench.api.session_queries import FoundInSession
    from agent_workbench.cli.options import Verbs


CLOSEST = 5

HEADLESS = "--headless"

SVG = "svg"
FORMATS = ("markdown", "json", SVG)
SIZE = (120, 40)


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
    add_resume(below)
    add_fork(below)
    add_export(below)
    add_search(below)


def list_all(options: argparse.Namespace) -> int:
    """Print a line for each session."""
    from agent_workbench.api.session_queries import session_summaries
    from agent_workbench.views.sessions import view_sessions

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


def add_fork(verbs: "Verbs") -> None:
    """Add the verbs below `agent sessions`."""
    forking = add_verb(verbs, "fork", "start a new session from any step of another one, which does not change", fork)
    forking.add_argument("session", nargs="?", default="", help="its first or last letters (default: the newest)")
    forking.add_argument(
        "--at", metavar="SEQ", help="continue after this event (`agent sessions show` prints the numbers)"
    )
    forking.add_argument("--json", action="store_true", help="print the new session as a line of JSON")
    comparing = add_verb(verbs, "compare", "compare two sessions, such as a fork and its parent", compare)
    comparing.add_argument("first", metavar="A", help="its first or last letters")
    comparing.add_argument("second", metavar="B", help="its first or last letters")
    comparing.add_argument("--json", action="store_true", help="print the comparison as a line of JSON")


def fork(options: argparse.Namespace) -> int:
    """Fork a session and print how to continue the new one."""
    from agent_workbench.api.session_fork import fork_session

    invocation = Invocation(Path.cwd(), os.environ, {})
    child, lines = asyncio.run(fork_session(invocation, options.session, event_number(options.at)))
    if options.json:
        say_json({"session": child})
        return ExitCode.DONE
    for line in lines:
        say(line)
    say(f"\nforked: {child}\ncontinue it with `agent tui --session {child}`")
    return ExitCode.DONE


def compare(options: argparse.Namespace) -> int:
    """Print where two sessions diverge, their costs and outcomes, and the differences of their results."""
    from agent_workbench.api.repo_sessions import compare_sessions
    from agent_workbench.views.reports.comparison import file_lines, parting_line, result_line, table_lines

    invocation = Invocation(Path.cwd(), os.environ, {})
    comparison = asyncio.run(compare_sessions(invocation, options.first, options.second))
    if options.json:
        say_json(to_builtins(comparison))
        return ExitCode.DONE
    files = file_lines(comparison)
    for line in (parting_line(comparison), "", *table_lines(comparison), *(("", *files) if files else ())):
        say(line)
    say(f"\n{result_line(comparison)}")
    if comparison.diff:
        say(comparison.diff.removesuffix("\n"))
    return ExitCode.DONE


def add_search(verbs: "Verbs") -> None:
    """Add the verb below `agent sessions`."""
    verb = add_verb(verbs, "search", "search the records of all sessions for words", search)
    verb.add_argument("words", nargs="+", help="searched literally; case counts only if you use capitals")
    verb.add_argument("--json", action="store_true", help="print a line of JSON for each match")


def search(options: argparse.Namespace) -> int:
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


def add_resume(verbs: "Verbs") -> None:
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


def add_export(verbs: "Verbs") -> None:
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
        from agent_workbench.api.session_export import picture

        return await picture(invocation, options.session, at, size)
    from agent_workbench.api.session_export import ExportFormat, export_session

    return await export_session(invocation, options.session, ExportFormat(options.format))


def _export_gates(invocation: Invocation, options: argparse.Namespace) -> int:
    from agent_workbench.api.session_export import write_gates

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
