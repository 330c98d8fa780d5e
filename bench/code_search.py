"""How long it takes to index the source of an installed package, and to search it."""

import asyncio
import importlib.util
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from agent_workbench.adapters.git.repository import Repository
from agent_workbench.adapters.retrieval.retriever import CodeRetriever
from agent_workbench.core.ids import SessionId, TaskId
from agent_workbench.core.ports import Workspace
from agent_workbench.core.retrieval import CodeQuery
from agent_workbench.core.settings import RetrievalSettings
from agent_workbench.core.workspace import WorkspaceRequest
from bench.figures import Figure, milliseconds

QUERIES = (
    "where is the version parsed",
    "open a file and read its lines",
    "class that holds the configuration",
    "raise an error when the type is wrong",
    "render text with style",
    "split a path into parts",
)


def measure(package: str = "textual", queries: tuple[str, ...] = QUERIES) -> list[Figure]:
    """Make a repository of the package's source, index it cold and from the cache, and search it."""
    with tempfile.TemporaryDirectory(prefix="bench-search-") as folder:
        return asyncio.run(_measure(package, Path(folder), queries))


async def _measure(package: str, folder: Path, queries: tuple[str, ...]) -> list[Figure]:
    files, size = make_repository(package, folder / "repo")
    repository = Repository(folder / "repo", folder / "worktrees")
    head = (await repository.inspect()).head
    session, task = SessionId("20260101T000000-abcdef"), TaskId("T-1")
    workspace = await repository.open(WorkspaceRequest(session, task, "agent/T-1", head))
    cold = CodeRetriever(RetrievalSettings(), folder / "cache")
    warm = CodeRetriever(RetrievalSettings(), folder / "cache")
    try:
        first = await _search(cold, workspace, queries[0])
        cached = await _search(warm, workspace, queries[0])
        asked = [await _search(cold, workspace, query) for query in queries]
    finally:
        await cold.close()
        await warm.close()
        await workspace.release(keep=False)
    return [
        Figure(f"files of {package}", files, "files"),
        Figure("their size", size / 1e6, "MB"),
        Figure("index and first search, nothing cached", first, "s"),
        Figure("the same in a new process, pieces cached", cached, "s"),
        milliseconds("a search, with the look for changed files", asked),
        Figure("the slowest of them", max(asked) * 1000, "ms"),
    ]


async def _search(retriever: CodeRetriever, workspace: Workspace, query: str) -> float:
    started = time.perf_counter()
    await retriever.search(workspace, CodeQuery(query), 8)
    return time.perf_counter() - started


def make_repository(package: str, folder: Path) -> tuple[int, int]:
    """Put the package's source under git at `folder`; return how many files and bytes it has."""
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        raise SystemExit(f"the package {package} is not installed")
    source = Path(found.origin).parent
    shutil.copytree(source, folder / package, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    author = ("-c", "user.name=bench", "-c", "user.email=bench@example.invalid", "-c", "commit.gpgsign=false")
    for words in (("init", "--quiet"), ("add", "--all"), (*author, "commit", "--quiet", "-m", "source")):
        subprocess.run(["git", "-C", str(folder), *words], check=True)
    sizes = [path.stat().st_size for path in (folder / package).rglob("*") if path.is_file()]
    return len(sizes), sum(sizes)
