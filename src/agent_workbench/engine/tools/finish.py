"""Tool `finish`: the model says that the task is done; checks and a commit gate follow."""

from agent_workbench.core.proposals import Proposal
from agent_workbench.engine.arguments import Argument, ArgumentKind
from agent_workbench.engine.bench import Bench
from agent_workbench.engine.tools.tool import Outcome, ToolFace


class Finish(ToolFace):
    """Ends the steps; whether the task is done is decided by its checks."""

    async def run(self, bench: Bench, proposal: Proposal) -> Outcome:
        """Return the announcement."""
        return Outcome("the task's checks decide whether it is done")


TOOL = Finish(
    name="finish",
    summary="say that the task is done; its checks are run and a commit is offered",
    arguments=(Argument("summary", ArgumentKind.STRING, "what was changed and why", max_length=600),),
)
