"""What a task may cost: its limits, and what its budget leaves for the next answer."""

from agent_workbench.core.settings import Limits
from agent_workbench.core.state import Phase, TaskRun


def spent(run: TaskRun, limits: Limits) -> str:
    """Return which limit the run has reached, empty when none."""
    budget = run.definition.budget
    minutes = run.working_seconds / 60
    if run.tool_calls >= limits.max_tool_calls_per_task:
        return f"{run.tool_calls} tool calls were made (max_tool_calls_per_task)"
    if run.failures >= limits.consecutive_failure_threshold:
        return f"{run.failures} steps failed in a row (consecutive_failure_threshold)"
    if run.phase is Phase.REFLECTING and run.reflexions >= limits.max_reflexion_retries:
        return f"{run.reflexions} reflexions did not help (max_reflexion_retries)"
    if budget.tokens is not None and run.tokens >= budget.tokens:
        return f"{run.tokens} tokens were used of the {budget.tokens} in the task's budget"
    if budget.dollars is not None and run.dollars and run.dollars >= budget.dollars:
        return f"${run.dollars:.4f} were spent of the ${budget.dollars:g} in the task's budget"
    if budget.minutes is not None and minutes >= budget.minutes:
        return f"{minutes:.1f} minutes of work were used of the {budget.minutes:g} in the task's budget"
    return ""


def tokens_left(run: TaskRun, prompt_tokens: int) -> int | None:
    """Return how many tokens the budget leaves for an answer to a prompt of this size, None where it has no bound."""
    budget = run.definition.budget.tokens
    return None if budget is None else budget - run.tokens - prompt_tokens


def dollars_left(run: TaskRun) -> float | None:
    """Return what the budget leaves for answers that cost money, None where it has no bound."""
    budget = run.definition.budget.dollars
    return None if budget is None else max(0.0, budget - run.dollars)
