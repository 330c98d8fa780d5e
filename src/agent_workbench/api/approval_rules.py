"""Approval rules of a repo: list and revoke."""

import asyncio
from typing import TYPE_CHECKING

from agent_workbench.api.repo_context import told_site
from agent_workbench.bootstrap import Say
from agent_workbench.bootstrap.rule_store import rule_store
from agent_workbench.core.errors import UsageError
from agent_workbench.core.invocation import Place
from agent_workbench.core.rules.stored_rules import RuleScope, StoredRule

if TYPE_CHECKING:  # loaded by the calls that need it
    from agent_workbench.core.ports.services import RuleStore


async def list_rules(place: Place, say: Say) -> tuple[StoredRule, ...]:
    """Return the rules in force at the start of a session here; tell the user if the repo's own are not trusted."""
    return (await _found(place, say))[1]


async def revoke_rule(place: Place, number: int, say: Say) -> StoredRule:
    """Revoke the rule with this number (from 1, in the order of `list_rules`), and return it.

    Raises `UsageError` if there is none, `TrustError`, `ConfigError`.
    """
    rules, found = await _found(place, say)
    if not 1 <= number <= len(found):
        known = f"rules are numbered 1 to {len(found)}" if found else "there is no rule"
        raise UsageError(f"there is no rule {number}; {known}", advice="`agent rules` lists them")
    await rules.revoke(found[number - 1])
    return found[number - 1]


async def _found(place: Place, say: Say) -> "tuple[RuleStore, tuple[StoredRule, ...]]":
    site, settings = await told_site(place, say)
    rules = rule_store(site.root, place, await asyncio.to_thread(site.sessions_dir, settings))
    own = await rules.kept()
    return rules, (*(StoredRule(rule, RuleScope.REPO) for rule in settings.approvals.rules), *own)
