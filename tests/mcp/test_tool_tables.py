"""The tools that are served: their schemas and their hints."""

import json
from pathlib import Path

from agent_workbench.api.sessions.unattended_run import TaskRuns
from agent_workbench.core.consult_requests import CONSULTANTS
from agent_workbench.core.session_request import Invocation
from agent_workbench.core.tools.schema import read_schema
from agent_workbench.mcp.served_tool import by_name
from agent_workbench.mcp.served_tools import served_tools

NOWHERE = Invocation(Path("/nowhere"), {}, {})
TOOLS = by_name(served_tools(NOWHERE, TaskRuns(NOWHERE)))
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
