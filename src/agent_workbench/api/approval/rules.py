"""Approval rules of a repo: list and revoke."""

import asyncio
from typing import TYPE_CHECKING

from agent_workbench.api.trusted_repo import repo_or_folder
from agent_workbench.bootstrap.repo_context import Say
from agent_workbench.bootstrap.stores import rule_store
from agent_workbench.core.errors import UsageError
from agent_workbench.core.invocation import Invocation
from agent_workbench.core.rules.matching import RuleScope, StoredRule

if TYPE_CHECKING:  # loaded by the calls that need it
    from agent_workbench.core.ports.repo_files import RuleStore


async def list_rules(invocation: Invocation, say: Say) -> tuple[StoredRule, ...]:
    """Return the rules in force at the start of a session here; tell the user if the repo's own are not trusted."""
    return (await _found(invocation, say))[1]


async def revoke_rule(invocation: Invocation, number: int, say: Say) -> StoredRule:
    """Revoke the rule with this number (from 1, in the order of `list_rules`), and return it.

    Raises `UsageError` if there is none, `TrustError`, `ConfigError`.
    """
    rules, found = await _found(invocation, say)
    if not 1 <= number <= len(found):
        known = f"rules are numbered 1 to {len(found)}" if found else "there is no rule"
        raise UsageError(f"there is no rule {number}; {known}", advice="`agent rules` lists them")
    await rules.revoke(found[number - 1])
    return found[number - 1]


async def _found(invocation: Invocation, say: Say) -> "tuple[RuleStore, tuple[StoredRule, ...]]":
    repo, settings = await repo_or_folder(invocation, say)
    rules = rule_store(repo.root, invocation, await asyncio.to_thread(repo.sessions_dir, settings))
    own = await rules.kept()
    return rules, (*(StoredRule(rule, RuleScope.REPO) for rule in settings.approvals.rules), *own)
