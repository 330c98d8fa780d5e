"""Intents about the plan: open, edit, reorder and block tasks, also while the model answers; ask for a plan."""

from contextlib import suppress

from agent_workbench.core.errors import PlanError
from agent_workbench.core.events import Author, PlanAsked, PlanRead, TaskStatusChanged
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.intents import (
    AddTask,
    ArrangePlan,
    BlockTask,
    EditPlan,
    MoveTask,
    OpenPlan,
    PlanChange,
    ProposePlan,
)
from agent_workbench.core.outcomes import Accepted, Outcome, PlanOpened, Refused, TaskAdded
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.settings import Approval, Permission
from agent_workbench.engine.chat.chat_intents import IS_CHAT
from agent_workbench.engine.planning.plan_prompt import UNLABELLED, VERSION
from agent_workbench.engine.planning.plan_proposal import arrange_plan, open_proposed, read_existing, uses_labels
from agent_workbench.engine.runtime.session_context import SessionContext

MOST_GOAL_CHARS = 4_000
GONE = "that plan no longer waits; look at what waits now"

BLOCKABLE = frozenset({TaskStatus.PENDING, TaskStatus.FAILED, TaskStatus.IN_PROGRESS})


async def handle_plan(session: SessionContext, intent: PlanChange) -> Outcome:
    """Carry an intent out in the plan's file and record the plan as it is then; raise `PlanError`, `StorageError`.

    An edited text that is not a plan is refused with its fault, so that the front end keeps the text.
    """
    match intent:
        case OpenPlan() if intent.proposal is not None:
            waiting = _waiting(session, intent.proposal)
            return Refused(GONE) if waiting is None else PlanOpened(open_proposed(session, waiting, intent.task))
        case OpenPlan():
            with suppress(PlanError):  # a plan that cannot be read is opened to be repaired
                await _read(session)
            return PlanOpened(await session.ports.plans.piece(intent.task, new=intent.new, draft=intent.draft))
        case AddTask():
            added = await session.ports.plans.add_new(intent.task)
            await _read(session)
            session.publisher.show_plan_problem("")
            return TaskAdded(added)
        case EditPlan():
            return await _edit(session, intent)
        case MoveTask():
            await session.ports.plans.move(intent.task, up=intent.up)
            await _read(session)
            return Accepted()
        case BlockTask():
            return await _block(session, intent)
        case ProposePlan():
            return await _propose(session, intent)
        case ArrangePlan():
            return await _arrange(session, intent)


def _waiting(session: SessionContext, proposal: ProposalId) -> Proposal | None:
    """Return the proposed plan that waits, None if it is another one."""
    waiting = session.state.waiting
    return waiting if waiting is not None and waiting.id == proposal and waiting.plan is not None else None


async def _propose(session: SessionContext, intent: ProposePlan) -> Outcome:
    """Begin a planning, if the session does nothing else; raise `PlanError` for a plan that cannot be read."""
    state, goal = session.state, intent.goal.strip()
    if not goal:
        return Refused("the goal is empty; say what the plan is to reach")
    if len(goal) > MOST_GOAL_CHARS:
        return Refused(f"the goal has {len(goal):,} characters, at most {MOST_GOAL_CHARS:,} are allowed; shorten it")
    if state.config is not None and state.config.approvals.of(Permission.PLAN) is Approval.DENY:
        return Refused("the policy does not allow plans of the model (plan: deny in .agent.yml)")
    if state.in_chat:
        return Refused(IS_CHAT)
    if state.open_planning is not None:
        return Refused("a plan is being made already; decide it, or stop it, first")
    if state.unfinished and state.run is not None:
        return Refused(f"{state.run.task} is being worked on; ask for a plan when it is over, or in a new tab")
    if state.waiting is not None:
        return Refused(f"a {state.waiting.kind} waits; decide it first")
    await read_existing(session)
    wording = VERSION if uses_labels(session.settings) else UNLABELLED
    await session.record(PlanAsked(goal, wording, intent.replaces, rest=intent.rest))
    return Accepted()


async def _arrange(session: SessionContext, intent: ArrangePlan) -> Outcome:
    waiting = _waiting(session, intent.proposal)
    if waiting is None:
        return Refused(GONE)
    await arrange_plan(session, waiting, intent.order, intent.left, replaces=intent.replaces)
    return Accepted()


async def _edit(session: SessionContext, intent: EditPlan) -> Outcome:
    run, piece = session.state.run, intent.piece
    keep = (run.task,) if run is not None and session.state.unfinished else ()
    await session.ports.plans.replace_text(piece.whole, piece.whole_with(intent.text), keep)
    await _read(session)
    session.publisher.show_plan_problem("")
    return Accepted()


async def _read(session: SessionContext) -> None:
    plan = await session.ports.plans.read()
    if plan != session.state.plan or session.state.plan_path != session.ports.plans.path:
        await session.record(PlanRead(session.ports.plans.path, plan, Author.USER))


async def _block(session: SessionContext, intent: BlockTask) -> Outcome:
    """Block a task that is not being worked on, or unblock one."""
    run = session.state.run
    status = (await session.ports.plans.read()).task(intent.task).status
    if run is not None and run.task == intent.task and session.state.unfinished:
        return Refused(f"{intent.task} is being worked on; pause it or give it up instead")
    if status not in BLOCKABLE | {TaskStatus.BLOCKED}:
        return Refused(f"{intent.task} is {status}, there is nothing to block")
    if not intent.blocked and status is not TaskStatus.BLOCKED:
        return Refused(f"{intent.task} is not blocked")
    wanted = TaskStatus.BLOCKED if intent.blocked else TaskStatus.PENDING
    await session.ports.plans.set_status(intent.task, wanted, intent.reason)
    await session.record(TaskStatusChanged(intent.task, wanted, intent.reason))
    await _read(session)
    return Accepted()
