"""Comparison of two recorded sessions: figures, files, and the step at which they part."""

import asyncio
from typing import TYPE_CHECKING

from msgspec.structs import replace

from agent_workbench.api.records.session_queries import exported_events, files_between
from agent_workbench.api.trusted_repo import redactor_of, trusted_repo
from agent_workbench.core.errors import UsageError, WorkspaceError
from agent_workbench.core.invocation import Invocation

if TYPE_CHECKING:  # loaded when they are needed
    from agent_workbench.bootstrap.repo_context import RepoContext
    from agent_workbench.core.history.comparison import Comparison


async def compare_sessions(invocation: Invocation, session: str, other: str) -> "Comparison":
    """Return two sessions of the repo side by side; their first or last letters name them.

    Raises `UsageError` if one does not exist or both are the same, `JournalError`.
    """
    from agent_workbench.core.history.comparison import compare

    first, second = await exported_events(invocation, session), await exported_events(invocation, other)
    comparison = await asyncio.to_thread(compare, first, second)
    if comparison.first.session == comparison.second.session:
        raise UsageError("a session is compared with another one", advice="`agent sessions` lists them")
    repo, settings = await trusted_repo(invocation)
    found = await _with_files(repo, comparison)
    return replace(found, diff=found.diff and redactor_of(repo.invocation, settings).redact(found.diff))


async def _with_files(repo: "RepoContext", comparison: "Comparison") -> "Comparison":
    from agent_workbench.core.patch.diff_text import render_changes

    first, second = comparison.first, comparison.second
    found = replace(
        comparison,
        first=replace(first, files=await files_between(repo, first.base, first.tree)),
        second=replace(second, files=await files_between(repo, second.base, second.tree)),
    )
    if not (first.tree and second.tree):
        return found
    try:
        between = await repo.repository.diff_stat(first.tree, second.tree)
        changes = await repo.repository.changes_between(first.tree, second.tree)
    except WorkspaceError:
        return found  # a session from elsewhere, or its objects were pruned
    return replace(found, between=between, diff=await asyncio.to_thread(render_changes, changes))
