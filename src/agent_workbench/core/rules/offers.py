"""Offered rules: those that would allow a waiting proposal from now on."""

from typing import assert_never

from agent_workbench.core.patch.globs import literal_glob
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.rules.matching import EVERY_FILE, rule_allows, source_tool
from agent_workbench.core.settings import Permission, Rule


def offered_rules(proposal: Proposal) -> tuple[Rule, ...]:
    """Return the rules that would allow this proposal, narrowest first; none if a person must decide."""
    return tuple(dict.fromkeys(rule for rule in _candidates(proposal) if rule_allows(rule, proposal)))


def is_wide(rule: Rule) -> bool:
    """Return True if a rule allows more than anyone can foresee."""
    return bool(rule.program) or EVERY_FILE in rule.paths


def _candidates(proposal: Proposal) -> tuple[Rule, ...]:
    kind = proposal.kind
    match kind:
        case Permission.READ:
            return (Rule(kind, tool=proposal.tool),)
        case Permission.DIFF:
            exactly = tuple(map(literal_glob, proposal.paths))
            folders = tuple(dict.fromkeys(map(_folder, proposal.paths)))
            return Rule(kind, paths=exactly), Rule(kind, paths=folders), Rule(kind, paths=(EVERY_FILE,))
        case Permission.CHECK:
            return Rule(kind, commands=proposal.commands), Rule(kind, any=True)
        case Permission.COMMAND:
            first = proposal.text.split(" ", 1)[0]
            return Rule(kind, commands=(proposal.text,)), Rule(kind, program=first)
        case Permission.COMMIT | Permission.SUMMARY | Permission.FINISH | Permission.KNOWLEDGE:
            return (Rule(kind, any=True),)
        case Permission.MERGE | Permission.INFRASTRUCTURE:
            return ()
        case Permission.PLAN | Permission.SCRIPT | Permission.EXTERNAL:
            return (Rule(kind, tool=source_tool(proposal)),)
    assert_never(kind)


def _folder(path: str) -> str:
    """Return the glob of a file's folder; the file itself if it is at the top."""
    above = path.rpartition("/")[0]
    return f"{literal_glob(above)}/**" if above else literal_glob(path)
