"""Repeated calls without a change in between: short observations for them, and detection of loops."""

from collections.abc import Mapping, Sequence

from agent_workbench.core.events import (
    ActionDecided,
    ActionFinished,
    ActionProposed,
    ActionRejected,
    ActionResult,
    Author,
    ContextCompacted,
    Event,
    ModelAnswered,
    PatchApplied,
    PromptBuilt,
    ProposalReplaced,
    Recorded,
    ScratchpadChanged,
    StepUndone,
    UserSaid,
)
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.model import Purpose
from agent_workbench.core.proposals import Proposal, Verdict
from agent_workbench.core.settings import Permission
from agent_workbench.core.state.session_state import TaskRun
from agent_workbench.core.tools.arguments import read_arguments
from agent_workbench.core.tools.spec import FINISH, NOTE, ToolSpec, by_name
from agent_workbench.engine.answer.step_protocol import StepCall, StepFault, read_step
from agent_workbench.engine.runtime.tool import ToolResult

AS_IN = "As in step"
IN_A_ROW = 3
ALTERNATING = 4
ADVICE = "do something else: look at another place, change a file, or finish"
"""Advice in the answer to a loop, behind what it consists of."""


def loop_warning(run: TaskRun) -> str:
    """Return a warning if the newest calls are a loop (three equal ones, or two that alternate), else an empty text."""
    if _told_news(run.history):
        return ""
    calls = _newest_calls(run, ALTERNATING)
    if len(calls) >= IN_A_ROW and len(set(calls[:IN_A_ROW])) == 1:
        return f"the same call {IN_A_ROW} times in a row, and nothing has changed in between; {ADVICE}"
    if len(calls) == ALTERNATING and calls[:2] == calls[2:]:
        return f"two calls that take turns, and nothing has changed in between; {ADVICE}"
    return ""


def without_repeat(run: TaskRun, proposal: Proposal, outcome: ToolResult) -> ToolResult:
    """Return the result of a read, replaced by one line if the prompt already has it from the same call.

    A loop of such reads fails the step.
    """
    step = _told_in(run, proposal, outcome.observation) if proposal.tool != FINISH else None
    if step is None:
        return outcome
    if loop := loop_warning(run):
        return ToolResult(f"{AS_IN} {step}: {loop}.", ActionResult.FAILED)
    return ToolResult(f"{AS_IN} {step}, word for word: nothing has changed since.")


def _told_in(run: TaskRun, proposal: Proposal, observation: str) -> int | None:
    """Return the step of the same call with the same result, None if there is none since a change or compaction."""
    told: set[ProposalId] = set()
    specs = by_name(run.specs)
    for recorded in reversed(run.history):
        match recorded.event:
            case PatchApplied() | StepUndone() | ContextCompacted():
                return None
            case ActionFinished(result=ActionResult.OK) as finished if finished.observation == observation:
                told.add(finished.proposal_id)
            case ActionProposed(proposal=earlier) if earlier.id in told and _is_same(earlier, proposal, specs):
                return earlier.step
            case _:
                continue
    return None


def _is_same(one: Proposal, other: Proposal, specs: Mapping[str, ToolSpec]) -> bool:
    if one.tool != other.tool or one.tool not in specs:
        return False
    spec = specs[one.tool]
    return read_arguments(one.text, spec) == read_arguments(other.text, spec)


def _told_news(history: Sequence[Recorded]) -> bool:
    """Return True if the newest action was a read with a new result."""
    finished: ActionFinished | None = None
    for recorded in reversed(history):
        match recorded.event:
            case ActionRejected():
                return False
            case ActionFinished() as event if finished is None:
                finished = event
            case ActionProposed(proposal=proposal) if finished is not None and proposal.id == finished.proposal_id:
                new = finished.result is ActionResult.OK and not finished.observation.startswith(AS_IN)
                return new and proposal.kind is Permission.READ and proposal.tool != NOTE
            case _:
                continue
    return False


def _newest_calls(run: TaskRun, most: int) -> list[tuple[object, ...]]:
    """Return the calls since the last change, newest first. An invalid answer differs from every other."""
    tools = by_name(run.specs)
    found: list[tuple[object, ...]] = []
    answer: ModelAnswered | None = None
    for recorded in reversed(run.history):
        event = recorded.event
        if _is_news(event) or len(found) == most:
            break
        if isinstance(event, ModelAnswered):
            answer = event
        elif isinstance(event, PromptBuilt) and answer is not None:
            if event.purpose is Purpose.EXECUTOR:
                found.append(_call(read_step(answer.text, tools), event.step))
            answer = None
    return found


def _call(step: StepCall | StepFault, number: int) -> tuple[object, ...]:
    if isinstance(step, StepFault):
        return (number,)
    return (step.tool.name, step.text if step.tool.raw else "", *sorted(step.arguments.values.items()))


def _is_news(event: Event) -> bool:
    """Return True if a repeated call makes sense after this event."""
    match event:
        case PatchApplied() | StepUndone() | ContextCompacted() | UserSaid() | ProposalReplaced():
            return True
        case ScratchpadChanged():
            return event.by is not Author.MODEL
        case ActionDecided():
            return event.verdict is not Verdict.APPROVE
        case _:
            return False
