"""A task that names its edits: no model, one diff at the gate, the checks, the commit."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_workbench.core.errors import ExitCode
from agent_workbench.core.events import (
    ActionFinished,
    ActionProposed,
    ActionStarted,
    Event,
    PatchApplied,
    PromptBuilt,
    TaskCommitted,
    TaskFinished,
    TestsFinished,
)
from agent_workbench.core.plan import Constraints, PathScope, Task, TaskEdit, TaskStatus
from agent_workbench.core.proposals import APPLY_EDITS, CHECKS, COMMIT
from agent_workbench.core.session_request import SessionEnd
from agent_workbench.core.settings import Approval
from agent_workbench.engine.rerun import rerun
from agent_workbench.engine.session.unattended import run_unattended
from tests.engine.killing import run_until_killed
from tests.engine.stage import ANSWER, OPEN, T1, Stage, a_stage, diff, reopened, task

RIGHT = TaskEdit(ANSWER, find="wrong", replace="right")
TWICE = {ANSWER: "wrong\nfine\nwrong\n"}
CRLF = {ANSWER: "wrong\r\nand so on\r\n"}


def given(*edits: TaskEdit, **changes: object) -> Task:
    """Return the stage's task with these edits."""
    return replace(task(), edits=edits, **changes)


async def ended(stage: Stage) -> SessionEnd:
    return await run_unattended(stage.session, stage.recorder, (T1,))


def proposed(events: Sequence[Event]) -> list[str]:
    return [event.proposal.tool for event in events if isinstance(event, ActionProposed)]


async def test_the_edits_are_one_diff_then_come_the_checks_and_the_commit(tmp_path: Path) -> None:
    edits = (RIGHT, TaskEdit("new/page.md", content="# New\n"), TaskEdit(diff=diff("right", "right!")))
    async with a_stage(tmp_path, tasks=(given(*edits),), approvals=OPEN, headless=True) as stage:
        assert (await ended(stage)).exit_code is ExitCode.DONE
        assert proposed(stage.events) == [CHECKS, APPLY_EDITS, CHECKS, COMMIT]
        (commit,) = [event for event in stage.events if isinstance(event, TaskCommitted)]
        assert commit.message.startswith("[Agent] Complete T-1: ")
        assert stage.git("show", f"{commit.commit}:{ANSWER}") == "right!"
        assert stage.git("show", f"{commit.commit}:new/page.md") == "# New"
        assert not [event for event in stage.events if isinstance(event, PromptBuilt)]
        assert list(rerun(stage.journal())) == []
        assert stage.read_back() == stage.state


async def test_a_text_of_several_lines_is_found_in_a_file_with_other_line_ends(tmp_path: Path) -> None:
    edit = TaskEdit(ANSWER, find="wrong\nand", replace="right\nor")
    async with a_stage(tmp_path, tasks=(given(edit),), approvals=OPEN, headless=True, start=CRLF) as stage:
        assert (await ended(stage)).exit_code is ExitCode.DONE
        (applied,) = [event for event in stage.events if isinstance(event, PatchApplied)]
        assert stage.git("cat-file", "-p", f"{applied.tree}:{ANSWER}") == "right\r\nor so on\r"


@pytest.mark.slow(quick=3)
@pytest.mark.parametrize(
    ("edits", "reason"),
    [
        ((RIGHT,), "edits[0]: 'wrong' is there 2 times: answer.txt:1, answer.txt:3"),
        ((TaskEdit(ANSWER, find="nope", replace="x"),), "edits[0]: 'nope' is nowhere in answer.txt"),
        ((TaskEdit(ANSWER, content="x\n"), TaskEdit("b.txt", find="x", replace="y")), "edits[1]: there is no file"),
        ((TaskEdit("../outside.txt", content="x\n"),), "outside.txt"),
        ((TaskEdit("/etc/passwd", find="root", replace="x"),), "passwd"),
        ((TaskEdit(".git/hooks/pre-commit", content="x\n"),), ".git"),
        ((TaskEdit("memory/plans/plan.yaml", content="x\n"),), "memory"),
        ((TaskEdit("tasks/queue/default/b.yaml", content="goal: x\n"),), "tasks/queue"),
        ((TaskEdit(ANSWER, content=TWICE[ANSWER]),), "the edits change nothing"),
        ((TaskEdit(diff="--- a/answer.txt\n+++ b/answer.txt\n@@ -1 +1 @@\n-nope\n+x\n"),), "edits[0]: "),
    ],
)
async def test_an_edit_that_does_not_fit_ends_the_task_with_the_reason(
    tmp_path: Path, edits: tuple[TaskEdit, ...], reason: str
) -> None:
    async with a_stage(tmp_path, tasks=(given(*edits),), approvals=OPEN, headless=True, start=TWICE) as stage:
        end = await ended(stage)
        assert end.exit_code is ExitCode.FAILED
        assert reason in end.reason
        assert APPLY_EDITS not in proposed(stage.events)


@pytest.mark.parametrize(
    "bounds",
    [
        {"scope": PathScope(("src/**",))},
        {"constraints": Constraints(max_diff_bytes=20)},
        {"constraints": Constraints(max_files_changed=1)},
    ],
)
async def test_edits_are_held_to_the_bounds_of_the_task(tmp_path: Path, bounds: dict[str, object]) -> None:
    tasks = (given(RIGHT, TaskEdit("b.txt", content="x\n"), **bounds),)
    async with a_stage(tmp_path, tasks=tasks, approvals=OPEN, headless=True) as stage:
        end = await ended(stage)
        assert (end.exit_code, "the edits do not fit" in end.reason) == (ExitCode.FAILED, True), end


async def test_edits_that_fail_the_checks_fail_the_task(tmp_path: Path) -> None:
    tasks = (given(TaskEdit(ANSWER, find="wrong", replace="rigth")),)
    async with a_stage(tmp_path, tasks=tasks, approvals=OPEN, headless=True) as stage:
        end = await ended(stage)
        assert end.exit_code is ExitCode.FAILED
        assert "the checks do not pass with the edits: `grep -q right answer.txt` ended with exit code 1" in end.reason
        assert not [event for event in stage.events if isinstance(event, PromptBuilt)]


async def test_without_checks_the_commit_follows(tmp_path: Path) -> None:
    tasks = (given(RIGHT, accept_tests=()),)
    async with a_stage(tmp_path, tasks=tasks, approvals=OPEN, headless=True) as stage:
        assert (await ended(stage)).exit_code is ExitCode.DONE
        assert proposed(stage.events) == [APPLY_EDITS, COMMIT]


@pytest.mark.parametrize(
    ("kind", "reason"), [("diff", "the edits were rejected"), ("commit", "the commit was rejected")]
)
async def test_what_is_rejected_ends_the_task(tmp_path: Path, kind: str, reason: str) -> None:
    approvals = replace(OPEN, **{kind: Approval.DENY})
    async with a_stage(tmp_path, tasks=(given(RIGHT),), approvals=approvals, headless=True) as stage:
        end = await ended(stage)
        assert (end.exit_code, reason in end.reason) == (ExitCode.FAILED, True), end


async def test_edits_wait_for_a_person_as_any_diff(tmp_path: Path) -> None:
    approvals = replace(OPEN, diff=Approval.ASK)
    async with a_stage(tmp_path, tasks=(given(RIGHT),), approvals=approvals, headless=True) as stage:
        assert (await ended(stage)).exit_code is ExitCode.PARKED
        waiting = stage.state.waiting
        assert waiting is not None
        assert waiting.diff.endswith(diff("wrong", "right"))


KILLS: list[tuple[type[Event], int, bool]] = [
    (TestsFinished, 1, True),
    (TestsFinished, 1, False),
    (ActionProposed, 2, False),
    (ActionStarted, 2, False),
    (PatchApplied, 1, True),
    (PatchApplied, 1, False),
    (ActionFinished, 2, False),
    (TestsFinished, 2, True),
    (TestsFinished, 2, False),
    (TaskCommitted, 1, True),
    (TaskCommitted, 1, False),
    (TaskFinished, 1, True),
]


@pytest.mark.parametrize(("kind", "number", "before"), KILLS)
@pytest.mark.slow(quick=2)
async def test_a_kill_anywhere_neither_loses_nor_repeats_the_edits(
    tmp_path: Path, kind: type[Event], number: int, before: bool
) -> None:
    async with a_stage(tmp_path, tasks=(given(RIGHT),), approvals=OPEN, headless=True) as stage:
        await run_until_killed(stage, kind, number, before=before)
        async with reopened(stage) as again:
            assert (await run_unattended(again.session, again.recorder, (T1,))).exit_code is ExitCode.DONE
        finished = [event.status for event in stage.events if isinstance(event, TaskFinished)]
        assert finished == [TaskStatus.DONE]
        assert len([event for event in stage.events if isinstance(event, PatchApplied)]) == 1
        commits = stage.git("log", "--format=%s", "main..agent/T-1").splitlines()
        assert commits == ["[Agent] Complete T-1: Make the answer right (T-1)"]
