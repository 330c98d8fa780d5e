"""Benchmark of indexing the source of a package or folder, updating the index, and searching it.

python -m bench.code_search [--folder FOLDER]
"""

import argparse
import asyncio
import importlib.util
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import quantiles

from agent_workbench.adapters.git.repository import Repository
from agent_workbench.adapters.git.working_trees.checkout_files import CheckoutFiles
from agent_workbench.adapters.retrieval.cache_folder import CacheFolder
from agent_workbench.adapters.retrieval.retriever import CodeRetriever
from agent_workbench.core.repo.retrieval import CodeQuery
from agent_workbench.core.settings import EmbeddingProvider, EmbeddingSettings, RetrievalSettings
from bench.figures import Figure, milliseconds

QUERIES = (
    "where is the version parsed",
    "open a file and read its lines",
    "class that holds the configuration",
    "raise an error when the type is wrong",
    "render text with style",
    "split a path into parts",
)
_LINES = 500_000
# What takes longer than this is seen as a stutter.
_FRAME_SECONDS = 0.016
_WITHOUT_VECTORS = RetrievalSettings(embeddings=EmbeddingSettings(EmbeddingProvider.NONE))


def measure(package: str = "textual", queries: tuple[str, ...] = QUERIES) -> list[Figure]:
    """Make a repository of the package's source, index it cold and from the cache, and search it."""
    return measure_folder(_folder_of(package), queries)


def measure_folder(source: Path, queries: tuple[str, ...] = QUERIES) -> list[Figure]:
    """Do the same with a copy of a folder."""
    with tempfile.TemporaryDirectory(prefix="bench-search-") as folder:
        return asyncio.run(_measure(source, Path(folder), queries))


async def _measure(source: Path, folder: Path, queries: tuple[str, ...]) -> list[Figure]:
    lines, files = make_repository(source, folder / "repo")
    own = await Repository(folder / "repo", folder / "state").checkout_files()
    cold, warm = (CodeRetriever(_WITHOUT_VECTORS, folder / "cache") for _ in range(2))
    try:
        watch = asyncio.create_task(_watch())
        built = await _seconds_of_build(cold, own)
        watch.cancel()
        await asyncio.wait({watch})
        loaded = await _seconds_of_build(warm, own)
        held = await asyncio.to_thread(CacheFolder(folder / "cache").facts)
        changed = [await _seconds_to_found(warm, own, number) for number in range(5)]
        asked = [await _search(warm, own, query) for query in queries * 4]
    finally:
        await cold.close()
        await warm.close()
    share = _LINES / max(lines, 1)
    parts = quantiles(asked, n=20)
    return [
        Figure("lines", lines, "lines"),
        Figure("files", files, "files"),
        Figure("index, nothing cached", built, "s"),
        Figure("the same for each 500k lines", built * share, "s", "8 to 20"),
        Figure("index in a new session, all cached", loaded * 1000, "ms"),
        milliseconds("one changed file to found", changed, "50 to 150"),
        Figure("a search with the look for changed files, median", parts[9] * 1000, "ms"),
        Figure("95 of 100 of them within", parts[-1] * 1000, "ms"),
        Figure("frames missed by the screen while indexing", len(_missed(watch)), "frames"),
        Figure("the longest wait of the screen", max(_missed(watch), default=0.0) * 1000, "ms"),
        Figure("most memory of the session", _megabytes(resource.RUSAGE_SELF), "MB"),
        Figure("most memory of one worker", _megabytes(resource.RUSAGE_CHILDREN), "MB"),
        Figure("cache for each 500k lines", held.total_bytes * share / 1e6, "MB", "60 to 150"),
    ]


async def _watch() -> list[float]:
    """Return the delays of the event loop in seconds, until it is cancelled."""
    found: list[float] = []
    try:
        while True:
            started = time.perf_counter()
            await asyncio.sleep(0.005)
            found.append(time.perf_counter() - started - 0.005)
    except asyncio.CancelledError:
        return found


def _missed(watch: "asyncio.Task[list[float]]") -> list[float]:
    return [wait for wait in watch.result() if wait > _FRAME_SECONDS]


async def _seconds_of_build(retriever: CodeRetriever, own: CheckoutFiles) -> float:
    started = time.perf_counter()
    await retriever.build(own)
    return time.perf_counter() - started


async def _seconds_to_found(retriever: CodeRetriever, own: CheckoutFiles, number: int) -> float:
    name = f"freshly_written_{number}"
    await asyncio.to_thread(Path(own.root, "fresh.py").write_text, f"def {name}(shelf):\n    return shelf\n")
    started = time.perf_counter()
    found = await retriever.search(own, CodeQuery(name), 3)
    if not any(name in chunk.text for chunk in found):
        raise SystemExit(f"{name} was not found after the file was written")
    return time.perf_counter() - started


async def _search(retriever: CodeRetriever, own: CheckoutFiles, query: str) -> float:
    started = time.perf_counter()
    await retriever.search(own, CodeQuery(query), 8)
    return time.perf_counter() - started


def _megabytes(who: int) -> float:
    # Linux counts in kilobytes, macOS in bytes.
    return resource.getrusage(who).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)


def _folder_of(package: str) -> Path:
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        raise SystemExit(f"the package {package} is not installed")
    return Path(found.origin).parent


def make_repository(source: Path, folder: Path) -> tuple[int, int]:
    """Make a git repository with a copy of the folder; return its number of lines and text files."""
    target = folder / source.name
    shutil.copytree(source, target, ignore=shutil.ignore_patterns(".git", "__pycache__", "*.so"), symlinks=True)
    author = ("-c", "user.name=bench", "-c", "user.email=bench@example.invalid", "-c", "commit.gpgsign=false")
    for words in (("init", "--quiet"), ("add", "--all"), (*author, "commit", "--quiet", "-m", "source")):
        subprocess.run(["git", "-C", str(folder), *words], check=True)
    counts = [path.read_bytes().count(b"\n") for path in target.rglob("*") if path.is_file() and not path.is_symlink()]
    return sum(counts), len(counts)


def main() -> None:
    """Measure the folder or package on the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.code_search")
    parser.add_argument("--folder", type=Path, help="what to index, instead of the package textual")
    chosen = parser.parse_args()
    for figure in measure_folder(chosen.folder.resolve()) if chosen.folder else measure():
        print(figure.line())


if __name__ == "__main__":
    main()
