"""The tools that are served: their schemas, their hints, and the page that lists them."""

import json
import re
from pathlib import Path

from agent_workbench.api.sessions.task_runs import TaskRuns
from agent_workbench.core.consult.requests import CONSULTANTS
from agent_workbench.core.invocation import Invocation
from agent_workbench.core.tools.schema import read_schema
from agent_workbench.mcp.tools.consultant_tools import consultant_tools
from agent_workbench.mcp.tools.knowledge_tools import knowledge_tools
from agent_workbench.mcp.tools.repo_tools import repo_tools
from agent_workbench.mcp.tools.run_tools import run_tools
from agent_workbench.mcp.tools.served_tool import by_name
from agent_workbench.mcp.tools.skill_tools import skill_tools
from tests.docs.tables import table_rows

NOWHERE = Invocation(Path("/nowhere"), {}, {})
TOOLS = by_name(
    [
        *repo_tools(NOWHERE),
        *run_tools(NOWHERE, TaskRuns(NOWHERE)),
        *consultant_tools(NOWHERE),
        *knowledge_tools(NOWHERE),
        *skill_tools(NOWHERE),
    ]
)
REQUIRED = {
    "tdd_red": ["project_root", "spec"],
    "tdd_green": ["project_root", "test_path"],
    "tdd_refactor": ["project_root", "test_path", "impl_path"],
    "review": ["project_root", "files"],
    "debug": ["project_root", "error"],
    "spec": ["project_root", "requirements"],
    "retrospective": ["session_id"],
    "trainer": ["session_id"],
    "brain_query": ["query"],
    "brain_write": ["content"],
}


def names_in(cell: str) -> set[str]:
    return set(re.findall(r"`([^`]+)`", cell))


def test_the_page_lists_each_tool_with_its_arguments() -> None:
    told: set[str] = set()
    for tools, arguments, _ in table_rows("docs/how-to/mcp.md", "tool"):
        names = names_in(tools)
        told |= names
        schemas = [json.loads(TOOLS[name].schema)["properties"] for name in names]
        assert names_in(arguments) == {argument for each in schemas for argument in each}, names
    assert told == set(TOOLS)


def test_each_schema_can_be_held_in_full_and_names_what_is_required() -> None:
    for tool in TOOLS.values():
        assert read_schema(tool.schema).unheld == ()
        assert tool.summary.endswith(".")
    assert {name: json.loads(TOOLS[name].schema)["required"] for name in REQUIRED} == REQUIRED
    assert set(CONSULTANTS) <= set(REQUIRED)


def test_only_these_tools_change_anything() -> None:
    assert {tool.name for tool in TOOLS.values() if not tool.reads} == {
        "plan_new",
        "run_task",
        "run_stop",
        "brain_write",
        "run_python_script",
    }
