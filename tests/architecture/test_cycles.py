"""No import cycles, neither between modules nor between the packages of one package."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter

import pytest

from tests.architecture.source_tree import PACKAGE, Module, expect_none, modules

# One worker parses the sources for all of these.
pytestmark = pytest.mark.xdist_group("sources")

Graph = Mapping[str, set[str]]


def _imports(module: Module, known: set[str]) -> Iterator[str]:
    """Yield the modules of ours that a module imports: at its top, in functions, and for type checkers alone.

    What only a type checker sees is counted, because a reader has to know it too. The `__init__` of the package that
    Python runs before a module is not counted: it hands names on.
    """
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom) and node.module in known:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield full if full in known else node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)


@cache
def _graph() -> Graph:
    every = modules()
    known = {module.name for module in every}
    return {module.name: set(_imports(module, known)) - {module.name} for module in every}


def _packages(graph: Graph, parent: str) -> Graph:
    """Return the imports between the children of a package: its modules and its packages."""

    def child(name: str) -> str:
        return name.removeprefix(f"{parent}.").partition(".")[0]

    inside = {name: found for name, found in graph.items() if name.startswith(f"{parent}.")}
    between: dict[str, set[str]] = {}
    for name, found in inside.items():
        others = {child(each) for each in found if each.startswith(f"{parent}.")}
        between.setdefault(child(name), set()).update(others - {child(name)})
    return between


def _cycle(graph: Graph) -> Iterable[str]:
    try:
        tuple(TopologicalSorter(graph).static_order())
    except CycleError as error:
        yield " -> ".join(error.args[1])


def test_no_module_imports_itself_through_others() -> None:
    expect_none(_cycle(_graph()))


LAYERS = ("adapters", "api", "cli", "config", "core", "core.patch", "engine", "subjects", "system", "tui", "views")


@pytest.mark.parametrize("layer", LAYERS)
def test_no_package_imports_itself_through_its_siblings(layer: str) -> None:
    expect_none(_cycle(_packages(_graph(), f"{PACKAGE}.{layer}")))


def test_a_cycle_is_found() -> None:
    assert list(_cycle({"a": {"b"}, "b": {"c"}, "c": {"a"}}))
    assert _packages({"x.a.one": {"x.b.two"}, "x.b.two": {"x.a.one"}}, "x") == {"a": {"b"}, "b": {"a"}}
