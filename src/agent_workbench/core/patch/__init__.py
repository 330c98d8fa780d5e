"""Diffs as values: read and held to their bounds, applied to contents, picked apart by hunk, and written again."""

from agent_workbench.core.patch.apply import apply_patch
from agent_workbench.core.patch.fit import Fit, LooseDiff, fit_diff, read_diff
from agent_workbench.core.patch.globs import matches_glob
from agent_workbench.core.patch.identify import (
    content_hash,
    file_id,
    hunk_id,
    patch_hash,
    takeable_ids,
)
from agent_workbench.core.patch.parse import parse_patch
from agent_workbench.core.patch.paths import similar_paths
from agent_workbench.core.patch.render import patch_stat, render_changes, render_patch
from agent_workbench.core.patch.select import leave_out
from agent_workbench.core.patch.special import special_paths
from agent_workbench.core.patch.values import (
    OWN_BOUNDS,
    FileChange,
    FileContent,
    FileOperation,
    FilePatch,
    Hunk,
    HunkLine,
    LeftOut,
    LineKind,
    Patch,
    PatchBounds,
)

__all__ = [
    "OWN_BOUNDS",
    "FileChange",
    "FileContent",
    "FileOperation",
    "FilePatch",
    "Fit",
    "Hunk",
    "HunkLine",
    "LeftOut",
    "LineKind",
    "LooseDiff",
    "Patch",
    "PatchBounds",
    "apply_patch",
    "content_hash",
    "file_id",
    "fit_diff",
    "hunk_id",
    "leave_out",
    "matches_glob",
    "parse_patch",
    "patch_hash",
    "patch_stat",
    "read_diff",
    "render_changes",
    "render_patch",
    "similar_paths",
    "special_paths",
    "takeable_ids",
]
