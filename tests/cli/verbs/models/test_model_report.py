from agent_workbench.core.diagnostics import Fitness, ModelReport, QuestionKind, TrialAnswer
from agent_workbench.core.model import AnswerFigures, ModelFacts, Purpose
from agent_workbench.subjects.models.verb import report_lines


def test_what_a_model_said_cannot_spoil_the_table() -> None:
    why = "write_diff --- a/x\n+++ b/x\x1b[31m in place of finish" + "x" * 500
    asked = TrialAnswer("finish", QuestionKind.CALL, True, True, True, False, why, "", "", 1.0, 0.5, AnswerFigures())
    report = ModelReport(ModelFacts("here", "m", 100), (asked,))
    lines = list(report_lines(report, [Fitness(Purpose.PLANNER, fit=False, because=why)]))
    assert all("\n" not in line and "\x1b" not in line and len(line) < 300 for line in lines)
    assert sum("+++ b/x" in line for line in lines) == 2
