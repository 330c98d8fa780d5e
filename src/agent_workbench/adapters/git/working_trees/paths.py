"""Paths of a task's worktree, and the record beside it that names its session, task and branch."""

from pathlib import Path

from msgspec import MsgspecError, Struct, json

from agent_workbench.adapters.git.refs import BRANCH_PREFIX
from agent_workbench.core.errors import WorkspaceError
from agent_workbench.core.ids import TaskId
from agent_workbench.system.atomic_files import make_directories, storage_error, write_atomically
from agent_workbench.system.folder_trees import read_regular

_MAX_RECORD_BYTES = 10_000_000


class WorktreeRecord(Struct, frozen=True):
    """Owner of a worktree.

    `ready` is set when its files are complete. `commits` are those that the workbench put, or was about to put, on its
    branch.
    """

    session: str
    task: str
    branch: str
    base: str
    ready: bool = False
    commits: tuple[str, ...] = ()


class WorktreePaths(Struct, frozen=True):
    """Paths of one branch below the repository's folder in the user's state folder."""

    tree: Path
    private: Path

    @property
    def scratch(self) -> Path:
        """Folder for temporary files, on the same disk as the worktree."""
        return self.private / "scratch"

    @property
    def pending(self) -> Path:
        """Folder of an unfinished write transaction."""
        return self.private / "pending"

    def record(self) -> WorktreeRecord | None:
        """Return the record, None if there is no valid one; raise `StorageError`."""
        try:
            return json.decode(read_regular(self.private / "note.json", _MAX_RECORD_BYTES), type=WorktreeRecord)
        except (FileNotFoundError, MsgspecError, ValueError, RecursionError):
            return None
        except OSError as error:
            raise storage_error(f"{self.private} cannot be read", error) from error

    def write_record(self, record: WorktreeRecord) -> None:
        """Replace the record, durably; raise `StorageError`."""
        try:
            make_directories(self.scratch)
        except OSError as error:
            raise storage_error(f"{self.private} cannot be created", error) from error
        write_atomically(self.private / "note.json", json.encode(record))


def worktree_paths(folder: Path, branch: str) -> WorktreePaths:
    """Return the paths of a branch of the workbench below the repository's `folder`."""
    if not branch.startswith(BRANCH_PREFIX):
        raise WorkspaceError(f"{branch} is not a branch of the workbench", advice="name one that begins with agent/")
    name = branch.replace("/", "-")
    return WorktreePaths(folder / name, folder / "private" / name)


def lock_path(folder: Path, task: TaskId) -> Path:
    """Return the path of a task's lock."""
    return folder / "locks" / f"{task}.lock"
