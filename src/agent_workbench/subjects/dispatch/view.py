"""Lines of text about a plan's tasks: what a dispatch would queue, and their progress, which is a JSON document too."""

from collections.abc import Iterator

import msgspec

from agent_workbench.core.events.codec import JsonObject
from agent_workbench.core.task_estimates import Estimate
from agent_workbench.core.text.amounts import counted_text, dollars_text
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.subjects.dispatch.preparation import Dispatch
from agent_workbench.subjects.dispatch.progress import PlanProgress, TaskCost, TaskProgress, TaskState
from agent_workbench.views.blocks import Tone
from agent_workbench.views.plan import labels_text
from agent_workbench.views.reports.json_documents import estimate_document, task_labels

GLYPHS = {
    TaskState.PLANNED: ("○", Tone.DIM),
    TaskState.BLOCKED: ("⊘", Tone.WARN),
    TaskState.HERE: ("●", Tone.ACCENT),
    TaskState.WAITING: ("◌", Tone.DIM),
    TaskState.NO_CAPACITY: ("◌", Tone.WARN),
    TaskState.QUEUED: ("◌", Tone.PLAIN),
    TaskState.RUNNING: ("●", Tone.ACCENT),
    TaskState.PARKED: ("!", Tone.WARN),
    TaskState.DONE: ("✓", Tone.GOOD),
    TaskState.FAILED: ("✗", Tone.BAD),
    TaskState.UNPROVED: ("?", Tone.BAD),
    TaskState.CANCELLED: ("⊘", Tone.DIM),
}
WHY_CHARS = 300


def summary_line(progress: PlanProgress) -> str:
    """Return how many tasks are in each state, in one line."""
    counts = {state: sum(each.state is state for each in progress.tasks) for state in TaskState}
    told = [f"{count} {state}" for state, count in counts.items() if count]
    place = f"in {sanitize_line(progress.queue, 60)}" if progress.queue else ""
    living = (
        ""
        if progress.workers is None
        else counted_text(progress.workers, "worker")
        if progress.workers
        else "no worker"
    )
    return " · ".join(filter(None, (*told, place, living)))


def why_text(task: TaskProgress) -> str:
    """Return why a task is in its state: who works on it, what waits, or what it waits for."""
    why = sanitize_line(task.why, WHY_CHARS)
    if task.state is TaskState.NO_CAPACITY:
        return ""  # said once, of all tasks
    if task.state is TaskState.RUNNING and task.worker:
        return f"on {sanitize_line(task.worker, 60)}"
    if task.state is TaskState.PARKED and task.item:
        return f"{task.item}  {why}"
    return why


def cost_text(cost: TaskCost | None, estimate: Estimate | None) -> str:
    """Return what a task cost beside its estimate, empty if neither is known."""
    if cost is None:
        if estimate is None:
            return ""
        expected = [f"{counted_text(round(estimate.steps.median), 'step')}", f"{estimate.tokens.median:,.0f} tokens"]
        return f"about {', '.join((*expected, f'{estimate.minutes.median:.1f} min'))}"
    dollars = f", {dollars_text(cost.dollars)}" if cost.dollars else ""
    if estimate is None:
        return f"{counted_text(cost.steps, 'step')}, {cost.tokens:,} tokens, {cost.minutes:.1f} min{dollars}"
    return (
        f"{cost.steps} of about {estimate.steps.median:.0f} steps, "
        f"{cost.tokens:,} of {estimate.tokens.median:,.0f} tokens, "
        f"{cost.minutes:.1f} of {estimate.minutes.median:.1f} min{dollars}"
    )


def notices(progress: PlanProgress) -> Iterator[str]:
    """Yield why what is shown may be old, and why nothing is dispatched."""
    if progress.problem:
        yield f"the queue does not answer, so this may be old: {sanitize_line(progress.problem, WHY_CHARS)}"
    if progress.paused:
        yield f"waiting for capacity: {sanitize_line(progress.paused, WHY_CHARS)}"


def progress_lines(progress: PlanProgress) -> Iterator[str]:
    """Yield the progress as a tree."""
    yield from notices(progress)
    if progress.goal:
        yield sanitize_line(progress.goal, WHY_CHARS)
    width = max((2 * each.depth + len(each.task.id) for each in progress.tasks), default=0)
    for each in progress.tasks:
        named = f"{'  ' * each.depth}{each.task.id}"
        words = sanitize_line(each.task.description, WHY_CHARS)
        yield f"{GLYPHS[each.state][0]} {named:<{width}}  {each.state:<8}  {words}"
        for text in (why_text(each), cost_text(each.cost, each.estimate)):
            if text:
                yield f"  {'':<{width}}  {'':<8}  {text}"
    if progress.tasks:
        yield summary_line(progress)


def progress_document(progress: PlanProgress) -> JsonObject:
    """Return the progress of the plan."""
    return {
        "goal": progress.goal,
        "queue": progress.queue,
        "workers": progress.workers,
        "paused": progress.paused,
        "problem": progress.problem,
        "tasks": [_task(each) for each in progress.tasks],
    }


def _task(each: TaskProgress) -> JsonObject:
    task = each.task
    return {
        "id": task.id,
        "state": each.state.value,
        "why": each.why,
        "name": each.name,
        "worker": each.worker,
        "session": each.session or None,
        "item": each.item or None,
        "depth": each.depth,
        "description": task.description,
        "depends_on": list(task.depends_on),
        **task_labels(task),
        "complexity": each.complexity.value,
        "cost": msgspec.to_builtins(each.cost) if each.cost is not None else None,
        "estimate": estimate_document(each.estimate),
    }


def dispatch_lines(shown: Dispatch) -> Iterator[str]:
    """Yield what a dispatch would queue: tasks, who approved them, what nobody approved or can do, and what is left."""
    for each in shown.tasks:
        after = f"  (after {', '.join(each.task.depends_on)})" if each.task.depends_on else ""
        yield f"{each.task.id}  {sanitize_line(each.task.description, 300)}{after}"
        approved = f"approved by {each.approval.by}" if each.approval is not None else "NOT APPROVED as it is now"
        yield f"    {' · '.join(filter(None, (labels_text(each.task), approved)))}"
        if each.approval is None:
            yield from (f"    must pass: $ {sanitize_line(line, 300)}" for line in each.task.accept_tests)
    for remark in shown.unmet:
        yield f"no worker can do {remark.task}: {sanitize_line(remark.text, 300)}"
    for remark in shown.left:
        yield f"{remark.task} is left: {sanitize_line(remark.text, 300)}"
