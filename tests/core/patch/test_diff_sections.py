"""Modes of the scanner: a strict scan that is not ambiguous finds the same sections as a lenient one."""

from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.diff_sections import Mode, scan_sections
from agent_workbench.core.patch.diff_text import render_changes
from agent_workbench.core.patch.fit import fit_diff
from agent_workbench.core.patch.patch_reader import lenient_lines, read_diff, strict_lines
from agent_workbench.core.patch.values import FileChange, PatchBounds
from tests.core.patch.diffs import content, edits, modify

MARKS = st.sampled_from(
    [
        *("-- ", "--", "2.39.2", "```", "--- a/x.py", "+++ b/x.py", "--- x", "+++ x", "@@ -1 +1 @@", "@@ @@", "@@", ""),
        *("diff --git a/x b/x", "rename from x", "rename to y", "- item", "+ plus", "\\ No newline at end of file"),
        *("new file mode 100644", "index 1234..5678", "prose", " context", "-old", "+new"),
    ]
)


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """Draw a diff, mostly with a few lines inserted, left out or counted differently."""
    before, after = draw(edits())
    lines = render_changes([FileChange("x.py", content(before), content(after))]).split("\n")
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(lines) - 1))
        lines[at : at + draw(st.integers(0, 1))] = draw(st.lists(MARKS, max_size=2))
    return "\n".join(lines)


@given(damaged())
@example(modify("@@ -1,2 +1,2 @@\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n"))
def test_a_certain_scan_finds_what_a_lenient_one_finds(text: str) -> None:
    with suppress(PatchError):
        lines = strict_lines(text)
        strict = scan_sections(lines, Mode.STRICT)
        source = lenient_lines(text)
        if not strict.ambiguous and source.lines == lines:
            lenient = scan_sections(source.lines, Mode.LENIENT)
            assert lenient.sections == strict.sections
            assert not lenient.skipped
            assert source.repairs == ()


@pytest.mark.parametrize(
    ("text", "after"),
    [
        # The header of the first hunk counts the header of the next file as two of its lines.
        (
            "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-a\n+b\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-c\n+d\n",
            {"x": "b\n", "y": "d\n"},
        ),
        # These lines are removed and added, as the header says.
        ("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-a\n+b\n--- a/y\n+++ b/y\n", {"x": "b\n++ b/y\n"}),
    ],
)
def test_placement_decides_between_two_interpretations(text: str, after: dict[str, str]) -> None:
    second = "a\n" if len(after) > 1 else "a\n-- a/y\n"
    files = {"x": content(second), "y": content("c\n")}
    readings = read_diff(text, PatchBounds(), tuple(files))
    fit = fit_diff(readings, {path: files.get(path) for path in readings.paths}, tuple(files))
    assert {each.path: each.after.data.decode() for each in fit.changes if each.after} == after
