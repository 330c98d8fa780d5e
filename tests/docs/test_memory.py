"""The project's own plan and its recorded sample session are what the product reads."""

from agent_workbench.adapters.journal.reader import read_journal, verify_journal
from agent_workbench.adapters.plans.plan_file import PlanFile
from agent_workbench.config.yaml_file import compose_text
from agent_workbench.core.fold import fold_all
from agent_workbench.core.ids import session_id
from agent_workbench.core.plan import TaskStatus, check_plan
from tests.architecture.source_tree import ROOT

SESSIONS = ROOT / "memory" / "sessions"


async def test_the_plan_reads_and_holds() -> None:
    plan = await PlanFile(ROOT, "memory/plans/PLAN.yaml", compose_text).read()
    assert check_plan(plan) == ()
    assert {task.status for task in plan.tasks} == {TaskStatus.DONE, TaskStatus.PENDING}
    assert all(task.accept_tests for task in plan.tasks if task.status is TaskStatus.DONE)


def test_the_sample_session_proves_itself_and_tells_the_whole_demo() -> None:
    (kept,) = [line for line in (SESSIONS.parent / ".gitignore").read_text().splitlines() if line.startswith("!")]
    sample = SESSIONS / session_id(kept.removeprefix("!/sessions/").rstrip("/"))
    report = verify_journal(sample)
    assert report.problems == ()
    state = fold_all(read_journal(sample).events)
    runs = (*state.past, *filter(None, [state.run]))
    assert [(run.task, run.status, run.reflexions) for run in runs] == [
        ("T-1", TaskStatus.DONE, 1),
        ("T-2", TaskStatus.DONE, 0),
    ]
    assert all(run.commit for run in runs)
