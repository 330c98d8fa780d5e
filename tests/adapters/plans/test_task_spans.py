"""A plan that is changed while it runs: tasks moved, blocked, edited, added; comments stay, nothing is overwritten."""

from operator import contains
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_workbench.core.errors import PlanError
from agent_workbench.core.ids import TaskId
from agent_workbench.core.plan import Task, TaskStatus
from tests.adapters.plans.plan_files import PATH, content, plan_file

T1, T2, T3 = TaskId("T-1"), TaskId("T-2"), TaskId("T-3")
ONE = "  # the first\n  - id: T-1   # here\n    description: one\n"
TWO = "  - description: two\n    id: T-2\n    goal: |\n      text\n"
THREE = "  # last\n  - {id: T-3, description: three}"
PLAN = f"# top\ntasks:\n{ONE}\n{TWO}\n{THREE}\n# end\n"


async def test_a_task_moves_with_its_comment(tmp_path: Path) -> None:
    file = plan_file(tmp_path, PLAN)
    await file.move(T1, up=False)
    assert content(tmp_path) == f"# top\ntasks:\n{TWO}\n{ONE}\n{THREE}\n# end\n"
    await file.move(T3, up=True)
    await file.move(T3, up=False)
    await file.move(T1, up=True)
    await file.move(T1, up=True)
    assert content(tmp_path) == PLAN


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            "- {id: T-1, description: x}\n- {id: T-2, description: y}",
            "- {id: T-2, description: y}\n- {id: T-1, descripti",
        ),
        (
            "[{id: T-1, description: x}, # c\n {id: T-2, description: y}]\n",
            "[{id: T-2, description: y}, # c\n {id: T-1,",
        ),
        (
            "- id: T-1\r\n  description: x\r\n- id: T-2\r\n  description: y",
            "- id: T-2\r\n  description: y\r\n- id: T-1\r\n",
        ),
        (
            "- id: T-1\n  description: >-\n    x\n    # text too\n- id: T-2\n  description: y\n",
            "- id: T-2\n  description: y\n- id: T-1\n  description: >-\n    x\n    # text too\n",
        ),
        ("- ? id\n  : T-1\n  ? description\n  : x\n- id: T-2\n  description: y\n", "- id: T-2"),
    ],
)
async def test_tasks_move_in_any_spelling(tmp_path: Path, text: str, wanted: str) -> None:
    file = plan_file(tmp_path, text)
    await file.move(T2, up=True)
    assert [task.id for task in (await file.read()).tasks] == [T2, T1]
    assert content(tmp_path).startswith(wanted)


async def test_a_block_of_text_at_the_end_moves_as_it_is(tmp_path: Path) -> None:
    ones = "- id: T-1\n  description: x\n  accept_tests: ['a']\n# mine\n- id: T-2\n  description: y\n"
    text = f"{ones}- id: T-3\n  description: |\n    what ends as the file does"
    file = plan_file(tmp_path, text)
    before = await file.read()
    await file.move(T3, up=True)
    assert (await file.read()) == before.moved(T3, up=True)
    assert content(tmp_path) == (
        "- id: T-1\n  description: x\n  accept_tests: ['a']\n"
        "- id: T-3\n  description: |-\n    what ends as the file does\n# mine\n- id: T-2\n  description: y\n"
    )


async def test_a_piece_in_brackets_that_was_not_changed_changes_nothing(tmp_path: Path) -> None:
    text = "[{id: T-1, description: x}, {id: T-2, description: y}]\n"
    piece = await plan_file(tmp_path, text).piece(T1)
    assert piece.whole_with(piece.text) == text


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("task", [T1, T2, T3])
async def test_why_a_task_is_blocked_stands_beside_it_and_goes(tmp_path: Path, task: TaskId, newline: str) -> None:
    file = plan_file(tmp_path, PLAN.replace("\n", newline))
    await file.set_status(task, TaskStatus.PENDING)
    before = content(tmp_path)
    await file.set_status(task, TaskStatus.BLOCKED, "no key: ask Mia")
    blocked = (await file.read()).task(task)
    assert (blocked.status, blocked.blocked_because) == (TaskStatus.BLOCKED, "no key: ask Mia")
    await file.set_status(task, TaskStatus.BLOCKED, "another")
    assert (await file.read()).task(task).blocked_because == "another"
    await file.set_status(task, TaskStatus.PENDING)
    assert (await file.read()).task(task).blocked_because == ""
    assert content(tmp_path).replace(', blocked_because: ""', "") == before


async def test_a_piece_is_the_tasks_own_lines_with_their_numbers(tmp_path: Path) -> None:
    file = plan_file(tmp_path, PLAN)
    piece = await file.piece(T2)
    assert (piece.text, piece.first_line, piece.task) == (TWO, 7, T2)
    await file.replace_text(piece.whole, piece.whole_with(TWO.replace("two", "2nd  # mine")))
    assert content(tmp_path) == PLAN.replace("two", "2nd  # mine")


@pytest.mark.parametrize("text", [PLAN, "version: 1\ntasks: []\n", "[{id: T-1, description: x}]\n", "", PLAN.rstrip()])
async def test_a_new_task_is_filled_in_and_read(tmp_path: Path, text: str) -> None:
    file = plan_file(tmp_path, text)
    count = len((await file.read()).tasks)
    piece = await file.piece(T1, new=True)
    assert piece.text.count(piece.placeholder) == 1
    written = piece.text.replace(piece.placeholder, "new")
    await file.replace_text(piece.whole, piece.whole_with(written))
    plan = await file.read()
    assert [task.id for task in plan.tasks if task.description == "new"] == [f"T-{count + 1}"]
    assert plan.tasks[min(count, 1)].id == f"T-{count + 1}"


TEXTS = [
    PLAN,
    f"tasks:\n{ONE}{TWO}".rstrip(),
    f"tasks:\n{ONE}",
    "tasks: []",
    "[{id: T-1, description: x}]",
    "",
    PLAN.rstrip(),
]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("end", ["", "\n"])
async def test_a_piece_says_the_lines_that_it_has_in_the_file_it_makes(
    tmp_path: Path, text: str, newline: str, end: str
) -> None:
    file = plan_file(tmp_path, (text + end).replace("\n", newline))
    old = [await file.piece(task.id) for task in (await file.read()).tasks]
    drafted = Task(T1, "drafted", "y")
    new = [
        (await file.piece(None, new=True), "is to be done"),
        (await file.piece(None, new=True, draft=drafted), "drafted"),
    ]
    for piece, word in [*((each, str(each.task)) for each in old), *new, (await file.piece(None), "")]:
        lines = piece.whole_with(piece.text).splitlines()
        joint = newline if piece.start and not piece.whole[: piece.start].endswith("\n") else ""
        own = piece.text.removeprefix(joint).splitlines()
        # In brackets a piece is a part of its line.
        assert all(map(contains, lines[piece.first_line - 1 :], own))
        assert word in "".join(lines[piece.at_line - 1 : piece.at_line + (not piece.placeholder)])


async def test_the_first_task_is_written_where_there_is_no_plan_yet(tmp_path: Path) -> None:
    file = plan_file(tmp_path)
    piece = await file.piece(None, new=True)
    await file.replace_text(piece.whole, piece.whole_with(piece.text.replace(piece.placeholder, "new")))
    assert [(task.id, task.description) for task in (await file.read()).tasks] == [(T1, "new")]


async def test_what_cannot_be_read_is_refused_with_its_line_and_a_broken_plan_can_be_mended(tmp_path: Path) -> None:
    file = plan_file(tmp_path, PLAN)
    piece = await file.piece(T1, new=True)
    with pytest.raises(PlanError, match=rf"{PATH}:{piece.at_line}:\d+: .*description: expected text, found nothing"):
        await file.replace_text(piece.whole, piece.whole_with(piece.text.replace(piece.placeholder, "")))
    with pytest.raises(PlanError, match="T-2 is in progress"):
        await file.replace_text(PLAN, PLAN.replace("T-2", "T-5"), keep=(T2,))
    assert content(tmp_path) == PLAN
    plan_file(tmp_path, "tasks: [\n")
    await file.replace_text((await file.piece(None)).text, PLAN)
    assert content(tmp_path) == PLAN


@pytest.mark.parametrize("text", [PLAN, "version: 1\ntasks: []\n", "[{id: T-1, description: x}]\n"])
async def test_a_drafted_task_is_shown_as_it_would_be_written(tmp_path: Path, text: str) -> None:
    file = plan_file(tmp_path, text)
    draft = Task(T1, "round: @src/cart.py #1", "a\nb", accept_tests=("pytest -q 'a: b'",))
    piece = await file.piece(None, new=True, draft=draft)
    assert piece.placeholder == ""
    await file.replace_text(piece.whole, piece.whole_with(piece.text))
    (*others, added) = (await file.read()).tasks
    assert added == replace(draft, id=TaskId(f"T-{len(others) + 1}"))


@pytest.mark.parametrize(
    ("line", "description"),
    [
        ("fix: the sum", "fix: the sum"),
        ("@total is wrong", "@total is wrong"),
        ("[WIP] the sum", "[WIP] the sum"),
        ("*all* sums", "*all* sums"),
        ("#12 the sum", "#12 the sum"),
        ("`sum` is wrong", "`sum` is wrong"),
        ('a: "b" \\', 'a: "b" \\'),
        ("1234", "1234"),
        ("yes", "yes"),
    ],
)
async def test_words_get_the_quotes_that_they_lack(tmp_path: Path, line: str, description: str) -> None:
    file = plan_file(tmp_path, PLAN)
    piece = await file.piece(T1, new=True)
    written = piece.text.replace(piece.placeholder, line).replace("[]", '\n    - python -c "d: 1"\n    - make')
    await file.replace_text(piece.whole, piece.whole_with(written))
    added = (await file.read()).tasks[1]
    assert (added.description, added.accept_tests) == (description, ('python -c "d: 1"', "make"))
    assert content(tmp_path).replace("\n\n", "\n").startswith(f"# top\ntasks:\n{ONE}"), "the rest is as it was"


@pytest.mark.parametrize(
    "line", ["  status: [dun", "  budget: a: b", "  other: a: b", '  goal: "a: b" c', "  - a: b: c"]
)
async def test_quotes_mend_nothing_else(tmp_path: Path, line: str) -> None:
    file = plan_file(tmp_path, PLAN)
    text = f"- id: T-1\n  description: x\n{line}\n"
    with pytest.raises(PlanError, match=rf"{PATH}:[34]:"):
        await file.replace_text(PLAN, text)
    assert content(tmp_path) == PLAN


async def test_what_was_changed_on_the_disk_meanwhile_is_kept(tmp_path: Path) -> None:
    file = plan_file(tmp_path, PLAN)
    piece = await file.piece(T1)
    await file.set_status(T3, TaskStatus.DONE)
    await file.replace_text(piece.whole, piece.whole_with(ONE.replace("one", "mine")))
    assert "mine" in content(tmp_path)
    assert "T-3, description: three, status: done" in content(tmp_path)
    with pytest.raises(PlanError, match="was changed in the same lines"):
        await file.replace_text(piece.whole, piece.whole_with(ONE.replace("one", "yours")))
    assert "mine" in content(tmp_path)
