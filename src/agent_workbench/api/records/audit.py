"""Answers of the audit over all sessions of a repository: ends of tasks, decisions and costs."""

import asyncio
from typing import TYPE_CHECKING

from agent_workbench.api.trusted_repo import trusted_repo
from agent_workbench.core.invocation import Invocation

if TYPE_CHECKING:  # loaded when a question is asked
    from agent_workbench.core.history.audit_records import (
        AuditPage,
        AuditQuery,
        CostPage,
        CostQuery,
        DecisionPage,
        DecisionQuery,
    )
    from agent_workbench.core.ports.audit_index import AuditIndex


async def audit_entries(invocation: Invocation, query: "AuditQuery") -> "AuditPage":
    """Return the ends of tasks that fit; raise `UsageError` for a query outside of the bounds."""
    return await (await _index(invocation)).query(query, _now())


async def audit_decisions(invocation: Invocation, query: "DecisionQuery") -> "DecisionPage":
    """Return the decisions that fit; raise `UsageError` for a query outside of the bounds."""
    return await (await _index(invocation)).decisions(query, _now())


async def audit_costs(invocation: Invocation, query: "CostQuery") -> "CostPage":
    """Return sums of the costs that fit; raise `UsageError` for a query outside of the bounds."""
    return await (await _index(invocation)).costs(query, _now())


async def _index(invocation: Invocation) -> "AuditIndex":
    from agent_workbench.bootstrap.stores import audit_index

    repo, settings = await trusted_repo(invocation)
    return await asyncio.to_thread(lambda: audit_index(repo.root, repo.local_sessions(settings).audit_source()))


def _now() -> str:
    from agent_workbench.bootstrap.stores import system_clock

    return system_clock().now()
