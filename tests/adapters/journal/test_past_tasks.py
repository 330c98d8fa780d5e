"""Figures of done tasks, as the journals of a repository's sessions have them."""

from pathlib import Path

from msgspec.structs import replace

from agent_workbench.adapters.journal.session_list import past_figures
from agent_workbench.core.events import ActionFinished, ActionResult, ModelAnswered
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.task_estimates import Intent, TaskFigures
from tests.subjects.audit.sessions import session_name, task_events, write_session


def test_the_figures_are_those_of_done_tasks_the_newest_first(tmp_path: Path) -> None:
    assert past_figures(tmp_path) == ()
    started, answered, *rest = task_events("T-1", intent=Intent.CODE, dollars=0.5)
    assert isinstance(answered, ModelAnswered)
    slow = replace(answered, figures=replace(answered.figures, prompt_seconds=20.0, answer_seconds=10.0))
    ran = ActionFinished(ProposalId("P-1"), ActionResult.OK, "", 30.0)
    write_session(tmp_path, session_name(1), (started, slow, slow, ran, *rest))
    write_session(tmp_path, session_name(2), task_events("T-2", TaskStatus.FAILED, intent=Intent.CODE))
    write_session(tmp_path, session_name(3), task_events("T-3"))
    assert past_figures(tmp_path) == (
        TaskFigures(0, 110, 0.0, 0.0),
        TaskFigures(0, 220, 1.5, 1.0, Intent.CODE),
    )


def test_a_damaged_line_is_left_out(tmp_path: Path) -> None:
    journal = write_session(tmp_path, session_name(1), task_events("T-1"))
    path = tmp_path / session_name(1) / "journal.jsonl"
    path.write_bytes(journal.replace(b'"model_answered"', b'"model_answered'))
    assert [each.tokens for each in past_figures(tmp_path)] == [0]
