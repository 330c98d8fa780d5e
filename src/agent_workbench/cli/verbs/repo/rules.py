"""`agent rules`: list the approval rules in force, and revoke one."""

import argparse
import asyncio
import os
from pathlib import Path

from msgspec import to_builtins

from agent_workbench.cli.options import add_verb
from agent_workbench.cli.output import say, say_aside, say_json
from agent_workbench.core.errors import ExitCode
from agent_workbench.core.invocation import Invocation
from agent_workbench.core.rules.rule_text import rule_words
from agent_workbench.core.rules.stored_rules import RULE_SCOPE_LABELS


def configure(verb: argparse.ArgumentParser) -> None:
    """Add the flags of the verb, the verbs below it, and the function that runs it."""
    verb.set_defaults(execute=list_all)
    verb.add_argument("--json", action="store_true", help="a line of JSON for each")
    below = verb.add_subparsers(title="verbs", metavar="VERB")
    each = add_verb(below, "revoke", "delete a rule from the file that holds it", revoke)
    each.add_argument("number", type=int, help="its number in the list")


def list_all(options: argparse.Namespace) -> int:
    """Print a line for each rule, with its number and its scope."""
    from agent_workbench.api.approval_rules import list_rules

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
    from agent_workbench.api.approval_rules import revoke_rule

    gone = asyncio.run(revoke_rule(_invocation(), options.number, say_aside))
    say(
        f"revoked: {rule_words(gone.rule)}  ({RULE_SCOPE_LABELS[gone.kept]}); "
        "sessions that are open keep it until they end"
    )
    return ExitCode.DONE


def _invocation() -> Invocation:
    return Invocation(Path.cwd(), os.environ, {})
