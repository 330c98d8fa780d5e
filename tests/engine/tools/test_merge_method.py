"""The method of a merge is chosen at its gate: each choice is shown again, and only what was shown is made."""

from pathlib import Path

from agent_workbench.core.events import ProposalReplaced, TaskMerged
from agent_workbench.core.intents import ApproveProposal, ChooseMergeMethod, EditProposal
from agent_workbench.core.intents.outcomes import Accepted, Refused
from agent_workbench.core.proposals import shown_sha
from agent_workbench.core.settings import Approval, Approvals, Permission
from agent_workbench.core.workspace import MergeMethod
from tests.engine.front import in_front_of
from tests.engine.stage import FINISH, Stage, a_stage, change

APPROVALS = Approvals(diff=Approval.AUTO, check=Approval.AUTO, commit=Approval.AUTO)
SAYINGS = (change("wrong", "right"), FINISH)


def diverge(stage: Stage) -> str:
    stage.git("commit", "--quiet", "--allow-empty", "-m", "Mine")
    return stage.git("rev-parse", "HEAD")


async def test_a_squash_is_chosen_shown_and_made(tmp_path: Path) -> None:
    async with a_stage(tmp_path, SAYINGS, approvals=APPROVALS) as stage:
        async with in_front_of(stage) as front:
            await front.start()
            first = await front.gate(Permission.MERGE)
            assert (first.method, first.methods[1:]) == (
                MergeMethod.FAST_FORWARD,
                (MergeMethod.MERGE, MergeMethod.SQUASH),
            )
            assert isinstance(await front.outcome(ChooseMergeMethod(first.id, MergeMethod.SQUASH)), Accepted)
            squash = await front.until(lambda it: it.state.run and it.state.run.waiting != first)
            assert squash.state.run is not None
            proposal = squash.state.run.waiting
            assert proposal is not None
            assert proposal.method is MergeMethod.SQUASH
            assert proposal.text.startswith("[Agent] Complete T-1")
            assert "Agent-Journal" not in proposal.text
            # What was shown before does not approve it.
            stale = await front.outcome(ApproveProposal(proposal.id, shown_sha(first)))
            assert isinstance(stale, Refused)
            edited = await front.edit(Permission.MERGE, "fix: mine\n\nAs one.\n")
            assert edited.method is MergeMethod.SQUASH
            await front.approve(Permission.MERGE)
            await front.over()
        assert [event.outcome.how for event in stage.events if isinstance(event, TaskMerged)] == ["squash"]
        body = stage.git("log", "-1", "--format=%B", "main")
        assert body.startswith("fix: mine\n\nAs one.\n\nAgent-Journal: ")
        assert stage.git("rev-parse", "main") != stage.git("rev-parse", "agent/T-1")
        reasons = [event.reason for event in stage.events if isinstance(event, ProposalReplaced)]
        assert reasons == ["merge by squash", "edited"]


async def test_a_method_that_is_not_offered_and_a_forged_trailer_are_refused(tmp_path: Path) -> None:
    async with a_stage(tmp_path, SAYINGS, approvals=APPROVALS) as stage, in_front_of(stage) as front:
        await front.start()
        proposal = await front.gate(Permission.MERGE)
        refused = await front.outcome(ChooseMergeMethod(proposal.id, MergeMethod.REBASE))
        assert isinstance(refused, Refused)
        assert refused.reason == "this cannot be merged by rebase"
        forged = await front.outcome(EditProposal(proposal.id, "Merge\n\nAgent-Journal: x\n"))
        assert isinstance(forged, Refused)
        await front.skip(Permission.MERGE)
        await front.over()


async def test_the_chosen_method_stays_where_the_branch_moved_meanwhile(tmp_path: Path) -> None:
    async with a_stage(tmp_path, SAYINGS, approvals=APPROVALS) as stage:
        async with in_front_of(stage) as front:
            await front.start()
            first = await front.gate(Permission.MERGE)
            await front.submit(ChooseMergeMethod(first.id, MergeMethod.SQUASH))
            await front.passed(first)
            mine = diverge(stage)
            squash = await front.approve(Permission.MERGE)
            again = await front.gate(Permission.MERGE)
            assert again != squash
            assert again.method is MergeMethod.SQUASH
            await front.approve(Permission.MERGE)
            await front.over()
        assert stage.git("log", "-1", "--format=%P", "main") == mine


async def test_the_default_follows_the_branch(tmp_path: Path) -> None:
    async with a_stage(tmp_path, SAYINGS, approvals=APPROVALS) as stage:
        async with in_front_of(stage) as front:
            await front.start()
            await front.gate(Permission.MERGE)
            diverge(stage)
            first = await front.approve(Permission.MERGE)
            again = await front.gate(Permission.MERGE)
            assert (first.method, again.method) == (MergeMethod.FAST_FORWARD, MergeMethod.MERGE)
            await front.submit(ChooseMergeMethod(again.id, MergeMethod.REBASE))
            await front.passed(again)
            await front.approve(Permission.MERGE)
            await front.over()
        assert [event.outcome.how for event in stage.events if isinstance(event, TaskMerged)] == ["rebase"]
        assert stage.read_back() == stage.state
