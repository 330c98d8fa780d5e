"""Putting a summary in place of the older steps of a task."""

from agent_workbench.core.errors import UsageError
from agent_workbench.core.events import Author
from agent_workbench.core.proposals import COMPACT, Proposal
from agent_workbench.core.settings import GateKind
from agent_workbench.engine.arguments import Arguments
from agent_workbench.engine.bench import Bench
from agent_workbench.engine.condensing import Scale, condense
from agent_workbench.engine.foreseeing import foresee
from agent_workbench.engine.tools.tool import Draft, Outcome, ToolFace


class Compact(ToolFace):
    """Makes room in the context."""

    async def draft(self, bench: Bench, arguments: Arguments, text: str) -> Draft:
        """Return the summary as the user wrote it; raise `UsageError` for one that is empty or leaves no room."""
        if not text.strip():
            raise UsageError("a summary needs words", advice="reject it with a reason to have the model write another")
        scale = Scale(bench)
        (size,) = await scale.count([text])
        most = scale.context_tokens // 4
        if size > most:
            raise UsageError(f"the summary has {size} tokens, there is room for {most}", advice="make it shorter")
        return Draft(text.strip(), outlook=await foresee(bench, text.strip(), Author.USER))

    async def run(self, bench: Bench, proposal: Proposal) -> Outcome:
        """Compact the context; there is nothing to tell of it but what the next prompt says."""
        by = Author.USER if proposal.edited else Author.WORKBENCH if proposal.fallback else Author.MODEL
        return Outcome("", effects=(await condense(bench, proposal.text, by),))


TOOL = Compact(name=COMPACT, summary="sum up the older steps", kind=GateKind.SUMMARY, offered=False)
