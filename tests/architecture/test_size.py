"""Small modules, functions and classes, with names that say something."""

import ast

from tests.architecture.source_tree import PACKAGE, SOURCE, Module, expect_none, modules

MODULE_LINES = 400
BOOTSTRAP_LINES = 160
FUNCTION_LINES = 60
CLASS_LINES = 200
# Names that fit everything, and so say nothing of what is inside.
EMPTY_NAMES = {"base", "common", "helper", "helpers", "manager", "managers", "misc", "util", "utils"}


def _over_budget(module: Module) -> list[str]:
    found = []
    allowed = BOOTSTRAP_LINES if module.name == f"{PACKAGE}.bootstrap" else MODULE_LINES
    lines = len(module.text.splitlines())
    if lines > allowed:
        found.append(f"{module.where}: {lines} lines, {allowed} allowed")
    for node in ast.walk(module.tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                kind, allowed = "function", FUNCTION_LINES
            case ast.ClassDef():
                kind, allowed = "class", CLASS_LINES
            case _:
                continue
        lines = (node.end_lineno or node.lineno) - node.lineno + 1
        if lines > allowed:
            found.append(f"{module.where}:{node.lineno}: {kind} {node.name} has {lines} lines, {allowed} allowed")
    return found


def test_nothing_is_larger_than_its_budget() -> None:
    expect_none(line for module in modules() for line in _over_budget(module))


def test_no_module_has_an_empty_name() -> None:
    expect_none(module.where for module in modules() if EMPTY_NAMES & set(module.name.split(".")))


def test_every_module_says_what_it_is_for() -> None:
    expect_none(module.where for module in modules() if not ast.get_docstring(module.tree))


def test_every_folder_with_modules_is_a_package() -> None:
    # Import-linter does not see into a folder without `__init__.py`, so its contracts would not hold there.
    folders = sorted({module.path.parent for module in modules()})
    expect_none(str(folder.relative_to(SOURCE)) for folder in folders if not (folder / "__init__.py").exists())
