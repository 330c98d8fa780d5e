"""Words about planned tasks: kind of work, machine, complexity, and what they may cost."""

from collections.abc import Iterable, Sequence

from agent_workbench.core.plan import Task
from agent_workbench.core.proposed_plan import ProposedPlan
from agent_workbench.core.task_estimates import FEW, Complexity, Estimate, Spread
from agent_workbench.core.task_routing import needs_text
from agent_workbench.core.text.amounts import counted_text, dollars_text
from agent_workbench.core.text.sanitizer import sanitize_line

UNKNOWN = "no estimate: no task is recorded yet"
RANK = tuple(Complexity)


def labels_text(task: Task) -> str:
    """Return kind of work, service and needs, empty for a task that has none of them."""
    machine = "GPU" if task.needs.gpu_vram_gb else "CPU only" if task.intent is not None else ""
    kind = "research: changes nothing" if task.changes_nothing else str(task.intent or "")
    return " · ".join(
        filter(None, (kind, sanitize_line(task.service, 40), machine, sanitize_line(needs_text(task.needs))))
    )


def estimate_text(estimate: Estimate | None) -> str:
    """Return the medians with their quartiles, and of how many tasks they are."""
    if estimate is None:
        return UNKNOWN
    figures = [_spread("step", estimate.steps), _spread("token", estimate.tokens), _minutes(estimate.minutes)]
    if estimate.dollars.high:
        low, high = dollars_text(estimate.dollars.low), dollars_text(estimate.dollars.high)
        figures.append(dollars_text(estimate.dollars.median) + (f" ({low}–{high})" if low != high else ""))
    kind = f"{estimate.intent} task" if estimate.intent is not None else "task"
    few = ", which is few" if estimate.samples < FEW else ""
    return f"about {', '.join(figures)}; from {counted_text(estimate.samples, kind)}{few}"


def plan_complexity(plan: ProposedPlan) -> Complexity:
    """Return the complexity of the taken tasks together."""
    return max((plan.complexity(task) for task in plan.taken), key=RANK.index, default=Complexity.SIMPLE)


def ready_first(tasks: Sequence[Task]) -> tuple[tuple[Task, ...], tuple[Task, ...]]:
    """Return the tasks that can begin at once, and those that wait for others."""
    return tuple(each for each in tasks if not each.depends_on), tuple(each for each in tasks if each.depends_on)


def summary_text(plan: ProposedPlan) -> str:
    """Return the whole plan in one line."""
    ready, waiting = ready_first(plan.taken)
    known = [each.estimate for each in plan.tasks if each.taken and each.estimate is not None]
    labelled = any(task.intent is not None for task in plan.taken)
    gpu = sum(bool(task.needs.gpu_vram_gb) for task in plan.taken)
    machines = f"{gpu} on a GPU" if gpu else "CPU only"
    paid = "paid endpoints may be needed" if plan.paid else "no paid endpoint"
    return " · ".join(
        filter(
            None,
            (
                f"{counted_text(len(plan.taken), 'task')}: {len(ready)} ready"
                + (f", {len(waiting)} waiting" if waiting else ""),
                *((machines, str(plan_complexity(plan))) if labelled else ()),
                total_text(known) if known else UNKNOWN,
                paid if labelled else "",
            ),
        )
    )


def total_text(estimates: Iterable[Estimate]) -> str:
    """Return the sums of the medians."""
    known = tuple(estimates)
    steps, tokens = (sum(each.steps.median for each in known), sum(each.tokens.median for each in known))
    minutes, dollars = (sum(each.minutes.median for each in known), sum(each.dollars.median for each in known))
    told = [
        f"{steps:,.0f} steps",
        f"{tokens:,.0f} tokens",
        f"{minutes:.1f} min",
        *([dollars_text(dollars)] if dollars else []),
    ]
    return f"about {', '.join(told)}"


def _spread(noun: str, spread: Spread) -> str:
    between = f" ({spread.low:,.0f}–{spread.high:,.0f})" if spread.low != spread.high else ""
    return f"{counted_text(round(spread.median), noun)}{between}"


def _minutes(spread: Spread) -> str:
    between = f" ({spread.low:.1f}–{spread.high:.1f})" if spread.low != spread.high else ""
    return f"{spread.median:.1f} min{between}"
