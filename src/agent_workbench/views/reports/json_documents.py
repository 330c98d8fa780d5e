"""JSON documents for other programs: found code, what waits in the inbox, plans, a session with its events."""

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import to_builtins

from agent_workbench.core.events import Recorded
from agent_workbench.core.events.codec import JsonObject, encode_event
from agent_workbench.core.ids import SessionId, TaskId
from agent_workbench.core.inbox import reference_to
from agent_workbench.core.plan import Plan, Task, WorkState
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.proposed_plan import ProposedPlan, ProposedTask
from agent_workbench.core.repo.retrieval import Chunk, CodeQuery, IndexStatus
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.core.task_estimates import Estimate
from agent_workbench.core.tools.strict_json import JsonValue
from agent_workbench.views.plan import plan_complexity, ready_first
from agent_workbench.views.reports.task_report import TaskReport

FORMAT = "agent-session"
VERSION = 1
"""Increased when a key is removed or changes its meaning; keys may be added."""

FIGURES = ("steps", "tokens", "minutes", "dollars")


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


def session_document(state: SessionState, events: Sequence[Recorded], accounts: Sequence[TaskReport]) -> JsonObject:
    """Return the document; docs/architecture.md describes its form."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "session": state.session,
        "parent": state.parent,
        "parent_seq": state.parent_seq,
        "base": state.base,
        "head": state.hash,
        "routed": dict(to_builtins(state.routed)) if state.routed is not None else None,
        "tasks": [_task_run(each) for each in accounts],
        "events": [_event(each) for each in events],
    }


def _task_run(account: TaskReport) -> JsonObject:
    run = account.run
    files: list[JsonValue] | None = None
    if account.files is not None:
        files = [{"path": each.path, "added": each.added, "removed": each.removed} for each in account.files]
    return {
        "task": run.task,
        "description": run.definition.description,
        "status": run.status.value if run.status is not None else None,
        "reason": run.reason,
        "branch": run.workspace.branch,
        "base": run.workspace.base,
        "tree": run.tree,
        "commit": run.commit,
        "steps": run.step,
        "judge_attempts": run.judge_attempts,
        "tokens": run.tokens,
        "dollars": run.dollars,
        "working_seconds": run.working_seconds,
        "resources": dict(to_builtins(run.resources)) if run.resources is not None else None,
        "files": files,
        "changes": [{"step": each.step, "why": each.why, "paths": list(each.paths)} for each in account.changes],
        "checks": [
            {"command": each.command, "passed": each.passed, "exit_code": each.exit_code, "seconds": each.seconds}
            for each in account.checks
        ],
        "decisions": [dict(to_builtins(each)) for each in account.decisions],
        "undone": [{"seq": each.seq, "step": each.step, "paths": list(each.paths)} for each in account.undone],
        "merged": dict(to_builtins(account.merged)) if account.merged is not None else None,
    }


def _event(recorded: Recorded) -> JsonObject:
    kind, body = encode_event(recorded.event)
    return {"seq": recorded.seq, "time": recorded.time, "kind": kind, "body": body, "hash": recorded.hash}


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
        "tasks": [_proposed_task(each, plan, proposal) for each in plan.tasks],
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


def _proposed_task(each: ProposedTask, plan: ProposedPlan, proposal: Proposal) -> JsonObject:
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
