"""What the user's own git would do is said before the work begins, and where a commit or a merge is decided."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_workbench.core.errors import RepoError
from agent_workbench.core.events import ActionProposed, TaskStarted
from agent_workbench.core.proposal_kinds import CommitProposal, MergeProposal
from agent_workbench.core.proposed_action import TaskChange
from agent_workbench.core.settings import Approval, Permission
from agent_workbench.engine.session.unattended import run_unattended
from agent_workbench.views.gate.notes import commit_notes, merge_notes
from tests.engine.front import in_front_of
from tests.engine.stage import FINISH, OPEN, SESSION, T1, Stage, a_stage, change
from tests.fakes.runs import of_kind

RIGHT = change("wrong", "right")


async def run(stage: Stage) -> None:
    await run_unattended(stage.session, stage.recorder, (T1,))


async def test_the_gates_say_what_git_would_do(tmp_path: Path) -> None:
    approvals = replace(OPEN, commit=Approval.ASK, merge=Approval.ASK)
    async with a_stage(tmp_path, [RIGHT, FINISH], approvals=approvals) as stage, in_front_of(stage) as front:
        hook = stage.user.write(".git/hooks/pre-commit", "#!/bin/sh\nexit 1\n")
        hook.chmod(0o755)
        stage.git("config", "commit.gpgSign", "true")
        await front.start()
        commit = of_kind(CommitProposal, await front.gate(Permission.COMMIT))
        await front.approve(Permission.COMMIT)
        merge = of_kind(MergeProposal, await front.gate(Permission.MERGE))
        for notes in (commit_notes(SESSION, commit), merge_notes(merge)):
            (said,) = [each.text for each in notes if "pre-commit" in each.text]
            assert "commit.gpgSign" in said
        assert stage.state.run is not None
        assert f"git merge --no-ff --no-commit {(stage.state.run.commit or '')[:7]}" in merge.left_out


async def test_nothing_is_said_of_a_plain_repository(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [RIGHT, FINISH], approvals=OPEN) as stage:
        await run(stage)
        shown = [each.proposal for each in stage.events if isinstance(each, ActionProposed)]
        assert not [each for each in shown if isinstance(each, TaskChange) and each.left_out]


async def test_work_without_an_author_does_not_begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    async with a_stage(tmp_path, [RIGHT]) as stage:
        stage.git("config", "user.useConfigOnly", "true")
        with pytest.raises(RepoError):
            await run(stage)
        assert not [each for each in stage.events if isinstance(each, TaskStarted)]
