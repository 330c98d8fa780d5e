"""Approval by hunk: only the shown text is applied, and the model learns which parts were left out and why."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_workbench.core.events import (
    ActionDecided,
    ActionFinished,
    PatchApplied,
    ProposalReplaced,
)
from agent_workbench.core.events.log_lines import log_line
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.intents import ApproveProposal
from agent_workbench.core.patch.application import apply_patch
from agent_workbench.core.patch.diff_text import render_patch
from agent_workbench.core.patch.patch_reader import parse_patch
from agent_workbench.core.patch.selection import HunkChoice, carry_choice, hunk_text, leave_out, with_hunk_text
from agent_workbench.core.patch.values import OWN_BOUNDS, FileContent, HunkFate, LeftOut, LineKind, patch_hash
from agent_workbench.core.proposal_kinds import DiffProposal
from agent_workbench.core.proposals import Proposal, Verdict, shown_sha
from agent_workbench.core.settings import Approval, Approvals, Permission
from agent_workbench.engine.partial_approval import part_of, verdicts
from agent_workbench.engine.session.intents import carry_out
from tests.engine.front import Front, in_front_of
from tests.engine.killing import Killed, kill_at
from tests.engine.stage import Stage, a_stage, call, reopened, task
from tests.fakes.ports import Hang, Saying

ASKED = Approvals(check=Approval.AUTO)
ANY = (task(accept=("true",)),)
LONG = "".join(f"line {number}\n" for number in range(1, 31))
START = {"long.txt": LONG, "answer.txt": "wrong\n"}
DIFF = """\
--- a/long.txt
+++ b/long.txt
@@ -1,4 +1,5 @@
 line 1
-line 2
+line two
+line two and a half
 line 3
 line 4
@@ -20,3 +21,3 @@
 line 20
-line 21
+line twenty-one
 line 22
--- a/answer.txt
+++ b/answer.txt
@@ -1 +1 @@
-wrong
+right
"""
WRITING = Hang("Thought: I")


def shown(diff: str, *left: LeftOut) -> str:
    """Return the hash of what stays of a diff, as a screen shows it."""
    return patch_hash(render_patch(leave_out(parse_patch(diff, OWN_BOUNDS), left)))


async def take(front: Front, waiting: Proposal, *left: LeftOut) -> None:
    await front.submit(ApproveProposal(waiting.id, shown_sha(waiting), left, shown(waiting.diff, *left)))


def in_workspace(stage: Stage, path: str) -> str:
    assert stage.state.run is not None
    return (Path(stage.state.run.workspace.path) / path).read_text()


PATCH = parse_patch(DIFF, OWN_BOUNDS)
HUNKS = [hunk for file in PATCH.files for hunk in file.hunks]
CHOICES = st.tuples(
    *(
        st.sets(st.sampled_from([at for at, line in enumerate(hunk.lines) if line.kind is not LineKind.CONTEXT]))
        for hunk in HUNKS
    )
)


@settings(max_examples=40)
@given(CHOICES)
def test_what_is_applied_is_the_diff_with_those_lines_left_out(chosen: tuple[set[int], ...]) -> None:
    left = tuple(LeftOut(hunk.id, tuple(lines)) for hunk, lines in zip(HUNKS, chosen, strict=True) if lines)
    rest = leave_out(PATCH, left)
    whole = DiffProposal(ProposalId("P-1"), "write_diff", DIFF, 1, DIFF)
    taken = part_of(whole, rest, verdicts(PATCH, left, HunkFate.TAKEN))
    assert not taken.diff or taken.patch == parse_patch(taken.diff, OWN_BOUNDS)
    contents = {path: FileContent(text.encode()) for path, text in START.items()}
    changes = apply_patch(taken.patch, contents, START)
    after = START | {each.path: each.after.data.decode() for each in changes if each.after is not None}
    assert after == by_hand(chosen)
    fates = [each.fate for each in taken.hunks]
    assert fates.count(HunkFate.TAKEN) == sum(not lines for lines in chosen)
    assert sum(len(each.left) for each in taken.hunks if each.fate is HunkFate.PARTLY) + sum(
        len(lines) for hunk, lines in zip(taken.hunks, chosen, strict=True) if hunk.fate is HunkFate.LEFT
    ) == sum(map(len, chosen))


def by_hand(chosen: tuple[set[int], ...]) -> dict[str, str]:
    """Return the files as somebody writes them who makes each change of the diff but the ones that are left out."""
    files = dict(START)
    for (path, hunk), left in reversed(
        [*zip([("long.txt", HUNKS[0]), ("long.txt", HUNKS[1]), ("answer.txt", HUNKS[2])], chosen, strict=True)]
    ):
        lines = files[path].splitlines(keepends=True)
        made, at = [], hunk.old_start - 1
        for number, line in enumerate(hunk.lines):
            if line.kind is LineKind.ADDED:
                made += [] if number in left else [f"{line.text}\n"]
                continue
            made += [lines[at]] if line.kind is LineKind.CONTEXT or number in left else []
            at += 1
        files[path] = "".join([*lines[: hunk.old_start - 1], *made, *lines[at:]])
    return files


async def test_what_is_taken_is_applied_and_the_rest_is_told_with_its_reasons(tmp_path: Path) -> None:
    again = DIFF[DIFF.index("--- a/answer.txt") :]
    sayings: list[Saying] = [call("write_diff", DIFF), call("write_diff", again), WRITING]
    async with (
        a_stage(tmp_path, sayings, approvals=ASKED, tasks=ANY, start=START) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        waiting = await front.gate(Permission.DIFF)
        second, third, first = (hunk.id for file in parse_patch(waiting.diff, OWN_BOUNDS).files for hunk in file.hunks)
        hunks = {hunk.id: hunk for file in parse_patch(waiting.diff, OWN_BOUNDS).files for hunk in file.hunks}
        half = next(at for at, line in enumerate(hunks[second].lines) if "and a half" in line.text)
        left = (LeftOut(second, (half,), "no halves"), LeftOut(first, reason="not yet"))
        stale = ApproveProposal(waiting.id, shown_sha(waiting), left, "another")
        assert "the diff changed after it was shown" in await front.notice(stale)
        await take(front, waiting, *left)
        await front.until(lambda it: it.live.streaming and it.live.streaming.text == WRITING.text)
        assert in_workspace(stage, "answer.txt") == "wrong\n"
        assert in_workspace(stage, "long.txt") == LONG.replace("line 2\n", "line two\n").replace(
            "line 21", "line twenty-one"
        )
        decided = next(
            event for event in stage.events if isinstance(event, ActionDecided) and event.proposal_id == waiting.id
        )
        assert [(each.id, each.fate, each.reason) for each in decided.hunks] == [
            (second, HunkFate.PARTLY, "no halves"),
            (third, HunkFate.TAKEN, ""),
            (first, HunkFate.LEFT, "not yet"),
        ]
        (applied,) = [event for event in stage.events if isinstance(event, PatchApplied)]
        assert (applied.paths, applied.patch_sha) == (("long.txt",), decided.resulting_patch_sha)
        (told,) = [
            event.observation
            for event in stage.events
            if isinstance(event, ActionFinished) and event.proposal_id == waiting.id
        ]
        assert told.startswith(
            "The user took 2 of 3 hunks, 1 of them in part. This was left out, and is not in the files:\n"
            "- long.txt:2: these lines, because: no halves\n"
            "    +line two and a half\n"
            "- answer.txt:1: all of it, because: not yet\n"
            "Applied to long.txt."
        )
        refused = stage.model.requests[-1].messages[-1].text
        assert "the user left this out of the diff of step 1, at answer.txt:1: not yet" in refused


async def test_a_diff_of_which_nothing_stays_is_rejected_with_the_reasons(tmp_path: Path) -> None:
    sayings: list[Saying] = [call("write_diff", DIFF), WRITING]
    async with (
        a_stage(tmp_path, sayings, approvals=ASKED, tasks=ANY, start=START) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        waiting = await front.gate(Permission.DIFF)
        ids = [hunk.id for file in parse_patch(waiting.diff, OWN_BOUNDS).files for hunk in file.hunks]
        await take(
            front, waiting, LeftOut(ids[0], reason="no"), *(LeftOut(each, reason="off by one") for each in ids[1:])
        )
        await front.until(lambda it: it.live.streaming and it.live.streaming.text == WRITING.text)
        (decided,) = [
            event for event in stage.events if isinstance(event, ActionDecided) and event.proposal_id == waiting.id
        ]
        assert decided.verdict is Verdict.REJECT
        assert decided.reason.startswith("long.txt:2 left out: no; long.txt:21 left out: off by one")
        assert decided.reason in stage.model.requests[-1].messages[-1].text


async def test_what_was_left_out_before_an_edit_is_named_by_the_decision_and_its_record(tmp_path: Path) -> None:
    sayings: list[Saying] = [call("write_diff", DIFF), WRITING]
    async with (
        a_stage(tmp_path, sayings, approvals=ASKED, tasks=ANY, start=START) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        waiting = await front.gate(Permission.DIFF)
        before = parse_patch(waiting.diff, OWN_BOUNDS)
        ids = {hunk.lines[1].text: hunk.id for file in before.files for hunk in file.hunks}
        first, answer = ids["line 2"], next(id for text, id in ids.items() if text in {"wrong", "right"})
        half = next(at for at, text in enumerate(hunk_text(before, first).splitlines()) if "and a half" in text)
        choice = HunkChoice((LeftOut(first, (half,), "no halves"), LeftOut(answer, (), "not yet")))
        text = hunk_text(before, first).replace("+line two\n", "+LINE TWO\n")
        edited = await front.edit(Permission.DIFF, with_hunk_text(before, first, text))
        after = parse_patch(edited.diff, OWN_BOUNDS)
        await take(front, edited, *carry_choice(choice, before, after).left)
        await front.until(lambda it: it.live.streaming and it.live.streaming.text == WRITING.text)
        assert "LINE TWO\nline 3\n" in in_workspace(stage, "long.txt")
        assert in_workspace(stage, "answer.txt") == "wrong\n"
        decided = next(
            event for event in stage.events if isinstance(event, ActionDecided) and event.proposal_id == waiting.id
        )
        assert {(each.fate, each.reason, each.left) for each in decided.hunks} == {
            (HunkFate.PARTLY, "no halves", ("+line two and a half",)),
            (HunkFate.EDITED, "", ()),
            (HunkFate.LEFT, "not yet", ()),
        }
        told = [log_line(event) for event in stage.events if isinstance(event, ProposalReplaced)][-1]
        assert "1 line left out: no halves" in told
        assert "left out: not yet" in told


async def test_a_kill_before_the_decision_keeps_what_the_user_chose(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [call("write_diff", DIFF)], approvals=ASKED, tasks=ANY, start=START) as stage:
        async with in_front_of(stage) as front:
            await front.start()
            waiting = await front.gate(Permission.DIFF)
        ids = [hunk.id for file in parse_patch(waiting.diff, OWN_BOUNDS).files for hunk in file.hunks]
    async with reopened(stage) as killed:
        kill_at(killed, ProposalReplaced)
        left = (LeftOut(ids[-1], reason="not yet"),)
        approval = ApproveProposal(waiting.id, shown_sha(waiting), left, shown(waiting.diff, *left))
        with pytest.raises(Killed):
            await carry_out(killed.session, approval)
    async with reopened(stage, [WRITING]) as again, in_front_of(again) as front:
        part = await front.approve(Permission.DIFF)
        assert part.text == waiting.text
        await front.until(lambda it: it.live.streaming and it.live.streaming.text == WRITING.text)
        assert in_workspace(again, "answer.txt") == "wrong\n"
        assert "- answer.txt:1: all of it, because: not yet" in again.model.requests[-1].messages[-1].text
