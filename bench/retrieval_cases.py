"""Features of each file of a repo for each question, computed by the product's own code."""

import asyncio
import os
import subprocess
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from agent_workbench.adapters.git.repository import Repository
from agent_workbench.adapters.retrieval.commit_index import MAX_COMMITS, CommitIndex
from agent_workbench.adapters.retrieval.embedding_client import EmbeddingClient
from agent_workbench.adapters.retrieval.index.chunk_cache import ChunkCache
from agent_workbench.adapters.retrieval.index.file_kinds import is_bulk
from agent_workbench.adapters.retrieval.index.file_parser import FileParser
from agent_workbench.adapters.retrieval.index.view import IndexView
from agent_workbench.adapters.retrieval.indexable_files import is_searchable
from agent_workbench.adapters.retrieval.repo_vectors import texts_of
from agent_workbench.adapters.retrieval.scoring import effective_kinds
from agent_workbench.adapters.retrieval.search_features import Feature, compute_features, layout_of
from agent_workbench.adapters.retrieval.search_query import read_query
from agent_workbench.adapters.retrieval.vector_table import FileVectors, unit_rows
from agent_workbench.core.repo.retrieval import CodeQuery, PastCommit
from agent_workbench.core.settings import EmbeddingProvider, EmbeddingSettings, RetrievalSettings
from bench.retrieval_mining import Question, Repo, check_out, is_source, mine

_MAX_SIMILAR = 1_000
_QUERY_CHARS = 2_000
# Of so many files, the best in an even mix of all features, the weights choose.
_CANDIDATES = 1_000
_PROCESSES = 2


class Case(Struct, frozen=True):
    """Query to a repo: for each file its features, and masks of `source` files and of the `count` files that are
    `wanted`.

    `changed` are all `many` files that the commit changed; `kinds` is the kind that each file counts as for this query.
    """

    repo: str
    features: NDArray[np.float64]
    kinds: NDArray[np.int8]
    source: NDArray[np.bool_]
    wanted: NDArray[np.bool_]
    count: int
    changed: NDArray[np.bool_]
    many: int

    def among(self, rows: NDArray[np.bool_] | NDArray[np.int64]) -> "Case":
        """Return the case with these files only."""
        return replace(
            self,
            features=self.features[rows],
            kinds=self.kinds[rows],
            source=self.source[rows],
            wanted=self.wanted[rows],
            changed=self.changed[rows],
        )


def load_cases(repos: Sequence[Repo], work: Path, most: int, embeddings: str = "") -> list[Case]:
    """Return at most `most` cases of each repo, from `work` if they were computed before.

    `embeddings` is the address of an embeddings endpoint; without one, the feature of vectors is 0.
    """
    (work / "cases").mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(_PROCESSES, get_context("spawn")) as pool:
        for repo in pool.map(partial(_compute, work=work, most=most, embeddings=embeddings), repos):
            print(repo, end=" ", flush=True)
    print()
    return [case for repo in repos for case in _read(repo.name, _kept(repo, work, most, embeddings))]


def _kept(repo: Repo, work: Path, most: int, embeddings: str) -> Path:
    return work / "cases" / f"{repo.name}-{most}{'-vectors' if embeddings else ''}.npz"


def _compute(repo: Repo, work: Path, most: int, embeddings: str) -> str:
    """Compute and save the cases of a repo, unless they are saved for these features; return its name."""
    kept = _kept(repo, work, most, embeddings)
    if not kept.exists() or not set(Feature) <= _names(kept):
        root = check_out(repo, work)
        cases = list(_cases(root, work, repo, mine(repo, work, most), embeddings))
        sizes = [len(case.kinds) for case in cases]
        np.savez_compressed(
            kept,
            names=np.array([str(feature) for feature in Feature]),
            sizes=np.array(sizes),
            counts=np.array([(case.count, case.many) for case in cases]),
            features=np.concatenate([case.features for case in cases]).astype(np.float32),
            kinds=np.concatenate([case.kinds for case in cases]),
            flags=np.concatenate([np.stack([case.source, case.wanted, case.changed], 1) for case in cases]),
        )
    return repo.name


def _names(kept: Path) -> set[str]:
    with np.load(kept) as arrays:
        return set(arrays["names"].tolist())


def _read(repo: str, kept: Path) -> Iterable[Case]:
    with np.load(kept) as arrays:
        names = arrays["names"].tolist()
        features = arrays["features"][:, [names.index(feature) for feature in Feature]].astype(float)
        kinds, flags = arrays["kinds"], arrays["flags"]
        ends, counts = np.cumsum(arrays["sizes"]).tolist(), arrays["counts"].tolist()
    for start, end, (count, many) in zip([0, *ends], ends, counts, strict=False):
        source, wanted, changed = flags[start:end].T
        yield Case(repo, features[start:end], kinds[start:end], source, wanted, count, changed, many)


def _cases(root: Path, work: Path, repo: Repo, asked: Iterable[Question], embeddings: str) -> Iterable[Case]:
    view, commit_index = _view(root, work / "pieces" / repo.name), _past(root)
    asked = list(asked)
    paths = list(view.paths())
    similar = _similar(root, paths, [question.text for question in asked], embeddings)
    plainly_source = np.array([is_source(path) for path in paths])
    for question, cosines in zip(asked, similar, strict=True):
        query = read_query(CodeQuery(question.text), layout_of(view).names)
        files = compute_features(view, query, commit_index, cosines).files
        features = np.stack([files.get(feature, np.zeros(len(paths))) for feature in Feature], 1)
        wanted, changed = (
            np.array([path in chosen for path in paths]) for chosen in (question.sources, question.changed)
        )
        source = plainly_source | wanted
        kinds, many = effective_kinds(view, query), len(question.changed)
        case = Case(repo.name, features, kinds, source, wanted, len(question.sources), changed, many)
        yield case.among(np.argsort(-features.sum(1), kind="stable")[:_CANDIDATES])


def _view(root: Path, chunks: Path) -> IndexView:
    listed = subprocess.run(["git", "-C", str(root), "ls-files", "-z"], check=True, capture_output=True).stdout
    files: dict[str, bytes] = {}
    for path in map(os.fsdecode, listed.split(b"\0")):
        place = root / path
        if not path or is_bulk(path) or not place.is_file() or place.is_symlink():
            continue
        if is_searchable(path, data := place.read_bytes()):
            files[path] = data
    segment = FileParser(ChunkCache(chunks), RetrievalSettings().max_chunk_tokens).index(files).segment
    return IndexView([segment], [np.ones(len(segment.files.kinds), bool)])


def _past(root: Path) -> CommitIndex:
    async def commits() -> tuple[PastCommit, ...]:
        sources = await Repository(root, root.parent / "worktrees").checkout_files()
        return await sources.past_commits(MAX_COMMITS)

    return CommitIndex(asyncio.run(commits()))


def _similar(root: Path, paths: Sequence[str], queries: Sequence[str], embeddings: str) -> list[dict[str, float]]:
    """Return for each query the most similar files."""
    if not embeddings:
        return [{} for _ in queries]

    async def embedded() -> list[dict[str, float]]:
        client = EmbeddingClient(EmbeddingSettings(EmbeddingProvider.SERVER, embeddings), {})
        try:
            rows = []
            for path in paths:
                texts = texts_of((root / path).read_bytes())
                rows.append((await client.embed(texts)).sum(axis=0))
            files = FileVectors(paths, np.arange(len(paths)), unit_rows(np.stack(rows)))
            vectors = await client.embed([query[:_QUERY_CHARS] for query in queries])
            return [files.nearest(vector, _MAX_SIMILAR) for vector in vectors]
        finally:
            await client.close()

    return asyncio.run(embedded())
