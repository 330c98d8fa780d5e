"""Document that a hook reads on its standard input: one JSON object, bounded, made from the session's state."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct

from agent_workbench.core.events import Event, PatchApplied, TaskFinished, TaskMerged, TaskStarted, TestsFinished
from agent_workbench.core.inbox import reference_to
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.proposed_action import ToolCall
from agent_workbench.core.settings.extensions import HookPoint
from agent_workbench.core.state.proposal_hooks import describe_objection, objections
from agent_workbench.core.state.session_state import SessionState, TaskRun
from agent_workbench.core.tools.spec import BUILTIN
from agent_workbench.core.tools.strict_json import JsonValue

Item = TypeVar("Item")
VERSION = 1
MAX_DIFF_CHARS = 1_000_000
MAX_TEXT_CHARS = 100_000
MAX_ITEMS = 1_000
ENDS = {TaskStatus.DONE: HookPoint.TASK_DONE, TaskStatus.FAILED: HookPoint.TASK_FAILED}


class HookDocument(Struct, frozen=True):
    """The text for a hook; `cut` names the parts of it that are not whole. `workspace` is the task's worktree."""

    text: str
    cut: tuple[str, ...] = ()
    workspace: str = ""


def point_of_event(event: Event) -> HookPoint | None:
    """Return the event of hooks that a recorded event is, None if it is none."""
    match event:
        case TaskStarted():
            return HookPoint.TASK_STARTED
        case PatchApplied():
            return HookPoint.DIFF_APPLIED
        case TestsFinished():
            return HookPoint.CHECKS_FINISHED
        case TaskFinished():
            return ENDS.get(event.status)
        case TaskMerged():
            return HookPoint.TASK_MERGED
        case _:
            return None


def proposal_document(state: SessionState, point: HookPoint, hook: str, proposal: Proposal) -> HookDocument:
    """Return the document about a proposal that waits."""
    parts, reference = _Parts(), reference_to(state.session, proposal)
    facts: dict[str, JsonValue] = {
        "id": proposal.id,
        "kind": proposal.kind.value,
        "tool": proposal.tool,
        "source": (proposal.source if isinstance(proposal, ToolCall) else "") or BUILTIN,
        "text": parts.text("proposal.text", proposal.text),
        "diff": parts.text("proposal.diff", proposal.diff, MAX_DIFF_CHARS),
        "commands": parts.texts("proposal.commands", proposal.commands),
        "paths": parts.texts("proposal.paths", proposal.paths),
        "special": parts.texts("proposal.special", proposal.special),
        "purpose": proposal.purpose.value if proposal.purpose is not None else None,
        "objections": parts.texts("proposal.objections", map(describe_objection, objections(state, proposal))),
        "reference": str(reference) if reference is not None else None,
    }
    return _document(state, state.run_at_gate, _head(point, hook, state.repo), {"proposal": facts}, parts)


def event_document(state: SessionState, point: HookPoint, hook: str, event: Event) -> HookDocument:
    """Return the document about an event that was recorded; `state` is the one after it."""
    parts = _Parts()
    return _document(state, state.run, _head(point, hook, state.repo), _facts(event, parts), parts)


def bare_document(point: HookPoint, hook: str, repo: str, task: str, reason: str) -> HookDocument:
    """Return the document about a task that came to no session."""
    parts = _Parts()
    said: dict[str, JsonValue] = {
        **_head(point, hook, repo),
        "task": {"id": parts.text("task.id", task, 200)},
        "reason": parts.text("reason", reason),
    }
    return parts.document(said)


def _document(
    state: SessionState,
    run: TaskRun | None,
    head: Mapping[str, JsonValue],
    facts: Mapping[str, JsonValue],
    parts: "_Parts",
) -> HookDocument:
    said: dict[str, JsonValue] = {
        **head,
        "session": state.session,
        "time": state.time,
        "unattended": state.config is not None and state.config.headless,
    }
    if run is not None:
        said["workspace"] = run.workspace.path
        said["task"] = {
            "id": run.task,
            "description": parts.text("task.description", run.definition.description),
            "source": parts.text("task.source", run.definition.source),
            "origin": run.definition.origin.value,
            "branch": run.workspace.branch,
            "base": run.workspace.base,
        }
    return parts.document({**said, **facts}, run.workspace.path if run is not None else "")


def _head(point: HookPoint, hook: str, repo: str) -> dict[str, JsonValue]:
    return {"version": VERSION, "event": point.value, "hook": hook, "repo": repo}


def _facts(event: Event, parts: "_Parts") -> dict[str, JsonValue]:
    match event:
        case PatchApplied():
            return {"proposal": {"id": event.proposal_id, "paths": parts.texts("proposal.paths", event.paths)}}
        case TestsFinished():
            checks: list[JsonValue] = [
                {
                    "command": parts.text("checks", each.command),
                    "passed": each.passed,
                    "exit_code": each.exit_code,
                    "seconds": each.seconds,
                    "failed_tests": parts.texts("checks", each.failed_tests),
                }
                for each in parts.some("checks", event.results)
            ]
            return {"purpose": event.purpose.value, "checks": checks}
        case TaskFinished():
            return {"status": event.status.value, "reason": parts.text("reason", event.reason)}
        case TaskMerged():
            merged = event.outcome
            return {"merge": {"commit": merged.commit, "into": merged.into, "method": merged.how}}
        case _:
            return {}


class _Parts:
    """Bounds of a document's parts; it notes which of them are cut."""

    def __init__(self) -> None:
        self._cut: dict[str, None] = {}

    def text(self, name: str, text: str, limit: int = MAX_TEXT_CHARS) -> str:
        if len(text) > limit:
            self._cut[name] = None
        return text[:limit]

    def some(self, name: str, items: Sequence[Item]) -> Sequence[Item]:
        if len(items) > MAX_ITEMS:
            self._cut[name] = None
        return items[:MAX_ITEMS]

    def texts(self, name: str, items: Iterable[str]) -> list[JsonValue]:
        left, kept = MAX_TEXT_CHARS, []
        for item in self.some(name, tuple(items)):
            kept.append(self.text(name, item, left))
            left -= len(kept[-1])
        return list(kept)

    def document(self, said: Mapping[str, JsonValue], workspace: str = "") -> HookDocument:
        cut = tuple(self._cut)
        # Everything beyond ASCII is escaped: nothing in it can end a line or turn the text of a log.
        return HookDocument(json.dumps({**said, "cut": list(cut)}) + "\n", cut, workspace)
