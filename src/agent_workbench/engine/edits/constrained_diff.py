"""Fitting a diff that an answer was held to: it stands where its lines stand, and nothing about it is in doubt."""

import asyncio
from collections.abc import Collection, Mapping

from msgspec.structs import replace

from agent_workbench.core.patch import FileContent, Fit, PatchBounds, apply_patch, parse_patch
from agent_workbench.core.patch.grammar.editable_file import text_of
from agent_workbench.core.patch.reader.patch_reader import check_text
from agent_workbench.engine.edits.numbering import numbered, old_paths
from agent_workbench.engine.runtime.tool_context import ToolContext


async def fit_as_held(context: ToolContext, diff: str, existing: Collection[str]) -> Fit | None:
    """Return how the diff of the answer that was just given fits; None where no grammar held it, or the files changed.

    Raises `PatchError` for what no grammar can keep out: a diff over the task's bounds, or one that changes nothing.
    """
    if not _was_held(context, diff):
        return None
    contents = {path: await context.workspace.read(path) for path in old_paths(diff)}
    return await asyncio.to_thread(fit_held, diff, context.patch_bounds(), contents, existing)


def fit_held(
    diff: str, bounds: PatchBounds, contents: Mapping[str, FileContent | None], existing: Collection[str]
) -> Fit | None:
    """Return how a diff fits that the grammar for these files admits, None for any other diff; raise `PatchError`."""
    found = {path: text_of(content) for path, content in contents.items() if content is not None}
    true = numbered(diff, {path: text for path, text in found.items() if text is not None})
    if true is None:
        return None
    check_text(diff, bounds)
    patch = parse_patch(true, replace(bounds, max_bytes=2 * len(true.encode())))  # what was added to it is ours
    preimages = {path: contents.get(path) for path in patch.paths}
    return Fit(patch, apply_patch(patch, preimages, existing), ())


def _was_held(context: ToolContext, diff: str) -> bool:
    prompt, answer = context.state.prompt, context.run.answer
    if prompt is None or answer is None or not prompt.grammar_sha or prompt.endpoint in context.state.ungrammatical:
        return False
    return answer.text.rstrip("\n").endswith(diff.rstrip("\n"))
