"""Number of parses between the model's text and the commit: one, as the proposal carries the patch."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from agent_workbench.core.events import ActionProposed, ProposalReplaced, TaskCommitted
from agent_workbench.core.intents import ApproveProposal, EditProposal
from agent_workbench.core.patch import patch_reader
from agent_workbench.core.patch.diff_sections import Mode, ScannedDiff, scan_sections
from agent_workbench.core.patch.diff_text import render_patch
from agent_workbench.core.patch.patch_reader import parse_patch
from agent_workbench.core.patch.selection import leave_out
from agent_workbench.core.patch.values import OWN_BOUNDS, LeftOut, patch_hash
from agent_workbench.core.proposals import Proposal, shown_sha
from agent_workbench.core.settings import Approval, Approvals, Permission
from tests.engine.front import in_front_of
from tests.engine.stage import ANSWER, FINISH, OPEN, Stage, a_stage, call, change, diff, reopened, task
from tests.engine.test_executor import run

ASKED = Approvals(check=Approval.AUTO)
WRONG = f"--- a/{ANSWER}\n+++ b/{ANSWER}\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n@@ -9,2 +9,2 @@\n nine\n-ten\n+10\n"
LINES = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n"


@pytest.fixture
def parses(monkeypatch: pytest.MonkeyPatch) -> list[Mode]:
    """Every reading of a text as a diff: all of them go through the scanner."""
    found: list[Mode] = []

    def counting(lines: Sequence[str], mode: Mode) -> ScannedDiff:
        found.append(mode)
        return scan_sections(lines, mode)

    monkeypatch.setattr(patch_reader, "scan_sections", counting)
    return found


def proposals(stage: Stage) -> list[Proposal]:
    found = [event.proposal for event in stage.events if isinstance(event, ActionProposed | ProposalReplaced)]
    return [each for each in found if each.kind is Permission.DIFF]


async def test_the_model_s_diff_is_parsed_once_until_its_commit(tmp_path: Path, parses: list[Mode]) -> None:
    async with a_stage(tmp_path, [change("wrong", "right"), FINISH], approvals=OPEN, headless=True) as stage:
        assert (await run(stage)).reason == "T-1 done: committed"
        assert any(isinstance(event, TaskCommitted) for event in stage.events)
        assert parses == [Mode.CONSTRAINED]
        (made,) = proposals(stage)
        assert made.patch == parse_patch(made.diff, OWN_BOUNDS)


async def test_a_choice_among_hunks_parses_nothing(tmp_path: Path, parses: list[Mode]) -> None:
    sayings = [call("write_diff", WRONG), FINISH]
    tasks = (task(accept=("true",)),)
    async with (
        a_stage(tmp_path, sayings, tasks=tasks, start={ANSWER: LINES}, approvals=ASKED) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        waiting = await front.gate(Permission.DIFF)
        left = (LeftOut(waiting.patch.files[0].hunks[0].id),)
        shown = patch_hash(render_patch(leave_out(waiting.patch, left)))
        await front.submit(ApproveProposal(waiting.id, shown_sha(waiting), left, shown))
        await front.approve(Permission.COMMIT)
        await front.until(lambda it: it.state.run and it.state.run.commit)
        assert len(parses) == 1
        whole, part = proposals(stage)
        assert part.patch == parse_patch(part.diff, OWN_BOUNDS) != whole.patch


async def test_an_edit_is_parsed_once_like_the_model_s_text(tmp_path: Path, parses: list[Mode]) -> None:
    async with (
        a_stage(tmp_path, [change("wrong", "left"), FINISH], approvals=ASKED) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        waiting = await front.gate(Permission.DIFF)
        assert len(parses) == 1
        await front.submit(EditProposal(waiting.id, diff("wrong", "right")))
        await front.until(lambda it: it.state.run and it.state.run.gate.proposal and it.state.run.gate.proposal.edited)
        await front.approve(Permission.DIFF)
        await front.approve(Permission.COMMIT)
        await front.until(lambda it: it.state.run and it.state.run.commit)
        assert parses == [Mode.CONSTRAINED, Mode.STRICT]


async def test_a_proposal_from_a_journal_is_parsed_when_it_is_decided_and_not_again(
    tmp_path: Path, parses: list[Mode]
) -> None:
    async with a_stage(tmp_path, [change("wrong", "right")], approvals=ASKED) as stage, in_front_of(stage) as front:
        await front.start()
        await front.gate(Permission.DIFF)
    assert parses == [Mode.CONSTRAINED]
    async with reopened(stage, [FINISH]) as again, in_front_of(again) as front:
        assert parses == [Mode.CONSTRAINED]
        await front.approve(Permission.DIFF)
        await front.approve(Permission.COMMIT)
        await front.until(lambda it: it.state.run and it.state.run.commit)
        assert parses == [Mode.CONSTRAINED, Mode.STRICT]
