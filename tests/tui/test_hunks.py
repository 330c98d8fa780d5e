"""A diff at the gate is taken by hunk and by line: what is approved is what was shown of it."""

import pytest
from msgspec.structs import replace
from textual.widgets import TextArea

from agent_workbench.core.events import ActionProposed
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.intents import ApproveProposal, EditProposal
from agent_workbench.core.patch.diff_text import render_patch
from agent_workbench.core.patch.patch_reader import parse_patch
from agent_workbench.core.patch.selection import leave_out
from agent_workbench.core.patch.values import LeftOut, patch_hash, selectable_ids
from agent_workbench.core.proposals import Proposal, shown_sha
from agent_workbench.core.settings import Permission
from agent_workbench.tui.session.window import AppEnvironment
from tests.fakes import runs
from tests.fakes.scripted_session import ScriptedSession
from tests.tui.driver import LARGE, SMALL, driving
from tests.tui.scenes import CI, HUNKS

PATCH = parse_patch(HUNKS)
FIRST, SECOND, NEW = selectable_ids(PATCH)


def proposal(diff: str, *, special: tuple[str, ...] = ()) -> Proposal:
    return runs.proposed(
        Permission.DIFF, "write_diff", "P-90", diff, diff=diff, paths=("shop/cart.py",), special=special
    )


def waiting(each: Proposal) -> ScriptedSession:
    return ScriptedSession(*runs.opening(), *runs.started(), ActionProposed(each))


async def test_a_hunk_that_is_left_goes_back_with_its_reason_and_the_rest_is_approved() -> None:
    async with driving(waiting(proposal(HUNKS)), LARGE) as bench:
        await bench.diff.hunk(2).leave("off by one")
        assert "hunk 2 of 3 · left: off by one" in bench.text()
        assert "taking 2 of 3 hunks, +4 −1" in bench.text()
        await bench.resize(*SMALL)
        await bench.gate.approve()
        left = (LeftOut(SECOND, (), "off by one"),)
        result = patch_hash(render_patch(leave_out(PATCH, left)))
        sha = shown_sha(proposal(HUNKS))
        assert bench.session.intents == [ApproveProposal(ProposalId("P-90"), sha, left, result)]


async def test_a_range_of_lines_is_left_and_what_results_is_shown() -> None:
    async with driving(waiting(proposal(HUNKS)), LARGE) as bench:
        await bench.press("3", "n", "n", "j", "v", "j", "space", "enter")
        assert bench.diff.taking is not None
        assert bench.diff.taking.left == (LeftOut(NEW, (0, 1)),)
        await bench.press("=")
        shown = bench.text()
        assert "what would be applied: taking 3 of 3 hunks, +5 −2" in shown
        assert "THIRD" in shown
        assert "FIRST" not in shown
        assert "all of it: =" in shown
        assert "take or leave" not in shown
        await bench.press("=")
        assert "FIRST" in bench.text()


async def test_a_hunk_thought_better_of_is_taken_again_and_nothing_cannot_be_approved() -> None:
    async with driving(waiting(proposal(runs.WRONG)), LARGE) as bench:
        await bench.press("3", "space", "escape")
        assert bench.diff.taking is None
        await bench.press("space", "enter", "0")
        await bench.look()
        await bench.press("a")
        assert bench.session.intents == []
        assert "nothing would be taken: r rejects it" in bench.text()
        await bench.diff.hunk(1).take()
        assert bench.diff.taking is None


@pytest.mark.slow
async def test_what_was_left_counts_for_no_other_diff() -> None:
    async with driving(waiting(proposal(HUNKS)), LARGE) as bench:
        await bench.press("3", "space", "enter")
        assert bench.diff.taking is not None
        await bench.record(ActionProposed(replace(proposal(runs.RIGHT), id=ProposalId("P-91"))))
        assert bench.diff.taking is None


async def test_nothing_is_left_in_a_recording() -> None:
    async with driving(waiting(proposal(HUNKS)).as_replay(), LARGE) as bench:
        await bench.press("3", "space", "e")
        assert bench.diff.taking is None
        assert bench.screen.name == "workbench"
        assert "●" not in "".join(row for row in bench.text().splitlines() if "@@" in row)


async def test_a_hunk_is_edited_by_itself() -> None:
    async with driving(waiting(proposal(HUNKS))) as bench:
        await bench.press("3", "n", "e")
        area = bench.screen.query_one(TextArea)
        assert area.text.startswith(" def discounted")
        area.text = area.text.replace("// 100", "/ 100")
        await bench.press("ctrl+s")
        (intent,) = bench.session.intents
        assert isinstance(intent, EditProposal)
        assert intent.text == render_patch(PATCH).replace("// 100", "/ 100")


async def test_an_unusual_file_is_asked_about_twice() -> None:
    async with driving(waiting(proposal(CI, special=(".github/workflows/test.yml",)))) as bench:
        await bench.look()
        await bench.press("a")
        assert "a again: this changes .github/workflows/test.yml" in bench.text()
        await bench.press("a")
        assert bench.session.intents == []
        await bench.look()
        await bench.press("a")
        assert len(bench.session.intents) == 1


@pytest.mark.slow
async def test_both_sides_beside_each_other_show_every_line_and_folded_files_are_not_seen() -> None:
    async with driving(waiting(proposal(HUNKS)), (200, 24)) as bench:
        await bench.press("3", "z")
        assert "│" in next(line for line in bench.text().splitlines() if "return sum" in line)[2:-2]
        while bench.diff.unseen:
            before = bench.diff.unseen
            await bench.look()
            await bench.press("0", "a", "3")
            assert bench.diff.unseen < before
    async with driving(waiting(proposal(HUNKS)), SMALL) as bench:
        unseen = bench.diff.unseen
        assert unseen
        await bench.press("3", "o")
        assert bench.diff.unseen >= unseen - 8
        assert "folded" in bench.text()
        await bench.gate.approve()
        assert "folded" not in bench.text()
        assert len(bench.session.intents) == 1


async def test_where_an_editor_cannot_have_the_terminal_it_is_said_so() -> None:
    async with driving(waiting(proposal(runs.WRONG))) as bench:

        async def edit(text: str, suffix: str) -> str:
            raise AssertionError(text + suffix)

        bench.app.environment = AppEnvironment(edit_text=edit)
        await bench.press("E")
        assert "an editor cannot have this terminal" in " ".join(bench.text().split())
        assert bench.session.intents == []
