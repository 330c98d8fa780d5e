"""Port `PastSessions`: what screens do with recorded sessions, and the comparison of two."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from agent_workbench.api.proofs import prove_session
from agent_workbench.api.session_export import ExportFormat, keep_picture, write_export
from agent_workbench.api.session_fork import foresee_fork, fork_session
from agent_workbench.api.session_queries import exported_events, files_between, session_summaries
from agent_workbench.api.trusted_repo import redactor_of, trusted_repo
from agent_workbench.core.errors import UsageError, WorkspaceError
from agent_workbench.core.extras import needed_subject
from agent_workbench.core.history.summaries import SessionSummary
from agent_workbench.core.ids import SessionId
from agent_workbench.core.session_request import Invocation

if TYPE_CHECKING:
    from agent_workbench.bootstrap.repo_context import RepoContext
    from agent_workbench.core.history.audit_records import AnyPage, AnyQuery
    from agent_workbench.core.history.comparison import Comparison
    from agent_workbench.core.history.journal_proof import JournalProof


class RepoSessions:
    """Port `core.history.summaries.PastSessions` of the repository in which the command was started."""

    def __init__(self, invocation: Invocation) -> None:
        self._invocation = invocation

    async def summaries(self) -> Sequence[SessionSummary]:
        """Return all sessions, newest first."""
        return await session_summaries(self._invocation)

    async def verify(self, session: SessionId) -> "JournalProof":
        """Return what the session's journal and the repository prove."""
        return await prove_session(self._invocation, session)

    async def foresee_fork(self, session: SessionId, at: int | None) -> tuple[str, ...]:
        """Return the state that a fork would continue from, line by line."""
        return await foresee_fork(self._invocation, session, at)

    async def fork(self, session: SessionId, at: int | None) -> SessionId:
        """Fork the session; return the name of the new one."""
        child, _ = await fork_session(self._invocation, session, at)
        return child

    async def export(self, session: SessionId) -> str:
        """Write the session as markdown into a new file; return the file's name."""
        path = Path(f"session-{session}.md")
        await write_export(self._invocation, session, ExportFormat.MARKDOWN, self._invocation.folder / path)
        return str(path)

    async def compare(self, first: SessionId, second: SessionId) -> "Comparison":
        """Return two sessions side by side."""
        return await compare_sessions(self._invocation, first, second)

    async def audit(self, query: "AnyQuery") -> "AnyPage":
        """Return the page that answers a query."""
        with needed_subject():
            from agent_workbench.subjects.audit.calls import audit_answer

        return await audit_answer(self._invocation, query)

    async def keep_picture(self, session: SessionId, seq: int, picture: str) -> str:
        """Write the picture into a new file; return the file's name."""
        return await keep_picture(self._invocation.folder, f"session-{session}-{max(0, seq)}", picture)


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
