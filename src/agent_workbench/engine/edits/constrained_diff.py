"""Fit of a diff from an answer that its grammar constrained: only its lines decide where it applies."""

import asyncio
from collections.abc import Collection

from agent_workbench.core.patch import Fit, fit_constrained_diff, read_constrained_diff
from agent_workbench.engine.runtime.tool_context import ToolContext


async def fit_constrained_answer(context: ToolContext, diff: str, existing: Collection[str]) -> Fit | None:
    """Return the fit of the diff in the last answer, None if no grammar constrained it or the files changed since.

    Raises `PatchError` for faults that a grammar cannot prevent: a diff over the bounds of the task, or one that
    changes nothing.
    """
    read = read_constrained_diff(diff) if _is_constrained(context, diff) else None
    if read is None:
        return None
    contents = {path: await context.workspace.read(path) for path in read.old_paths}
    return await asyncio.to_thread(fit_constrained_diff, read, context.patch_bounds(), contents, existing)


def _is_constrained(context: ToolContext, diff: str) -> bool:
    prompt, answer = context.state.prompt, context.run.answer
    if prompt is None or answer is None or not prompt.grammar_sha or prompt.endpoint in context.state.ungrammatical:
        return False
    return answer.text.rstrip("\n").endswith(diff.rstrip("\n"))
