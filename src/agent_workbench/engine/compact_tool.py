"""Tool `compact`: the workbench, not the model, calls it to replace older steps or the scratchpad with a summary."""

from agent_workbench.core.errors import UsageError
from agent_workbench.core.events import ActionResult, Author, Event
from agent_workbench.core.proposal_kinds import SummaryProposal
from agent_workbench.core.proposals import COMPACT, Proposal
from agent_workbench.core.settings import Permission
from agent_workbench.core.tools.arguments import Arguments
from agent_workbench.engine.compacted_context import compact_context, estimate_summary
from agent_workbench.engine.prompt.scratchpad import notes_changed, notes_sha
from agent_workbench.engine.prompt_budget import PromptBudget
from agent_workbench.engine.runtime.tool import ToolResult
from agent_workbench.engine.runtime.tool_context import ToolContext
from agent_workbench.engine.tools.builtin_tool import BuiltinTool


class CompactTool(BuiltinTool, frozen=True):
    """Tool of the workbench that applies an approved summary, which frees room in the context."""

    async def draft(self, context: ToolContext, arguments: Arguments, text: str) -> Proposal:
        """Return the summary as edited by the user; raise `UsageError` if it is empty or too long."""
        if not text.strip():
            raise UsageError("a summary needs words", advice="reject it with a reason to have the model write another")
        waiting = context.run.gate.proposal
        if context.run.notes_full and waiting is not None:
            return SummaryProposal(text=text.strip(), paths=waiting.paths, preimages=waiting.preimages)
        budget = PromptBudget(context)
        (size,) = await budget.count([text])
        most = budget.context_tokens // 4
        if size > most:
            raise UsageError(f"the summary has {size} tokens, there is room for {most}", advice="make it shorter")
        return SummaryProposal(text=text.strip(), outlook=await estimate_summary(context, text.strip(), Author.USER))

    async def run(self, context: ToolContext, proposal: Proposal) -> ToolResult:
        """Compact the context, or replace the scratchpad. The observation is empty: the next prompt has the summary."""
        fallback = isinstance(proposal, SummaryProposal) and proposal.fallback
        by = Author.USER if proposal.edited else Author.WORKBENCH if fallback else Author.MODEL
        if context.run.notes_full:
            return await _replace_notes(context, proposal)
        return ToolResult("", effects=(await compact_context(context, proposal.text, by),))


async def _replace_notes(context: ToolContext, proposal: Proposal) -> ToolResult:
    """Archive the scratchpad and write the summary in its place, unless it changed since it was summarized.

    If a crash came after the summary was written, it is only recorded.
    """
    memory, task, fork = context.ports.memory, context.task.id, context.run.fork
    text, (shown,) = f"{proposal.text}\n", proposal.preimages
    found = await memory.read_scratchpad(task, fork)
    recorded = context.ports.redacted(found)
    if notes_sha(recorded) == shown.sha:
        found = await memory.archive_scratchpad(task, found, text, context.ports.clock.now(), fork)
        recorded = context.ports.redacted(found)
    done = found == text
    by = Author.MODEL if done else Author.USER
    changed = recorded != context.state.scratchpad(task)
    effects: tuple[Event, ...] = (notes_changed(context.settings, task, found, by),) if changed else ()
    return ToolResult("", ActionResult.OK if done else ActionResult.REFUSED, effects)


TOOL = CompactTool(name=COMPACT, summary="sum up the older steps", permission=Permission.SUMMARY)
