"""Where the kinds of proposals are listed: a new kind is added in these modules, and in no other."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_workbench.core.proposal_kinds import KINDS
from tests.architecture.source_tree import PACKAGE, Module, modules

# One worker parses the sources for all of these.
pytestmark = pytest.mark.xdist_group("sources")

OF_A_KIND = {
    "core.settings": "its name and its setting",
    "core.proposal_kinds": "its facts, fields and words",
    "views.gate.proposal_views": "its view",
}
"""Modules that a new kind touches; the fourth is its tool."""
OTHERS = {
    "core.approval_rules": "a mode approves what is written there alone: a new kind is asked for",
    "core.tools.skill_tools": "the tools of skills",
    "core.tools.spec": "which permissions a source may ask for: a new kind is none of them",
    "core.tools.specs_of_0_1": "the tools of recorded sessions",
}
"""Modules that list some kinds, and that a new kind does not touch."""
NAMES = {
    **{f"Permission.{kind.name}": kind for kind in KINDS},
    **{cls.__name__: kind for kind, cls in KINDS.items()},
}


def _lists(module: Module) -> Iterator[tuple[int, frozenset[str]]]:
    """Yield the line and the kinds of each expression, pattern and match that names two kinds or more."""
    parts: list[ast.AST]
    for node in ast.walk(module.tree):
        match node:
            case ast.Set() | ast.Dict() | ast.BoolOp() | ast.BinOp() | ast.MatchOr():
                parts = [node]
            case ast.Tuple() | ast.List() if isinstance(node.ctx, ast.Load):
                parts = [node]
            case ast.Match():
                parts = [case.pattern for case in node.cases]
            case _:
                continue
        kinds = frozenset(NAMES[each] for part in parts for each in _names(part) if each in NAMES)
        if len(kinds) > 1:
            yield node.lineno, kinds


def _names(part: ast.AST) -> Iterator[str]:
    for node in ast.walk(part):
        if isinstance(node, ast.Attribute | ast.Name):
            yield ast.unparse(node)


def test_a_new_kind_is_added_in_four_modules() -> None:
    found = {module.name.removeprefix(f"{PACKAGE}."): list(_lists(module)) for module in modules()}
    assert {name: lists for name, lists in found.items() if lists and name not in OF_A_KIND | OTHERS} == {}
    assert all(found[name] for name in OTHERS), "a module that lists no kinds any more is taken from the list"


def test_a_list_of_kinds_would_be_found(tmp_path: Path) -> None:
    package = tmp_path / "src" / PACKAGE
    package.mkdir(parents=True)
    texts = {
        "table": "WORDS = {Permission.DIFF: 'a', Permission.CHECK: 'b'}\n",
        "group": "SEEN = frozenset({Permission.DIFF, Permission.CHECK})\n",
        "matched": "match x:\n    case DiffProposal():\n        pass\n    case CheckProposal():\n        pass\n",
        "by_value": "match x.kind:\n    case Permission.DIFF | Permission.CHECK:\n        pass\n",
        "tested": "y = isinstance(x, DiffProposal | CheckProposal)\n",
        "asked": "y = x.kind is Permission.DIFF or x.kind is Permission.CHECK\n",
        "one": "y = x.kind is Permission.DIFF\n",
    }
    for name, text in texts.items():
        (package / f"{name}.py").write_text(text)
    found = {name for name in texts if any(_lists(Module(package / f"{name}.py", tmp_path)))}
    assert found == texts.keys() - {"one"}
