"""JSON document of a proposed plan, for other programs."""

import msgspec

from agent_workbench.core.events.codec import JsonObject
from agent_workbench.core.ids import SessionId
from agent_workbench.core.inbox import reference_to
from agent_workbench.core.plan import Task
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.proposed_plan import ProposedPlan, ProposedTask
from agent_workbench.core.task_estimates import Estimate
from agent_workbench.views.plan_estimates import plan_complexity, ready_first

FIGURES = ("steps", "tokens", "minutes", "dollars")


def proposed_plan_document(session: SessionId, proposal: Proposal, plan: ProposedPlan) -> JsonObject:
    """Return a plan that waits at its gate, with everything that its approval would write."""
    reference = reference_to(session, proposal)
    ready, waiting = ready_first(plan.taken)
    known = [each.estimate for each in plan.tasks if each.taken and each.estimate is not None]
    return {
        "session": session,
        "proposal": proposal.id,
        "reference": str(reference) if reference is not None else None,
        "goal": plan.goal,
        "effect": "replace" if plan.replaces else "rest" if plan.rest else "append",
        "complexity": plan_complexity(plan).value,
        "paid": plan.paid,
        "estimate": {name: sum(getattr(each, name).median for each in known) for name in FIGURES} if known else None,
        "ready": [task.id for task in ready],
        "waiting": [task.id for task in waiting],
        "tasks": [_task(each, plan, proposal) for each in plan.tasks],
    }


def task_labels(task: Task) -> JsonObject:
    """Return kind of work, service and needs of a task."""
    return {
        "intent": task.intent.value if task.intent is not None else None,
        "service": task.service,
        "needs": msgspec.to_builtins(task.needs),
        "machine": "gpu" if task.needs.gpu_vram_gb else "cpu",
    }


def estimate_document(estimate: Estimate | None) -> JsonObject | None:
    """Return an estimate: median, first and third quartile of each figure, and how many tasks they come from."""
    if estimate is None:
        return None
    document: JsonObject = {name: msgspec.to_builtins(getattr(estimate, name)) for name in FIGURES}
    return document | {
        "samples": estimate.samples,
        "intent": estimate.intent.value if estimate.intent is not None else None,
    }


def _task(each: ProposedTask, plan: ProposedPlan, proposal: Proposal) -> JsonObject:
    task = each.task
    return {
        "id": task.id,
        "taken": each.taken,
        "description": task.description,
        "goal": task.goal,
        "approach": task.suggested_approach,
        "accept_tests": list(task.accept_tests),
        "unusual_commands": [line for line in task.accept_tests if line in proposal.special],
        "depends_on": list(task.depends_on),
        **task_labels(task),
        "complexity": plan.complexity(task).value,
        "estimate": estimate_document(each.estimate),
    }
