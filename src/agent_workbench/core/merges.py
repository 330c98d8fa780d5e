"""What a merge comes to before it is made."""

from msgspec import Struct

from agent_workbench.core.ids import CommitId
from agent_workbench.core.patch.values import FileChange


class MergeTarget(Struct, frozen=True):
    """The branch that is checked out (empty when HEAD is detached) and its commit; a merge is approved for these."""

    branch: str
    head: CommitId


class MergePreview(Struct, frozen=True):
    """A merge as it would be made into `target` now.

    `commits` are newest first, as short hash and title. `changes` are those of the branch's files, empty where the two
    cannot be merged. `obstacles` say in one sentence each why the merge would be refused.
    """

    target: MergeTarget
    commits: tuple[str, ...]
    changes: tuple[FileChange, ...]
    obstacles: tuple[str, ...]
