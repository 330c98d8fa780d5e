"""What was tried before: told with the next reflexion, and not tried in the same way again."""

from pathlib import Path

from agent_workbench.core import events as e
from agent_workbench.core.errors import ExitCode
from agent_workbench.core.intents import RejectProposal, SayToModel
from agent_workbench.core.patch.values import HunkFate
from agent_workbench.core.proposals import KEEP_CHANGES
from agent_workbench.core.settings import Approval, Approvals, Permission, Settings
from agent_workbench.engine.prompt.attempts import QUESTION, Fate, attempts, reflexion_request
from tests.engine.front import in_front_of
from tests.engine.stage import FINISH, OPEN, Stage, a_stage, call, change, reflexion, task
from tests.engine.test_executor import run

CHECKS_OPEN = Approvals(check=Approval.AUTO, commit=Approval.AUTO)
THERE, BACK, RIGHT = change("wrong", "rigth"), change("rigth", "wrong"), change("wrong", "right")


def fates(stage: Stage) -> list[Fate]:
    assert stage.state.run is not None
    return [each.fate for each in attempts(stage.state.run.history)]


def rejections(stage: Stage) -> list[str]:
    return [event.reason for event in stage.events if isinstance(event, e.ActionRejected)]


async def test_a_diff_that_failed_on_the_same_files_is_not_tried_again(tmp_path: Path) -> None:
    # There and back again: the third diff is the first one on the files as they were then.
    says = [THERE, reflexion(), BACK, reflexion(), THERE, RIGHT, FINISH]
    async with a_stage(tmp_path, says, approvals=OPEN, headless=True) as stage:
        ending = await run(stage)
        assert ending.exit_code is ExitCode.DONE
        (reason,) = rejections(stage)
        assert "this is the diff of step 1 again, on the same files" in reason
        assert "grep -q right answer.txt failed" in reason
        assert fates(stage) == [Fate.FAILED, Fate.FAILED, Fate.CHECKED]


async def test_the_same_diff_on_other_files_may_be_tried_again(tmp_path: Path) -> None:
    accept = (*task().accept_tests, "test -e new.txt")
    add = change("wrong", "right")
    says = [add, reflexion(), change("right", "wrong"), reflexion()]
    new = "Thought: so\nAction: write_diff\n--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+new\n"
    async with a_stage(tmp_path, [*says, new, reflexion(), add, FINISH], approvals=OPEN, headless=True) as stage:
        stage.plan.plan = type(stage.plan.plan)((task(accept=accept),))
        ending = await run(stage)
        assert ending.exit_code is ExitCode.DONE
        assert not rejections(stage)
        assert fates(stage) == [Fate.FAILED, Fate.FAILED, Fate.FAILED, Fate.CHECKED]


async def test_what_the_user_rejected_is_an_observation_and_is_not_asked_again(tmp_path: Path) -> None:
    async with (
        a_stage(tmp_path, [THERE, THERE, RIGHT, FINISH], approvals=CHECKS_OPEN) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        shown = await front.reject(Permission.DIFF, "spell it right")
        await front.approve(Permission.DIFF)
        await front.over()
        (decided,) = [
            event for event in stage.events if isinstance(event, e.ActionDecided) and event.proposal_id == shown.id
        ]
        assert [(each.fate, each.reason) for each in decided.hunks] == [(HunkFate.LEFT, "spell it right")]
        (reason,) = rejections(stage)
        assert "the user rejected it: spell it right" in reason
        assert fates(stage) == [Fate.REJECTED, Fate.CHECKED]


async def test_a_reflexion_is_told_what_was_tried(tmp_path: Path) -> None:
    says = [THERE, reflexion("a typo"), change("rigth", "rihgt"), reflexion("again"), change("rihgt", "right"), FINISH]
    async with a_stage(tmp_path, says, approvals=OPEN, headless=True) as stage:
        await run(stage)
        asked = [call.messages[-1].text for call in stage.model.requests if call.messages[-1].text.endswith(QUESTION)]
        assert len(asked) == 2
        assert "Tried so far" not in asked[0]
        first, second = [line for line in asked[1].split("\n") if line.startswith("- step")]
        assert first == "- step 1, diff of answer.txt: grep -q right answer.txt failed"
        assert second == "- step 2, diff of answer.txt: grep -q right answer.txt failed"
        # And what the model said of it stands before its next step.
        assert any(message.text == reflexion("again") for message in stage.model.requests[-1].messages)


async def test_a_diff_that_the_user_rejected_may_come_again_after_a_word(tmp_path: Path) -> None:
    async with (
        a_stage(tmp_path, [RIGHT, RIGHT, FINISH], approvals=CHECKS_OPEN) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        waits = await front.gate(Permission.DIFF)
        await front.submit(RejectProposal(waits.id, "no"))
        await front.submit(SayToModel("on second thought, do it"))
        await front.passed(waits)
        await front.approve(Permission.DIFF)
        await front.over()
        assert not rejections(stage)
        assert fates(stage) == [Fate.REJECTED, Fate.CHECKED]


async def test_a_diff_that_was_passed_over_is_not_blamed_for_what_came_after_it(tmp_path: Path) -> None:
    command = call("run_command", '{"command": "echo worse > answer.txt"}')
    says = [RIGHT, command, reflexion(), change("worse", "right"), FINISH]
    approvals = Approvals(check=Approval.AUTO, command=Approval.AUTO, commit=Approval.AUTO)
    settings = Settings(tools_allowed=("run_command", "write_diff", "finish"))
    async with a_stage(tmp_path, says, approvals=approvals, settings=settings) as stage, in_front_of(stage) as front:
        await front.start()
        await front.skip(Permission.DIFF)
        kept = await front.approve(Permission.DIFF)
        assert kept.tool == KEEP_CHANGES
        await front.approve(Permission.DIFF)
        await front.over()
        assert fates(stage) == [Fate.OPEN, Fate.CHECKED]


def test_without_any_attempt_there_is_only_the_question() -> None:
    assert reflexion_request((), 0) == f"That did not work.\n\n{QUESTION}"
