"""Benchmark of a very large index: time and memory to build, save, load, update and search it."""

import importlib.util
import json
import random
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import quantiles

from agent_workbench.adapters.retrieval.index.file_kinds import kind_of
from agent_workbench.adapters.retrieval.index.segments import Field, Segment, SourceFile, blob_id
from agent_workbench.adapters.retrieval.index.workspace_index import WorkspaceIndex
from agent_workbench.adapters.retrieval.indexable_files import MAX_FILE_BYTES
from agent_workbench.adapters.retrieval.scoring import keep_freed_memory
from agent_workbench.adapters.retrieval.scoring import search as search_view
from agent_workbench.core.repo.retrieval import CodeQuery
from agent_workbench.ranking.tokens import count_stems
from bench.figures import Figure, milliseconds

_BATCH = 64
_WORKERS = 2
# So many chunks its modules, without packages, give at least.
_OF_THE_LIBRARY = 4_000
_QUERY_WORDS = 20
_SCORED = (Field.BODY, Field.NAMES, Field.COMMENTS, Field.PATH, Field.WHOLE_FILE)
_COVERED = (Field.BODY, Field.NAMES, Field.PATH)
_LINES = 500_000


def measure(chunks: int = 100_000, queries: int = 300) -> list[Figure]:
    """Index installed source up to this many chunks; each figure comes from a process of its own."""
    with tempfile.TemporaryDirectory(prefix="bench-index-") as name:
        folder = Path(name)
        lines, size = prepare(folder, chunks, queries)
        figures = [Figure("lines of source", lines, "lines"), Figure("their size", size / 1e6, "MB")]
        for step in ("build", "search"):
            command = [sys.executable, "-m", "bench.index_scale", step, name, f"{lines}"]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            figures += [Figure(**each) for each in json.loads(done.stdout)]
        return figures


def prepare(folder: Path, chunks: int, queries: int) -> tuple[int, int]:
    """Write segments and queries below `folder`; return the lines and bytes of source in them."""
    total = [0, 0, 0]
    asked: list[list[str]] = []
    with ProcessPoolExecutor(_WORKERS, get_context("spawn")) as pool:
        for number, (data, texts, counts) in enumerate(pool.map(_segment, _batches(chunks))):
            if total[0] >= chunks:
                break
            (folder / f"{number:05}.segment").write_bytes(data)
            asked += texts
            total = [have + more for have, more in zip(total, counts, strict=True)]
        pool.shutdown(cancel_futures=True)
    random.Random(1).shuffle(asked)
    (folder / "queries.json").write_text(json.dumps(asked[:queries]))
    return total[1], total[2]


def _batches(chunks: int) -> Iterator[list[Path]]:
    """Yield files of the standard library, then of installed packages, in random order."""
    library = Path(sysconfig.get_path("stdlib"))
    files = list(library.glob("*.py"))
    if chunks > _OF_THE_LIBRARY:
        files = [path for folder in (library, Path(sysconfig.get_path("purelib"))) for path in folder.rglob("*.py")]
    files = [path for path in dict.fromkeys(files) if path.stat().st_size <= MAX_FILE_BYTES]
    random.Random(1).shuffle(files)
    size = min(_BATCH, max(1, chunks // 50))
    for start in range(0, min(len(files), chunks // 4), size):
        yield files[start : start + size]


def _segment(paths: Sequence[Path]) -> tuple[bytes, list[list[str]], list[int]]:
    """Return a segment of these files, queries that they answer, and the number of chunks, lines and bytes."""
    from agent_workbench.adapters.retrieval.index.chunker import Outline, chunk_text
    from agent_workbench.adapters.retrieval.index.file_parser import OutlineParser

    syntax, chooser = OutlineParser(), random.Random(str(paths[0]))
    files, asked, lines, size = [], [], 0, 0
    for path in paths:
        data = path.read_bytes()
        found = chunk_text(data.decode("utf-8", "replace"), syntax.outline(data, "python") or Outline(), 400)
        files.append(SourceFile("/".join(path.parts[-4:]), blob_id(data), kind_of(str(path), data), found))
        lines, size = lines + data.count(b"\n"), size + len(data)
        told = [chunk for chunk in found if len(chunk.comments) >= _QUERY_WORDS]
        asked += [chooser.sample(sorted(chunk.comments), _QUERY_WORDS) for chunk in told[:1]]
    return Segment.build(files).to_bytes(), asked, [sum(len(file.chunks) for file in files), lines, size]


def build(folder: Path, lines: int) -> list[Figure]:
    """Add all segments, as worker processes would send them, and save the index."""
    index, longest = WorkspaceIndex(), _Stalls()
    with longest:
        taking = [_seconds(partial(_take, index, path)) for path in sorted(folder.glob("*.segment"))]
        compacting = _seconds(index.compact)
    saving = _seconds(lambda: index.save(folder / "index"))
    size = (folder / "index").stat().st_size
    return [
        Figure("chunks", index.view.chunks, "chunks"),
        Figure("files", index.view.files, "files"),
        Figure("words", len(index.view.segments[0].vocabulary), "words"),
        Figure("postings", index.view.segments[0].postings, "postings"),
        Figure("take all segments", sum(taking), "s"),
        Figure("make one of them", compacting, "s"),
        Figure("the longest that another thread waited meanwhile", longest.seconds * 1000, "ms"),
        Figure("save", saving * 1000, "ms"),
        Figure("saved", size / 1e6, "MB"),
        Figure(f"saved for {_LINES:,} lines", size / 1e6 * _LINES / lines, "MB", "40"),
        Figure("most memory of the process that builds", _memory("VmHWM"), "MB", "250"),
    ]


def search(folder: Path, _lines: int) -> list[Figure]:
    """Load the index, run all queries, change files and run the queries again."""
    before = _memory("VmRSS")
    loading = [_seconds(lambda: WorkspaceIndex.load(folder / "index")) for _ in range(5)]
    index, _ = WorkspaceIndex.load(folder / "index")
    queries: list[list[str]] = json.loads((folder / "queries.json").read_text())
    first = _seconds(lambda: _ask(index, queries[0]))
    asked = [_seconds(partial(_ask, index, query)) for query in queries]
    busy = [_seconds(partial(_ask, index, query), time.thread_time) for query in queries]
    keep_freed_memory()
    said = [CodeQuery(" ".join(query)) for query in queries]
    whole = [_seconds(partial(_search, index, query), time.thread_time) for query in (said[0], *said)][1:]
    long = CodeQuery(" ".join(word for query in queries for word in query))
    longest = [_seconds(partial(_search, index, long), time.thread_time) for _ in range(5)]
    loaded = _memory("VmRSS")
    changing, after, found = [], [], []
    for number, path in enumerate(list(index.view.paths())[:: max(1, index.view.files // 100)][:100]):
        file = _changed(path, number)
        changing.append(_seconds(partial(_change, index, file)))
        found.append(_seconds(partial(_search, index, said[number % len(said)]), time.thread_time))
        after.append(_seconds(partial(_ask, index, queries[number % len(queries)])))
    return [
        milliseconds("load what was saved", loading, "50"),
        Figure("the first query", first * 1000, "ms"),
        milliseconds("five fields for a query of 20 words", asked, "3"),
        Figure("95 % are below", quantiles(asked, n=20)[-1] * 1000, "ms", "10"),
        Figure("the slowest", max(asked) * 1000, "ms"),
        milliseconds("of that the processor was busy with it", busy),
        Figure("95 % of these are below", quantiles(busy, n=20)[-1] * 1000, "ms"),
        milliseconds("a whole search, explained: the processor was busy with it", whole, "3 to 10"),
        Figure("95 % of whole searches are below", quantiles(whole, n=20)[-1] * 1000, "ms", "10 to 40"),
        milliseconds("a whole search for 300 words", longest),
        milliseconds("take a changed file", changing, "5"),
        milliseconds("the whole search after that", found),
        Figure("the slowest of them", max(changing) * 1000, "ms"),
        milliseconds("the query after that", after),
        Figure("memory before", before, "MB"),
        Figure("memory when all queries were asked", loaded, "MB", "250"),
        Figure("memory after 100 changed files", _memory("VmRSS"), "MB", "250"),
    ]


def _take(index: WorkspaceIndex, path: Path) -> None:
    index.add(Segment.from_bytes(path.read_bytes()))


def _change(index: WorkspaceIndex, file: SourceFile) -> None:
    index.add(Segment.build([file]))


def _ask(index: WorkspaceIndex, words: Sequence[str]) -> None:
    view = index.view
    for field in _SCORED:
        view.field(field).scores(words)
    for field in _COVERED:
        view.field(field).coverage(words)


def _search(index: WorkspaceIndex, query: CodeQuery) -> None:
    search_view(index.view, query, None, {}, 8)


def _changed(path: str, number: int) -> SourceFile:
    """Return a changed file of average size at that path."""
    from agent_workbench.adapters.retrieval.index.chunker import IndexedChunk

    spec = importlib.util.find_spec("argparse")
    assert spec is not None
    assert spec.origin is not None
    lines = Path(spec.origin).read_text(encoding="utf-8").split("\n")[number : number + 600]
    found = [
        IndexedChunk(row + 1, row + 20, "", count_stems("\n".join(lines[row : row + 20])), {}, {})
        for row in range(0, len(lines), 20)
    ]
    return SourceFile(path, f"changed{number}", kind_of(path, b""), found)


class _Stalls:
    """Longest time that another thread had to wait for the interpreter lock."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.is_set():
            started = time.perf_counter()
            time.sleep(0.001)
            self.seconds = max(self.seconds, time.perf_counter() - started - 0.001)


def _seconds(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    started = clock()
    work()
    return clock() - started


def _memory(name: str) -> float:
    """Return the resident memory of this process in MB, including mapped files; 0 outside Linux."""
    status = Path("/proc/self/status")
    rows = status.read_text().splitlines() if status.exists() else []
    return next((int(row.split()[1]) / 1024 for row in rows if row.startswith(name)), 0.0)


if __name__ == "__main__":
    found = {"build": build, "search": search}[sys.argv[1]](Path(sys.argv[2]), int(sys.argv[3]))
    print(json.dumps([{"name": f.name, "value": f.value, "unit": f.unit, "target": f.target} for f in found]))
