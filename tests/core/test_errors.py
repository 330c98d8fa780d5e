"""The tree of errors in the module's docstring is the tree of classes."""

import re

from agent_workbench.core import errors
from agent_workbench.core.errors import WorkbenchError

LEAF = re.compile(r"^([│├└─ ]*)(\w+)(?: {2,}\S.*exit (\d+))?$")


def classes(root: type[WorkbenchError], depth: int = 0) -> list[tuple[int, str, int]]:
    """Return each class with its depth in the tree and its exit code, parents first."""
    found = [(depth, root.__name__, int(root.exit_code))]
    for each in sorted(root.__subclasses__(), key=lambda each: each.__name__):
        if each.__module__ == errors.__name__:
            found += classes(each, depth + 1)
    return found


def test_the_tree_names_every_error_with_its_parent_and_exit_code() -> None:
    lines = (errors.__doc__ or "").splitlines()
    tree = [LEAF.fullmatch(line) for line in lines[lines.index("WorkbenchError") :] if line]
    written = [(len(leaf[1]) // 4, leaf[2], int(leaf[3] or WorkbenchError.exit_code)) for leaf in tree if leaf]
    assert sorted(written) == sorted(classes(WorkbenchError))
    assert len(written) == len(tree)


def test_an_error_says_what_failed_and_what_to_do() -> None:
    error = errors.task_locked("T-1", "session 20261120T101500-ab2cde")
    assert str(error) == "T-1 is being worked on by session 20261120T101500-ab2cde"
    assert error.advice
