"""What a merge comes to before it is made."""

from dataclasses import dataclass

from agent_workbench.core.patch.values import FileChange


@dataclass(frozen=True, slots=True)
class MergeBrings:
    """What a merge would bring: its commits, newest first, as short hash and title; how files of the branch change."""

    commits: tuple[str, ...]
    changes: tuple[FileChange, ...]
