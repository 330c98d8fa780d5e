"""Fork: a new session from any step of another one."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.errors import JournalError, UsageError
from agent_workbench.core.events import PromptBuilt, Recorded, SessionForked, SessionStarted
from agent_workbench.core.fold import fold
from agent_workbench.core.ids import SessionId, session_suffix
from agent_workbench.core.ports.machine import Clock
from agent_workbench.core.ports.repo_files import Memory
from agent_workbench.core.ports.stores import ForkJournal
from agent_workbench.core.repo.workspace import Checkpoint, WorkspaceFacts, WorkspaceRequest
from agent_workbench.core.state.session_state import ENDED, Phase, SessionState, TaskRun
from agent_workbench.engine.flow import Execute, Recover, RollBack, next_move

RAN = "what ran at this moment is asked about again"
TASK_ENDS = "the task ends there, so the fork goes on from before its end"


class ForkRepository(Protocol):
    """Repository that creates the branch of a fork."""

    async def branch_off(
        self, request: WorkspaceRequest, tree: str, seq: int, message: str
    ) -> tuple[WorkspaceFacts, Checkpoint]:
        """Keep the files of `tree` as the checkpoint `seq` of the request's session, which its worktree begins with.

        Raises `WorkspaceError`, also where git has the tree no more.
        """


class ForkPoint(Struct, frozen=True):
    """Beginning of a fork and the state there. `why` explains a point before the requested one."""

    state: SessionState
    why: str = ""


def fork_point(events: Sequence[Recorded], at: int | None = None) -> ForkPoint:
    """Return the point at which a fork of these events at number `at` begins (None: the end); raise `UsageError`.

    An action that was approved or ran, and a prompt without its answer, are taken back: what was let through once is
    not done again by itself. Where the task ends, the newest place counts at which it goes on.
    """
    last = events[-1].seq if events else -1
    wanted = last if at is None else at
    if not 0 <= wanted <= last:
        raise UsageError(f"there is no event {wanted}", advice=f"this session has the events 0 to {last}")
    state = found = SessionState()
    for recorded in events[: wanted + 1]:
        state = fold(state, recorded)
        if not isinstance(recorded.event, PromptBuilt) and _is_open(state):
            found = state
    if found.seq == wanted:
        return ForkPoint(found)
    over = state.run is not None and state.run.phase in ENDED
    return ForkPoint(found, TASK_ENDS if over or isinstance(next_move(state), RollBack) else RAN)


def _is_open(state: SessionState) -> bool:
    if state.run is None:
        return True
    # A proposal after the task's end is the merge of a commit that belongs to the parent.
    if state.run.phase in {Phase.CLOSING, Phase.OVER}:
        return False
    return not isinstance(next_move(replace(state, trouble=None)), Execute | Recover | RollBack)


class ForkServices(Struct, frozen=True):
    """Services for a fork: its journal, the repository, the scratchpads, the time, and the writing program."""

    journal: ForkJournal
    workspaces: ForkRepository
    memory: Memory
    clock: Clock
    product_version: str

    async def fork(
        self, events: Sequence[Recorded], point: ForkPoint, child: SessionId, *, arrived: bool = False
    ) -> None:
        """Create the session `child` at `point`, with its files, plan, scratchpad and context.

        `arrived`: another machine wrote the events.
        Nothing of the parent is touched. Raises `WorkspaceError`, `JournalError`, `StorageError`; then there is none.
        """
        seq, header = point.state.seq, events[0].event
        if not isinstance(header, SessionStarted):
            raise JournalError(
                "the journal does not begin with `session_started`", advice="verify it: agent sessions verify"
            )
        first = replace(header, session=child, parent=header.session, parent_seq=seq)
        copied = [(0, events[0].time, first), *((each.seq, each.time, each.event) for each in events[1 : seq + 1])]
        try:
            head = await self.journal.write(copied)
            workspace, checkpoint = await self._branch_off(point.state, child, head)
            forked = SessionForked(self.product_version, workspace, checkpoint, arrived)
            await self.journal.keep(seq + 1, self.clock.now(), forked)
        except BaseException:
            await self.journal.drop()
            raise

    async def _branch_off(
        self, state: SessionState, child: SessionId, head: Recorded
    ) -> tuple[WorkspaceFacts | None, Checkpoint | None]:
        run = state.run
        if run is None:
            return None, None
        fork = session_suffix(child)
        told = f"fork of {state.session} at {head.seq}\n\nAgent-Journal: {child}:{head.seq}:{head.hash}\n"
        request = WorkspaceRequest(child, run.task, f"agent/{run.task}-{fork}", run.workspace.base)
        facts, checkpoint = await self.workspaces.branch_off(request, run.tree, head.seq, told)
        await self._keep_notes(state, run, fork)
        return replace(facts, linked=run.workspace.linked), checkpoint

    async def _keep_notes(self, state: SessionState, run: TaskRun, fork: str) -> None:
        if notes := state.scratchpad(run.task):
            await self.memory.write_scratchpad(run.task, "", notes, fork)
