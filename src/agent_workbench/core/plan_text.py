"""A piece of the plan's text while it is edited."""

from msgspec import Struct

from agent_workbench.core.ids import TaskId


class PlanPiece(Struct, frozen=True):
    """A part of the plan's file for editing: `text` replaces `whole[start:end]`, `whole` is the file as read.

    `first_line` is the file's line number of its first line, `at_line` the line to start at. `task` is the task it
    spells (None: the whole plan). `new`: the plan does not have this task yet.
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
        """Return the whole file with `text` in place of the piece; what follows stays on a line of its own."""
        head, rest = self.whole[: self.end], self.whole[self.end :]
        newline = "\r\n" if "\r\n" in self.whole else "\n"
        parted = head.endswith("\n") and rest and text and not text.endswith("\n")
        return self.whole[: self.start] + text + (newline if parted else "") + rest
