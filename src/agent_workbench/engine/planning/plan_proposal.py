"""Proposed plan at the gate: made from the planner's answer, arranged and edited by the user, and written."""

from collections.abc import Iterable

from msgspec.structs import replace

from agent_workbench.core.approval_rules import extends, runs_only
from agent_workbench.core.errors import PlanError, StorageError, error_text
from agent_workbench.core.events import (
    ActionFinished,
    ActionProposed,
    ActionResult,
    ActionStarted,
    Author,
    PlanRead,
    ProposalReplaced,
    TasksWithdrawn,
    TroubleMet,
)
from agent_workbench.core.ids import ProposalId, TaskId
from agent_workbench.core.model import Purpose
from agent_workbench.core.plan import Plan, PlanPiece, Task, TaskStatus
from agent_workbench.core.proposal_kinds import PlanProposal
from agent_workbench.core.proposals import PROPOSE_PLAN, Preimage, Proposal
from agent_workbench.core.proposed_plan import ProposedPlan, ProposedTask
from agent_workbench.core.settings import Settings
from agent_workbench.core.state.work import Planning
from agent_workbench.core.task_estimates import Complexity, estimate
from agent_workbench.core.text.amounts import counted_text
from agent_workbench.engine.planning.plan_answer import read_check, read_tasks
from agent_workbench.engine.planning.plan_request import reject_answer
from agent_workbench.engine.runtime.session_context import SessionContext

NAME = "proposed plan"
"""Name of the proposal's YAML in messages about its lines."""
REPLACED = "replaced by a new plan"
STOPPED = "the workbench was stopped while it wrote the plan; look whether the plan has the tasks"


async def propose_plan(session: SessionContext, planning: Planning) -> None:
    """Propose the plan in the model's answer, or the one that was put aside; raise `PlanError`, `StorageError`.

    An answer without a valid plan is rejected with the reason, and the model is asked again.
    """
    existing = await read_existing(session)
    try:
        plan = (planning.aside or await _answered(session, planning, existing)).numbered_after(existing)
        text = _text(session, plan)
    except PlanError as fault:
        await reject_answer(session, planning.step, str(fault))
        return
    id = ProposalId(f"P-{session.state.seq + 1}")
    await session.record(ActionProposed(await _proposal(session, id, planning.step, plan, text, edited=False)))


async def arrange_plan(
    session: SessionContext,
    waiting: Proposal,
    order: tuple[TaskId, ...],
    left: Iterable[TaskId],
    *,
    replaces: bool,
) -> None:
    """Replace the proposal by one with the tasks in another order, or with others of them taken.

    Raises `PlanError` if the plan cannot take that.
    """
    arranged = _plan_of(waiting).arranged(order, set(left), replaces=replaces)
    await _replace(session, waiting, arranged, "arranged", Author.USER, edited=waiting.edited)


async def edit_plan(session: SessionContext, waiting: Proposal, text: str) -> None:
    """Replace the taken tasks by those in the user's YAML; raise `PlanError` with line and column of a fault."""
    plan, shown = session.ports.plans.parse(text, NAME), _plan_of(waiting)
    tasks = [task.with_status(TaskStatus.PENDING) for task in plan.tasks]
    if shown.checks and _without_checks(tasks) != _without_checks(shown.taken):
        raise PlanError("only the accept_tests can be changed here", advice="edit the task itself in the plan pane")
    edited = replace(shown.edited(tasks), goal=plan.goal or shown.goal)
    await _replace(session, waiting, edited, "edited", Author.USER, edited=True)


def _without_checks(tasks: Iterable[Task]) -> list[Task]:
    return [replace(task, accept_tests=()).with_status(TaskStatus.PENDING) for task in tasks]


def open_proposed(session: SessionContext, waiting: Proposal, task: TaskId | None) -> PlanPiece:
    """Return the YAML of a proposed task (None: of all that are taken); raise `PlanError` for one that is left out."""
    if task is None:
        return PlanPiece(NAME, waiting.text, 0, len(waiting.text), waiting.text)
    left = [each.task.id for each in _plan_of(waiting).tasks if not each.taken]
    if task in left:
        raise PlanError(f"{task} is left out", advice="take it first")
    return session.ports.plans.piece_of(waiting.text, NAME, task)


async def take_plan(session: SessionContext, proposal: Proposal, *, begun: bool) -> None:
    """Write the approved plan; if the plan's file changed since it was shown, put it before the gate again.

    `begun`: a stop interrupted that. It is recorded as unknown and not repeated.
    """
    existing = await read_existing(session)
    if begun:
        await session.record(ActionFinished(proposal.id, ActionResult.UNKNOWN, STOPPED))
        session.publisher.notify(STOPPED)
        return
    plan, plans = _plan_of(proposal), session.ports.plans
    if (Preimage(plans.path, await plans.content_sha()),) != proposal.preimages:
        reason = f"{plans.path} changed after this was shown"
        await _replace(session, proposal, plan.numbered_after(existing), reason, Author.WORKBENCH, proposal.edited)
        session.publisher.notify(f"{reason}; look at it again")
        return
    plan.check(existing)
    session.publisher.show_activity("writing the plan")
    await session.record(ActionStarted(proposal.id))
    tasks = plan.taken
    try:
        if plan.checks:
            for task in tasks:
                await plans.set_checks(task.id, task.accept_tests)
            told = f"{', '.join(task.id for task in tasks)} has a check now"
        elif plan.rest:
            await _withdraw(session, existing)
            archived = await plans.new_plan(Plan((*plan.kept(existing), *tasks), existing.goal or plan.goal))
            told = (
                f"{counted_text(len(tasks), 'task')} in place of what was left; the old plan is archived at {archived}"
            )
        elif plan.replaces:
            archived = await plans.new_plan(Plan(tasks, plan.goal))
            told = f"{counted_text(len(tasks), 'task')} in a new plan; the old one is archived at {archived}"
        else:
            await plans.add(tasks)
            told = f"{counted_text(len(tasks), 'task')} added to {plans.path}"
    except (PlanError, StorageError) as error:
        await session.record(ActionFinished(proposal.id, ActionResult.REFUSED, error_text(error)))
        await session.record(TroubleMet("plan", str(error), error.advice))
        return
    await session.record(PlanRead(plans.path, await plans.read(), Author.USER))
    await session.record(ActionFinished(proposal.id, ActionResult.OK, told))
    session.publisher.notify(told)


async def _answered(session: SessionContext, planning: Planning, existing: Plan) -> ProposedPlan:
    text = planning.answer.text if planning.answer is not None else ""
    if planning.check_for:
        task = replace(existing.task(TaskId(planning.check_for)), accept_tests=(read_check(text),))
        return ProposedPlan(planning.goal, (ProposedTask(task),), checks=True)
    tasks = read_tasks(text, existing, planning.wording)
    past = await session.ports.past_figures()
    # Those that can begin at once come first; a task depends only on earlier ones in any case.
    ordered = sorted(tasks, key=lambda task: bool(task.depends_on))
    proposed = tuple(ProposedTask(task, estimate=estimate(task.intent, past)) for task in ordered)
    plan = ProposedPlan(planning.goal, proposed, planning.replaces, rest=planning.rest)
    return replace(plan, paid=_may_pay(session.settings, plan))


def uses_labels(settings: Settings) -> bool:
    """Return True if intent, service and needs of a task decide something: many machines, or a paid endpoint."""
    return settings.database.active or bool(settings.worker.tags) or bool(_paid_endpoints(settings))


def _paid_endpoints(settings: Settings) -> list[str]:
    """Return the endpoints of the executor that cost, empty where the cap allows none."""
    known = dict(settings.endpoints)
    paid = [
        name
        for name in settings.chain(Purpose.EXECUTOR)
        if name in known and not known[name].dollars_per_million_tokens.is_free
    ]
    return paid if settings.cost_cap_daily > 0 else []


def _may_pay(settings: Settings, plan: ProposedPlan) -> bool:
    """Return True if a paid endpoint may be asked: the cap allows one, and a task is complex or no free one is set."""
    paid, tasks = _paid_endpoints(settings), [each.task for each in plan.tasks]
    if not paid:
        return False
    return len(paid) == len(settings.chain(Purpose.EXECUTOR)) or any(
        plan.complexity(task) is Complexity.COMPLEX for task in tasks
    )


async def _withdraw(session: SessionContext, existing: Plan) -> None:
    """Take what is queued back; raise `PlanError` if some of it ended meanwhile, because such tasks stay."""
    names = [task.queued_as for task in existing.tasks if task.status is TaskStatus.QUEUED]
    if not names:
        return
    await session.record(TasksWithdrawn(tuple(names), REPLACED, Author.USER))
    if ended := await session.ports.withdraw(names, REPLACED):
        advice = "`agent plan status` brings the plan up to date; then approve it again"
        raise PlanError(f"{', '.join(ended)} ended meanwhile", advice=advice)


def _plan_of(proposal: Proposal) -> ProposedPlan:
    if proposal.plan is None:
        raise AssertionError(f"{proposal.id} is no proposed plan")
    return proposal.plan


async def _replace(
    session: SessionContext, waiting: Proposal, plan: ProposedPlan, reason: str, by: Author, edited: bool
) -> None:
    plan.check(await read_existing(session))
    text = _text(session, plan)
    made = await _proposal(session, waiting.id, waiting.step, plan, text, edited=edited)
    if made != waiting:
        await session.record(ProposalReplaced(made, reason, by))


async def _proposal(
    session: SessionContext, id: ProposalId, step: int, plan: ProposedPlan, text: str, *, edited: bool
) -> PlanProposal:
    plans, settings = session.ports.plans, session.settings
    known = [settings.test_command, settings.lint_command]
    known += [line for task in session.state.plan.tasks for line in task.accept_tests]
    return PlanProposal(
        id=id,
        tool=PROPOSE_PLAN,
        text=text,
        step=step,
        paths=(plans.path,),
        special=unusual_commands(plan.taken, known),
        preimages=(Preimage(plans.path, await plans.content_sha()),),
        edited=edited,
        plan=plan,
    )


def unusual_commands(tasks: Iterable[Task], known: Iterable[str]) -> tuple[str, ...]:
    """Return the acceptance commands that neither extend a known one nor are a plain call of a known program."""
    known = tuple(filter(str.strip, known))
    lines = dict.fromkeys(line for task in tasks for line in task.accept_tests)
    return tuple(
        line for line in lines if not any(extends(line, each) or runs_only(line, each.split()[0]) for each in known)
    )


def _text(session: SessionContext, plan: ProposedPlan) -> str:
    # Tasks that are appended leave the goal of the plan as it is.
    return session.ports.plans.render(Plan(plan.taken, plan.goal if plan.replaces else ""))


async def read_existing(session: SessionContext) -> Plan:
    """Return the plan as its file is now, an empty one without a file; it is recorded if it changed."""
    plans = session.ports.plans
    plan = await plans.read() if await plans.content_sha() else Plan()
    if plan != session.state.plan or session.state.plan_path != session.ports.plans.path:
        await session.record(PlanRead(session.ports.plans.path, plan, Author.USER))
    return plan
