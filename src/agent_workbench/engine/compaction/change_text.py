"""The change so far, as the model is told it after a compaction."""

from asyncio import to_thread
from collections.abc import Awaitable, Callable

from agent_workbench.core.patch import FileChange, render_changes
from agent_workbench.core.state.applied_diffs import applied_diffs
from agent_workbench.engine.runtime.tool_context import ToolContext

Cut = Callable[[str, int], Awaitable[str]]


async def tell_changes(context: ToolContext, cut: Cut, tokens: int, tree: str) -> str:
    """Return what was approved up to `tree` against the base as a diff; where that is too long, what is newest of it.

    `cut(text, tokens)` returns a text in so many tokens.
    """
    changes = await context.workspace.changes(tree)
    diff = await to_thread(render_changes, changes)
    if await cut(diff, tokens) == diff:
        return diff
    files = await to_thread(lambda: "\n".join(map(_counted, changes)))
    listed = await cut(files, tokens // 3)
    newest = await cut(_newest(context, tree), tokens // 2)
    rest = f"The newest part of it:\n{newest}" if newest else "It is too long to be shown."
    return f"{listed}\n{rest}".lstrip("\n")


def _counted(change: FileChange) -> str:
    lines = render_changes((change,)).splitlines()
    added = sum(line.startswith("+") and not line.startswith("+++ ") for line in lines)
    taken = sum(line.startswith("-") and not line.startswith("--- ") for line in lines)
    return f"{change.path}: {added} lines added, {taken} taken away"


def _newest(context: ToolContext, tree: str) -> str:
    """Return the diff that made `tree`, the one applied last where none did."""
    standing = tuple(applied_diffs(context.run.history))
    made = next((each for each in standing if each.tree == tree), next(iter(standing), None))
    return made.proposal.diff if made is not None else ""
