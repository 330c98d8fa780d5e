"""What a session that another machine continued finds on this one."""

from pathlib import Path
from typing import cast

from msgspec.structs import replace

from agent_workbench.adapters.memory import ScratchpadFolder
from agent_workbench.core import events as e
from agent_workbench.core.events import Recorded
from agent_workbench.core.fold import fold, fold_all
from agent_workbench.core.ids import CommitId, SessionId, TaskId
from agent_workbench.core.plan import Plan, Task
from agent_workbench.core.ports.stores import HeldSession, Journal
from agent_workbench.core.ports.workspace import Workspaces
from agent_workbench.core.repo.workspace import WorkspaceFacts, WorkspaceRequest
from agent_workbench.engine.session.preflight import arrive

SESSION, TASK = SessionId("20260102T030405-abc234"), TaskId("T-1")
THERE = WorkspaceFacts("/there/worktrees/agent-T-1", "agent/T-1", CommitId("c" * 40), "t" * 40)
HERE = replace(THERE, path="/here/worktrees/agent-T-1")
KNOWN = (
    e.SessionStarted(SESSION, "/there/shop", CommitId("c" * 40), "0.1.0"),
    e.PlanRead("memory/plans/PLAN.yaml", Plan((Task(TASK, "Greet"),))),
    e.TaskStarted(TASK, Task(TASK, "Greet"), THERE, ("true",)),
    e.ScratchpadChanged(TASK, "first\nsecond\n", e.Author.MODEL),
)
LATER = (*KNOWN, e.ScratchpadChanged(TASK, "first\nsecond\nthird\n", e.Author.MODEL))


class OneWorktree:
    """The worktrees of this machine: the one of the task, which is opened and released."""

    def __init__(self) -> None:
        self.facts = HERE
        self.asked: list[WorkspaceRequest] = []
        self.released = 0

    async def open(self, request: WorkspaceRequest) -> "OneWorktree":
        self.asked.append(request)
        return self

    async def release(self, *, keep: bool) -> None:
        assert keep
        self.released += 1


def recorded(events: tuple[e.Event, ...]) -> tuple[Recorded, ...]:
    return tuple(Recorded(seq, f"2026-01-02T03:04:{seq:02}.000000Z", each, "h") for seq, each in enumerate(events))


async def arrived(root: Path, away_since: int | None, events: tuple[e.Event, ...] = LATER) -> e.SessionResumed:
    """Let the session arrive in a repository at `root`, and check that its worktree was made."""
    held = HeldSession(SESSION, cast("Journal", None), recorded(events), away_since=away_since)
    worktree = OneWorktree()
    state = fold_all(held.events)
    resumed = await arrive(held, state, ScratchpadFolder(root), cast("Workspaces", worktree), "/here/shop", ("node",))
    if away_since is not None:
        (asked,) = worktree.asked
        assert (asked.session, asked.task, asked.branch, asked.links) == (SESSION, TASK, "agent/T-1", ("node",))
    assert worktree.released == len(worktree.asked)
    return resumed


async def notes(root: Path) -> str:
    return await ScratchpadFolder(root).read_scratchpad(TASK)


async def test_notes_and_folders_come_along(tmp_path: Path) -> None:
    resumed = await arrived(tmp_path, -1)
    assert resumed == e.SessionResumed(repo="/here/shop", workspace=HERE.path, arrived=True)
    assert await notes(tmp_path) == "first\nsecond\nthird\n"


async def test_the_state_names_the_folders_of_this_machine_from_then_on(tmp_path: Path) -> None:
    state = fold_all(recorded(LATER))
    state = fold(state, Recorded(len(LATER), "2026-01-02T03:05:00.000000Z", await arrived(tmp_path, -1), "h"))
    assert state.repo == "/here/shop"
    assert state.run is not None
    assert state.run.workspace == HERE
    assert state.scratchpad(TASK) == await notes(tmp_path), "nobody changed the notes"


async def test_what_the_user_wrote_here_meanwhile_is_kept(tmp_path: Path) -> None:
    await ScratchpadFolder(tmp_path).write_scratchpad(TASK, "", "mine\nfirst\nsecond\n")
    await arrived(tmp_path, len(KNOWN) - 1)
    assert await notes(tmp_path) == "mine\nfirst\nsecond\nthird\n"


async def test_an_arrival_that_was_cut_short_is_repeated(tmp_path: Path) -> None:
    await arrived(tmp_path, -1)
    await arrived(tmp_path, -1)
    assert await notes(tmp_path) == "first\nsecond\nthird\n"


async def test_a_session_that_was_not_away_changes_nothing(tmp_path: Path) -> None:
    assert await arrived(tmp_path, None) == e.SessionResumed()
    assert await notes(tmp_path) == ""
