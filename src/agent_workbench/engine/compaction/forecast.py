"""What a summary comes to, worked out before anybody says yes to it: what the next prompt would be."""

from math import ceil

from agent_workbench.core.events import Author, ContextFilled
from agent_workbench.core.proposals import SummaryEstimate
from agent_workbench.engine.compaction.compacted_context import Scale, condense
from agent_workbench.engine.prompt.prompt_size import mark_tokens
from agent_workbench.engine.prompt.prompt_text import SUMMARY
from agent_workbench.engine.runtime.tool_context import ToolContext


async def foresee(context: ToolContext, summary: str, by: Author) -> SummaryEstimate:
    """Return how large the prompt is and would become with `summary` in it, and which steps that stands for."""
    filled = [each.event.prompt_tokens for each in context.run.history if isinstance(each.event, ContextFilled)]
    compacted = await condense(context, summary, by)
    scale = Scale(context)
    (question,) = await scale.count([SUMMARY])
    # What is measured there leaves room for the next summary's question, in two messages more.
    after = await scale.size_after(compacted) - question - ceil(2 * mark_tokens(context.run.history))
    return SummaryEstimate(filled[-1] if filled else 0, max(0, after), compacted.through_seq)
