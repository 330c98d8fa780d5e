from agent_workbench.core.ids import CommitId
from agent_workbench.core.repo.workspace import RepoFacts
from agent_workbench.engine.task.task_start import uncommitted_paths


def _facts(*dirty: str) -> RepoFacts:
    return RepoFacts("/repo", "/repo/.git", "/repo/.git", CommitId("0" * 40), "main", dirty)


def test_what_the_workbench_writes_into_the_plan_is_no_change_of_the_users() -> None:
    assert uncommitted_paths(_facts(".agent.yml", "memory/plans/PLAN.yaml"), "memory") == ""
    assert uncommitted_paths(_facts("a.py", "memory/plans/PLAN.yaml", "memory.py"), "memory/") == "a.py, memory.py"
    assert uncommitted_paths(_facts(*"abcde"), "memory") == "a, b, c and 2 more"
