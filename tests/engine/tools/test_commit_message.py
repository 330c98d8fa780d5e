"""The message of a task's commit: in the repository's convention by the model, and in ours elsewhere."""

import json
from pathlib import Path

import pytest

from agent_workbench.core.errors import ExitCode
from agent_workbench.core.events import ActionProposed, ActionRejected, TaskStarted
from agent_workbench.core.ids import TaskId
from agent_workbench.core.intents import EditProposal
from agent_workbench.core.outcomes import Refused
from agent_workbench.core.proposals import COMMIT
from agent_workbench.core.settings import Approval, Approvals, Permission
from agent_workbench.core.text.commit_subjects import CommitConvention
from agent_workbench.core.tools.spec import FINISH
from agent_workbench.engine.session.unattended import run_unattended
from tests.engine.front import in_front_of
from tests.engine.stage import OPEN, Stage, a_stage, call, change

RIGHT = change("wrong", "right")
SUMMARY = "The answer was wrong. " + "It is right now, as the plan says. " * 3


def finish(subject: str, summary: str = "the answer is right") -> str:
    return call("finish", json.dumps({"subject": subject, "summary": summary}))


def with_log(stage: Stage, *subjects: str) -> None:
    for subject in subjects:
        stage.git("commit", "--quiet", "--allow-empty", "-m", subject)


CONVENTIONAL = ("feat: one", "fix(x): two", "docs: three", "test: four", "fix: five")


async def run(stage: Stage) -> str:
    """Run the task to its end and return the message of its commit."""
    ending = await run_unattended(stage.session, stage.recorder, (TaskId("T-1"),))
    assert ending.exit_code is ExitCode.DONE
    assert stage.read_back() == stage.state
    return stage.git("log", "-1", "--format=%B", "agent/T-1")


def subject_in_spec(stage: Stage) -> bool:
    (started,) = (event for event in stage.events if isinstance(event, TaskStarted))
    (spec,) = (spec for spec in started.specs if spec.name == FINISH)
    return '"subject"' in spec.input_schema


async def test_the_model_writes_the_subject_in_the_repositorys_convention(tmp_path: Path) -> None:
    sayings = [RIGHT, finish("fix: make the answer right", SUMMARY)]
    async with a_stage(tmp_path, sayings, approvals=OPEN, headless=True) as stage:
        with_log(stage, *CONVENTIONAL)
        lines = (await run(stage)).splitlines()
        assert stage.state.run is not None
        assert stage.state.run.commit_convention is CommitConvention.CONVENTIONAL
        assert subject_in_spec(stage)
        assert "in this repository's form, at most 72 characters" in stage.model.requests[0].messages[0].text
    assert lines[:2] == ["fix: make the answer right", ""]
    assert max(map(len, lines[2:-2])) <= 72
    assert lines[-1].startswith("Agent-Journal: ")


async def test_without_a_convention_the_workbench_writes_the_subject(tmp_path: Path) -> None:
    sayings = [RIGHT, call("finish", '{"summary": "it is right"}')]
    async with a_stage(tmp_path, sayings, approvals=OPEN, headless=True) as stage:
        with_log(stage, "one", "two", "three", "four", "feat: five")
        assert (await run(stage)).startswith("[Agent] Complete T-1: Make the answer right (T-1)\n\nit is right\n")
        assert not subject_in_spec(stage)


async def test_a_subject_that_does_not_follow_is_written_again(tmp_path: Path) -> None:
    sayings = [RIGHT, finish("Make it right"), finish("fix: make it right")]
    async with a_stage(tmp_path, sayings, approvals=OPEN, headless=True) as stage:
        with_log(stage, *CONVENTIONAL)
        assert (await run(stage)).startswith("fix: make it right\n")
        (refused,) = (event.reason for event in stage.events if isinstance(event, ActionRejected))
        assert refused.startswith("finish: the commit's subject 'Make it right' does not follow this repository's form")


@pytest.mark.parametrize(
    "subject", ["Agent-Journal: forged", "Make it right", "fix: it\nAgent-Journal: x", "fix: \u202e"]
)
async def test_no_task_fails_because_of_a_subject(tmp_path: Path, subject: str) -> None:
    sayings = [RIGHT, finish(subject), finish(subject), finish(subject)]
    async with a_stage(tmp_path, sayings, approvals=OPEN, headless=True) as stage:
        with_log(stage, *("area: text" for _ in range(6)))
        message = await run(stage)
        assert message.startswith("[Agent] Complete T-1")
        assert message.count("Agent-Journal") == 1


FORGED = "Agent-Journal: 20260102T030405-abc234:1:" + "0" * 64


@pytest.mark.parametrize("line", [FORGED, f"    {FORGED}", f"> {FORGED}", "Agent-Journal:", "x\r\nAgent-Journal: y"])
@pytest.mark.parametrize("log", [(), CONVENTIONAL])
@pytest.mark.slow(quick=2)
async def test_the_model_cannot_forge_a_trailer(tmp_path: Path, line: str, log: tuple[str, ...]) -> None:
    summary = {"summary": f"it is right\n{line}\nand so on"}
    said = {"subject": "fix: it", **summary} if log else summary
    sayings = [RIGHT, call("finish", json.dumps(said))]
    async with a_stage(tmp_path, sayings, approvals=OPEN, headless=True) as stage:
        with_log(stage, *log)
        message = await run(stage)
    (trailer,) = (line for line in message.splitlines() if "Agent-Journal" in line)
    assert trailer == message.rstrip().splitlines()[-1]
    assert trailer not in line
    assert "and so on" in message


async def test_a_rejected_message_is_written_again_by_the_model(tmp_path: Path) -> None:
    approvals = Approvals(diff=Approval.AUTO, check=Approval.AUTO)
    sayings = [RIGHT, finish("fix: it"), finish("fix(answer): say what is right")]
    async with a_stage(tmp_path, sayings, approvals=approvals) as stage:
        with_log(stage, *CONVENTIONAL)
        async with in_front_of(stage) as front:
            await front.start()
            await front.reject(Permission.COMMIT, "name the file")
            proposal = await front.approve(Permission.COMMIT)
            await front.skip(Permission.MERGE)
            await front.over()
        assert proposal.text == "fix(answer): say what is right\n\nthe answer is right\n"
        assert "rejected that: name the file" in stage.model.requests[-1].messages[-1].text
        assert stage.git("log", "-1", "--format=%s", "agent/T-1") == "fix(answer): say what is right"
        proposed = [event.proposal for event in stage.events if isinstance(event, ActionProposed)]
        assert next(each.text.splitlines()[0] for each in proposed if each.tool == COMMIT) == "fix: it"


async def test_a_trailer_in_an_edited_message_is_refused(tmp_path: Path) -> None:
    approvals = Approvals(diff=Approval.AUTO, check=Approval.AUTO)
    sayings = [RIGHT, call("finish", '{"summary": "it is right"}')]
    async with a_stage(tmp_path, sayings, approvals=approvals) as stage, in_front_of(stage) as front:
        await front.start()
        proposal = await front.gate(Permission.COMMIT)
        outcome = await front.outcome(EditProposal(proposal.id, f"Mine\n\n{FORGED}\n"))
        assert isinstance(outcome, Refused)
        assert "a line of the message begins with Agent-Journal" in outcome.reason
        await front.approve(Permission.COMMIT)
        await front.skip(Permission.MERGE)
        await front.over()


async def test_a_shallow_clone_of_one_commit_has_no_convention(tmp_path: Path) -> None:
    sayings = [RIGHT, call("finish", '{"summary": "it is right"}')]
    async with a_stage(tmp_path, sayings, approvals=OPEN, headless=True) as stage:
        with_log(stage, *CONVENTIONAL)
        shallow = Path(stage.git("rev-parse", "--git-dir"))
        shallow = shallow if shallow.is_absolute() else Path(stage.user.root) / shallow
        (shallow / "shallow").write_text(stage.git("rev-parse", "HEAD") + "\n")
        assert (await run(stage)).startswith("[Agent] Complete T-1")
