"""What is left of a diff when only some of its hunks are taken."""

from collections.abc import Collection
from dataclasses import replace

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.identify import file_id, takeable_ids
from agent_workbench.core.patch.values import FilePatch, Patch


def keep_hunks(patch: Patch, taken: Collection[str]) -> Patch:
    """Return the patch with only the hunks whose ids are in `taken`; files of which nothing is left drop out.

    A file without hunks (rename, mode, empty file) stays if its `file_id` is in `taken`. Raises `PatchError` for an id
    that is not in the patch: whoever decided saw another diff.
    """
    unknown = set(taken).difference(takeable_ids(patch))
    if unknown:
        raise PatchError(f"the diff has no hunk {min(unknown)[:12]}", advice="Show the diff again and decide anew.")
    return Patch(tuple(left for file in patch.files if (left := _keep(file, taken)) is not None))


def _keep(file: FilePatch, taken: Collection[str]) -> FilePatch | None:
    if not file.hunks:
        return file if file_id(file) in taken else None
    hunks = tuple(hunk for hunk in file.hunks if hunk.id in taken)
    return replace(file, hunks=hunks) if hunks else None
