"""What a summary that waits at the gate stands for: which steps, and how much room it makes."""

from agent_workbench.core.events import ContextFilled, ModelAnswered, PromptBuilt
from agent_workbench.core.model import Purpose
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.state import SessionState, TaskRun
from agent_workbench.core.views.amounts import span_text

CHARS_PER_TOKEN = 4


def steps_summed_up(run: TaskRun) -> str:
    """Return which steps the newest summary is about, in words."""
    filled = next((each for each in reversed(run.history) if isinstance(each.event, ContextFilled)), None)
    through = filled.event.through_seq if filled is not None and isinstance(filled.event, ContextFilled) else -1
    purpose, steps = Purpose.EXECUTOR, []
    for recorded in run.history:
        event = recorded.event
        if 0 <= through < recorded.seq:
            break
        if isinstance(event, PromptBuilt):
            purpose = event.purpose
        elif isinstance(event, ModelAnswered) and purpose is Purpose.EXECUTOR:
            steps.append(event.step)
    return span_text(min(steps), max(steps)) if steps else "what was before"


def frees_text(state: SessionState, proposal: Proposal) -> str:
    """Return how many tokens become free at most (the newest steps may stay), empty where that is not known."""
    from agent_workbench.core.views.receipt import view_receipt  # not needed before a summary waits

    receipt = view_receipt(state)
    if receipt is None or receipt.compacting is None:
        return ""
    frees = receipt.compacting.frees - len(proposal.text) // CHARS_PER_TOKEN
    return f"frees at most {frees:,} tokens" if frees > 0 else ""
