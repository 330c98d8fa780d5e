"""`agent rules`: list the approval rules in force, revoke one, check a policy, and explain what it would pass."""

import argparse
import asyncio
import os
from pathlib import Path

from msgspec import to_builtins

from agent_workbench.cli.options import add_verb, whole_number
from agent_workbench.cli.output import say, say_aside, say_json
from agent_workbench.core.approval_rules import RULE_SCOPE_LABELS, rule_words
from agent_workbench.core.errors import ExitCode
from agent_workbench.core.session_request import Invocation


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
    from agent_workbench.views.reports.policy_trial import trial_document, trial_text

    trial = asyncio.run(explain_task(_invocation(options.policy), options.task))
    if options.json:
        say_json(trial_document(trial))
    else:
        say(trial_text(trial))
    return ExitCode.DONE


def _invocation(policy: Path | None = None) -> Invocation:
    return Invocation(Path.cwd(), os.environ, {}, policy=policy)
