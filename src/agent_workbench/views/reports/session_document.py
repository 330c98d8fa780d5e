"""JSON document of a session for other programs: a summary, and every event as in the journal."""

from collections.abc import Sequence

from msgspec import to_builtins

from agent_workbench.core.events import Recorded
from agent_workbench.core.events.codec import JsonObject, encode_event
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.core.tools.strict_json import JsonValue
from agent_workbench.views.reports.task_report import TaskReport

FORMAT = "agent-session"
VERSION = 1
"""Increased when a key is removed or changes its meaning; keys may be added."""


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
        "tasks": [_task(each) for each in accounts],
        "events": [_event(each) for each in events],
    }


def _task(account: TaskReport) -> JsonObject:
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
