"""The flow around the acceptance: red before and green now, a red that was wanted, old reds, and a missing test."""

from pathlib import Path

import pytest

from agent_workbench.core.errors import ExitCode
from agent_workbench.core.events import ActionRejected, Event, ReflexionNoted, TaskStarted
from agent_workbench.core.intents import RejectProposal
from agent_workbench.core.model import Purpose
from agent_workbench.core.plan import Task
from agent_workbench.core.session_request import SessionEnd
from agent_workbench.core.settings import Approval, Approvals, Permission, Settings
from agent_workbench.engine.policy import parking_reason
from agent_workbench.engine.rerun import rerun
from agent_workbench.engine.session.unattended import run_unattended
from agent_workbench.engine.tools.finish_tool import NO_TEST
from tests.engine.front import in_front_of
from tests.engine.stage import ACCEPT, FINISH, OPEN, T1, Stage, a_stage, call, change

SUITE = "sh suite.sh"
# A test runner that names the tests that fail, as pytest does.
RUNNER = """\
echo "=== short test summary info ==="
for file in tests/test_*.sh; do
  name=$(basename "$file" .sh)
  sh "$file" || { echo "FAILED $file::$name - no"; red=1; }
done
exit ${red:-0}
"""
GREEN = {"suite.sh": RUNNER, "answer.txt": "wrong\n", "tests/test_there.sh": "test -e answer.txt\n"}
OLD = {**GREEN, "tests/test_old.sh": "false\n"}
RIGHT = change("wrong", "right")
WHOLE = Settings(test_command=SUITE)


def task(words: str, goal: str = "", accept: tuple[str, ...] = (ACCEPT,)) -> Task:
    return Task(T1, words, goal, accept_tests=accept)


def created(path: str, line: str) -> str:
    return call("write_diff", f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+{line}\n")


TEST = created("tests/test_answer.sh", "grep -q right answer.txt # test_answer")


async def run(stage: Stage) -> SessionEnd:
    ending = await run_unattended(stage.session, stage.recorder, (T1,))
    assert stage.read_back() == stage.state
    assert {each.difference for each in rerun(stage.journal())} <= {None}
    return ending


def found(stage: Stage, kind: type[Event]) -> list[Event]:
    return [event for event in stage.events if isinstance(event, kind)]


@pytest.mark.parametrize(
    ("log", "subject"),
    [
        ((), "[Agent] Complete T-1: Mend the answer in @answer.txt."),
        (("feat: a", "fix: b", "docs: c", "fix: d", "test: e"), "fix: mend the answer in answer.txt"),
        (("cart: a", "tax: b", "tax: c", "web: d", "cli: e"), "answer: mend the answer in answer.txt"),
        (("Add a", "Fix b", "Use c", "Drop d", "Keep e"), "Mend the answer in answer.txt"),
    ],
)
async def test_a_red_acceptance_that_passes_is_committed_at_once(
    tmp_path: Path, log: tuple[str, ...], subject: str
) -> None:
    tasks = (task("Mend the answer in @answer.txt."),)
    async with a_stage(tmp_path, [RIGHT], tasks=tasks, approvals=OPEN, headless=True) as stage:
        for each in log:
            stage.git("commit", "--quiet", "--allow-empty", "-m", each)
        ending = await run(stage)
        assert (ending.exit_code, len(stage.model.requests)) == (ExitCode.DONE, 1)
        assert stage.git("log", "-1", "--format=%s", "agent/T-1") == subject


@pytest.mark.parametrize(
    ("words", "goal", "accept"),
    [
        ("Mend the answer", "It is documented.", (ACCEPT,)),
        ("Mend the answer and add a test", "", (ACCEPT,)),
        ("Mend the answer, and say so in the README", "", (ACCEPT,)),
        ("Mend the answer", "", ("true",)),
    ],
)
async def test_a_task_with_more_to_do_waits_for_finish(
    tmp_path: Path, words: str, goal: str, accept: tuple[str, ...]
) -> None:
    tasks = (task(words, goal, accept),)
    async with a_stage(tmp_path, [RIGHT, FINISH], tasks=tasks, approvals=OPEN, headless=True) as stage:
        assert ((await run(stage)).exit_code, len(stage.model.requests)) == (ExitCode.DONE, 2)


async def test_without_a_baseline_the_model_says_when_it_is_done(tmp_path: Path) -> None:
    approvals = Approvals(diff=Approval.AUTO, check=Approval.ASK, commit=Approval.AUTO)
    tasks = (task("Mend the answer"),)
    async with (
        a_stage(tmp_path, [RIGHT, FINISH], tasks=tasks, approvals=approvals) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        await front.skip(Permission.CHECK)
        await front.approve(Permission.CHECK)
        await front.until(lambda update: update.state.run and update.state.run.commit)
        assert len(stage.model.requests) == 2


async def test_a_rejected_commit_goes_back_to_the_model(tmp_path: Path) -> None:
    approvals = Approvals(diff=Approval.AUTO, check=Approval.AUTO)
    tasks = (task("Mend the answer"),)
    async with (
        a_stage(tmp_path, [RIGHT, FINISH], tasks=tasks, approvals=approvals) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        first = await front.gate(Permission.COMMIT)
        await front.submit(RejectProposal(first.id, "say why in the message"))
        await front.until(lambda update: update.state.waiting and update.state.waiting.id != first.id)
        assert len(stage.model.requests) == 2
        assert "say why in the message" in stage.model.requests[1].messages[-1].text


async def test_new_tests_that_fail_before_the_change_are_no_failure(tmp_path: Path) -> None:
    tasks = (task("Mend the answer", "A new test shows it.", (SUITE,)),)
    sayings = [TEST, RIGHT, FINISH]
    async with a_stage(
        tmp_path, sayings, tasks=tasks, settings=WHOLE, approvals=OPEN, headless=True, start=GREEN
    ) as stage:
        assert (await run(stage)).exit_code is ExitCode.DONE
        assert {request.purpose for request in stage.model.requests} == {Purpose.EXECUTOR}
        assert "Only the new tests fail" in stage.model.requests[1].messages[-1].text


async def test_an_old_test_that_fails_now_is_a_failure(tmp_path: Path) -> None:
    tasks = (task("Mend the answer", "It is right.", (SUITE,)),)
    # Its name comes first: the old test finds no answer any more.
    sayings = [created("tests/test_first.sh", "rm answer.txt; false # test_first"), "Reflexion: no"]
    async with a_stage(
        tmp_path, sayings, tasks=tasks, settings=WHOLE, approvals=OPEN, headless=True, start=GREEN
    ) as stage:
        with pytest.raises(AssertionError, match="nothing left to say"):
            await run(stage)
        assert found(stage, ReflexionNoted)


async def test_old_failures_do_not_count_and_are_told(tmp_path: Path) -> None:
    tasks = (task("Mend the answer", "It is right.", (SUITE,)),)
    async with a_stage(
        tmp_path, [RIGHT, FINISH], tasks=tasks, settings=WHOLE, approvals=OPEN, headless=True, start=OLD
    ) as stage:
        ending = await run(stage)
        said = "T-1 done: committed; tests/test_old.sh::test_old failed before it and still fails"
        assert (ending.exit_code, ending.reason, found(stage, ReflexionNoted)) == (ExitCode.DONE, said, [])


async def test_a_change_that_mends_nothing_is_not_committed_because_the_model_repeats_itself(tmp_path: Path) -> None:
    """Its suite is no worse than before, which says nothing of the task."""
    tasks = (task("Mend the answer in @answer.txt", "It is right.", (SUITE,)),)
    other = call("rewrite", "Piece 1\n```\nother\n```")
    async with a_stage(
        tmp_path, [other, other], tasks=tasks, settings=WHOLE, approvals=OPEN, headless=True, start=OLD
    ) as stage:
        with pytest.raises(AssertionError, match="nothing left to say"):
            await run(stage)
        assert [each.again for each in found(stage, ActionRejected) if isinstance(each, ActionRejected)] == [True]


async def test_a_person_decides_about_old_failures(tmp_path: Path) -> None:
    tasks = (task("Mend the answer", "It is right.", (SUITE,)),)
    async with (
        a_stage(tmp_path, [RIGHT, FINISH], tasks=tasks, settings=WHOLE, approvals=OPEN, start=OLD) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        assert (await front.gate(Permission.COMMIT)).kind is Permission.COMMIT


@pytest.mark.parametrize("words", ["Make test_old pass", "Mend old.sh", "Mend what tests/test_old.sh wants"])
async def test_failures_that_the_words_are_about_count(tmp_path: Path, words: str) -> None:
    tasks = (task(words, "", (SUITE,)),)
    async with a_stage(
        tmp_path, [RIGHT, "Reflexion: no"], tasks=tasks, settings=WHOLE, approvals=OPEN, headless=True, start=OLD
    ) as stage:
        with pytest.raises(AssertionError, match="nothing left to say"):
            await run(stage)
        assert found(stage, ReflexionNoted)


async def test_a_change_without_the_wanted_test_is_refused_once_and_parked_then(tmp_path: Path) -> None:
    tasks = (task("Mend the answer", "A new test shows it, and true passes.", ("true",)),)
    async with a_stage(tmp_path, [RIGHT, FINISH, FINISH], tasks=tasks, approvals=OPEN, headless=True) as stage:
        ending = await run(stage)
        (refused,) = found(stage, ActionRejected)
        assert isinstance(refused, ActionRejected)
        assert (ending.exit_code, refused.empty_finish) == (ExitCode.PARKED, True)
        assert NO_TEST in refused.reason
        assert stage.state.run is not None
        assert stage.state.run.failures == 0
        assert stage.state.waiting is not None
        assert "no test is changed" in parking_reason(stage.state, stage.state.waiting)


async def test_a_change_with_the_wanted_test_is_committed(tmp_path: Path) -> None:
    tasks = (task("Mend the answer", "A new test shows it, and true passes.", ("true",)),)
    async with a_stage(tmp_path, [TEST, RIGHT, FINISH], tasks=tasks, approvals=OPEN, headless=True) as stage:
        assert (await run(stage)).exit_code is ExitCode.DONE


async def test_earlier_versions_go_on_as_they_began(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_workbench.engine.task.task_start.VERSION", 3)
    tasks = (task("Mend the answer", "A new test shows it.", (SUITE,)),)
    sayings = [TEST, "Reflexion: so it is", RIGHT, FINISH]
    async with a_stage(
        tmp_path, sayings, tasks=tasks, settings=WHOLE, approvals=OPEN, headless=True, start=GREEN
    ) as stage:
        assert (await run(stage)).exit_code is ExitCode.DONE
        assert len(found(stage, ReflexionNoted)) == 1
        assert [event.wording for event in found(stage, TaskStarted) if isinstance(event, TaskStarted)] == [3]
