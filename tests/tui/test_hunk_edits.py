"""What was chosen of a diff outlives an edit of another part of it."""

from msgspec.structs import replace
from textual.widgets import Input, TextArea

from agent_workbench.core.events import ActionProposed, Author, ProposalReplaced
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.intents import EditProposal, RejectProposal
from agent_workbench.core.patch.patch_reader import parse_patch
from agent_workbench.core.patch.selection import leave_out
from agent_workbench.core.patch.values import HunkFate, LeftOut, selectable_ids
from agent_workbench.core.proposal_kinds import DiffProposal
from agent_workbench.core.settings import Permission
from agent_workbench.engine.partial_approval import part_of, verdicts
from tests.fakes import runs
from tests.fakes.scripted_session import ScriptedSession
from tests.tui.driver import LARGE, SMALL, driving
from tests.tui.scenes import CI, HUNKS


async def test_what_was_left_stays_left_when_a_hunk_is_edited() -> None:
    first = selectable_ids(parse_patch(HUNKS))[0]
    waits = runs.proposed(Permission.DIFF, "write_diff", "P-90", HUNKS, diff=HUNKS, paths=("shop/cart.py",))
    session = ScriptedSession(*runs.opening(), *runs.started(), ActionProposed(waits))
    async with driving(session, LARGE) as bench:
        await bench.diff.hunk(1).leave("not asked for")
        await bench.diff.hunk(2).leave("off by one")
        await bench.press("n")
        edited = replace(waits, diff=HUNKS.replace("// 100", "/ 100"), edited=True)
        second = selectable_ids(parse_patch(edited.diff))[1]
        await bench.record(ActionProposed(edited))
        assert bench.diff.has_focus
        assert bench.diff.taking is not None
        assert bench.diff.taking.left == (LeftOut(first, (), "not asked for"), LeftOut(second, (), "off by one"))
        assert "hunk 1 of 3 · left: not asked for" in bench.text()
        assert "hunk 2 of 3 · left: off by one" in bench.text()
        await bench.record(ActionProposed(replace(edited, id=ProposalId("P-91"))))
        assert bench.diff.taking is None


async def test_lines_left_out_of_the_hunk_that_is_edited_stay_left_out_with_their_reason() -> None:
    waits = runs.proposed(Permission.DIFF, "write_diff", "P-90", HUNKS, diff=HUNKS, paths=("shop/cart.py",))
    session = ScriptedSession(*runs.opening(), *runs.started(), ActionProposed(waits))
    async with driving(session, LARGE) as bench:
        await bench.diff.hunk(3).point("j", "v", "space")
        bench.screen.query_one(Input).value = "no tests"
        await bench.press("enter", "e")
        assert "Edit hunk 3 of 3 · 1 of 3 lines left: no tests" in bench.text()
        area = bench.screen.query_one(TextArea)
        area.text = area.text.replace("SECOND = 20", "SECOND = 21")
        await bench.press("ctrl+s")
        (intent,) = session.intents
        assert isinstance(intent, EditProposal)
        edited = replace(waits, diff=intent.text, edited=True)
        await bench.record(ProposalReplaced(edited, "edited", Author.USER))
        last = selectable_ids(parse_patch(edited.diff))[2]
        assert bench.diff.taking is not None
        assert bench.diff.taking.left == (LeftOut(last, (0,), "no tests"),)
        assert "+SECOND = 21" in bench.diff.taking.text
        assert "FIRST" not in bench.diff.taking.text


async def test_what_was_taken_when_it_is_approved_is_no_edit() -> None:
    waits = runs.proposed(Permission.DIFF, "write_diff", "P-90", HUNKS, diff=HUNKS, paths=("shop/cart.py",))
    session = ScriptedSession(*runs.opening(), *runs.started(), ActionProposed(waits))
    async with driving(session, LARGE) as bench:
        await bench.diff.hunk(3).leave("no tests")
        patch = parse_patch(HUNKS)
        left = (LeftOut(selectable_ids(patch)[2], (), "no tests"),)
        part = part_of(runs.of_kind(DiffProposal, waits), leave_out(patch, left), verdicts(patch, left, HunkFate.TAKEN))
        await bench.record(ProposalReplaced(part, "took 2 of 3 hunks", Author.USER))
        assert bench.diff.taking is None
        assert "no longer in the diff" not in " ".join(bench.text().split())


async def test_a_reason_that_goes_with_the_lines_it_was_given_for_is_said() -> None:
    waits = runs.proposed(Permission.DIFF, "write_diff", "P-90", HUNKS, diff=HUNKS, paths=("shop/cart.py",))
    session = ScriptedSession(*runs.opening(), *runs.started(), ActionProposed(waits))
    async with driving(session, LARGE) as bench:
        await bench.diff.hunk(3).leave("no tests")
        rest = HUNKS[: HUNKS.index("--- /dev/null")]
        await bench.record(ProposalReplaced(replace(waits, diff=rest, edited=True), "edited", Author.USER))
        assert bench.diff.taking is None
        assert "no longer in the diff: no tests" in " ".join(bench.text().split())


async def test_why_hunks_were_left_is_offered_as_why_all_of_it_is_rejected() -> None:
    waits = runs.proposed(Permission.DIFF, "write_diff", "P-90", HUNKS, diff=HUNKS, paths=("shop/cart.py",))
    session = ScriptedSession(*runs.opening(), *runs.started(), ActionProposed(waits))
    async with driving(session, LARGE) as bench:
        await bench.diff.hunk(1).leave("off by one")
        await bench.diff.hunk(2).leave("no tests")
        await bench.press("0", "r", "enter")
        assert session.intents == [RejectProposal(waits.id, "off by one; no tests")]


async def test_all_unusual_files_are_named_where_there_is_little_room() -> None:
    paths = (".github/workflows/test.yml", "docs/PKG-INFO")
    waits = runs.proposed(Permission.DIFF, "write_diff", "P-90", CI, diff=CI, paths=paths, special=paths)
    async with driving(ScriptedSession(*runs.opening(), *runs.started(), ActionProposed(waits)), SMALL) as bench:
        await bench.look()
        await bench.press("a")
        assert "a again: this changes .github/workflows/test.yml, docs/PKG-INFO" in bench.text()


async def test_escape_gives_a_range_up_before_it_leaves_the_pane() -> None:
    waits = runs.proposed(Permission.DIFF, "write_diff", "P-90", HUNKS, diff=HUNKS, paths=("shop/cart.py",))
    async with driving(ScriptedSession(*runs.opening(), *runs.started(), ActionProposed(waits)), LARGE) as bench:
        await bench.press("3", "j", "v", "j", "escape")
        assert bench.diff.has_focus
        await bench.press("escape")
        assert not bench.diff.has_focus
