"""Text of the task's change so far for the compacted prompt."""

from asyncio import to_thread
from collections.abc import Awaitable, Callable

from agent_workbench.core.patch.diff_text import render_changes
from agent_workbench.core.patch.values import FileChange
from agent_workbench.core.state.applied_diffs import applied_diffs
from agent_workbench.engine.runtime.tool_context import ToolContext

Cut = Callable[[str, int], Awaitable[str]]


async def change_text(context: ToolContext, cut: Cut, tokens: int, tree: str) -> str:
    """Return the difference of `tree` to the base as a diff; if it is too long, a list of files and its newest part.

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
    """Return the diff that led to `tree`, else the newest applied one."""
    standing = tuple(applied_diffs(context.run.history))
    made = next((each for each in standing if each.tree == tree), next(iter(standing), None))
    return made.proposal.diff if made is not None else ""
