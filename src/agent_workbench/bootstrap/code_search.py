"""Construction of the code search, of the server that embeds for it, and of the ranking of small collections."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # loaded when something is searched
    from agent_workbench.adapters.git.working_trees.checkout_files import PastTree
    from agent_workbench.adapters.llama_cpp.embedded_server import EmbeddedServer
    from agent_workbench.adapters.retrieval.evaluation import Evaluation
    from agent_workbench.adapters.retrieval.retriever import CodeRetriever
    from agent_workbench.core.settings import Settings

# Longer than the texts that stand for a file; a model that was trained with less takes less.
_CONTEXT_TOKENS = 1_024
_START_SECONDS = 120.0


def code_retriever(settings: "Settings", environ: Mapping[str, str], cache: Path | None = None) -> "CodeRetriever":
    """Return the code search that the settings want, with its cache in `cache` (None: the user's cache folder).

    Nothing is started yet. Blocks while modules are loaded.
    """
    from agent_workbench.adapters.retrieval.retriever import CodeRetriever
    from agent_workbench.system.user_dirs import cache_dir

    def server(path: str) -> "EmbeddedServer":
        return _embedding_server(path, settings, environ)

    return CodeRetriever(settings.searched, cache or cache_dir(), environ, server)


async def evaluate_code_search(
    settings: "Settings", environ: Mapping[str, str], cache: Path, past: "PastTree", say: Callable[[str], None]
) -> "Evaluation | None":
    """Measure the code search with a cache of its own; return None if no commit asks a question."""
    from agent_workbench.adapters.retrieval.evaluation import evaluate

    retriever = await asyncio.to_thread(code_retriever, settings, environ, cache)
    try:
        return await evaluate(retriever, past, past.later, settings.searched.exclude, say)
    finally:
        await retriever.close()


def _embedding_server(path: str, settings: "Settings", environ: Mapping[str, str]) -> "EmbeddedServer":
    """Return the llama.cpp server for the embedding model at `path`."""
    from agent_workbench.adapters.llama_cpp.embedded_server import EmbeddedServer
    from agent_workbench.adapters.llama_cpp.model_registry import SERVER_VARIABLE
    from agent_workbench.core.settings.models import ServingSettings
    from agent_workbench.system.user_dirs import state_dir

    return EmbeddedServer(
        Path(path),
        log=state_dir() / "logs" / "embeddings.log",
        environ=environ,
        serving=ServingSettings(_CONTEXT_TOKENS, server=settings.model.server or environ.get(SERVER_VARIABLE, "")),
        start_seconds=_START_SECONDS,
        embeddings=True,
    )


def rank_texts(texts: Sequence[str], query: str, limit: int) -> tuple[int, ...]:
    """Return the positions of at most `limit` texts that contain a word of the query, best first. Blocks."""
    from agent_workbench.ranking.small_collection import SmallCollection

    return tuple(each.number for each in SmallCollection(texts).best(query, limit))
