"""What must be settled before a session can start: shall the repo be set up, is it trusted."""

from agent_workbench.core.inert import inert_line
from agent_workbench.core.live import Question
from agent_workbench.core.ports import Clock
from agent_workbench.tui.screens.confirm import ConfirmScreen


class QuestionScreen(ConfirmScreen):
    """Shows a `Question` of the session; returns the answer."""

    def __init__(self, question: Question, clock: Clock) -> None:
        yes, no = inert_line(question.yes, 60), inert_line(question.no, 60)
        super().__init__(question.title, question.lines, clock, yes=yes, no=no, name="question")
