"""Words about a task that is in the queue already."""

from agent_workbench.core.ports.task_queue import ENDED, QueuedTask, QueueState
from agent_workbench.core.text.sanitizer import sanitize_line

_NAME_CHARS = 60
_REASON_CHARS = 300


def known_text(task: QueuedTask) -> str:
    """Return what became of a task that is queued once more under the same id."""
    state = "running" if task.state is QueueState.CLAIMED else task.state
    where = f" on {sanitize_line(task.worker, _NAME_CHARS)}" if task.state is QueueState.CLAIMED and task.worker else ""
    why = f" ({sanitize_line(task.reason, _REASON_CHARS)})" if task.state is QueueState.FAILED and task.reason else ""
    return f"{task.id} is {state} already{where}{why}"


def again_text(task: QueuedTask) -> str:
    """Return how to have such a task done, or done again."""
    if task.state in ENDED:
        return "to run it again, queue it under another `id`"
    if task.state is QueueState.PARKED:
        freed = f"`agent worker resume {task.id}` frees it"
        return freed if task.exhausted else f"it waits for a person: `agent inbox` shows what for; {freed}"
    return f"`agent worker withdraw {task.id}` takes it back; to change it, queue it under another `id` then"
