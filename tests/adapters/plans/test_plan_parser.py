from pathlib import Path

import pytest

from agent_workbench.core.errors import PlanError, StorageError
from agent_workbench.core.ids import TaskId
from agent_workbench.core.plan import Budget, Constraints, Owner, PathScope, Plan, Task, TaskStatus
from tests.adapters.plans.plan_files import PATH, plan_file

WHOLE = """\
# all there is
version: 1
goal: Greet
tasks:
  - id: T-1
    description: Say hello
    goal: >-
      a folded
      goal
    suggested_approach: |
      first this
      then that
    accept_tests: [pytest -q, "ruff check ."]
    budget: {tokens: 1000, dollars: 0.5, minutes: 30}
    owner: human
    status: done
    depends_on: []
    applicable_skills: [python-style]
    scope:
      allowed_write_globs: ["src/**"]
      allowed_read_globs: ["**"]
    constraints:
      max_files_changed: 3
      max_diff_bytes: 4000
      timeout_seconds: 60
      denylisted_commands: [rm]
    source: gitea:owner/repo#7
    parent_issue: "#7"
    subtask: 1/4
  - {id: T-2, description: Say more, depends_on: [T-1]}
"""


async def test_every_field_arrives(tmp_path: Path) -> None:
    plan = await plan_file(tmp_path, WHOLE).read()
    first = Task(
        id=TaskId("T-1"),
        description="Say hello",
        goal="a folded goal",
        suggested_approach="first this\nthen that\n",
        accept_tests=("pytest -q", "ruff check ."),
        budget=Budget(1000, 0.5, 30.0),
        owner=Owner.HUMAN,
        status=TaskStatus.DONE,
        applicable_skills=("python-style",),
        scope=PathScope(("src/**",), ("**",)),
        constraints=Constraints(3, 4000, 60.0, ("rm",)),
        source="gitea:owner/repo#7",
        parent_issue="#7",
        subtask="1/4",
    )
    second = Task(id=TaskId("T-2"), description="Say more", depends_on=(TaskId("T-1"),))
    assert plan == Plan((first, second), "Greet")


async def test_a_task_that_is_done_may_deny_what_it_was_accepted_by(tmp_path: Path) -> None:
    denied = "constraints: {denylisted_commands: [pytest, 'a.*b']}\n  accept_tests: [pytest]"
    assert (await plan_file(tmp_path, task(f"status: done\n  {denied}")).read()).tasks[0].status is TaskStatus.DONE


async def test_a_list_alone_is_a_plan(tmp_path: Path) -> None:
    plan = await plan_file(tmp_path, "- id: T-1\n  description: x\n  goal:\n  budget: {tokens: null}\n").read()
    assert plan == Plan((Task(TaskId("T-1"), "x"),))


@pytest.mark.parametrize("text", ["", "# nothing\n", "tasks:\n", "tasks: []\n", "[]\n", "version: 1\n", "goal:\n"])
async def test_a_plan_may_be_empty(tmp_path: Path, text: str) -> None:
    assert await plan_file(tmp_path, text).read() == Plan()


def task(rest: str) -> str:
    return f"- id: T-1\n  description: x\n  {rest}\n"


FAULTY = [
    ("tasks: {}\n", "1:8: tasks: expected a list of tasks, found a mapping"),
    ("just text\n", "1:1: expected a mapping with `tasks`, or a list of tasks, found the text 'just text'"),
    ("version: 2\n", "1:10: version: expected 1, found 2"),
    ("task: []\n", "1:1: unknown key 'task'; did you mean 'tasks'?"),
    ("- T-1\n", "1:3: tasks[0]: expected a mapping, found the text 'T-1'"),
    ("- id: T-1\n", "1:3: tasks[0]: expected the key 'description', found none"),
    ("- description: x\n", "1:3: tasks[0]: expected the key 'id', found none"),
    ("- id:\n  description: x\n", "1:6: tasks[0].id: expected text, found nothing"),
    ("- id: 7\n  description: x\n", "1:7: tasks[0].id: expected text, found 7"),
    ("- id: ../x\n  description: x\n", "1:7: tasks[0].id: '../x' is not a task id"),
    ("- id: T-1\n  description: ' '\n", "2:16: tasks[0].description: expected some words, found the text ' '"),
    (task("descripton: y"), "3:3: unknown key 'descripton' in tasks[0]; did you mean 'description'?"),
    (
        task("status: finished"),
        "3:11: tasks[0].status: expected pending, in_progress, blocked, done, failed or queued, found the ",
    ),
    (task("owner: me"), "3:10: tasks[0].owner: expected agent or human, found the text 'me'"),
    (task("accept_tests: pytest"), "3:17: tasks[0].accept_tests: expected a list (text each), found the text 'pytest'"),
    (task("budget: {token: 1}"), "3:12: unknown key 'token' in tasks[0].budget; did you mean 'tokens'?"),
    (
        task("budget: {tokens: 1.5}"),
        "3:20: tasks[0].budget.tokens: expected a whole number (decimal, not negative), found ",
    ),
    (
        task("budget: {minutes: .inf}"),
        "3:21: tasks[0].budget.minutes: expected a finite number (not negative), found .inf",
    ),
    (task("budget: 3"), "3:11: tasks[0].budget: expected a mapping, found 3"),
    (task("parent_issue: -7"), "3:17: tasks[0].parent_issue: expected text, found -7"),
    (task("goal: yes"), "3:9: tasks[0].goal: expected text, found yes"),
    (
        task("subtask: 1 of 4"),
        "3:12: tasks[0].subtask: expected a part of a whole such as 1/4, found the text '1 of 4'",
    ),
    (
        task("constraints:\n    denylisted_commands:\n      - rm -rf\n      - git push(?!.*x)"),
        "6:9: tasks[0].constraints.denylisted_commands[1]: expected a glob, found the regular expression",
    ),
    (
        task("accept_tests: [pytest, git push]\n  constraints: {denylisted_commands: ['git *']}"),
        "3:26: tasks[0].accept_tests[1]: this task does not allow 'git *' in a command",
    ),
    (
        task("constraints: {denylisted_commands: ['']}"),
        "3:39: tasks[0].constraints.denylisted_commands[0]: expected a c",
    ),
    (task("depends_on: [T-9]"), "3:15: task T-1 depends on T-9, which is not in the plan"),
    (task("depends_on: [a b]"), "3:16: tasks[0].depends_on[0]: 'a b' is not a task id"),
    (task("depends_on: [T-1]"), "1:1: these tasks depend on each other in a cycle: T-1"),
    (task("id: T-2"), "3:3: duplicate key 'id', first on line 1"),
    (task("goal: *x"), "3:9: expected a value, found the alias 'x'"),
    (task("") + task(""), "4:7: task id T-1 is used twice, first on line 1"),
    ("tasks:\n  - id: T-1\n   description: x\n", "3:4: this is not YAML: "),
    (b"- id: T-1\n  description: \xe9\n", "2:16: expected UTF-8, found byte 0xe9"),
    ("- {id: T, description: x}\n" * 1001, "1:1: tasks: expected at most 1000 tasks, found 1001"),
]


@pytest.mark.parametrize(("text", "message"), FAULTY)
async def test_faults_are_named_with_file_line_and_column(tmp_path: Path, text: str | bytes, message: str) -> None:
    with pytest.raises(PlanError) as caught:
        await plan_file(tmp_path, text).read()
    assert str(caught.value).startswith(f"{PATH}:{message}")


async def test_a_circle_names_its_tasks(tmp_path: Path) -> None:
    text = "- {id: A, description: x, depends_on: [B]}\n- {id: B, description: x, depends_on: [A]}\n"
    with pytest.raises(PlanError, match=r"in a cycle: A, B"):
        await plan_file(tmp_path, text).read()


async def test_no_plan_is_said(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r"^there is no plan at memory/plans/PLAN\.yaml$"):
        await plan_file(tmp_path).read()


async def test_a_plan_outside_the_repo_is_refused(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    (tmp_path / "outside").mkdir(parents=True)
    repo.mkdir()
    (repo / "memory").symlink_to("../outside")
    with pytest.raises(StorageError, match=", outside /"):
        await plan_file(repo).add([Task(TaskId("T-1"), "x")])
    assert list((tmp_path / "outside").iterdir()) == []


async def test_a_huge_plan_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="has 1000001 bytes; the limit is 1000000"):
        await plan_file(tmp_path, "#" * 1_000_001).read()
