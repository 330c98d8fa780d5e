"""Tool `finish`: the model says that the task is done; checks and a commit gate follow."""

from agent_workbench.core.events import ActionProposed
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.state.session_state import TaskRun
from agent_workbench.core.tools.arguments import Argument, ArgumentKind
from agent_workbench.engine.prompt.attempts import attempts
from agent_workbench.engine.runtime.tool import ToolResult
from agent_workbench.engine.runtime.tool_context import ToolContext
from agent_workbench.engine.tools.builtin_tool import BuiltinTool


class Finish(BuiltinTool, frozen=True):
    """Tool that ends the steps; the checks decide if the task is done."""

    async def run(self, context: ToolContext, proposal: Proposal) -> ToolResult:
        """Return the observation."""
        return ToolResult("the task's checks decide whether it is done")


TOOL = Finish(
    name="finish",
    summary="say that the task is done; its checks are run and a commit is offered",
    arguments=(Argument("summary", ArgumentKind.STRING, "what was changed and why", max_length=600),),
)


def why_rejected(run: TaskRun) -> str:
    """Return the reason to reject a finish, empty to accept it. The first one without any changes is rejected."""
    if run.changed or run.finish_returned:
        return ""
    tried = attempts(run.history)
    last = f" Your last diff does not stand ({tried[-1].told})." if tried else ""
    return (
        f"nothing is changed: the files are as they were when the task began.{last} Make the change that the task asks "
        "for. If it needs none, call finish again and say why in its summary; a person decides then."
    )


def finish_summary(run: TaskRun) -> str:
    """Return the summary of the newest finish, empty if there is none."""
    for recorded in reversed(run.history):
        event = recorded.event
        if isinstance(event, ActionProposed) and event.proposal.tool == TOOL.name:
            return TOOL.read(event.proposal.text).text("summary").strip()
    return ""
