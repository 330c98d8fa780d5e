"""`agent inbox`: pending proposals of all sessions, and decisions about them."""

import argparse
import asyncio
import os
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from agent_workbench.cli.options import add_verb, is_number, show_examples
from agent_workbench.cli.output import say, say_document, say_error, say_json
from agent_workbench.cli.questions import agrees, chosen_letter, on_terminal, typed_line
from agent_workbench.core.errors import ExitCode, UsageError, WorkbenchError
from agent_workbench.core.inbox import InboxChoice, InboxFilter, InboxItem, Reference, parse_reference
from agent_workbench.core.proposals import Verdict
from agent_workbench.core.session_request import Invocation
from agent_workbench.core.text.sanitizer import sanitize_line

if TYPE_CHECKING:
    from agent_workbench.subjects.inbox.calls import RepoInbox, WaitingSession

SUMMARIES = {
    Verdict.APPROVE: "approve a proposal exactly as `agent inbox show` printed it",
    Verdict.REJECT: "reject a proposal; the reason goes to the model",
    Verdict.SKIP: "continue without these checks, this command or this merge",
}


def configure(verb: argparse.ArgumentParser) -> None:
    """Add the flags of the verb, the verbs below it, and the function that runs it."""
    verb.set_defaults(execute=review)
    show_examples(
        verb,
        "agent inbox                       on a terminal: one after another",
        "agent inbox show T-3              prints the reference at its end",
        "agent inbox approve 20261127T103402-bbqdvx/P-5@5e1f0c...",
        'agent inbox reject REF --reason "keep the old name"',
    )
    below = verb.add_subparsers(title="verbs", metavar="VERB")
    for each in (verb, add_verb(below, "list", "list pending proposals, those of the highest risk first", list_all)):
        each.add_argument("--task", metavar="ID", default="", help="only proposals of this task")
        each.add_argument("--json", action="store_true", help="print the list as JSON")
    shown = add_verb(below, "show", "print a proposal in full, with the reference that a decision needs", show)
    shown.add_argument("id", metavar="ID", help="its id, its task, or the first or last letters of its session")
    shown.add_argument("--json", action="store_true", help="print it as JSON")
    for verdict, summary in SUMMARIES.items():
        each = add_verb(below, verdict, summary, decide)
        each.add_argument(
            "reference",
            metavar="REF",
            help="SESSION/P-14@DIGEST, as `agent inbox show` prints it; or its task: then it is shown first",
        )
        each.add_argument("--json", action="store_true", help="print the outcome as JSON")
        each.set_defaults(verdict=verdict, reason="", hunks="", special=False)
        if verdict is not Verdict.SKIP:
            each.add_argument("--reason", metavar="TEXT", default="", help="why, for the model")
        if verdict is Verdict.APPROVE:
            each.add_argument("--hunks", metavar="1,3", default="", help="approve only these hunks of a diff")
            each.add_argument(
                "--special",
                action="store_true",
                help="also approve changes of special files, and unusual commands of a plan",
            )


def review(options: argparse.Namespace) -> int:
    """Show what waits and ask about it, one proposal after another; without a terminal print the list."""
    if options.json or not on_terminal():
        return list_all(options)
    waiting = asyncio.run(_undecided(options.task))
    for number, (each, text) in enumerate(waiting, 1):
        say_document(text)
        letter, verdicts = _asked_letter(each, f"({number}/{len(waiting)}) {each.item.task}:")
        if letter == "q":
            break
        if letter in verdicts and each.item.reference is not None:
            _take(each.item, verdicts[letter], each.item.reference)
    if not waiting:
        say("nothing waits")
    return ExitCode.DONE


async def _undecided(task: str) -> "list[tuple[WaitingSession, str]]":
    """Return what waits for a decision, each with its text."""
    from agent_workbench.subjects.inbox.view import proposal_text

    async with _inbox() as inbox:
        found = [each for each in await inbox.waiting() if InboxFilter(task=task).selects(each.item)]
        left = [each for each in found if not each.item.decided]
        return [(each, proposal_text(each.item, each.state, inbox.now(), asked_below=True)) for each in left]


def _asked_letter(waiting: "WaitingSession", question: str) -> tuple[str, dict[str, Verdict]]:
    """Ask about a proposal that was shown; return the letter, and the decisions that have one."""
    from agent_workbench.views.gate.gate_bar import DECIDABLE, acts_for

    run, proposal = waiting.state.run, waiting.item.proposal
    acts = acts_for(proposal, asked=run is not None and run.compaction_asked)
    able = [Verdict(str(act)) for act in acts if act in DECIDABLE and waiting.item.reference is not None]
    told = {**{each[0]: f"{each} it" for each in able}, "n": "leave it, and show the next one", "q": "leave the rest"}
    return chosen_letter(question, told), {each[0]: each for each in able}


def _take(item: InboxItem, verdict: Verdict, reference: Reference) -> None:
    """Decide about what was shown; say why if it was decided or changed meanwhile."""
    proposal, reason = item.proposal, ""
    special = verdict is Verdict.APPROVE and bool(proposal.second_look)
    if special and not agrees(f"also {sanitize_line(', '.join(proposal.special))}?"):
        return
    if verdict is Verdict.REJECT:
        said = typed_line("why, for the model: ")
        if said is None:
            return
        reason = said
    try:
        say(asyncio.run(_put(reference, InboxChoice(verdict, reason, special=special)))[1])
    except WorkbenchError as error:
        say_error(error)


def list_all(options: argparse.Namespace) -> int:
    """Print a line for each pending proposal. Only `show` prints digests, because a decision needs a look."""
    return asyncio.run(_list(options))


async def _list(options: argparse.Namespace) -> int:
    from agent_workbench.subjects.inbox.view import refused_lines, row_document, view_inbox

    async with _inbox() as inbox:
        rows = view_inbox(await inbox.items(InboxFilter(task=options.task)), inbox.now())
    if options.json:
        say_json([row_document(row) for row in rows])
        return ExitCode.DONE
    if not rows:
        say("nothing waits")
    for row in rows:
        state = f"  ({row.state})" if row.state else ""
        source = f"  from {row.source}" if row.source else ""
        say(f"{row.id}  {row.risk:<6}  {row.age:>6}  {row.task}{source}  {row.kind}: {row.effect}{state}")
        for line in refused_lines(row.item):
            say(f"    {line}")
    return ExitCode.DONE


def show(options: argparse.Namespace) -> int:
    """Print a whole proposal with its reference at the end."""
    return asyncio.run(_show(options))


async def _show(options: argparse.Namespace) -> int:
    from agent_workbench.subjects.inbox.view import proposal_text, row_document, view_inbox

    async with _inbox() as inbox:
        waiting = await inbox.find(options.id)
    text = proposal_text(waiting.item, waiting.state, inbox.now())
    if options.json:
        (row,) = view_inbox([waiting.item], inbox.now())
        reference = waiting.item.reference
        say_json({**row_document(row), "text": text, "reference": str(reference) if reference is not None else None})
    else:
        say_document(text)
    return ExitCode.DONE


def decide(options: argparse.Namespace) -> int:
    """Put a decision into the inbox, and print if it is recorded already."""
    by_name = "@" not in options.reference and on_terminal() and not options.json
    shown = asyncio.run(_shown_reference(options.reference)) if by_name else None
    if shown is not None and not agrees(f"{options.verdict} it?"):
        say("nothing was decided")
        return ExitCode.PARKED
    reference = shown or parse_reference(options.reference)
    choice = InboxChoice(options.verdict, options.reason, _numbers(options.hunks), options.special)
    document, text = asyncio.run(_put(reference, choice))
    if options.json:
        say_json(document)
    else:
        say(text)
    return ExitCode.DONE


async def _shown_reference(name: str) -> Reference | None:
    """Show the proposal with this id or of this task, and return its reference, None for one that is too long."""
    from agent_workbench.subjects.inbox.view import proposal_text

    async with _inbox() as inbox:
        waiting = await inbox.find(name)
        say_document(proposal_text(waiting.item, waiting.state, inbox.now()))
    return waiting.item.reference


async def _put(reference: Reference, choice: InboxChoice) -> tuple[dict[str, object], str]:
    """Put a decision into the inbox; return what became of it as a document, and as text."""
    from agent_workbench.subjects.inbox.view import receipt_text

    async with _inbox() as inbox:
        receipt = await inbox.decide(reference, choice)
    written = ""
    if choice.verdict is Verdict.APPROVE and not receipt.recorded and not receipt.holder:
        from agent_workbench.api.sessions.offered_notes import settle_notes

        written = await settle_notes(Invocation(Path.cwd(), os.environ, {}), reference.session)
    said = {"reference": str(reference), "verdict": str(choice.verdict)}
    document = {**said, "recorded": receipt.recorded or bool(written), "holder": receipt.holder}
    return document, written or receipt_text(receipt)


def _inbox() -> "AbstractAsyncContextManager[RepoInbox]":
    from agent_workbench.subjects.inbox.calls import opened_inbox

    return opened_inbox(Invocation(Path.cwd(), os.environ, {}))


def _numbers(text: str) -> tuple[int, ...]:
    """Return the numbers in `1,3`; raise `UsageError` for anything else."""
    words = [word.strip() for word in text.split(",")] if text else []
    if not all(map(is_number, words)):
        raise UsageError(f"{text!r} does not list hunks", advice="use their numbers: --hunks 1,3")
    return tuple(dict.fromkeys(map(int, words)))
