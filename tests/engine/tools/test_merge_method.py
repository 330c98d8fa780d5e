"""The method of a merge is chosen at its gate: each choice is shown again, and only what was shown is made."""

import asyncio
from pathlib import Path

import pytest

from agent_workbench.adapters.git.discovery import discover
from agent_workbench.adapters.git.objects import GitObjects, changes_between
from agent_workbench.adapters.git.plumbing import GitProgram, Plumbing
from agent_workbench.adapters.git.stored_commits import find_anchors, read_commit
from agent_workbench.adapters.journal.reader import verify_journal
from agent_workbench.core.events import ProposalReplaced, TaskMerged
from agent_workbench.core.history.commit_proof import (
    TrailerProof,
    approved_diff,
    prove_trailer,
    with_files,
    without_squashed,
)
from agent_workbench.core.history.journal_proof import Proof, prove_journal, read_trailers
from agent_workbench.core.intents import ApproveProposal, ChooseMergeMethod, EditProposal
from agent_workbench.core.outcomes import Accepted, Refused
from agent_workbench.core.proposal_kinds import MergeProposal
from agent_workbench.core.proposals import shown_sha
from agent_workbench.core.repo.workspace import MergeMethod
from agent_workbench.core.settings import Approval, Approvals, Permission
from tests.engine.front import in_front_of
from tests.engine.stage import FINISH, SESSION, Stage, a_stage, change
from tests.fakes.runs import of_kind

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
            assert (of_kind(MergeProposal, first).method, of_kind(MergeProposal, first).methods[1:]) == (
                MergeMethod.FAST_FORWARD,
                (MergeMethod.MERGE, MergeMethod.SQUASH),
            )
            assert isinstance(await front.outcome(ChooseMergeMethod(first.id, MergeMethod.SQUASH)), Accepted)
            squash = await front.until(lambda it: it.state.run and it.state.run.gate.waiting != first)
            assert squash.state.run is not None
            proposal = squash.state.run.gate.waiting
            assert proposal is not None
            assert of_kind(MergeProposal, proposal).method is MergeMethod.SQUASH
            assert proposal.text.startswith("[Agent] Complete T-1")
            assert "Agent-Journal" not in proposal.text
            # What was shown before does not approve it.
            stale = await front.outcome(ApproveProposal(proposal.id, shown_sha(first)))
            assert isinstance(stale, Refused)
            edited = await front.edit(Permission.MERGE, "fix: mine\n\nAs one.\n")
            assert of_kind(MergeProposal, edited).method is MergeMethod.SQUASH
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
            assert of_kind(MergeProposal, again).method is MergeMethod.SQUASH
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
            assert (of_kind(MergeProposal, first).method, of_kind(MergeProposal, again).method) == (
                MergeMethod.FAST_FORWARD,
                MergeMethod.MERGE,
            )
            await front.submit(ChooseMergeMethod(again.id, MergeMethod.REBASE))
            await front.passed(again)
            await front.approve(Permission.MERGE)
            await front.over()
        assert [event.outcome.how for event in stage.events if isinstance(event, TaskMerged)] == ["rebase"]
        assert stage.read_back() == stage.state


async def squashed(stage: Stage, text: str = "", *, onto_another: bool = True) -> None:
    """Merge the task by a squash, onto a commit of the user or the task's base; `text` is an edited message."""
    async with in_front_of(stage) as front:
        await front.start()
        first = await front.gate(Permission.MERGE)
        if onto_another:
            diverge(stage)
        await front.submit(ChooseMergeMethod(first.id, MergeMethod.SQUASH))
        await front.passed(first)
        if text:
            await front.edit(Permission.MERGE, text)
        await front.approve(Permission.MERGE)
        await front.over()


def proved(stage: Stage, revision: str = "main") -> tuple[TrailerProof, ...]:
    """Return the proofs of a commit's trailers, as `agent verify` makes them."""
    plumbing = Plumbing(*discover_plumbing(stage))
    facts = read_commit(plumbing, "sha1", revision)
    assert facts is not None
    report = verify_journal(stage.sessions / SESSION)
    journal = prove_journal(SESSION, report, find_anchors(plumbing, "sha1", {SESSION}), {})
    anchors = read_trailers(facts.commit, facts.message).anchors
    objects = GitObjects(plumbing, "sha1")
    changes = changes_between(objects, *objects.trees_of(facts.parents[0], facts.commit))
    found = [prove_trailer(facts, each, report, journal) for each in anchors]
    return without_squashed(
        [with_files(each, approved_diff(report, each.seq), changes, alone=len(anchors) == 1) for each in found]
    )


def discover_plumbing(stage: Stage) -> tuple[GitProgram, str]:
    program, paths = discover(str(stage.user.root))
    return program, paths.git_dir


@pytest.mark.slow(quick=1)
@pytest.mark.parametrize("onto_another", [True, False])
@pytest.mark.parametrize("text", ["", "fix: mine\n\nAs one.\n"])
async def test_a_squash_at_the_gate_is_proved_by_its_approval(tmp_path: Path, text: str, onto_another: bool) -> None:
    async with a_stage(tmp_path, SAYINGS, approvals=APPROVALS) as stage:
        await squashed(stage, text, onto_another=onto_another)
        merge, commit = await asyncio.to_thread(proved, stage)
        assert (merge.proof, merge.squash, merge.problems) == (Proof.GREEN, True, ())
        assert merge.approvals[-1].by == "user"
        assert (commit.proof, commit.squash) == (Proof.GREEN, False)
        assert commit.notes[-1] == "the commit that it approved was squashed into this one"


@pytest.mark.parametrize("onto_another", [True, False])
@pytest.mark.parametrize("change", ["message", "files", "parent"])
@pytest.mark.slow(quick=2)
async def test_a_changed_squash_is_not_proved(tmp_path: Path, change: str, onto_another: bool) -> None:
    async with a_stage(tmp_path, SAYINGS, approvals=APPROVALS) as stage:
        await squashed(stage, "fix: it\n", onto_another=onto_another)
        body = stage.git("log", "-1", "--format=%B", "main")
        if change == "message":
            stage.git("commit", "--quiet", "--amend", "-m", body.replace("fix: it", "feat: it"))
        elif change == "files":
            stage.user.write("answer.txt", "something else\n")
            stage.git("commit", "--quiet", "--all", "--amend", "-m", body)
        else:
            tree = stage.git("rev-parse", "main^{tree}")
            stage.git("commit", "--quiet", "--allow-empty", "-m", "Between")
            stage.git("reset", "--quiet", "--soft", "main~2")
            stage.git("commit", "--quiet", "--allow-empty", "-m", "Other")
            stage.git("update-ref", "refs/heads/main", stage.git("commit-tree", tree, "-p", "main", "-m", body))
        found = await asyncio.to_thread(proved, stage)
        expected = Proof.UNPROVABLE if change == "parent" else Proof.RED
        assert found[0].proof is expected, found[0]
        assert all(each.proof is not Proof.GREEN for each in found)
