"""Completion of files and symbols that the user mentions."""

import asyncio

from agent_workbench.core.intents.outcomes import CodeCompleted
from agent_workbench.core.repo.retrieval import Completion
from agent_workbench.core.text.mentions import matching_paths
from agent_workbench.engine.runtime.session_context import SessionContext

MOST_PATHS = 8
MOST_SYMBOLS = 8
LEAST_CHARS = 2
"""Characters that a symbol is completed from."""


async def complete_code(session: SessionContext, prefix: str) -> CodeCompleted:
    """Return the files and symbols that fit what is typed, from what is indexed so far; raise `WorkbenchError`."""
    sources = await session.sources()
    paths = await session.file_names.of(sources)
    if session.state.unfinished:
        context = await session.tool_context()
        paths = tuple(path for path in paths if context.may_read(path))
    fitting = await asyncio.to_thread(matching_paths, paths, prefix, MOST_PATHS)
    if len(prefix) < LEAST_CHARS or "/" in prefix:
        return CodeCompleted(prefix, tuple(map(Completion, fitting)))
    retriever = session.ports.retriever
    known = set(paths)
    symbols = await retriever.symbols(sources, prefix, MOST_SYMBOLS)
    status = retriever.status(sources)
    remark = "" if status.complete and status.files else "symbols are being indexed"
    items = (*map(Completion, fitting), *(each for each in symbols if each.place.rpartition(":")[0] in known))
    return CodeCompleted(prefix, items, remark)
