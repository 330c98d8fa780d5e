"""Diffs: read into a patch, placed in files, applied, selected by hunk, and rendered again.

One pipeline serves the model's answer, the user's edit and the hunk choice. `reader` parses a text and reports its
repairs. `placement` finds the position of each hunk, and `application` makes the new contents. `comparison` makes the
patch of the result. `selection` leaves out hunks or lines, and `diff_text` renders. `grammar` constrains the answers of
a model to diffs that fit the files.
"""

from agent_workbench.core.patch.application import apply_patch
from agent_workbench.core.patch.comparison import compare_contents
from agent_workbench.core.patch.diff_text import canonical_patch, patch_stat, render_changes, render_patch
from agent_workbench.core.patch.fit import Fit, fit_constrained_diff, fit_diff
from agent_workbench.core.patch.globs import matches_glob
from agent_workbench.core.patch.hashes import (
    content_hash,
    file_id,
    hunk_id,
    patch_hash,
    selectable_ids,
)
from agent_workbench.core.patch.paths import similar_paths
from agent_workbench.core.patch.reader.patch_reader import (
    ConstrainedDiff,
    DiffReadings,
    parse_patch,
    read_constrained_diff,
    read_diff,
)
from agent_workbench.core.patch.selection.partial_patch import leave_out
from agent_workbench.core.patch.special import special_paths
from agent_workbench.core.patch.values import (
    OWN_BOUNDS,
    FileChange,
    FileContent,
    FileOperation,
    FilePatch,
    Hunk,
    HunkFate,
    HunkLine,
    LeftOut,
    LineKind,
    Patch,
    PatchBounds,
)

__all__ = [
    "OWN_BOUNDS",
    "ConstrainedDiff",
    "DiffReadings",
    "FileChange",
    "FileContent",
    "FileOperation",
    "FilePatch",
    "Fit",
    "Hunk",
    "HunkFate",
    "HunkLine",
    "LeftOut",
    "LineKind",
    "Patch",
    "PatchBounds",
    "apply_patch",
    "canonical_patch",
    "compare_contents",
    "content_hash",
    "file_id",
    "fit_constrained_diff",
    "fit_diff",
    "hunk_id",
    "leave_out",
    "matches_glob",
    "parse_patch",
    "patch_hash",
    "patch_stat",
    "read_constrained_diff",
    "read_diff",
    "render_changes",
    "render_patch",
    "selectable_ids",
    "similar_paths",
    "special_paths",
]
