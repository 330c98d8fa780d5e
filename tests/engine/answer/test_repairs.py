"""A damaged diff is shown as it would be made, with what was mended; the model is told of it when it is done."""

import threading
from pathlib import Path
from types import ModuleType

import pytest

from agent_workbench.core.events import ActionFinished, ActionProposed, ActionRejected
from agent_workbench.core.intents import EditProposal
from agent_workbench.core.patch.patch_reader import parse_patch
from agent_workbench.core.repo.retrieval import Chunk
from agent_workbench.core.settings import Approval, Approvals, Permission
from agent_workbench.engine.rerun import rerun
from agent_workbench.engine.tools import commit, write_diff
from tests.engine.front import in_front_of
from tests.engine.stage import ANSWER, FINISH, OPEN, Stage, a_stage, call, change, diff, reflexion
from tests.engine.test_executor import run
from tests.fakes.ports import GivenChunks

CHECKS_OPEN = Approvals(check=Approval.AUTO)
AROUND = "what stood around the diff was left out"


def fenced(text: str) -> str:
    return f"Here it is:\n```diff\n{text}```\n"


def told_by(stage: Stage) -> list[str]:
    return [event.observation for event in stage.events if isinstance(event, ActionFinished)]


async def test_a_repair_is_shown_at_the_gate_and_told_to_the_model(tmp_path: Path) -> None:
    said = call("write_diff", diff("wrong", "right").replace(f"+++ b/{ANSWER}\n", ""))
    async with (
        a_stage(tmp_path, [said, change("right", "wrong")], approvals=CHECKS_OPEN) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        shown = await front.approve(Permission.DIFF)
        (mended,) = shown.repaired
        assert mended.endswith("the lines --- and +++ were completed")
        assert parse_patch(shown.diff).paths == (ANSWER,)
        await front.until(lambda it: f"Repaired in your diff: {mended}." in "\n".join(told_by(stage)))


async def test_what_large_files_take_time_for_is_done_aside_from_the_screens_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: dict[str, set[int]] = {}

    def watched(module: ModuleType, name: str) -> None:
        work = getattr(module, name)

        def watching(*arguments: object) -> object:
            done.setdefault(name, set()).add(threading.get_ident())
            return work(*arguments)

        monkeypatch.setattr(module, name, watching)

    for name in ("read_diff", "fit_diff", "fit_constrained_diff", "apply_patch", "compare_contents"):
        watched(write_diff, name)
    watched(commit, "render_changes")
    repaired = call("write_diff", diff("wrong", "rigth").replace(f"+++ b/{ANSWER}\n", ""))
    chunks = GivenChunks((Chunk(ANSWER, 1, 1, "wrong", 1.0),))
    sayings = [repaired, reflexion(), change("rigth", "right"), FINISH]
    async with a_stage(tmp_path, sayings, approvals=OPEN, headless=True, retriever=chunks) as stage:
        assert (await run(stage)).reason == "T-1 done: committed"
    assert set(done) == {
        *("read_diff", "fit_diff", "apply_patch", "render_changes"),
        *("compare_contents", "fit_constrained_diff"),
    }
    assert threading.get_ident() not in set().union(*done.values())


async def test_an_edit_at_the_gate_is_fitted_in_the_same_way(tmp_path: Path) -> None:
    async with (
        a_stage(tmp_path, [change("wrong", "left")], approvals=CHECKS_OPEN) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        waiting = await front.gate(Permission.DIFF)
        assert waiting.repaired == ()
        await front.submit(EditProposal(waiting.id, fenced(diff("wrong", "right"))))
        await front.until(lambda it: it.state.run and it.state.run.gate.proposal and it.state.run.gate.proposal.edited)
        edited = await front.gate(Permission.DIFF)
        assert edited.repaired == (AROUND,)
        assert "+right" in edited.diff


async def test_a_diff_that_cannot_be_placed_for_certain_is_refused_with_the_nearest_place(tmp_path: Path) -> None:
    async with (
        a_stage(tmp_path, [change("wrng", "right"), change("wrong", "right")], approvals=CHECKS_OPEN) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        await front.gate(Permission.DIFF)
        (refused,) = [event for event in stage.events if isinstance(event, ActionRejected)]
        assert "nearest is line 1" in refused.reason
        assert "expected 'wrng', found 'wrong'" in refused.reason


@pytest.mark.parametrize(
    "written",
    [
        diff("wrong", "rigth").replace(f"+++ b/{ANSWER}\n", ""),
        fenced(diff("wrong", "rigth")),
    ],
    ids=["header", "around"],
)
async def test_a_diff_of_which_headers_were_mended_is_what_was_written(tmp_path: Path, written: str) -> None:
    sayings = [call("write_diff", written), reflexion(), change("rigth", "right"), FINISH]
    async with a_stage(tmp_path, sayings, approvals=OPEN, headless=True) as stage:
        assert (await run(stage)).reason == "T-1 done: committed"
        first, _ = [
            event.proposal for event in stage.events if isinstance(event, ActionProposed) and event.proposal.diff
        ][:2]
        assert first.repaired
        assert f"The lines are as in your diff: {ANSWER}:1" in stage.model.requests[1].messages[-1].text
        assert "not quite yours" not in stage.model.requests[1].messages[-1].text
        assert {again.difference for again in rerun(stage.journal())} == {None}


async def test_a_diff_of_which_lines_were_mended_is_not(tmp_path: Path) -> None:
    before = {ANSWER: "if True:\n    one = 1\n    two = 2\n"}
    written = f"--- a/{ANSWER}\n+++ b/{ANSWER}\n@@ -1,3 +1,3 @@\n if True:\n-\tone = 1\n+\tone = 3\n \ttwo = 2\n"
    sayings = [call("write_diff", written), reflexion(), change("if True:", "right"), FINISH]
    async with a_stage(tmp_path, sayings, approvals=OPEN, headless=True, start=before) as stage:
        assert (await run(stage)).reason == "T-1 done: committed"
        asked = stage.model.requests[1].messages[-1].text
        assert " now reads:\nif True:\n    one = 3\n" in asked


async def test_a_change_that_no_diff_can_show_is_refused_and_the_run_goes_on(tmp_path: Path) -> None:
    latin = "--- a/latin.txt\n+++ b/latin.txt\n@@ -2 +2 @@\n-two\n+2\n"
    sayings = [call("write_diff", latin), change("wrong", "right"), FINISH]
    async with a_stage(tmp_path, sayings, approvals=OPEN, headless=True) as stage:
        (tmp_path / "repo" / "latin.txt").write_bytes(b"caf\xe9\ntwo\n")
        stage.git("add", "latin.txt")
        stage.git("commit", "-qm", "latin")
        assert (await run(stage)).reason == "T-1 done: committed"
        (refused,) = [event.reason for event in stage.events if isinstance(event, ActionRejected)]
        assert "latin.txt is not UTF-8 text, so no diff can show its change" in refused
