"""A piece of the plan's text while it is edited."""

from dataclasses import dataclass

from agent_workbench.core.ids import TaskId


@dataclass(frozen=True, slots=True)
class PlanPiece:
    """`text` is to be edited and takes the place of `whole[start:end]`; `whole` is the file as it was read.

    `first_line` is the number in the file of its first line, `at_line` the one to begin at. `task` is the one it
    spells (None: it is the whole plan), `new` says that the plan does not have it yet.
    """

    path: str
    whole: str
    start: int
    end: int
    text: str
    first_line: int = 1
    at_line: int = 1
    task: TaskId | None = None
    new: bool = False

    def whole_with(self, text: str) -> str:
        """Return the whole plan with `text` in the place of the piece; what follows it begins on a line of its own."""
        rest = self.whole[self.end :]
        joint = "\n" if rest and text and not text.endswith("\n") else ""
        return self.whole[: self.start] + text + joint + rest
