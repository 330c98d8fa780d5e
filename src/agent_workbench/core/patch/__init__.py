"""Diffs as values: read and held to their bounds, applied to contents, picked apart by hunk, and written again."""

from agent_workbench.core.patch.application import apply_patch
from agent_workbench.core.patch.diff_text import patch_stat, render_changes, render_patch
from agent_workbench.core.patch.globs import matches_glob
from agent_workbench.core.patch.hashes import (
    content_hash,
    file_id,
    hunk_id,
    patch_hash,
    selectable_ids,
)
from agent_workbench.core.patch.paths import similar_paths
from agent_workbench.core.patch.placement.fit import Fit, LooseDiff, fit_diff, read_diff
from agent_workbench.core.patch.reader.patch_reader import parse_patch
from agent_workbench.core.patch.selection.partial_patch import leave_out
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
    "selectable_ids",
    "similar_paths",
    "special_paths",
]
