"""JSON documents for other programs: found code, what waits in the inbox, the plan."""

from collections.abc import Mapping

from agent_workbench.core.events.codec import JsonObject
from agent_workbench.core.ids import TaskId
from agent_workbench.core.plan import Plan, Task
from agent_workbench.core.plan.work_state import WorkState
from agent_workbench.core.repo.retrieval import Chunk, CodeQuery, IndexStatus
from agent_workbench.views.inbox import InboxRow
from agent_workbench.views.reports.plan_documents import task_labels


def results_document(query: CodeQuery, chunks: tuple[Chunk, ...], status: IndexStatus) -> JsonObject:
    """Return the results of a code search with their code and the reasons for each."""
    return {
        "query": query.text,
        "files": status.files,
        "complete": status.complete,
        "vectors": status.vectors,
        "results": [_chunk(chunk) for chunk in chunks],
    }


def _chunk(chunk: Chunk) -> JsonObject:
    return {
        "path": chunk.path,
        "first_line": chunk.first_line,
        "last_line": chunk.last_line,
        "symbol": chunk.symbol,
        "score": chunk.score,
        "tokens": chunk.tokens,
        "words": list(chunk.why),
        "signals": [{"kind": each.kind, "share": each.share, "words": list(each.words)} for each in chunk.signals],
        "context": chunk.context,
        "text": chunk.text,
    }


def note_document(note: Chunk) -> JsonObject:
    """Return a found note: its path, title, excerpt and score, and the reasons for it."""
    return {
        "path": note.path,
        "title": note.symbol,
        "excerpt": note.text,
        "score": note.score,
        "signals": [{"kind": each.kind, "share": each.share, "words": list(each.words)} for each in note.signals],
    }


def row_document(row: InboxRow) -> JsonObject:
    """Return an item of the inbox. It has no reference: a decision needs the whole proposal to be shown."""
    return {
        "id": row.id,
        "session": row.item.session,
        "proposal": row.item.proposal.id,
        "task": row.task,
        "kind": row.item.proposal.kind,
        "effect": row.effect,
        "since": row.item.since,
        "age": row.age,
        "risk": row.risk,
        "source": row.source,
        "expires": row.item.expires,
        "holder": row.item.holder,
        "decided": row.item.decided.verdict if row.item.decided is not None else "",
        "worker": row.item.worker,
        "refused": list(row.item.refused),
    }


def plan_document(plan: Plan, holders: Mapping[TaskId, str], states: Mapping[TaskId, WorkState]) -> JsonObject:
    """Return the plan; `holders` are the sessions that work on a task now."""
    return {
        "goal": plan.goal,
        "tasks": [_task(plan, task, holders.get(task.id, ""), states[task.id]) for task in plan.tasks],
    }


def _task(plan: Plan, task: Task, holder: str, state: WorkState) -> JsonObject:
    return {
        "id": task.id,
        "status": task.status.value,
        "state": state.value,
        "description": task.description,
        "goal": task.goal,
        "owner": task.owner.value,
        "accept_tests": list(task.accept_tests),
        "depends_on": list(task.depends_on),
        "waits_for": list(plan.waits_for(task)),
        "blocked_because": task.blocked_because,
        **task_labels(task),
        "holder": holder,
    }
