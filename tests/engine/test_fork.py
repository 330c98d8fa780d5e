"""A fork stands where its parent stood, with files, notes and context as they were, and touches nothing of it."""

import asyncio
from pathlib import Path

import pytest

from agent_workbench.adapters.git.repository import Repository
from agent_workbench.adapters.journal.reader import verify_journal
from agent_workbench.adapters.journal.redaction import Redactor
from agent_workbench.adapters.journal.session_store import ForkedJournal
from agent_workbench.core import events as e
from agent_workbench.core.errors import UsageError, WorkspaceError
from agent_workbench.core.fold import fold, fold_all
from agent_workbench.core.ids import CommitId, SessionId, TaskId
from agent_workbench.core.intents import AbortTask
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.repo.workspace import Checkpoint, WorkspaceFacts, WorkspaceRequest
from agent_workbench.core.settings import Approval, Approvals, Permission
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.engine.flow import Close, Execute, Idle, Recover, RollBack, next_move
from agent_workbench.engine.fork import RAN, TASK_ENDS, ForkServices, fork_point
from agent_workbench.engine.prompt.messages import build_parts, prompt_sha, to_messages
from tests.engine.front import in_front_of
from tests.engine.stage import FINISH, T1, Stage, a_stage, call, change, reflexion, reopened
from tests.fakes.ports import TickingClock

CHECKS_OPEN = Approvals(check=Approval.AUTO)
CHILD, GRANDCHILD = SessionId("20260102T030406-bcd345"), SessionId("20260102T030407-cde456")
SAYINGS = [call("note", '{"text": "it is in answer.txt"}'), change("wrong", "bad"), reflexion(), change("bad", "right")]
FORKED = e.SessionForked("0", WorkspaceFacts("/child", "agent/T-1-bcd345", CommitId("b"), "t"), None)


async def tell(stage: Stage) -> None:
    """Let a task go wrong once and be done then; leave the session."""
    async with in_front_of(stage) as front:
        await front.start()
        for kind in (Permission.DIFF, Permission.DIFF, Permission.COMMIT):
            await front.approve(kind)
        await front.skip(Permission.MERGE)
        await front.over()


def forking(stage: Stage, child: SessionId) -> ForkServices:
    journal = ForkedJournal(stage.sessions / child, Redactor({}), lambda _: None)
    return ForkServices(
        journal, Repository(stage.user.root, stage.sessions.parent / "state"), stage.ports.memory, TickingClock(), "0"
    )


def seq_of(events: tuple[e.Recorded, ...], kind: type[e.Event], nth: int = 0) -> int:
    return [each.seq for each in events if isinstance(each.event, kind)][nth]


async def test_a_fork_goes_another_way_and_its_parent_stays(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [*SAYINGS, FINISH], approvals=CHECKS_OPEN) as stage:
        await tell(stage)
        events, folder = stage.journal(), stage.sessions / stage.state.session
        before = {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
        commit = stage.git("rev-parse", "agent/T-1")
        # The first diff is applied at this moment, so it waits again in the fork.
        point = fork_point(events, seq_of(events, e.PatchApplied))
        assert (type(events[point.state.seq].event), point.why) == (e.ActionProposed, RAN)
        await forking(stage, CHILD).fork(events, point, CHILD)
        await stage.ports.memory.write_scratchpad(T1, "", "of the user, later\n")

        async with reopened(stage, [change("wrong", "right"), FINISH], session=CHILD) as child:
            assert child.state.parent == stage.state.session
            assert (child.state.parent_seq, child.state.session) == (point.state.seq, CHILD)
            async with in_front_of(child) as front:
                await front.reject(Permission.DIFF, "not bad")
                await front.approve(Permission.DIFF)
                await front.approve(Permission.COMMIT)
                assert child.state.run is not None
                assert Path(child.state.run.workspace.path, "answer.txt").read_text() == "right\n"
                repository = Repository(child.user.root, child.sessions.parent / "state")
                base, tree = child.state.run.workspace.base, child.state.run.tree
                changes = await repository.changes_between(base, tree)
                assert [(each.path, each.after.data) for each in changes if each.after] == [("answer.txt", b"right\n")]
                assert [each.path for each in await repository.diff_stat(base, tree)] == ["answer.txt"]
                await front.skip(Permission.MERGE)
                await front.over()
            noted, closing = child.state.scratchpad(T1).splitlines()
            assert noted == "- it is in answer.txt", "the user's own notes are not the fork's"
            assert closing.startswith("- done: Make the answer right (T-1) (branch agent/T-1-bcd345, commit ")
            assert stage.git("log", "-1", "--format=%B", "agent/T-1-bcd345").count(f"Agent-Journal: {CHILD}:") == 1
            second = child.journal()

        assert {path: path.read_bytes() for path in before} == before
        assert stage.git("rev-parse", "agent/T-1") == commit
        assert stage.git("for-each-ref", "--format=%(refname)", f"refs/agent/{CHILD}/{point.state.seq}")
        await forking(stage, GRANDCHILD).fork(second, fork_point(second), GRANDCHILD)
        for name in (stage.state.session, CHILD, GRANDCHILD):
            assert (await asyncio.to_thread(verify_journal, stage.sessions / name)).ok, name
        async with reopened(stage, session=GRANDCHILD) as grandchild, in_front_of(grandchild) as front:
            await front.gate(Permission.COMMIT)
            bench = await grandchild.session.tool_context()
            assert bench.workspace.facts.branch == "agent/T-1-cde456"
            assert Path(bench.workspace.root, "answer.txt").read_text() == "right\n"


async def test_from_every_event_a_fork_asks_what_its_parent_asked(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [*SAYINGS, FINISH], approvals=CHECKS_OPEN) as stage:
        await tell(stage)
        events = stage.journal()
    for at in range(len(events)):
        point = fork_point(events, at)
        assert point.state.seq <= at
        assert point.why in {"", RAN, TASK_ENDS}
        if point.state.run is not None:
            assert not isinstance(next_move(point.state), Idle | Execute | Recover | RollBack | Close)
        asked = next((each for each in events[point.state.seq + 1 :] if isinstance(each.event, e.PromptBuilt)), None)
        if asked is None or point.state.run is None:
            continue
        state = taken_up(point.state)
        for recorded in events[point.state.seq + 1 : asked.seq]:
            state = fold(state, recorded)
        assert isinstance(asked.event, e.PromptBuilt)
        assert prompt_sha(to_messages(build_parts(state, asked.event.purpose))) == asked.event.sha, at
    assert fork_point(events).why == TASK_ENDS
    for outside in (-1, len(events)):
        with pytest.raises(UsageError, match="there is no event"):
            fork_point(events, outside)


def taken_up(state: SessionState) -> SessionState:
    """Return the state of a fork when it is opened."""
    again: tuple[e.Event, ...] = (FORKED, e.SessionResumed())
    return fold_all([e.Recorded(state.seq + 1 + n, "now", event) for n, event in enumerate(again)], state)


class NoRoom:
    """A repo in which nothing can be branched off."""

    async def branch_off(
        self, request: WorkspaceRequest, tree: str, seq: int, message: str
    ) -> tuple[WorkspaceFacts, Checkpoint]:
        raise WorkspaceError(f"{request.branch} cannot be made of {tree} ({seq}, {message})")


async def test_a_fork_that_fails_or_is_killed_is_not_there(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [*SAYINGS, FINISH], approvals=CHECKS_OPEN) as stage:
        await tell(stage)
        events = stage.journal()
        point = fork_point(events)
        begun: list[Path] = []
        journal = ForkedJournal(stage.sessions / CHILD, Redactor({}), begun.append)
        with pytest.raises(WorkspaceError, match="cannot be made"):
            await ForkServices(journal, NoRoom(), stage.ports.memory, TickingClock(), "0").fork(events, point, CHILD)
        assert [each.name for each in stage.sessions.iterdir()] == [stage.state.session]
        assert begun == []
        # What a killed process left is swept away by the next fork; what is being made is not.
        killed, made = (stage.sessions / f".fork-{name}" for name in (CHILD, GRANDCHILD))
        killed.mkdir()
        await ForkedJournal(stage.sessions / GRANDCHILD, Redactor({}), begun.append).write(
            [(0, "now", events[0].event)]
        )
        assert (killed.exists(), made.exists()) == (False, True)


async def test_a_branch_that_fails_leaves_done_what_another_has_done(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [*SAYINGS, FINISH], approvals=CHECKS_OPEN) as stage:
        await tell(stage)
        events = stage.journal()
        await forking(stage, CHILD).fork(events, fork_point(events), CHILD)
        async with reopened(stage, session=CHILD) as child, in_front_of(child) as front:
            await front.gate(Permission.COMMIT)
            await front.submit(AbortTask())
            update = await front.over()
        assert update.state.run is not None
        assert update.state.run.status is TaskStatus.FAILED
        assert stage.plan.statuses[-1] == (TaskId("T-1"), TaskStatus.DONE)
