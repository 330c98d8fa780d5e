"""Tables of what is a list in the code: exit codes, tools for MCP clients, decision notes."""

import json
from pathlib import Path
from typing import Any

from agent_workbench.core.errors import ExitCode
from docgen.markdown import code, plain, table
from docgen.structs import member_texts

DECISIONS = Path(__file__).parents[1] / "docs" / "decisions"


def exit_codes() -> str:
    """Return the table of exit codes."""
    texts = member_texts(ExitCode)
    return table(("code", "name", "when"), ((str(int(each)), each.name.lower(), texts[each.name]) for each in ExitCode))


def decisions() -> str:
    """Return the table of decision notes."""
    notes = sorted(DECISIONS.glob("0*.md"))
    titles = [note.read_text(encoding="utf-8").split("\n", 1)[0].removeprefix("# ") for note in notes]
    rows = ((*title.split(". ", 1), note.name) for title, note in zip(titles, notes, strict=True))
    return table(("number", "decision"), ((number, f"[{title}]({name})") for number, title, name in rows))


def mcp_tools() -> str:
    """Return a section for each tool of the MCP server."""
    from agent_workbench.api.sessions.unattended_run import TaskRuns
    from agent_workbench.core.session_request import Invocation
    from agent_workbench.mcp.served_tools import served_tools

    nowhere = Invocation(Path("/nowhere"), {}, {})
    sections = []
    for tool in served_tools(nowhere, TaskRuns(nowhere)):
        schema = json.loads(tool.schema)
        rows = [
            (code(name), _kind(each), "yes" if name in schema["required"] else "", plain(each.get("description", "")))
            for name, each in schema["properties"].items()
        ]
        told = "It changes nothing." if tool.reads else "It may change something."
        sections.append(f"## {tool.name}\n\n{plain(tool.summary)} {told}")
        if rows:
            sections.append(table(("argument", "type", "required", "meaning"), rows))
    return "\n\n".join(sections)


def _kind(schema: dict[str, Any]) -> str:
    match schema.get("type"):
        case "array":
            return f"list of {_kind(schema['items'])}, at most {schema['maxItems']}"
        case "integer":
            return f"whole number, {schema['minimum']:,} to {schema['maximum']:,}"
        case "string":
            return f"text, at most {schema['maxLength']:,} characters"
        case "boolean":
            return "true or false"
        case _:
            return "any value"
