"""Classes of the source tree with the lines that each has, and that it inherits from other classes of ours."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tests.architecture.source_tree import Module

ClassName = tuple[str, str]
"""Module and name of a class."""


@dataclass(frozen=True)
class ClassNode:
    """A class of ours: its lines, and its bases, as far as they are imported or stand in its module."""

    where: str
    lines: int
    bases: tuple[ClassName, ...]


class ClassTree:
    """Classes of modules by name, with what each inherits."""

    def __init__(self, modules: Iterable[Module]) -> None:
        self._exported: dict[ClassName, ClassName] = {}
        self.classes: dict[ClassName, ClassNode] = {}
        for module in modules:
            imported = dict(_imported(module.tree))
            self._exported.update({(module.name, name): source for name, source in imported.items()})
            for node in ast.walk(module.tree):
                if isinstance(node, ast.ClassDef):
                    bases = tuple(_bases(node, module.name, imported))
                    lines = (node.end_lineno or node.lineno) - node.lineno + 1
                    self.classes[module.name, node.name] = ClassNode(f"{module.where}:{node.lineno}", lines, bases)

    def inherited(self, name: ClassName) -> Mapping[ClassName, ClassNode]:
        """Return a class of ours and all classes of ours that it inherits from, each once."""
        found: dict[ClassName, ClassNode] = {}
        waiting = [name]
        while waiting:
            each = self._defined(waiting.pop())
            if each in self.classes and each not in found:
                found[each] = self.classes[each]
                waiting += self.classes[each].bases
        return found

    def _defined(self, name: ClassName) -> ClassName:
        """Return where a class is defined that another module may only hand on."""
        seen = set()
        while name not in self.classes and name in self._exported and name not in seen:
            seen.add(name)
            name = self._exported[name]
        return name


def _imported(tree: ast.Module) -> Iterator[tuple[str, ClassName]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from ((alias.asname or alias.name, (node.module, alias.name)) for alias in node.names)


def _bases(node: ast.ClassDef, module: str, imported: Mapping[str, ClassName]) -> Iterator[ClassName]:
    for base in node.bases:
        match base.value if isinstance(base, ast.Subscript) else base:
            case ast.Name(id=name):
                yield imported.get(name, (module, name))
            case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner in imported:
                yield ".".join(imported[owner]), name
