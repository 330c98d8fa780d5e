"""The source tree as the architecture tests see it: modules, their syntax and what they import."""

import ast
from collections.abc import Iterable, Iterator
from functools import cache, cached_property
from pathlib import Path

from msgspec import Struct

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"
PACKAGE = "agent_workbench"


# The last word of the name of a subject's module, and the layer in which such a module stands.
WORDS = {
    "adapter": "adapters",
    "calls": "api",
    "screen": "tui",
    "verb": "cli",
    "view": "views",
    "wiring": "bootstrap",
}


def layer_of(name: str) -> str:
    """Return the layer of a module by its dotted name: its folder, or what the name of a subject's module says."""
    parts = name.removeprefix(f"{PACKAGE}.").split(".")
    if parts[0] != "subjects":
        return parts[0]
    return WORDS.get(parts[-1].rpartition("_")[2], "core")


def subject_of(name: str) -> str:
    """Return the subject of a module: its folder, else the first word of its name; empty elsewhere."""
    parts = name.removeprefix(f"{PACKAGE}.").split(".")
    if parts[0] != "subjects" or len(parts) == 1:
        return ""
    first, *words = parts[1].split("_")
    return first if words and words[-1] in WORDS else parts[1]


class Import(Struct, frozen=True):
    """One import of a module, wherever in the file it stands."""

    module: str
    line: int
    at_module_level: bool

    @property
    def library(self) -> str:
        """The first part of the dotted name."""
        return self.module.partition(".")[0]


class Module(Struct, frozen=True, dict=True):
    """A Python file of ours."""

    path: Path
    root: Path = ROOT

    @property
    def name(self) -> str:
        """The dotted name, for a package without `__init__`."""
        parts = self.path.relative_to(self.root / "src").with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def where(self) -> str:
        """The path as a reader of the repository knows it."""
        return self.path.relative_to(self.root).as_posix()

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, filename=str(self.path))

    def imports(self) -> Iterator[Import]:
        """Yield what is imported, `import_module("name")` too if the name is written out."""
        outside_functions = set(_nodes_run_at_import(self.tree))
        for node in ast.walk(self.tree):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            elif isinstance(node, ast.Call) and _called_name(node) in {"import_module", "__import__"} and node.args:
                first = node.args[0]
                if isinstance(first, ast.Constant) and isinstance(first.value, str):
                    names = [first.value]
            else:
                continue
            yield from (Import(name, node.lineno, node in outside_functions) for name in names)


def _called_name(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def _nodes_run_at_import(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that run when the module is imported: not functions, nor what only type checkers see."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        yield child
        yield from _nodes_run_at_import(child)


@cache
def modules() -> tuple[Module, ...]:
    """Return every module of ours, in order of path; each is read and parsed for the first test that asks."""
    return tuple(Module(path) for path in sorted((SOURCE / PACKAGE).rglob("*.py")))


def expect_none(findings: Iterable[str]) -> None:
    """Fail with every finding on a line of its own."""
    found = list(findings)
    assert not found, "\n" + "\n".join(found)
