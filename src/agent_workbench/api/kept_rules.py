"""Calls about the rules that let proposals through."""

import asyncio
from typing import TYPE_CHECKING

from agent_workbench.api.repo_context import told_site
from agent_workbench.bootstrap import Say
from agent_workbench.bootstrap.rule_book import repo_rules
from agent_workbench.core.errors import UsageError
from agent_workbench.core.invocation import Place
from agent_workbench.core.rules.matching import RuleScope, StoredRule

if TYPE_CHECKING:  # loaded by the calls that need it
    from agent_workbench.core.ports.services import RuleStore


async def rules_kept(place: Place, say: Say) -> tuple[StoredRule, ...]:
    """Return the rules that count at the beginning of a session here; say where the repo's own do not."""
    return (await _found(place, say))[1]


async def revoke_rule(place: Place, number: int, say: Say) -> StoredRule:
    """Take the rule with this number (from 1, as `rules_kept` has them) out of its file, and return it.

    Raises `UsageError` where there is none, `TrustError`, `ConfigError`.
    """
    rules, found = await _found(place, say)
    if not 1 <= number <= len(found):
        known = f"rules are numbered 1 to {len(found)}" if found else "there is no rule"
        raise UsageError(f"there is no rule {number}; {known}", advice="`agent rules` lists them")
    await rules.revoke(found[number - 1])
    return found[number - 1]


async def _found(place: Place, say: Say) -> "tuple[RuleStore, tuple[StoredRule, ...]]":
    site, settings = await told_site(place, say)
    rules = repo_rules(site.root, place, await asyncio.to_thread(site.sessions_dir, settings))
    own = await rules.kept()
    return rules, (*(StoredRule(rule, RuleScope.REPO) for rule in settings.approvals.rules), *own)
