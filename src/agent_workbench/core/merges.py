"""What a merge comes to before it is made."""

from dataclasses import dataclass

from agent_workbench.core.ids import CommitId
from agent_workbench.core.patch.values import FileChange


@dataclass(frozen=True, slots=True)
class MergeTarget:
    """The branch that is checked out (empty when HEAD is detached) and its commit; a merge is approved for these."""

    branch: str
    head: CommitId


@dataclass(frozen=True, slots=True)
class MergePreview:
    """A merge as it would be made into `target` now.

    `commits` are newest first, as short hash and title. `changes` are those of the branch's files, empty where the two
    cannot be merged. `obstacles` say in one sentence each why the merge would be refused.
    """

    target: MergeTarget
    commits: tuple[str, ...]
    changes: tuple[FileChange, ...]
    obstacles: tuple[str, ...]
