"""Queue files: short forms, narrow bounds, and faults with their place."""

import pytest

from agent_workbench.adapters.plans.plan_parser import read_plan
from agent_workbench.adapters.plans.plan_renderer import render_plan
from agent_workbench.adapters.plans.queued_task import id_for, read_queued, render_queued
from agent_workbench.config.yaml_parser import compose_text
from agent_workbench.core.errors import PlanError
from agent_workbench.core.ids import TASK_ID, TaskId
from agent_workbench.core.patch.paths import matches_glob
from agent_workbench.core.plan import PathScope, Plan, Task, TaskEdit, TaskOrigin
from agent_workbench.core.task_result import IssueSource, read_source


def read(text: str, name: str = "a.yaml", origin: TaskOrigin = TaskOrigin.LOCAL) -> Task:
    return read_queued(text, origin, name, compose_text).task


def test_a_goal_alone_is_a_task_with_narrow_bounds() -> None:
    task = read("goal: Say hello\n")
    assert (task.id, task.description, task.goal) == ("a", "Say hello", "")
    assert task.scope == PathScope(("src/**",), ("src/**", "tests/**"))
    limits = task.constraints
    assert (limits.max_files_changed, limits.max_diff_bytes, limits.timeout_seconds) == (10, 50_000, 300.0)
    assert limits.denylisted_commands == ("rm -rf", "git push.*--force")
    assert task.budget.minutes == 5.0
    assert not any(matches_glob("docs/x.md", glob) for glob in task.scope.allowed_write_globs)


def test_each_bound_that_the_file_sets_counts_and_the_others_stay_narrow() -> None:
    task = read(
        "goal: x\nscope: {allowed_write_globs: [docs/**]}\n"
        "constraints: {max_files_changed: 1, timeout_seconds: 60, denylisted_commands: []}\nbudget: {minutes: 9}\n"
    )
    assert task.scope == PathScope(("docs/**",), ("src/**", "tests/**"))
    limits = task.constraints
    assert (limits.max_files_changed, limits.max_diff_bytes, limits.denylisted_commands) == (1, 50_000, ())
    assert task.budget.minutes == 1.0
    assert read("goal: x\nbudget: {minutes: 0.5}\n").budget.minutes == 0.5


DOCUMENTED = """\
id: task-7-a
goal: Add a validator
description: Add a validator for queue files.
suggested_approach: Look at the reader first.
applicable_skills: [yaml-validation, test-driven-development]
source: gitea:owner/repo#7
parent_issue: 7
subtask: 1/4
scope:
  allowed_write_globs: ["src/**/*.py", "tests/**/*.py"]
  allowed_read_globs: ["src/**", "tests/**"]
constraints:
  max_files_changed: 10
  max_diff_bytes: 50000
  timeout_seconds: 300
  denylisted_commands: ["rm -rf", "git push.*--force"]
edits:
  - {path: src/a.py, find: "x = 1", replace: "x = 2"}
  - path: src/b.py
    content: |
      y = 1
  - diff: |
      --- a/src/c.py
      +++ b/src/c.py
      @@ -1 +1 @@
      -z
      +zz
verify:
  - command: python -m pytest -q
  - ruff check .
"""


def test_every_field_of_the_document_is_read() -> None:
    task = read(DOCUMENTED, origin=TaskOrigin.FORGE)
    assert (task.id, task.parent_issue, task.subtask, task.origin) == ("task-7-a", "7", "1/4", TaskOrigin.FORGE)
    assert task.accept_tests == ("python -m pytest -q", "ruff check .")
    assert task.edits[:2] == (TaskEdit("src/a.py", "x = 1", "x = 2"), TaskEdit("src/b.py", content="y = 1\n"))
    assert task.edits[2].diff is not None
    assert read_source(task.source) == IssueSource("gitea", "owner/repo", 7)


def test_a_plan_has_the_same_edits_and_keeps_them() -> None:
    fields = "".join(f"    {line}\n" for line in DOCUMENTED.splitlines())
    plan = read_plan(f"tasks:\n  -{fields[3:]}", "plan", compose_text).plan
    assert len(plan.tasks[0].edits) == 3
    assert plan.tasks[0].accept_tests == ("python -m pytest -q", "ruff check .")
    assert read_plan(render_plan(plan), "plan", compose_text).plan == plan


FAULTS = {
    "": "a.yaml:1:1: expected a mapping with `goal` or `description`, found nothing",
    "- goal: x\n": "a.yaml:1:1: expected a mapping",
    "id: x\n": "a.yaml:1:1: expected the key 'goal' or 'description', found neither",
    "goal: ''\n": "a.yaml:1:7: description: expected some words",
    "goal: x\nid: 7up\n": "a.yaml:2:5: id: '7up' is not a task id",
    "goal: x\norigin: local\n": "a.yaml:2:1: unknown key 'origin'",
    "goal: x\nowner: human\n": "a.yaml:2:1: unknown key 'owner'",
    "goal: x\nowner: agent\n": "a.yaml:2:1: unknown key 'owner'",
    "goal: x\npriority: high\n": "a.yaml:2:11: priority: expected a whole number",
    "goal: x\npriority: -1\n": "a.yaml:2:11: priority: expected a whole number",
    "goal: x\nsource: gitea:x\n": "a.yaml:2:9: source: expected gitea:owner/repo#7 or gitea:project:7",
    "goal: x\nsource: gitea:../x#7\n": "a.yaml:2:9: source: expected gitea:owner/repo#7",
    "goal: x\nsubtask: 4\n": "a.yaml:2:10: subtask: expected text",
    "goal: x\nedits: {}\n": "a.yaml:2:8: edits: expected a list",
    "goal: x\nedits: [{path: a}]\n": "a.yaml:2:9: edits[0]: expected {path, find, replace}",
    "goal: x\nedits: [{path: a, find: b, replace: c, content: d}]\n": "a.yaml:2:9: edits[0]: expected {path, find,",
    "goal: x\nedits: [{path: a, find: b, replace: b}]\n": "edits[0].replace: expected another text than `find`",
    "goal: x\nedits: [{path: a, find: '', replace: b}]\n": "edits[0].find: expected some text",
    "goal: x\nedits: [{path: '', content: b}]\n": "edits[0].path: expected some text",
    "goal: x\nedits: [{paht: a}]\n": "unknown key 'paht' in edits[0]; did you mean 'path'?",
    f"goal: x\nedits: [{', '.join(['{path: a, content: b}'] * 101)}]\n": "expected at most 100 edits, found 101",
    "goal: x\nverify: make\n": "a.yaml:2:9: verify: expected a list of commands",
    "goal: x\nverify: [{command: ' '}]\n": "a.yaml:2:20: verify[0]: expected a command",
    "goal: x\nverify: [{run: make}]\n": "a.yaml:2:11: unknown key 'run' in verify[0]",
    "goal: x\nverify: [rm -rf /]\n": "a.yaml:2:10: verify[0]: this task does not allow 'rm -rf' in a command",
    "goal: x\naccept_tests: [git push origin --force]\n": "accept_tests[0]: this task does not allow",
}


@pytest.mark.parametrize("text", FAULTS)
def test_a_fault_names_its_place_and_what_was_expected(text: str) -> None:
    with pytest.raises(PlanError) as caught:
        read(text)
    assert FAULTS[text] in str(caught.value)
    assert str(caught.value).startswith("a.yaml:")


def test_the_denied_commands_of_a_queue_hold_for_what_it_runs_without_saying_so() -> None:
    with pytest.raises(PlanError, match="rm -rf"):
        read("goal: x\nverify: ['rm -rf build && make']\n")


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("task-7-a.yaml", "task-7-a"),
        ("some/where/x.yml", "x"),
        ("42.yaml", None),
        ("a..b.yaml", None),
        ("x.lock.yaml", None),
        ("ein Käse.yaml", None),
        ("--help.yaml", None),
        ("$(rm -rf ~).yaml", None),
        ("x" * 190 + ".yaml", None),
    ],
)
def test_every_name_makes_an_id(name: str, found: str | None) -> None:
    made = id_for(name)
    assert found is None or made == found
    assert TASK_ID.fullmatch(made)
    assert ".." not in made
    assert not made.endswith((".", ".lock"))


def test_names_that_differ_make_different_ids() -> None:
    assert id_for("a b.yaml") != id_for("a_b!.yaml") != id_for("a  b.yaml")


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("gitea:owner/repo#7", IssueSource("gitea", "owner/repo", 7)),
        ("gitea:chiffon:7", IssueSource("gitea", "chiffon", 7)),
        ("github:a.b/c-d_e#12", IssueSource("github", "a.b/c-d_e", 12)),
        *(
            (text, None)
            for text in ("", "by hand", "gitea:a/b/c#1", "gitea:a/b#0", "gitea:a/b#01", "x:a/b#1", "gitea:a/b#1\n")
        ),
    ],
)
def test_sources(source: str, found: IssueSource | None) -> None:
    assert read_source(source) == found


@pytest.mark.parametrize("scope", [PathScope(), PathScope(("a/**",), ("**",))])
def test_a_drafted_task_is_written_and_read(scope: PathScope) -> None:
    drafted = Task(TaskId("T-1"), "Do: it", "a goal\nof lines", accept_tests=("make -s",), scope=scope)
    task = read(render_queued(drafted))
    assert (task.description, task.goal, task.accept_tests) == ("Do: it", "a goal\nof lines", ("make -s",))
    assert task.scope == scope


def test_an_origin_is_never_written() -> None:
    task = read("goal: x\n", origin=TaskOrigin.MCP)
    assert "mcp" not in render_plan(Plan((task,)))
