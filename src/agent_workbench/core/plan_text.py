"""A piece of the plan's text while it is edited."""

from msgspec import Struct

from agent_workbench.core.ids import TaskId


class PlanPiece(Struct, frozen=True):
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
        """Return the whole plan with `text` for the piece; what follows begins on a line of its own if it did."""
        head, rest = self.whole[: self.end], self.whole[self.end :]
        newline = "\r\n" if "\r\n" in self.whole else "\n"
        parted = head.endswith("\n") and rest and text and not text.endswith("\n")
        return self.whole[: self.start] + text + (newline if parted else "") + rest
