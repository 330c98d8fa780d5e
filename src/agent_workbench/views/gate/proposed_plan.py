"""Proposed plan in the plan pane: each task with everything that an approval would write."""

from msgspec.structs import replace

from agent_workbench.core.plan import Task
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.proposed_plan import ProposedPlan, ProposedTask
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.core.task_estimates import Needs
from agent_workbench.core.text.sanitizer import sanitize_whole
from agent_workbench.views.blocks import Block, Entry, Tone
from agent_workbench.views.gate.proposal_views import proposal_key
from agent_workbench.views.plan import PlanView, TaskRow, estimate_text, labels_text, task_details


def view_proposed_plan(state: SessionState) -> PlanView | None:
    """Return the plan pane with the proposed plan that waits, None if none does."""
    waiting = state.waiting
    return _view(waiting, waiting.plan) if waiting is not None and waiting.plan is not None else None


def _view(proposal: Proposal, plan: ProposedPlan) -> PlanView:
    taken = {task.id: task for task in plan.taken}
    effect = "replace" if plan.replaces else "replace the rest" if plan.rest else "append"
    many = f"{len(taken)}/{len(plan.tasks)} · {effect}"
    return PlanView(
        title=f"Proposed {'check' if plan.checks else many}",
        rows=tuple(_row(taken.get(each.task.id, each.task), each, proposal, plan) for each in plan.tasks),
        empty="",
        busy=False,
        proposal=proposal_key(proposal),
    )


def _row(task: Task, each: ProposedTask, proposal: Proposal, plan: ProposedPlan) -> TaskRow:
    glyph, tone = ("+", Tone.GOOD) if each.taken else ("–", Tone.DIM)
    words = sanitize_whole(f"{task.id}  {task.description}")
    after = f"after {', '.join(task.depends_on)}" if task.depends_on else ""
    remarks = ", ".join(filter(None, ("" if each.taken else "left out", after)))
    told = (("Goal", task.goal), ("Approach", task.suggested_approach))
    # What only the user can have written into it, such as a budget.
    rest = task_details(
        replace(task, goal="", suggested_approach="", accept_tests=(), intent=None, service="", needs=Needs())
    )
    labels = labels_text(task)
    blocks = (
        Block(words, Tone.STRONG if each.taken else Tone.DIM, glyph, tone, space_before=True),
        *((Block(remarks, Tone.DIM),) if remarks else ()),
        *((Block(f"{labels} · {plan.complexity(task)}", Tone.DIM),) if labels and not plan.checks else ()),
        *((Block(estimate_text(each.estimate), Tone.DIM),) if each.estimate is not None else ()),
        *(Block(f"{label}: {sanitize_whole(text)}") for label, text in told if text),
        *(_command(line, unusual=line in proposal.special) for line in task.accept_tests),
        *rest,
    )
    entry = Entry(task.id, blocks)
    return TaskRow(task.id, entry, entry, running=False, mergeable=False, open=False, proposed=True)


def _command(line: str, *, unusual: bool) -> Block:
    text = f"Must pass: $ {sanitize_whole(line)}"
    return Block(text, Tone.WARN, "!", Tone.WARN) if unusual else Block(text)
