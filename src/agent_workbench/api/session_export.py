"""Export of a recorded session as markdown or JSON, and new files that overwrite nothing."""

import asyncio
import json
from collections.abc import AsyncIterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from agent_workbench.api.session_queries import exported_events, files_between
from agent_workbench.api.trusted_repo import trusted_repo
from agent_workbench.core.errors import StorageError
from agent_workbench.core.session_request import Invocation

if TYPE_CHECKING:  # loaded when they are needed
    from agent_workbench.bootstrap.repo_context import RepoContext
    from agent_workbench.core.state.session_state import SessionState
    from agent_workbench.views.reports.task_report import TaskReport

MOST_PICTURES = 100


class ExportFormat(StrEnum):
    """Formats of a document about a session."""

    MARKDOWN = "markdown"
    JSON = "json"


async def export_session(invocation: Invocation, session: str, form: ExportFormat, task: str = "") -> str:
    """Return a session as one document, the Markdown about one `task` if named; raise `UsageError`, `JournalError`."""
    from agent_workbench.core.fold import fold_all
    from agent_workbench.subjects.forge.view import pull_request
    from agent_workbench.views.reports.json_documents import session_document

    events = await exported_events(invocation, session, whole=form is ExportFormat.JSON)
    state = fold_all(events)
    repo, _ = await trusted_repo(invocation)
    accounts = [each async for each in _accounts(repo, state)]
    if form is ExportFormat.MARKDOWN:
        return pull_request(state, [each for each in accounts if task in {"", each.run.task}])
    return json.dumps(session_document(state, events, accounts), ensure_ascii=True, indent=1) + "\n"


async def write_export(invocation: Invocation, session: str, form: ExportFormat, path: Path) -> None:
    """Write a session into a new file; raises what `export_session` and `write_new` do."""
    await write_new(path, await export_session(invocation, session, form))


async def write_new(path: Path, document: str) -> None:
    """Write a document into a new file; raise `StorageError` if it exists or cannot be written."""
    from agent_workbench.system.atomic_files import FileChanged, write_atomically

    try:
        await asyncio.to_thread(write_atomically, path, document.encode(), None)
    except FileChanged as error:
        raise StorageError(f"{path} is there already", advice="move it away, or say another name") from error


async def keep_picture(folder: Path, name: str, picture: str) -> str:
    """Write an SVG into a new file of `folder`, `name` with a number if needed; return the file's name."""
    for number in range(1, MOST_PICTURES + 1):
        file = f"{name}.svg" if number == 1 else f"{name}-{number}.svg"
        if not await asyncio.to_thread((folder / file).exists):
            await write_new(folder / file, picture)
            return file
    raise StorageError(f"there are {MOST_PICTURES} pictures of this moment already", advice="move them away")


async def _accounts(repo: "RepoContext", state: "SessionState") -> "AsyncIterator[TaskReport]":
    from agent_workbench.views.reports.task_report import task_report

    commits = repo.repository.stored_commits()
    for run in state.runs:
        merged_into = await commits.holder(run.commit) if run.commit else ""
        yield task_report(run, await files_between(repo, run.workspace.base, run.tree), merged_into)
