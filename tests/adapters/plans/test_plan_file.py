import asyncio
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from agent_workbench.adapters.plans.plan_file import PlanFile
from agent_workbench.config.yaml_parser import compose_text
from agent_workbench.core.errors import PlanError
from agent_workbench.core.ids import TaskId
from agent_workbench.core.plan import Plan, Task, TaskStatus
from agent_workbench.core.skills import SkillEntry, SkillOrigin
from agent_workbench.core.yaml_documents import Node
from tests.adapters.plans.plan_files import PATH, content, plan_file

COMMENTED = """\
# my plan  — é 😀

version: 1      # of the format
tasks:          # in order

    # the first
    -   id: "T-1"        # a name
        status: 'pending'   # not yet
        description: |
            text with   spaces

            and status: pending inside
        accept_tests:  [ "pytest -q" ,  'x' ]

    -   description: no status   # yet
        id: T-2   # second
        depends_on:
        - T-1
    - {description: one line, id: T-3}   # short
    - {"description": "json", "id": "T-4"}
    # the end
"""


@pytest.mark.parametrize(
    ("task", "old", "new"),
    [
        ("T-1", "'pending'", "'done'"),
        ("T-2", "id: T-2   # second\n", "id: T-2   # second\n        status: done\n"),
        ("T-3", "id: T-3}", "id: T-3, status: done}"),
        ("T-4", '"id": "T-4"}', '"id": "T-4", "status": "done"}'),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
async def test_a_status_changes_its_line_alone(tmp_path: Path, task: str, old: str, new: str, newline: str) -> None:
    file = plan_file(tmp_path, COMMENTED.replace("\n", newline))
    await file.set_status(TaskId(task), TaskStatus.DONE)
    assert content(tmp_path) == COMMENTED.replace(old, new).replace("\n", newline)
    assert (await file.read()).task(TaskId(task)).status is TaskStatus.DONE
    await file.set_status(TaskId(task), TaskStatus.PENDING)
    assert content(tmp_path) == COMMENTED.replace(old, new).replace("done", "pending").replace("\n", newline)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("- id: T-1\n  description: x\n  status:\n", "- id: T-1\n  description: x\n  status: done\n"),
        ("- id: T-1\n  description: x\n  status: ~ # c", "- id: T-1\n  description: x\n  status: done # c"),
        ("- id: T-1\n  status: >-\n    pending\n  description: x\n", "- id: T-1\n  status: done\n  description: x\n"),
        ("- description: x\n  id: T-1", "- description: x\n  id: T-1\n  status: done\n"),
        ("- description: x\n  id: >-\n    T-1\n", "- description: x\n  id: >-\n    T-1\n  status: done\n"),
        ("- ? id\n  : T-1 # a\n  ? description\n  : x", "- ? id\n  : T-1 # a\n  status: done\n  ? description\n  : x"),
        (
            "- id: T-1\r\n  status: |-\r\n    pending\r\n  description: x",
            "- id: T-1\r\n  status: done\r\n  description: x",
        ),
        ("[{id: T-1,\n description: x # c\n}]\n", "[{id: T-1,\n description: x, status: done # c\n}]\n"),
        ("\ufeff- {id: T-1, description: x}\n", "\ufeff- {id: T-1, description: x, status: done}\n"),
    ],
)
async def test_statuses_in_odd_places(tmp_path: Path, text: str, wanted: str) -> None:
    file = plan_file(tmp_path, text)
    await file.set_status(TaskId("T-1"), TaskStatus.DONE)
    assert (await file.read()).task(TaskId("T-1")).status is TaskStatus.DONE
    assert content(tmp_path) == wanted


async def test_no_file_is_written_when_nothing_changes(tmp_path: Path) -> None:
    file = plan_file(tmp_path, COMMENTED)
    before = (tmp_path / PATH).stat()
    await file.set_status(TaskId("T-1"), TaskStatus.PENDING)
    assert (tmp_path / PATH).stat().st_ino == before.st_ino


async def test_an_unknown_task_is_named(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="the plan has no task 'T-9'"):
        await plan_file(tmp_path, COMMENTED).set_status(TaskId("T-9"), TaskStatus.DONE)


async def test_a_plan_broken_meanwhile_is_left_alone(tmp_path: Path) -> None:
    file = plan_file(tmp_path, COMMENTED)
    await file.read()
    (tmp_path / PATH).write_text("tasks: [\n")
    with pytest.raises(PlanError, match=r"PLAN\.yaml:2:1: this is not YAML"):
        await file.set_status(TaskId("T-1"), TaskStatus.DONE)
    assert content(tmp_path) == "tasks: [\n"


async def test_an_edit_made_meanwhile_is_kept(tmp_path: Path) -> None:
    file = plan_file(tmp_path, "- {id: T-1, description: x}\n")
    await file.read()
    (tmp_path / PATH).write_text("# mine\n- {id: T-0, description: new}\n- {id: T-1, description: better}\n")
    await file.set_status(TaskId("T-1"), TaskStatus.DONE)
    assert content(tmp_path) == (
        "# mine\n- {id: T-0, description: new}\n- {id: T-1, description: better, status: done}\n"
    )


async def test_an_edit_made_in_the_very_moment_is_kept(tmp_path: Path) -> None:
    edits = iter(["# mine\n- {id: T-1, description: x}\n- {id: T-2, description: y}\n"])

    def compose_while_somebody_writes(text: str) -> Node | None:
        if edit := next(edits, None):
            (tmp_path / PATH).write_text(edit)
        return compose_text(text)

    plan_file(tmp_path, "- {id: T-1, description: x}\n")
    await PlanFile(tmp_path, PATH, compose_while_somebody_writes).set_status(TaskId("T-1"), TaskStatus.DONE)
    assert content(tmp_path) == "# mine\n- {id: T-1, description: x, status: done}\n- {id: T-2, description: y}\n"


async def test_changes_at_once_are_all_kept(tmp_path: Path) -> None:
    text = "".join(f"- {{id: T-{number}, description: x}}\n" for number in range(12))
    files = [plan_file(tmp_path, text), PlanFile(tmp_path, PATH, compose_text)]
    await asyncio.gather(
        *(files[number % 2].set_status(TaskId(f"T-{number}"), TaskStatus.DONE) for number in range(12)),
        *(files[number % 2].add([Task(TaskId(f"N-{number}"), "y")]) for number in range(6)),
    )
    plan = await files[0].read()
    assert len(plan.tasks) == 18
    assert all(task.status is TaskStatus.DONE for task in plan.tasks[:12])


ADDED = "- id: T-9\n  description: new\n  status: pending\n"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", f"tasks:\n  {ADDED.replace(chr(10), chr(10) + '  ').rstrip(' ')}"),
        ("# c", "# c\ntasks:\n  - id: T-9\n    description: new\n    status: pending\n"),
        ("tasks: []  # none\n# c\n", "tasks:  # none\n  - id: T-9\n    description: new\n    status: pending\n# c\n"),
        ("tasks:\ngoal: g\n", "tasks:\n  - id: T-9\n    description: new\n    status: pending\ngoal: g\n"),
        ("tasks: ~ # c\n", "tasks: # c\n  - id: T-9\n    description: new\n    status: pending\n"),
        ("goal: g", "goal: g\ntasks:\n  - id: T-9\n    description: new\n    status: pending\n"),
        ("- {id: A, description: x}\n# c\n", f"- {{id: A, description: x}}\n# c\n{ADDED}"),
        (
            "- {id: A, description: x}\r\n",
            f"- {{id: A, description: x}}\r\n{ADDED}".replace("\r\n", "\n").replace("\n", "\r\n"),
        ),
        (
            "tasks: # c\n- id: A\n  description: |\n    x\n\n# d\ngoal: g\n",
            f"tasks: # c\n- id: A\n  description: |\n    x\n\n{ADDED}# d\ngoal: g\n",
        ),
        (
            "tasks:\n    - id: A # a\n      description: x # c\n# d\ngoal: g\n",
            "tasks:\n    - id: A # a\n      description: x # c\n"
            "    - id: T-9\n      description: new\n      status: pending\n# d\ngoal: g\n",
        ),
        (
            "tasks: [{id: A, description: x}, # c\n]\n",
            'tasks: [{id: A, description: x}, {id: "T-9", description: "new", status: "pending"}, # c\n]\n',
        ),
    ],
)
async def test_tasks_are_added_at_the_end_of_the_list(tmp_path: Path, text: str, wanted: str) -> None:
    file = plan_file(tmp_path, text)
    before = await file.read()
    await file.add([Task(TaskId("T-9"), "new")])
    assert content(tmp_path) == wanted
    assert await file.read() == Plan((*before.tasks, Task(TaskId("T-9"), "new")), before.goal)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("{} # c", "{tasks: [%]} # c"),
        ("{goal: g} # c\n", "{goal: g, tasks: [%]} # c\n"),
        ("{tasks: []}", "{tasks: [%]}"),
        ("{tasks: [{id: A, description: x}], goal: g}", "{tasks: [{id: A, description: x}, %], goal: g}"),
        ("- id: A\n  description: |\n    x", "- id: A\n  description: |-\n    x\n%"),
        ("- id: A\n  description: >2\n     x", "- id: A\n  description: >-2\n     x\n%"),
        ("- id: A\n  description: |+\n    x", ""),
        ("- {id: A, description: x}\n...\n", "- {id: A, description: x}\n%...\n"),
        ("goal: g\n... # c\n", "goal: g\ntasks:\n%... # c\n"),
        ("[]", "%"),
    ],
)
async def test_tasks_are_added_whatever_the_spelling(tmp_path: Path, text: str, kept: str) -> None:
    file = plan_file(tmp_path, text)
    before = await file.read()
    if not kept:
        with pytest.raises(PlanError, match=r"PLAN\.yaml could not be changed"):
            await file.add([Task(TaskId("T-9"), "new")])
        assert content(tmp_path) == text
        return
    await file.add([Task(TaskId("T-9"), "new"), Task(TaskId("T-10"), "a: b\n")])
    after = await file.read()
    assert after.tasks == (*before.tasks, Task(TaskId("T-9"), "new"), Task(TaskId("T-10"), "a: b\n"))
    assert re.fullmatch(re.escape(kept).replace("%", "(?s:.+)"), content(tmp_path))


async def test_adding_makes_the_file(tmp_path: Path) -> None:
    file = plan_file(tmp_path)
    await file.add([Task(TaskId("T-1"), "x")])
    assert (await file.read()).tasks == (Task(TaskId("T-1"), "x"),)
    await file.add([])
    assert len((await file.read()).tasks) == 1


async def test_a_new_task_gets_the_next_free_id_and_nothing_is_added_to_a_broken_plan(tmp_path: Path) -> None:
    file = plan_file(tmp_path)
    task = Task(TaskId("T-1"), "-x: \"quoted\" 'words' # all\tof them", "one\ntwo: three\n")
    assert await file.add_new(task) == task
    assert await file.add_new(task) == replace(task, id=TaskId("T-2"))
    plan_file(tmp_path, content(tmp_path).replace("T-2", "T-7"))
    assert (await file.add_new(task)).id == "T-8"
    assert (await file.read()).tasks[-1] == replace(task, id=TaskId("T-8"))
    with pytest.raises(PlanError, match="control characters"):
        await file.add_new(Task(TaskId("T-1"), "\x1b[2J"))
    plan_file(tmp_path, "tasks: [")
    with pytest.raises(PlanError, match=rf"^{PATH}:1:"):
        await file.add_new(task)
    assert content(tmp_path) == "tasks: ["


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            "tasks:\n  - id: T-1  # a\n    description: x  # b\n    goal: y\n",
            "tasks:\n  - id: T-1  # a\n    description: x  # b\n    accept_tests:\n      - make\n",
        ),
        (
            "- id: T-1\n  accept_tests: []  # none\n  description: x\n",
            '- id: T-1\n  accept_tests: ["make", "a: b"]  # none\n',
        ),
        ("[{id: T-1, description: x}]\n", '[{id: T-1, description: x, accept_tests: ["make", "a: b"]}]\n'),
        ("- id: T-1\n  description: |\n    x\n    y\n", "- id: T-1\n  description: |\n    x\n    y\n  accept_tests:\n"),
        ("- id: T-1\n  accept_tests:\n  description: x\n", "- id: T-1\n  accept_tests: "),
    ],
)
async def test_a_check_is_added_to_a_task_that_has_none(tmp_path: Path, text: str, wanted: str) -> None:
    file = plan_file(tmp_path, text)
    await file.set_checks(TaskId("T-1"), ("make", "a: b"))
    assert content(tmp_path).startswith(wanted)
    assert (await file.read()).tasks[0].accept_tests == ("make", "a: b")


async def test_a_line_end_that_only_yaml_knows_makes_no_change_and_no_crash(tmp_path: Path) -> None:
    text = "- description: x\n  id: T-1 # a\u2028- description: y\n  id: T-2\n"
    file = plan_file(tmp_path, text)
    with pytest.raises(PlanError, match="could not be changed"):
        await file.set_status(TaskId("T-1"), TaskStatus.BLOCKED, "why")
    assert content(tmp_path) == text


async def test_a_comment_in_empty_brackets_stays(tmp_path: Path) -> None:
    file = plan_file(tmp_path, "tasks: [ # none yet\n]\n")
    await file.add([Task(TaskId("T-1"), "x")])
    assert content(tmp_path).endswith("} # none yet\n]\n")
    file = plan_file(tmp_path, "- id: T-1\n  description: x\n  accept_tests: [\n    # to come\n  ]\n")
    await file.set_checks(TaskId("T-1"), ("make", "a: b"))
    assert content(tmp_path).endswith('  accept_tests: ["make", "a: b"\n    # to come\n  ]\n')


async def test_what_does_not_fit_is_not_added(tmp_path: Path) -> None:
    file = plan_file(tmp_path, COMMENTED)
    with pytest.raises(PlanError, match="already has a task T-1"):
        await file.add([Task(TaskId("T-1"), "x")])
    with pytest.raises(PlanError, match="task T-9 depends on T-10, which is not in the plan"):
        await file.add([Task(TaskId("T-9"), "x", depends_on=(TaskId("T-10"),))])
    with pytest.raises(PlanError, match="contains control characters"):
        await file.add([Task(TaskId("T-9"), "\x1b")])
    with pytest.raises(PlanError, match="task id T-9 is used"):
        await file.add([Task(TaskId("T-9"), "x"), Task(TaskId("T-9"), "x")])
    assert content(tmp_path) == COMMENTED


async def test_a_new_plan_archives_the_former_one(tmp_path: Path) -> None:
    file = plan_file(tmp_path)
    plan = Plan((Task(TaskId("T-1"), "x"),), "one")
    assert await file.new_plan(plan) == ""
    assert await file.read() == plan
    archived = [await file.new_plan(Plan((), str(number))) for number in range(3)]
    assert len(set(archived)) == 3
    assert all(re.fullmatch(r"memory/plans/archive/\d{8}T\d{6}(-\d)?-PLAN\.yaml", each) for each in archived)
    first = PlanFile(tmp_path, archived[0], compose_text)
    assert await first.read() == plan
    assert (await file.read()).goal == "2"


async def test_a_broken_plan_is_archived_too(tmp_path: Path) -> None:
    archived = await plan_file(tmp_path, "tasks: [").new_plan(Plan())
    assert (tmp_path / archived).read_text() == "tasks: ["


async def test_a_new_plan_must_read_back(tmp_path: Path) -> None:
    file = plan_file(tmp_path, COMMENTED)
    with pytest.raises(PlanError, match="in a cycle"):
        await file.new_plan(Plan((Task(TaskId("T-1"), "x", depends_on=(TaskId("T-1"),)),)))
    assert content(tmp_path) == COMMENTED
    assert not (tmp_path / "memory/plans/archive").exists()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(st.lists(st.tuples(st.integers(1, 4), st.sampled_from(TaskStatus)), max_size=6))
async def test_statuses_never_change_anything_else(tmp_path: Path, changes: list[tuple[int, TaskStatus]]) -> None:
    file = plan_file(tmp_path, COMMENTED)
    plan = await file.read()
    for number, status in changes:
        await file.set_status(TaskId(f"T-{number}"), status)
        plan = plan.with_status(TaskId(f"T-{number}"), status)
    assert await file.read() == plan
    kept = re.sub(r", \"?status\"?: \"?[a-z_]+\"?|\n        status: [a-z_]+(?=\n)", "", content(tmp_path))
    assert re.sub(r"status: '[a-z_]+'", "status: 'pending'", kept) == COMMENTED


async def test_an_issue_by_its_number_is_kept_as_it_is_spelled(tmp_path: Path) -> None:
    file = plan_file(tmp_path, "tasks:\n  - {id: T-1, description: x, parent_issue: 7}\n")
    assert (await file.read()).tasks[0].parent_issue == "7"
    await file.set_status(TaskId("T-1"), TaskStatus.DONE)
    await file.add([Task(TaskId("T-2"), "y", parent_issue="8")])
    text = (tmp_path / file.path).read_text()
    assert "parent_issue: 7, status: done" in text
    assert [each.parent_issue for each in (await file.read()).tasks] == ["7", "8"]


async def test_a_skill_that_there_is_not_is_told_with_its_place(tmp_path: Path) -> None:
    file = plan_file(tmp_path, "tasks:\n  - id: T-1\n    description: x\n    applicable_skills: [yaml, pyton-style]\n")
    known = [SkillEntry(name, "", SkillOrigin.REPO, name) for name in ("python-style", "yaml", "pyton-style")]
    with pytest.raises(PlanError, match=r"PLAN\.yaml:4:31: there is no skill 'pyton-style'; did you mean 'python-"):
        await file.check(known[:2])
    assert (await file.check(known)).tasks[0].id == "T-1"


async def test_texts_are_kept_beside_the_plan_and_never_over_each_other(tmp_path: Path) -> None:
    file = plan_file(tmp_path, "tasks: []\n")
    assert [await file.keep_beside(each) for each in "ab"] == [
        "memory/plans/PLAN.edited.yaml",
        "memory/plans/PLAN.edited-2.yaml",
    ]
    assert (tmp_path / "memory/plans/PLAN.edited.yaml").read_text() == "a"
