"""Repeated calls without a change in between: short observations for them, and detection of loops."""

from collections.abc import Mapping, Sequence
from itertools import takewhile
from math import inf

from agent_workbench.core.events import (
    ActionRejected,
    ActionResult,
    Author,
    ContextCompacted,
    Event,
    ModelAnswered,
    PatchApplied,
    PromptBuilt,
    Recorded,
    ScratchpadChanged,
    StepUndone,
    UserSaid,
)
from agent_workbench.core.model import Purpose
from agent_workbench.core.proposals import Proposal, Verdict
from agent_workbench.core.settings import Permission
from agent_workbench.core.state.session_state import TaskRun
from agent_workbench.core.state.steps import Step, newest_steps
from agent_workbench.core.tools.arguments import read_arguments
from agent_workbench.core.tools.spec import FINISH, NOTE, ToolSpec, by_name
from agent_workbench.engine.answer.step_protocol import StepCall, StepFault, read_step
from agent_workbench.engine.runtime.tool import ToolResult

AS_IN = "As in step"
CHANGES: tuple[type[Event], ...] = (PatchApplied, StepUndone, ContextCompacted)
"""Events after which the same call may have another result."""
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
    specs, since = by_name(run.specs), _newest(run.history, CHANGES)
    for step in takewhile(lambda each: each.seq > since, newest_steps(run.history)):
        ended = step.result.event if step.result is not None else None
        told = ended is not None and ended.result is ActionResult.OK and ended.observation == observation
        if told and _is_same(step.first, proposal, specs):
            return step.first.step
    return None


def _newest(history: Sequence[Recorded], kinds: tuple[type[Event], ...]) -> int:
    """Return the number of the newest event of these kinds, -1 if there is none."""
    return next((each.seq for each in reversed(history) if isinstance(each.event, kinds)), -1)


def _is_same(one: Proposal, other: Proposal, specs: Mapping[str, ToolSpec]) -> bool:
    if one.tool != other.tool or one.tool not in specs:
        return False
    spec = specs[one.tool]
    return read_arguments(one.text, spec) == read_arguments(other.text, spec)


def _told_news(history: Sequence[Recorded]) -> bool:
    """Return True if the newest action was a read with a new result."""
    step = next((each for each in newest_steps(history) if each.result is not None), None)
    if step is None or step.result is None:
        return False
    since = takewhile(lambda each: each.seq > step.seq, reversed(history))
    if any(isinstance(each.event, ActionRejected) for each in since):
        return False
    ended, call = step.result.event, step.first
    new = ended.result is ActionResult.OK and not ended.observation.startswith(AS_IN)
    return new and call.kind is Permission.READ and call.tool != NOTE


def _newest_calls(run: TaskRun, most: int) -> list[tuple[object, ...]]:
    """Return the calls since the last change, newest first. An invalid answer differs from every other."""
    tools = by_name(run.specs)
    found: list[tuple[int, tuple[object, ...]]] = []
    answer: ModelAnswered | None = None
    for recorded in reversed(run.history):
        event = recorded.event
        if _is_news(event) or len(found) == most:
            break
        if isinstance(event, ModelAnswered):
            answer = event
        elif isinstance(event, PromptBuilt) and answer is not None:
            if event.purpose is Purpose.EXECUTOR:
                found.append((recorded.seq, _call(read_step(answer.text, tools), event.step)))
            answer = None
    oldest = found[-1][0] if found else inf
    steps = takewhile(lambda each: each.seq > oldest, newest_steps(run.history))
    since = next((step.seq for step in steps if _is_steered(step)), -1)
    return [call for seq, call in found if seq > since]


def _call(step: StepCall | StepFault, number: int) -> tuple[object, ...]:
    if isinstance(step, StepFault):
        return (number,)
    return (step.tool.name, step.text if step.tool.raw else "", *sorted(step.arguments.values.items()))


def _is_steered(step: Step) -> bool:
    """Return True if a call was changed or not approved: the same one makes sense again."""
    return len(step.versions) > 1 or any(each.event.verdict is not Verdict.APPROVE for each in step.decisions)


def _is_news(event: Event) -> bool:
    """Return True if a repeated call makes sense after this event."""
    match event:
        case PatchApplied() | StepUndone() | ContextCompacted() | UserSaid():
            return True
        case ScratchpadChanged():
            return event.by is not Author.MODEL
        case _:
            return False
