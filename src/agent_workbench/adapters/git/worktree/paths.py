"""Where a task's worktree lies, and the short note beside it that says whose it is."""

import json
from pathlib import Path

from msgspec import Struct, to_builtins

from agent_workbench.core.errors import WorkspaceError
from agent_workbench.core.ids import TaskId
from agent_workbench.system.atomic_files import make_directories, storage_error, write_atomically
from agent_workbench.system.regular_files import read_regular

BRANCH_PREFIX = "agent/"
_MOST_NOTE_BYTES = 10_000_000


class Note(Struct, frozen=True):
    """Whose worktree it is.

    `ready` once its files are complete; `commits` are what we put, or were about to put, on its branch.
    """

    session: str
    task: str
    branch: str
    base: str
    ready: bool = False
    commits: tuple[str, ...] = ()


class Site(Struct, frozen=True):
    """The places of one branch below the repository's folder in the user's state."""

    tree: Path
    private: Path

    @property
    def scratch(self) -> Path:
        """A folder for what is only needed for a moment, on the same disk as the worktree."""
        return self.private / "scratch"

    @property
    def pending(self) -> Path:
        """The folder of a write that is under way."""
        return self.private / "pending"

    def note(self) -> Note | None:
        """Return what the note says; None when there is none that can be read."""
        try:
            read = json.loads(read_regular(self.private / "note.json", _MOST_NOTE_BYTES))
            return Note(**{**read, "commits": tuple(read["commits"])})
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, KeyError):
            return None
        except OSError as error:
            raise storage_error(f"{self.private} cannot be read", error) from error

    def write_note(self, note: Note) -> None:
        """Replace the note, durably; raise `StorageError`."""
        try:
            make_directories(self.scratch)
        except OSError as error:
            raise storage_error(f"{self.private} cannot be made", error) from error
        write_atomically(self.private / "note.json", json.dumps(to_builtins(note)).encode())


def site_of(folder: Path, branch: str) -> Site:
    """Return the places for a branch of ours below the repository's `folder`."""
    if not branch.startswith(BRANCH_PREFIX):
        raise WorkspaceError(f"{branch} is not a branch of the workbench", advice="they begin with agent/")
    name = branch.replace("/", "-")
    return Site(folder / name, folder / "private" / name)


def lock_path(folder: Path, task: TaskId) -> Path:
    """Return where the lock of a task is."""
    return folder / "locks" / f"{task}.lock"
