"""All tools of the server."""

from agent_workbench.api.sessions.task_runs import TaskRuns
from agent_workbench.core.invocation import Invocation
from agent_workbench.mcp.tools.consultant_tools import consultant_tools
from agent_workbench.mcp.tools.knowledge_tools import knowledge_tools
from agent_workbench.mcp.tools.repo_tools import repo_tools
from agent_workbench.mcp.tools.run_tools import run_tools
from agent_workbench.mcp.tools.served_tool import ServedTool
from agent_workbench.mcp.tools.skill_tools import skill_tools


def served_tools(invocation: Invocation, runs: TaskRuns) -> tuple[ServedTool, ...]:
    """Return the tools for the repository around `invocation`; `runs` are the tasks that clients started."""
    return (
        *repo_tools(invocation),
        *run_tools(invocation, runs),
        *consultant_tools(invocation),
        *knowledge_tools(invocation),
        *skill_tools(invocation),
    )
