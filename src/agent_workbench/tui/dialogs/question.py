"""What must be settled before a session can start: shall the repo be set up, is it trusted."""

from agent_workbench.core.live import PreflightQuestion
from agent_workbench.core.ports.services import Clock
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.tui.dialogs.confirm import ConfirmScreen


class QuestionScreen(ConfirmScreen):
    """Shows a `PreflightQuestion` of the session; returns the answer."""

    def __init__(self, question: PreflightQuestion, clock: Clock) -> None:
        yes, no = sanitize_line(question.yes, 60), sanitize_line(question.no, 60)
        super().__init__(question.title, question.lines, clock, yes=yes, no=no, name="question")
