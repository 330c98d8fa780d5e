"""Where a line of a file stands in a diff that is shown."""

from agent_workbench.core.checks.failure_tree import CodePlace
from agent_workbench.views.diff.shown_diff import ShownDiff


def line_in_diff(shown: ShownDiff, place: CodePlace) -> int:
    """Return the number of the diff's line that is this line of the changed file, -1 where it does not show it.

    A path that a run of tests spelt counts as the file it ends with, or which ends with it.
    """
    for number, line in enumerate(shown.lines):
        if line.new == place.line and line.file >= 0 and _same_file(shown.files[line.file].path, place.path):
            return number
    return -1


def _same_file(path: str, spelt: str) -> bool:
    return path == spelt or spelt.endswith(f"/{path}") or path.endswith(f"/{spelt}")
