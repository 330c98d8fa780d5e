"""Files that a waiting diff or commit changes, before and after, for front ends that show whole files."""

from typing import TYPE_CHECKING

from agent_workbench.core.errors import PatchError, WorkspaceError
from agent_workbench.core.patch.application import apply_patch
from agent_workbench.core.patch.values import FileChange
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.state.session_state import SessionState

if TYPE_CHECKING:
    from agent_workbench.api.sessions.session_host import LocalSessionHost

MAX_FILES = 50
MAX_FILE_BYTES = 200_000


async def proposed_files(host: "LocalSessionHost", state: SessionState, proposal: Proposal) -> tuple[FileChange, ...]:
    """Return the changes of a diff to the task's approved content, or of a commit to its base.

    Nothing is returned for other proposals, for large ones, and where git no longer has the files: the diff shows it.
    """
    run = state.run
    shows_code = proposal.of_files and proposal.changes_code
    if run is None or not shows_code or len(proposal.paths) > MAX_FILES:
        return ()
    tree = run.tree if proposal.by_hunk else run.workspace.tree
    repo = await host.repo()
    try:
        patch = proposal.patch
        files = await repo.repository.recorded_files(tree)
        before = {path: await files.read(path) for path in patch.paths}
        if any(content is not None and len(content.data) > MAX_FILE_BYTES for content in before.values()):
            return ()
        return apply_patch(patch, before)
    except (PatchError, WorkspaceError):
        return ()
