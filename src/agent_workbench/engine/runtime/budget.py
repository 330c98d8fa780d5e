"""Budget and limits of a task, what is left of them for the next answer, and limits on the length of texts."""

from agent_workbench.core.settings import Limits
from agent_workbench.core.state.session_state import Phase, TaskRun

ROUNDING_SECONDS = 0.01
"""Error of the recorded seconds of all commands of a baseline."""


def spent(run: TaskRun, limits: Limits) -> str:
    """Return the limit that the run has reached, empty if none."""
    budget = run.definition.budget
    if run.tool_calls >= limits.max_tool_calls_per_task:
        return f"{run.tool_calls} tool calls were made (max_tool_calls_per_task)"
    # An attempt that is made again from the same prompt builds on no other, and costs an answer alone.
    most = limits.consecutive_failure_threshold * (2 if run.tries_afresh else 1)
    if run.failures >= most and not _is_reflexion_owed(run, limits):
        return f"{run.failures} step{'' if run.failures == 1 else 's'} failed in a row (consecutive_failure_threshold)"
    if run.phase is Phase.REFLECTING and run.reflexions >= limits.max_reflexion_retries:
        return f"{run.reflexions} reflexions did not help (max_reflexion_retries)"
    if budget.tokens is not None and run.tokens >= budget.tokens:
        return f"{run.tokens} tokens were used of the {budget.tokens} in the task's budget"
    if budget.dollars is not None and run.dollars and run.dollars >= budget.dollars:
        return f"${run.dollars:.4f} were spent of the ${budget.dollars:g} in the task's budget"
    return time_spent(run) if seconds_left(run) == 0 else ""


def seconds_left(run: TaskRun, used: float = 0.0) -> float | None:
    """Return the seconds of work that the task has left, None if it has no bound. `used` ones are not recorded yet.

    The baseline is no work of the task: it may take as long again, and counts only if it needs all of that.
    """
    minutes = run.definition.budget.minutes
    return None if minutes is None else max(0.0, minutes * 60 - _work_seconds(run) - used)


def _work_seconds(run: TaskRun) -> float:
    before = sum(each.seconds for each in run.baseline or ())
    most = (run.definition.budget.minutes or 0.0) * 60
    return run.working_seconds - (before if before + ROUNDING_SECONDS < most else 0.0)


def time_spent(run: TaskRun) -> str:
    """Return the reason for which a task ends that has used its time."""
    most = run.definition.budget.minutes or 0.0
    used = max(_work_seconds(run) / 60, most)
    if most < 1:
        return f"{used * 60:.1f} seconds of work were used of the {most * 60:g} in the task's budget"
    return f"{used:.1f} minutes of work were used of the {most:g} in the task's budget"


def _is_reflexion_owed(run: TaskRun, limits: Limits) -> bool:
    """Return True if the model has yet to reflect on the last failure, or to try again after its reflexion."""
    phase = run.compacts_for if run.phase is Phase.COMPACTING else run.phase
    reflects = phase is Phase.REFLECTING and not run.reflected and run.reflexions < limits.max_reflexion_retries
    return reflects or run.reflected == run.failures


def tokens_left(run: TaskRun, prompt_tokens: int) -> int | None:
    """Return the tokens left for an answer to a prompt of this size, None if the budget has no bound."""
    budget = run.definition.budget.tokens
    return None if budget is None else budget - run.tokens - prompt_tokens


def dollars_left(run: TaskRun) -> float | None:
    """Return the dollars left for answers, None if the budget has no bound."""
    budget = run.definition.budget.dollars
    return None if budget is None else max(0.0, budget - run.dollars)


def clip(text: str, limit_chars: int) -> str:
    """Return `text` in about `limit_chars` characters: its head and tail, the cut stated."""
    if len(text) <= limit_chars:
        return text
    head = limit_chars * 2 // 3
    rest = limit_chars - head
    return f"{text[:head]}\n… {len(text) - limit_chars} characters cut …\n{text[-rest:]}"


def clip_line(text: str, limit_chars: int) -> str:
    """Return `text` on one line of at most `limit_chars` characters, its white space joined."""
    line = " ".join(text.split())
    return line if len(line) <= limit_chars else f"{line[: limit_chars - 1]}…"
