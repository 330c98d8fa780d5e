"""Small modules, functions and classes, with names that say something."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.class_tree import ClassTree
from tests.architecture.source_tree import PACKAGE, SOURCE, Module, expect_none, modules

# One worker parses the sources for all of these.
pytestmark = pytest.mark.xdist_group("sources")

MODULE_LINES = 450
BOOTSTRAP_LINES = 160
FUNCTION_LINES = 60
CLASS_LINES = 250
# With all that a class inherits from classes of ours: a chain of mixins is no way around the other number.
INHERITED_CLASS_LINES = 400
SMALL_MODULE_LINES = 60
MOST_SMALL_MODULES = 22
MOST_PACKAGES = 62
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


def test_no_class_is_too_large_with_what_it_inherits() -> None:
    expect_none(_too_large_with_bases(ClassTree(modules())))


def _too_large_with_bases(tree: ClassTree) -> Iterator[str]:
    for name, node in tree.classes.items():
        inherited = tree.inherited(name)
        lines = sum(each.lines for each in inherited.values())
        if lines > INHERITED_CLASS_LINES:
            parts = ", ".join(f"{base} {each.lines}" for (_, base), each in inherited.items())
            yield f"{node.where}: class {name[1]} has {lines} lines with what it inherits ({parts})"


def test_a_chain_of_classes_is_counted_with_all_its_links(tmp_path: Path) -> None:
    package = tmp_path / "src" / PACKAGE
    package.mkdir(parents=True)
    body = "".join(f"    x{number} = 0\n" for number in range(150))
    (package / "first.py").write_text(f"class First:\n{body}")
    (package / "kept.py").write_text(f"from {PACKAGE}.first import First\n")
    (package / "second.py").write_text(f"from {PACKAGE} import kept\n\nclass Second(kept.First, dict):\n{body}")
    (package / "third.py").write_text(f"from {PACKAGE}.second import Second as Other\n\nclass Third(Other):\n{body}")
    tree = ClassTree(Module(path, tmp_path) for path in sorted(package.glob("*.py")))
    found = list(_too_large_with_bases(tree))
    assert len(found) == 1
    assert found[0].endswith("class Third has 453 lines with what it inherits (Third 151, Second 151, First 151)")


def test_there_are_no_more_small_modules_and_packages_than_before() -> None:
    """The two numbers only go down: what is added finds its place beside its subject, and whoever joins lowers them."""
    packages = [module for module in modules() if module.path.name == "__init__.py"]
    others = [module for module in modules() if module.path.name != "__init__.py"]
    small = [module for module in others if len(module.text.splitlines()) < SMALL_MODULE_LINES]
    assert len(small) <= MOST_SMALL_MODULES, f"{len(small)} modules have less than {SMALL_MODULE_LINES} lines"
    assert len(packages) <= MOST_PACKAGES, f"{len(packages)} packages"


def test_no_module_has_an_empty_name() -> None:
    expect_none(module.where for module in modules() if EMPTY_NAMES & set(module.name.split(".")))


def test_every_module_says_what_it_is_for() -> None:
    expect_none(module.where for module in modules() if not ast.get_docstring(module.tree))


def test_every_folder_with_modules_is_a_package() -> None:
    # Import-linter does not see into a folder without `__init__.py`, so its contracts would not hold there.
    folders = sorted({module.path.parent for module in modules()})
    expect_none(str(folder.relative_to(SOURCE)) for folder in folders if not (folder / "__init__.py").exists())
