"""What speaks for each file of a repo, for each query of the retrieval benchmark, as the product sees it."""

import asyncio
import json
import os
import subprocess
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agent_workbench.adapters.git.repository import Repository
from agent_workbench.adapters.retrieval.cache import PieceCache
from agent_workbench.adapters.retrieval.features import Feature, gather
from agent_workbench.adapters.retrieval.files import is_text
from agent_workbench.adapters.retrieval.history import MOST_COMMITS, Past
from agent_workbench.adapters.retrieval.kinds import Kind
from agent_workbench.adapters.retrieval.layout import layout_of
from agent_workbench.adapters.retrieval.parsing import Parser
from agent_workbench.adapters.retrieval.query import read_query
from agent_workbench.adapters.retrieval.vectors.corpus import Corpus
from agent_workbench.adapters.retrieval.vectors.lsa import train
from agent_workbench.adapters.retrieval.view import IndexView
from agent_workbench.core.retrieval import CodeQuery, PastCommit
from agent_workbench.core.settings import RetrievalSettings

Vectors = NDArray[np.float32]
_MOST_SIMILAR = 1_000


@dataclass(frozen=True, slots=True)
class Question:
    """A query, and the files that answer it."""

    repo: str
    text: str
    truth: frozenset[str]


@dataclass(frozen=True, slots=True)
class Case:
    """A query of a repo: by source file its features, and whether it was `wanted`; `count` of them were."""

    repo: str
    features: NDArray[np.float64]
    wanted: NDArray[np.bool_]
    count: int


def load_cases(trees: Path, work: Path, queries: Sequence[Path]) -> list[Case]:
    """Return the cases of all queries whose repo stands below `trees`, those in `work` from there."""
    by_repo: dict[str, list[Question]] = defaultdict(list)
    for line in (line for path in queries for line in path.read_text("utf-8").splitlines()):
        read = json.loads(line)
        by_repo[read["repo"]].append(Question(read["repo"], read["query"], frozenset(read["truth"])))
    work.mkdir(parents=True, exist_ok=True)
    found: list[Case] = []
    for repo, asked in by_repo.items():
        kept = work / f"{repo}-{len(asked)}.npz"
        if not kept.exists():
            cases = list(_cases(trees / repo, asked))
            np.savez_compressed(
                kept,
                features=np.stack([case.features for case in cases]).astype(np.float32),
                wanted=np.stack([case.wanted for case in cases]),
                counts=np.array([case.count for case in cases]),
            )
        with np.load(kept) as arrays:
            rows = zip(arrays["features"], arrays["wanted"], arrays["counts"].tolist(), strict=True)
            found += [Case(repo, features.astype(float), wanted, count) for features, wanted, count in rows]
    return found


def _cases(root: Path, asked: Iterable[Question]) -> Iterable[Case]:
    view, past = _view(root), _past(root)
    paths = list(view.paths())
    answers = {path for question in asked for path in question.truth}
    source = np.array([i for i, path in enumerate(paths) if view.kinds[i] == Kind.SOURCE or path in answers])
    similar = _Similar(view)
    for question in asked:
        query = read_query(CodeQuery(question.text), layout_of(view).names)
        files = gather(view, query, past, similar.to(query.stems)).files
        columns = [files.get(feature, np.zeros(len(paths)))[source] for feature in Feature]
        wanted = np.array([paths[number] in question.truth for number in source])
        yield Case(question.repo, np.stack(columns, 1), wanted, len(question.truth))


def _view(root: Path) -> IndexView:
    listed = subprocess.run(["git", "-C", str(root), "ls-files", "-z"], check=True, capture_output=True).stdout
    files: dict[str, bytes] = {}
    for path in map(os.fsdecode, listed.split(b"\0")):
        place = root / path
        if path and place.is_file() and not place.is_symlink() and is_text(data := place.read_bytes()):
            files[path] = data
    with tempfile.TemporaryDirectory() as folder:
        parser = Parser(PieceCache(Path(folder)), RetrievalSettings().max_chunk_tokens)
        segment = parser.index(files).segment
    return IndexView([segment], [np.ones(len(segment.files.kinds), bool)])


def _past(root: Path) -> Past:
    async def commits() -> tuple[PastCommit, ...]:
        sources = await Repository(root, root.parent / "worktrees").own_files()
        return await sources.past_commits(MOST_COMMITS)

    return Past(asyncio.run(commits()))


class _Similar:
    """Which files are like a query, by vectors learnt from the repo itself."""

    def __init__(self, view: IndexView) -> None:
        matrix = view.matrix()
        corpus = Corpus(
            list(view.paths()),
            list(view.blobs()),
            list(matrix.words),
            matrix.starts.astype(np.int64),
            matrix.files,
            matrix.counts.astype(np.int32),
        )
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
