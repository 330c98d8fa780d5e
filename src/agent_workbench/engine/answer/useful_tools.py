"""Tools that can tell or change something at the next step; the grammar leaves the others out."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from agent_workbench.core.events import FAILING_FIRST, ActionProposed, Recorded
from agent_workbench.core.repo.retrieval import Chunk
from agent_workbench.core.state.file_pieces import offered_pieces
from agent_workbench.core.state.session_state import TaskRun
from agent_workbench.core.tools.arguments import Choices
from agent_workbench.core.tools.spec import FINISH, NOTE, REMEMBER, ToolSpec
from agent_workbench.engine.answer.offered_lines import shown_chunks, text_of
from agent_workbench.engine.runtime.scope import TaskBounds, TaskFiles

READ_FILE = "read_file"
LOOKUPS = frozenset({READ_FILE, "list_files", "grep", "search_code"})
"""Tools that look into files."""
MOST_SMALL = 12
"""A repository with more files is never wholly in the prompt."""


async def useful_tools(
    scope: TaskBounds, present: TaskFiles, specs: Sequence[ToolSpec], choices: Mapping[str, Choices]
) -> tuple[tuple[ToolSpec, ...], Mapping[str, Choices]]:
    """Return the specs and choices without calls whose result the prompt shows already, or that would be refused.

    All of them if no change is left to make then, and for a scripted model, whose answers are given.
    """
    run, facts = scope.run, scope.state.model
    if run.wording < FAILING_FIRST or (facts is not None and facts.scripted):
        return tuple(specs), choices
    useless = set(_useless(run))
    if _looks_again(run.history):
        useless |= LOOKUPS
    readable = [path for path in await present.list_files() if scope.may_read(path)]
    whole = await _shown_whole(run, present, readable)
    if whole and whole.issuperset(readable):
        useless |= LOOKUPS
    kept = tuple(spec for spec in specs if spec.name not in useless)
    left = dict(choices)
    if paths := left.get(READ_FILE, {}).get("path"):
        left[READ_FILE] = {**left[READ_FILE], "path": tuple(path for path in paths if path not in whole) or paths}
    return (kept, left) if any(spec.raw for spec in kept) else (tuple(specs), choices)


def _useless(run: TaskRun) -> Iterable[str]:
    unchanged = not run.changed
    if unchanged and run.failed_before and offered_pieces(run).pieces:
        # The first thing to do is a change of the code that the prompt shows.
        yield from (NOTE, REMEMBER, FINISH, "run_tests", "static_analyze", "write_diff")
    elif run.results is not None and run.checked_tree == run.tree:
        yield "run_tests"
        if not run.passes:
            yield FINISH


def _looks_again(history: Sequence[Recorded]) -> bool:
    """Return True if the newest two calls are the same look into files: a third would tell nothing either."""
    calls = (each.event.proposal for each in reversed(history) if isinstance(each.event, ActionProposed))
    newest = tuple((call.tool, call.text) for call in islice(calls, 2))
    return len(newest) == 2 and newest[0] == newest[1] and newest[0][0] in LOOKUPS


async def _shown_whole(run: TaskRun, present: TaskFiles, readable: Sequence[str]) -> frozenset[str]:
    """Return the paths of the files of which the prompt shows every line as it is now."""
    if len(readable) > MOST_SMALL:
        return frozenset()
    shown: dict[str, list[Chunk]] = {}
    for chunk in await asyncio.to_thread(shown_chunks, run.history):
        shown.setdefault(chunk.path, []).append(chunk)
    return frozenset([path for path in readable if path in shown and await _is_whole(present, path, shown[path])])


async def _is_whole(present: TaskFiles, path: str, chunks: Sequence[Chunk]) -> bool:
    text = await text_of(present, path)
    return text is not None and any(chunk.text.rstrip("\n") == text.rstrip("\n") for chunk in chunks)
