"""Changes that the user approved once: folded in the commit and the merge, while everything else is marked."""

import os
from pathlib import Path

from msgspec.structs import replace

from agent_workbench.core.approval_rules import RuleScope
from agent_workbench.core.events import TaskCommitted
from agent_workbench.core.intents import ApproveProposal, ChangeRule, SkipProposal, UndoStep
from agent_workbench.core.patch.diff_text import render_patch
from agent_workbench.core.patch.selection import leave_out
from agent_workbench.core.patch.values import LeftOut, patch_hash
from agent_workbench.core.proposal_kinds import CommitProposal
from agent_workbench.core.proposals import MAX_DIFF_LINES, is_too_long, shown_sha
from agent_workbench.core.proposed_action import TaskChange
from agent_workbench.core.settings import Approval, Approvals, Permission, Rule, Settings
from agent_workbench.views.gate.diff_pane import view_diff
from agent_workbench.views.gate.gate_bar import view_gate
from agent_workbench.views.gate.proposal_views import DiffView
from tests.engine.front import Front, in_front_of
from tests.engine.stage import ANSWER, FINISH, Stage, a_stage, call, change, task
from tests.fakes.runs import of_kind

CHECKS_OPEN = Approvals(check=Approval.AUTO)
ONCE = Approvals(check=Approval.ONCE)
RIGHT = change("wrong", "right")
TITLE = change("# Hello", "# Help", "README.md")
README = Rule(Permission.DIFF, paths=("*.md",))
ANY = (task(accept=("true",)),)


def view(front: Front) -> DiffView:
    assert front.now is not None
    return view_diff(front.now)


def folded(front: Front) -> list[int]:
    return sorted(view(front).folded)


def notes(front: Front) -> str:
    return "\n".join(block.text for block in view(front).notes)


def in_worktree(stage: Stage, path: str) -> Path:
    assert stage.state.run is not None
    return Path(stage.state.run.workspace.path) / path


async def test_what_was_approved_is_folded_in_the_commit_and_in_the_merge(tmp_path: Path) -> None:
    async with (
        a_stage(tmp_path, [TITLE, RIGHT, FINISH], approvals=CHECKS_OPEN, tasks=ANY) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        await front.approve(Permission.DIFF)
        await front.approve(Permission.DIFF)
        commit = await front.gate(Permission.COMMIT)
        assert commit.paths == of_kind(TaskChange, commit).reviewed == ("README.md", ANSWER)
        assert (folded(front), view(front).special) == ([0, 1], ())
        assert "2 files exactly as you approved them: folded" in notes(front)
        await front.approve(Permission.COMMIT)
        merge = await front.gate(Permission.MERGE)
        assert (of_kind(TaskChange, merge).reviewed, folded(front)) == (merge.paths, [0, 1])


async def test_a_diff_that_a_rule_approved_is_not_folded(tmp_path: Path) -> None:
    async with (
        a_stage(tmp_path, [RIGHT, TITLE, FINISH], approvals=CHECKS_OPEN, tasks=ANY) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        await front.gate(Permission.DIFF)
        await front.outcome(ChangeRule(README, RuleScope.SESSION))
        await front.approve(Permission.DIFF)
        commit = await front.gate(Permission.COMMIT)
        assert (of_kind(TaskChange, commit).reviewed, commit.unreviewed_paths) == ((ANSWER,), ("README.md",))
        assert (folded(front), view(front).special) == ([1], ("README.md",))
        assert "1 file you did not approve exactly so before: shown in full" in notes(front)
        await front.approve(Permission.COMMIT)
        merge = await front.gate(Permission.MERGE)
        assert (of_kind(TaskChange, merge).reviewed, folded(front)) == (
            merge.paths,
            [0, 1],
        )  # the commit has shown all of it


async def test_what_nobody_saw_is_folded_nowhere(tmp_path: Path) -> None:
    unseen = Approvals(check=Approval.AUTO, diff=Approval.AUTO, commit=Approval.AUTO)
    async with a_stage(tmp_path, [RIGHT, FINISH], approvals=unseen) as stage, in_front_of(stage) as front:
        await front.start()
        merge = await front.gate(Permission.MERGE)
        assert (of_kind(TaskChange, merge).reviewed, folded(front), view(front).special) == ((), [], (ANSWER,))
        assert "1 file you did not approve exactly so before" in notes(front)


async def test_one_line_that_a_rule_approved_unfolds_its_file(tmp_path: Path) -> None:
    more = change("# Help", "# Helped", "README.md")
    async with (
        a_stage(tmp_path, [TITLE, RIGHT, more, FINISH], approvals=CHECKS_OPEN, tasks=ANY) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        await front.approve(Permission.DIFF)
        await front.gate(Permission.DIFF)
        await front.outcome(ChangeRule(README, RuleScope.SESSION))
        await front.approve(Permission.DIFF)
        commit = await front.gate(Permission.COMMIT)
        assert "+# Helped" in commit.diff
        assert of_kind(TaskChange, commit).reviewed == (ANSWER,)


async def test_an_edit_in_the_worktree_after_the_approval_is_in_no_commit(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [RIGHT, FINISH], approvals=CHECKS_OPEN) as stage:
        async with in_front_of(stage) as front:
            await front.start()
            await front.approve(Permission.DIFF)
            commit = await front.gate(Permission.COMMIT)
            in_worktree(stage, ANSWER).write_text("right\nand mine\n")
            in_worktree(stage, "new.txt").write_text("mine\n")
            await front.approve(Permission.COMMIT)
            merge = await front.gate(Permission.MERGE)
            assert (of_kind(TaskChange, commit).reviewed, of_kind(TaskChange, merge).reviewed, merge.diff) == (
                (ANSWER,),
                (ANSWER,),
                commit.diff,
            )
        (made,) = [event for event in stage.events if isinstance(event, TaskCommitted)]
        assert stage.git("show", f"{made.commit}:{ANSWER}") == "right"


async def test_an_edit_in_the_worktree_that_the_next_diff_shows_is_reviewed_with_it(tmp_path: Path) -> None:
    more = change("right", "right indeed")
    async with (
        a_stage(tmp_path, [RIGHT, more, FINISH], approvals=CHECKS_OPEN, tasks=ANY) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        await front.approve(Permission.DIFF)
        waiting = await front.gate(Permission.DIFF)
        in_worktree(stage, ANSWER).write_text("right\nand mine\n")
        await front.submit(ApproveProposal(waiting.id, shown_sha(waiting)))
        await front.until(lambda it: "+and mine" in view_diff(it).diff and view_diff(it).proposal)
        await front.approve(Permission.DIFF)
        commit = await front.gate(Permission.COMMIT)
        assert "+and mine" in commit.diff
        assert of_kind(TaskChange, commit).reviewed == (ANSWER,)


async def test_a_part_of_a_diff_is_reviewed_as_it_was_taken(tmp_path: Path) -> None:
    both = call("write_diff", "--- a/README.md\n+++ b/README.md\n@@ -1 +1,2 @@\n-# Hello\n+# Help\n+left out\n")
    async with (
        a_stage(tmp_path, [both, FINISH], approvals=CHECKS_OPEN, tasks=ANY) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        waiting = await front.gate(Permission.DIFF)
        left = (LeftOut(waiting.patch.files[0].hunks[0].id, (2,)),)
        taken = patch_hash(render_patch(leave_out(waiting.patch, left)))
        await front.submit(ApproveProposal(waiting.id, shown_sha(waiting), left, taken))
        commit = await front.gate(Permission.COMMIT)
        assert "left out" not in commit.diff
        assert of_kind(TaskChange, commit).reviewed == ("README.md",)


async def test_new_removed_and_renamed_files_and_modes_are_reviewed_too(tmp_path: Path) -> None:
    made = call("write_diff", "--- /dev/null\n+++ b/new.sh\n@@ -0,0 +1 @@\n+echo\n")
    mode = call("write_diff", "diff --git a/new.sh b/new.sh\nold mode 100644\nnew mode 100755\n")
    gone = call("write_diff", "--- a/README.md\n+++ /dev/null\n@@ -1 +0,0 @@\n-# Hello\n")
    named = call(
        "write_diff",
        f"diff --git a/{ANSWER} b/renamed.txt\nsimilarity index 100%\nrename from {ANSWER}\nrename to renamed.txt\n",
    )
    async with (
        a_stage(tmp_path, [made, mode, gone, named, FINISH], approvals=CHECKS_OPEN, tasks=ANY) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        for _ in range(4):
            await front.approve(Permission.DIFF)
        commit = await front.gate(Permission.COMMIT)
        assert commit.paths == of_kind(TaskChange, commit).reviewed == ("README.md", ANSWER, "new.sh", "renamed.txt")
        assert folded(front) == [0, 1, 2, 3]


async def test_a_diff_that_was_undone_counts_no_more(tmp_path: Path) -> None:
    good = change("wrong", "good")
    async with (
        a_stage(tmp_path, [TITLE, RIGHT, good, FINISH], approvals=CHECKS_OPEN, tasks=ANY) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        first = await front.approve(Permission.DIFF)
        second = await front.gate(Permission.DIFF)
        await front.outcome(UndoStep(first.id))
        await front.passed(second)
        await front.approve(Permission.DIFF)
        commit = await front.gate(Permission.COMMIT)
        assert commit.paths == of_kind(TaskChange, commit).reviewed == (ANSWER,)


async def test_a_merge_that_changes_a_file_otherwise_shows_that_file(tmp_path: Path) -> None:
    start = {ANSWER: "wrong\n", "README.md": "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\n"}
    last = call("write_diff", "--- a/README.md\n+++ b/README.md\n@@ -7,2 +7,2 @@\n seven\n-eight\n+EIGHT\n")
    async with (
        a_stage(tmp_path, [last, RIGHT, FINISH], approvals=CHECKS_OPEN, start=start, tasks=ANY) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        await front.approve(Permission.DIFF)
        await front.approve(Permission.DIFF)
        await front.gate(Permission.COMMIT)
        stage.user.write("README.md", start["README.md"].replace("one", "ONE"))
        stage.user.commit("Change the beginning")
        await front.approve(Permission.COMMIT)
        merge = await front.gate(Permission.MERGE)
        assert (of_kind(TaskChange, merge).reviewed, view(front).special) == ((ANSWER,), ("README.md",))


async def test_what_a_check_wrote_is_in_no_commit(tmp_path: Path) -> None:
    writes = (task(accept=(f"echo formatted >> {ANSWER}; echo more > made.txt; true",)),)
    async with (
        a_stage(tmp_path, [RIGHT, FINISH], approvals=CHECKS_OPEN, tasks=writes) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        shown = await front.approve(Permission.DIFF)
        commit = await front.gate(Permission.COMMIT)
        assert (commit.diff, of_kind(TaskChange, commit).reviewed) == (shown.diff, (ANSWER,))
        assert not os.path.lexists(in_worktree(stage, "made.txt"))


def test_a_huge_commit_can_be_approved_only_where_all_of_it_was_shown(tmp_path: Path) -> None:
    long = "".join(f"+{number}\n" for number in range(MAX_DIFF_LINES + 1))
    diff = f"--- /dev/null\n+++ b/a\n@@ -0,0 +1,{MAX_DIFF_LINES + 1} @@\n{long}"
    shown = CommitProposal("P-1", "commit", "Commit", 1, diff, paths=("a",), reviewed=("a",))  # type: ignore[arg-type]
    assert not is_too_long(shown)
    assert is_too_long(replace(shown, reviewed=()))
    assert not is_too_long(replace(shown, reviewed=None))  # of an older journal, where that is not known


def test_the_digest_of_a_commit_covers_what_was_folded() -> None:
    shown = CommitProposal("P-1", "commit", "Commit", 1, "diff", paths=("a",))  # type: ignore[arg-type]
    digests = {shown_sha(replace(shown, reviewed=reviewed)) for reviewed in (None, (), ("a",))}
    assert len(digests) == 3


async def test_checks_that_were_approved_once_follow_an_approved_diff(tmp_path: Path) -> None:
    wrong = change("wrong", "wronger")
    better = change("wronger", "right")
    sayings = [wrong, "Reflexion: no", better, FINISH]
    async with a_stage(tmp_path, sayings, approvals=ONCE) as stage, in_front_of(stage) as front:
        await front.start()
        await front.approve(Permission.CHECK)
        await front.gate(Permission.DIFF)
        assert front.now is not None
        assert "then the checks run" in view_gate(front.now).more
        await front.approve(Permission.DIFF)
        await front.approve(Permission.DIFF)
        await front.approve(Permission.COMMIT)
        assert len(stage.shell.lines) == 3


async def test_checks_are_asked_about_again_where_a_rule_approved_the_diff(tmp_path: Path) -> None:
    async with (
        a_stage(tmp_path, [TITLE, RIGHT, FINISH], approvals=ONCE, tasks=ANY) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        await front.gate(Permission.CHECK)
        await front.outcome(ChangeRule(README, RuleScope.SESSION))
        await front.approve(Permission.CHECK)
        await front.approve(Permission.CHECK)  # of the diff that nobody read
        await front.gate(Permission.DIFF)
        assert front.now is not None
        assert "then the checks run" not in view_gate(front.now).more
        await front.approve(Permission.DIFF)
        await front.gate(Permission.CHECK)


async def test_checks_that_were_skipped_or_asked_for_by_the_model_wait(tmp_path: Path) -> None:
    tests = call("run_tests")
    async with a_stage(tmp_path, [tests, RIGHT, FINISH], approvals=ONCE) as stage, in_front_of(stage) as front:
        await front.start()
        await front.skip(Permission.CHECK)
        await front.skip(Permission.CHECK)
        await front.approve(Permission.DIFF)
        await front.gate(Permission.CHECK)


async def test_ask_asks_each_time(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [RIGHT, FINISH], approvals=Approvals()) as stage, in_front_of(stage) as front:
        assert Settings().approvals.check is Approval.ONCE
        assert stage.settings.approvals.check is Approval.ONCE
        await front.start()
        await front.approve(Permission.CHECK)
        await front.approve(Permission.DIFF)
        await front.approve(Permission.COMMIT)
        waiting = await front.gate(Permission.MERGE)
        await front.submit(SkipProposal(waiting.id))
