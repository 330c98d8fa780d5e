"""Texts about a proposed summary: the steps it replaces, and the tokens it frees."""

from agent_workbench.core.events import ContextFilled, ModelAnswered, PromptBuilt
from agent_workbench.core.model import Purpose
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.state.session_state import TaskRun
from agent_workbench.core.text.amounts import span_text


def summarized_steps(run: TaskRun, proposal: Proposal) -> str:
    """Return the steps that a summary replaces, in words."""
    steps = [step for seq, step in _steps(run) if not 0 <= _through(run, proposal) < seq]
    return span_text(min(steps), max(steps)) if steps else "what was before"


def steps_kept(run: TaskRun, proposal: Proposal) -> str:
    """Return the steps that stay verbatim beside a summary, in words; empty for none."""
    steps = [step for seq, step in _steps(run) if 0 <= _through(run, proposal) < seq]
    return span_text(min(steps), max(steps)) if steps and proposal.outlook is not None else ""


def frees_text(proposal: Proposal) -> str:
    """Return the number of freed tokens, empty if unknown."""
    outlook = proposal.outlook
    if outlook is None or not outlook.before:
        return ""
    frees = outlook.before - outlook.after
    return f"frees {frees:,} of {outlook.before:,} tokens" if frees > 0 else "frees nothing"


def _through(run: TaskRun, proposal: Proposal) -> int:
    """Return the last event that a summary covers, -1 for all."""
    if proposal.outlook is not None:
        return proposal.outlook.through_seq
    filled = [each.event.through_seq for each in run.history if isinstance(each.event, ContextFilled)]
    return filled[-1] if filled else -1


def _steps(run: TaskRun) -> list[tuple[int, int]]:
    """Return the event and number of each step."""
    purpose, steps = Purpose.EXECUTOR, []
    for recorded in run.history:
        event = recorded.event
        if isinstance(event, PromptBuilt):
            purpose = event.purpose
        elif isinstance(event, ModelAnswered) and purpose is Purpose.EXECUTOR:
            steps.append((recorded.seq, event.step))
    return steps
