import pytest

from agent_workbench.core.ids import TaskId
from agent_workbench.core.plan import Task, TaskOrigin
from agent_workbench.core.settings.worker import ForgeKind
from agent_workbench.subjects.forge.issues import issue_of, tag_name


@pytest.mark.parametrize(
    ("name", "source", "parent", "issue"),
    [
        ("T-1", "gitea:owner/repo#7", "", 7),
        ("T-1", "forgejo:Owner/Repo#7", "", 7),
        ("T-1", "gitea:chiffon:7", "", 7),
        ("task-9", "gitea:owner/repo#7", "3", 7),
        ("task-7", "", "", 7),
        ("task-7-a", "", "", 7),
        ("task-7-retry-55", "", "", 7),
        ("task-7-a", "", "3", 3),
        ("T-1", "", "#3", 3),
        ("T-1", "gitea:owner/other#7", "3", None),
        ("T-1", "github:owner/repo#7", "", None),
        ("task-7", "gitea:owner/other#7", "", None),
        ("task-7", "https://git.example.org/owner/repo/issues/7", "", None),
        ("T-7", "", "", None),
        ("task-7a", "", "", None),
        ("task-0", "", "", None),
        ("task-12345678901", "", "", None),
        ("T-1", "", "EPIC-3", None),
        ("T-1", "gitea:owner/repo#7/../9", "", None),
    ],
)
def test_the_issue_of_a_task(name: str, source: str, parent: str, issue: int | None) -> None:
    task = Task(TaskId(name), "text", source=source, parent_issue=parent)
    assert issue_of(task, "owner/repo") == issue


def test_a_task_that_a_commit_brought_has_no_issue() -> None:
    task = Task(TaskId("task-7"), "text", source="gitea:owner/repo#7", origin=TaskOrigin.REPOSITORY)
    assert issue_of(task, "owner/repo") is None


def test_the_tag_names_the_task_once() -> None:
    assert (tag_name("task-7"), tag_name("T-1")) == ("task-7-done", "task-T-1-done")


@pytest.mark.parametrize(
    ("source", "issue"),
    [("github:owner/repo#7", 7), ("github:chiffon:7", 7), ("gitea:owner/repo#7", None), ("forgejo:chiffon:7", None)],
)
def test_an_issue_of_github_is_one_on_github_alone(source: str, issue: int | None) -> None:
    task = Task(TaskId("T-1"), "text", source=source)
    assert issue_of(task, "owner/repo", ForgeKind.GITHUB) == issue
