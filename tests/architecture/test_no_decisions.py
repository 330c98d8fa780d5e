"""MCP lists, shows and starts; it never decides."""

import ast

import pytest

from tests.architecture.source_tree import PACKAGE, expect_none, modules

# One worker parses the sources for all of these.
pytestmark = pytest.mark.xdist_group("sources")

DECIDING = {
    *("InboxChoice", "Verdict", "ApproveProposal", "RejectProposal", "SkipProposal", "EditProposal", "decide"),
    *("submit", "Intent", "parse_reference", "reference", "reference_to", "store_rule", "core.intents", "dispatch"),
}


def test_no_tool_of_the_server_can_decide() -> None:
    expect_none(
        f"{module.where}:{node.lineno}: {name}"
        for module in modules()
        if module.name.startswith(f"{PACKAGE}.mcp")
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Name | ast.Attribute | ast.alias | ast.ImportFrom)
        for name in names_of(node)
        if name in DECIDING or name.startswith(f"{PACKAGE}.core.intents")
    )


def names_of(node: ast.Name | ast.Attribute | ast.alias | ast.ImportFrom) -> tuple[str, ...]:
    if isinstance(node, ast.Name):
        return (node.id,)
    if isinstance(node, ast.Attribute):
        return (node.attr,)
    return (node.name,) if isinstance(node, ast.alias) else (node.module or "",)
