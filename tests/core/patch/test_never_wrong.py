"""Diffs that could be applied in a wrong place: applied in the right one, or refused."""

import pytest

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.fit import fit_diff
from agent_workbench.core.patch.patch_reader import read_diff
from agent_workbench.core.patch.values import FileContent, PatchBounds
from tests.core.patch.far_traps import FAR_TRAPS, INDENT_TRAPS
from tests.core.patch.traps import TRAPS, Trap


def result(each: Trap) -> dict[str, str] | None:
    """Return every file after the trap's diff; None where it is refused."""
    pre = {path: FileContent(text.encode()) for path, text in each.pre.items()}
    try:
        diff = read_diff(each.diff, PatchBounds(), pre)
        changes = fit_diff(diff, {path: pre.get(path) for path in diff.paths}, pre).changes
    except PatchError:
        return None
    after = {**pre, **{change.path: change.after for change in changes}}
    return {path: content.data.decode() for path, content in after.items() if content is not None}


ALL = [*TRAPS, *FAR_TRAPS, *INDENT_TRAPS]


@pytest.mark.parametrize("each", ALL, ids=[each.name for each in ALL])
def test_it_comes_right_or_is_refused(each: Trap) -> None:
    found = result(each)
    assert found is None or found == each.right
