"""Preview of a merge."""

from msgspec import Struct

from agent_workbench.core.ids import CommitId
from agent_workbench.core.patch.values import FileChange


class MergeTarget(Struct, frozen=True):
    """The checked-out branch (empty when HEAD is detached) and its commit. A merge is approved for these."""

    branch: str
    head: CommitId


class MergePreview(Struct, frozen=True):
    """A merge into `target` as it would be made now.

    `commits` are newest first, as short hash and title. `changes` are those of the branch's files, empty if the two
    cannot be merged. `obstacles` are the reasons why the merge would be refused, one sentence each.
    """

    target: MergeTarget
    commits: tuple[str, ...]
    changes: tuple[FileChange, ...]
    obstacles: tuple[str, ...]
