"""What speaks for each file of a repo, for each question, as the product sees it."""

import asyncio
import os
import subprocess
from collections import Counter
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
from agent_workbench.adapters.retrieval.chunking.chunk_cache import ChunkCache
from agent_workbench.adapters.retrieval.history.commit_words import MOST_COMMITS
from agent_workbench.adapters.retrieval.history.repo_history import Past
from agent_workbench.adapters.retrieval.index.view import IndexView
from agent_workbench.adapters.retrieval.indexer.file_parser import Parser
from agent_workbench.adapters.retrieval.indexer.indexable_files import is_text
from agent_workbench.adapters.retrieval.search.features import Feature, gather
from agent_workbench.adapters.retrieval.search.layout import layout_of
from agent_workbench.adapters.retrieval.search.query import read_query
from agent_workbench.adapters.retrieval.search.scoring import counted_as
from agent_workbench.adapters.retrieval.vectors.corpus import corpus_of
from agent_workbench.adapters.retrieval.vectors.lsa import train
from agent_workbench.core.retrieval import CodeQuery, PastCommit
from agent_workbench.core.settings import RetrievalSettings
from bench.retrieval_mining import Question, Repo, check_out, is_source, mine

Vectors = NDArray[np.float32]
_MOST_SIMILAR = 1_000
# Of so many files, the best in an even mix of all features, the weights choose.
_CANDIDATES = 1_000
_PROCESSES = 2


class Case(Struct, frozen=True):
    """A question to a repo: by file its features, and whether it is `source`; of these `count` were `wanted`.

    `changed` are all files that the commit changed, `many` how many; `kinds` as what a file counts for this question.
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
        """Return the case with these of its files alone."""
        return replace(
            self,
            features=self.features[rows],
            kinds=self.kinds[rows],
            source=self.source[rows],
            wanted=self.wanted[rows],
            changed=self.changed[rows],
        )


def load_cases(repos: Sequence[Repo], work: Path, most: int) -> list[Case]:
    """Return at most `most` cases of each repo, those that were computed before from `work`."""
    (work / "cases").mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(_PROCESSES, get_context("spawn")) as pool:
        for repo in pool.map(partial(_compute, work=work, most=most), repos):
            print(repo, end=" ", flush=True)
    print()
    return [case for repo in repos for case in _read(repo.name, _kept(repo, work, most))]


def _kept(repo: Repo, work: Path, most: int) -> Path:
    return work / "cases" / f"{repo.name}-{most}.npz"


def _compute(repo: Repo, work: Path, most: int) -> str:
    """Compute the cases of a repo and keep them, unless they are kept for just these features; return its name."""
    kept = _kept(repo, work, most)
    if not kept.exists() or not set(Feature) <= _names(kept):
        root = check_out(repo, work)
        cases = list(_cases(root, work, repo, mine(repo, work, most)))
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


def _cases(root: Path, work: Path, repo: Repo, asked: Iterable[Question]) -> Iterable[Case]:
    view, past = _view(root, work / "pieces" / repo.name), _past(root)
    paths = list(view.paths())
    similar = _Similar(view)
    plainly_source = np.array([is_source(path) for path in paths])
    for question in asked:
        query = read_query(CodeQuery(question.text), layout_of(view).names)
        files = gather(view, query, past, similar.to(query.stems)).files
        features = np.stack([files.get(feature, np.zeros(len(paths))) for feature in Feature], 1)
        wanted, changed = (
            np.array([path in chosen for path in paths]) for chosen in (question.sources, question.changed)
        )
        source = plainly_source | wanted
        kinds, many = counted_as(view, query), len(question.changed)
        case = Case(repo.name, features, kinds, source, wanted, len(question.sources), changed, many)
        yield case.among(np.argsort(-features.sum(1), kind="stable")[:_CANDIDATES])


def _view(root: Path, pieces: Path) -> IndexView:
    listed = subprocess.run(["git", "-C", str(root), "ls-files", "-z"], check=True, capture_output=True).stdout
    files: dict[str, bytes] = {}
    for path in map(os.fsdecode, listed.split(b"\0")):
        place = root / path
        if path and place.is_file() and not place.is_symlink() and is_text(data := place.read_bytes()):
            files[path] = data
    segment = Parser(ChunkCache(pieces), RetrievalSettings().max_chunk_tokens).index(files).segment
    return IndexView([segment], [np.ones(len(segment.files.kinds), bool)])


def _past(root: Path) -> Past:
    async def commits() -> tuple[PastCommit, ...]:
        sources = await Repository(root, root.parent / "worktrees").checkout_files()
        return await sources.past_commits(MOST_COMMITS)

    return Past(asyncio.run(commits()))


class _Similar:
    """Which files are like a query, by vectors learnt from the repo itself."""

    def __init__(self, view: IndexView) -> None:
        corpus = corpus_of(view)
        self._paths = corpus.paths
        self._model = train(corpus)
        self._vectors: Vectors | None = None if self._model is None else self._model.file_vectors(corpus)

    def to(self, stems: Sequence[str]) -> dict[str, float]:
        asked = None if self._model is None else self._model.query(Counter(stems))
        if asked is None or self._vectors is None:
            return {}
        cosines = self._vectors @ asked
        best = np.argsort(-cosines)[:_MOST_SIMILAR].tolist()
        return {self._paths[number]: float(cosines[number]) for number in best if cosines[number] > 0}
