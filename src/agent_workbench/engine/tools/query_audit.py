"""Tool `query_audit`: the ends of tasks, decisions and costs of all sessions, at the model's request."""

from agent_workbench.core.errors import ToolError
from agent_workbench.core.history.audit_records import SUBJECTS, AnyQuery, page_lines, query_about
from agent_workbench.core.ports.audit_index import ask
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.tools.arguments import Argument, ArgumentKind, Arguments, Choices
from agent_workbench.engine.runtime.budget import clip
from agent_workbench.engine.runtime.tool import BuiltinTool, ToolResult
from agent_workbench.engine.runtime.tool_context import TaskBounds, TaskFiles, ToolContext

DAYS, ROWS = 30, 30
OBSERVED_CHARS = 6_000


class QueryAudit(BuiltinTool, frozen=True):
    """Tool that reads the audit trail of the repository on this machine; it changes nothing."""

    async def choices(self, scope: TaskBounds, present: TaskFiles) -> Choices:
        """Return the subjects."""
        return {"about": SUBJECTS}

    async def draft(self, context: ToolContext, arguments: Arguments, text: str) -> Proposal:
        """Return the question; raise `UsageError` for one outside of the bounds."""
        _query(arguments)
        return await super().draft(context, arguments, text)

    async def run(self, context: ToolContext, proposal: Proposal) -> ToolResult:
        """Return a line for each record that fits, the newest first."""
        if context.ports.audit is None:
            raise ToolError("there is no audit here")
        query = _query(self.read(proposal.text))
        page = await ask(context.ports.audit, query, context.ports.clock.now())
        lines = "\n".join(page_lines(page))
        return ToolResult(clip(lines, OBSERVED_CHARS) or f"nothing fits in the last {query.days} days", output=lines)


def _query(arguments: Arguments) -> AnyQuery:
    return query_about(
        arguments.text("about"),
        service=arguments.text("service"),
        task=arguments.text("task"),
        by=arguments.text("by"),
        days=arguments.number("days", DAYS),
        limit=ROWS,
    )


QUERY_AUDIT_TOOL = QueryAudit(
    name="query_audit",
    summary="read the audit: which tasks ended how, who decided what and when, and what it cost",
    arguments=(
        Argument("about", ArgumentKind.STRING, ", ".join(SUBJECTS)),
        Argument("task", ArgumentKind.STRING, "only decisions of this task", required=False),
        Argument("by", ArgumentKind.STRING, "only decisions by whoever begins so: user, policy", required=False),
        Argument("service", ArgumentKind.STRING, "only this service", required=False),
        Argument("days", ArgumentKind.INTEGER, f"the last days ({DAYS})", required=False),
    ),
)

TOOLS = (QUERY_AUDIT_TOOL,)
