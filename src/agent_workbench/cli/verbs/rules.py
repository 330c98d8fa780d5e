"""`agent rules`: list the approval rules in force, revoke one, check a policy, and show what it would pass."""

import argparse
import asyncio
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import to_builtins

from agent_workbench.cli.options import add_verb, whole_number
from agent_workbench.cli.output import say, say_aside, say_json
from agent_workbench.core.approval_rules import RULE_SCOPE_LABELS, rule_words
from agent_workbench.core.errors import ExitCode
from agent_workbench.core.history.past_actions import PolicyTrial, TriedProposal
from agent_workbench.core.plan import TaskOrigin
from agent_workbench.core.session_request import Invocation
from agent_workbench.core.text.amounts import counted_text
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.views.gate.proposal_views import describe

SUBJECT_CHARS = 60
FATES = ("pass", "refuse", "park")


def configure(verb: argparse.ArgumentParser) -> None:
    """Add the flags of the verb, the verbs below it, and the function that runs it."""
    verb.set_defaults(execute=list_all)
    verb.add_argument("--json", action="store_true", help="a line of JSON for each")
    below = verb.add_subparsers(title="verbs", metavar="VERB")
    each = add_verb(below, "revoke", "delete a rule from the file that holds it", revoke)
    each.add_argument("number", type=whole_number(1), help="its number in the list")
    each = add_verb(below, "check", "check the file of a policy", check)
    each.add_argument("policy", metavar="POLICY", type=Path, help="the file")
    each = add_verb(below, "explain", "show what a policy would pass and park of a task", explain)
    each.add_argument("task", metavar="TASK", help="a task of the plan or the queue, or a queue file")
    each.add_argument("--policy", metavar="FILE", type=Path, help="the policy (default: the repository's approvals)")
    each.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="one JSON document")


def list_all(options: argparse.Namespace) -> int:
    """Print a line for each rule, with its number and its scope."""
    from agent_workbench.api.approvals import list_rules

    rules = asyncio.run(list_rules(_invocation(), say_aside))
    for number, each in enumerate(rules, 1):
        if options.json:
            said = {name: value for name, value in to_builtins(each.rule).items() if value}
            say_json({"number": number, "kept": each.kept, "words": rule_words(each.rule), "rule": said})
        else:
            say(f"{number:>3}  {rule_words(each.rule)}  ({RULE_SCOPE_LABELS[each.kept]})")
    if not rules and not options.json:
        say("there is no rule; in `agent tui`, A at the gate makes one")
    return ExitCode.DONE


def revoke(options: argparse.Namespace) -> int:
    """Revoke one rule and print it."""
    from agent_workbench.api.approvals import revoke_rule

    gone = asyncio.run(revoke_rule(_invocation(), options.number, say_aside))
    say(
        f"revoked: {rule_words(gone.rule)}  ({RULE_SCOPE_LABELS[gone.kept]}); "
        "sessions that are open keep it until they end"
    )
    return ExitCode.DONE


def check(options: argparse.Namespace) -> int:
    """Print the settings of a policy; a faulty one is an error with file, line and what was expected."""
    from agent_workbench.api.approvals import check_policy

    lines = asyncio.run(check_policy(options.policy))
    say("\n".join(lines) or "the policy is empty: the settings of the repository count")
    return ExitCode.DONE


def explain(options: argparse.Namespace) -> int:
    """Print what the policy would pass, refuse and park of a task, tried on recorded sessions."""
    from agent_workbench.api.approvals import explain_task

    trial = asyncio.run(explain_task(_invocation(options.policy), options.task))
    if options.json:
        say_json(trial_document(trial))
    else:
        say(trial_text(trial))
    return ExitCode.DONE


def _invocation(policy: Path | None = None) -> Invocation:
    return Invocation(Path.cwd(), os.environ, {}, policy=policy)


def trial_text(trial: PolicyTrial) -> str:
    """Return the trial as lines for a person."""
    return "\n".join(_lines(trial))


def trial_document(trial: PolicyTrial) -> dict[str, object]:
    """Return the trial as a JSON document."""
    return {
        "task": trial.task.id,
        "origin": trial.task.origin.value,
        "sandbox": trial.sandbox.holds,
        "checks": _entry(trial.checks) if trial.checks is not None else None,
        "similar": trial.similar,
        "sessions": [
            {"session": each.session, "tasks": list(each.tasks), "proposals": [_entry(one) for one in each.tried]}
            for each in trial.sessions
        ],
    }


def _entry(tried: TriedProposal) -> dict[str, object]:
    proposal = tried.proposal
    kind, subject, _ = describe(proposal)
    return {
        "id": proposal.id,
        "kind": proposal.kind.value,
        "about": f"{kind} {subject}".strip(),
        "fate": tried.fate,
        "why": tried.why,
    }


def _lines(trial: PolicyTrial) -> Iterator[str]:
    task = trial.task
    whose = "" if task.origin is TaskOrigin.LOCAL else f", not your own ({task.origin})"
    yield sanitize_line(f"{task.id}{whose}: {task.description}", 200)
    yield "a sandbox confines commands" if trial.sandbox.holds else f"no sandbox holds: {trial.sandbox.why}"
    if trial.checks is not None:
        yield "\nits checks:"
        yield from _rows((trial.checks,))
    if not trial.sessions:
        yield "\nno session is recorded that the policy could be tried on"
        return
    of = f"tasks similar to {task.id}" if trial.similar else task.id
    yield f"\ntried on {counted_text(len(trial.sessions), 'recorded session')} of {of}:"
    for each in trial.sessions:
        yield f"\n{each.session} ({', '.join(each.tasks)})"
        yield from _rows(each.tried)
    fates = Counter(one.fate for each in trial.sessions for one in each.tried)
    yield "\n" + ", ".join(f"{fates[fate]} {fate}" for fate in FATES)


def _rows(tried: Iterable[TriedProposal]) -> Iterator[str]:
    """Yield a row for each kind of decision, in the order of the first; equal ones are counted."""
    rows = Counter((each.fate, *describe(each.proposal)[:2], each.why) for each in tried)
    for (fate, kind, subject, why), count in rows.items():
        times = f" ({count} times)" if count > 1 else ""
        yield f"  {fate:<6}  {kind}  {sanitize_line(subject, SUBJECT_CHARS)}{times}: {sanitize_line(why, 200)}"
