"""Position of a file's line in a displayed diff."""

from agent_workbench.core.checks.failure_tree import CodePlace
from agent_workbench.views.diff.shown_diff import ShownDiff


def line_in_diff(shown: ShownDiff, place: CodePlace) -> int:
    """Return the number of the diff's line that shows this line of the changed file, -1 if none does.

    A path that a test run printed matches a file that ends with it, or that it ends with.
    """
    for number, line in enumerate(shown.lines):
        if line.new == place.line and line.file >= 0 and _same_file(shown.files[line.file].path, place.path):
            return number
    return -1


def _same_file(path: str, spelt: str) -> bool:
    return path == spelt or spelt.endswith(f"/{path}") or path.endswith(f"/{spelt}")
