"""How well the code search does on the user's own repository: its past commits ask, the files they changed answer."""

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from agent_workbench.api.trusted_repo import trusted_repo
from agent_workbench.core.diagnostics.retrieval_quality import (
    FileQuestion,
    SearchFigures,
    file_question,
    measure_search,
)
from agent_workbench.core.errors import RepoError
from agent_workbench.core.invocation import Invocation
from agent_workbench.core.retrieval import CodeQuery

if TYPE_CHECKING:  # engine and adapters are loaded by the calls that need them
    from agent_workbench.adapters.git.user_checkout.past_tree import PastTree
    from agent_workbench.core.settings import Settings

Say = Callable[[str], None]
Ranker = Callable[[str], Awaitable[Sequence[str]]]
MOST_PIECES = 60
"""So many pieces hold ten different files nearly always."""
MOST_FILES = 50
HEAD_CHARS = 4_096


class Evaluation(Struct, frozen=True):
    """The figures of each method, for the questions that name no file they ask for, and for all."""

    base: str
    files: int
    strict: tuple[SearchFigures, ...]
    all: tuple[SearchFigures, ...]


async def evaluate_search(invocation: Invocation, commits: int, say: Say) -> Evaluation:
    """Measure on the last `commits` commits against the tree from before them; `say` hears how far it is.

    The checkout is not touched; what is written is gone at the end. Raises `RepoError` where there is no repository,
    or too little past.
    """
    repo, settings = await trusted_repo(invocation)
    with tempfile.TemporaryDirectory(prefix="agent-eval-") as scratch:
        tree, cache = Path(scratch, "tree"), Path(scratch, "cache")
        say("laying out the files of the past")
        sources = await repo.repository.past_tree(commits, tree)
        paths = await sources.list_files()
        indexed = await asyncio.to_thread(_indexed, sources.root, paths, settings)
        texts = _texts(await sources.read_files(indexed))
        questions = await asyncio.to_thread(_questions, sources, texts)
        if not questions:
            raise RepoError(
                f"none of the last {commits} commits changed 1 to 3 source files that were there before",
                advice="ask for more of the past with --commits",
            )
        ranked = [
            await _ours(settings, invocation.environ, sources, cache, questions, say),
            *await _plain(texts, questions, say),
        ]
        strict = [number for number, each in enumerate(questions) if each.strict]
        return Evaluation(
            sources.base,
            len(texts),
            tuple(each.measured(questions, strict) for each in ranked),
            tuple(each.measured(questions, range(len(questions))) for each in ranked),
        )


class _Ranked(Struct, frozen=True):
    """The files that a method brought for each question, and how long a question took on average."""

    method: str
    files: Sequence[Sequence[str]]
    seconds: float

    def measured(self, questions: Sequence[FileQuestion], numbers: Sequence[int]) -> SearchFigures:
        asked, found = [questions[number] for number in numbers], [self.files[number] for number in numbers]
        return measure_search(self.method, asked, found, self.seconds)


def _indexed(root: str, paths: Sequence[str], settings: "Settings") -> Sequence[str]:
    """Return the files that are indexed, for each method the same ones: the rest of a repository has no bounds."""
    from agent_workbench.adapters.retrieval.indexer.indexable_files import ExcludedPaths, stamp_files, within_bounds

    excluded = ExcludedPaths(settings.searched.exclude)
    return tuple(within_bounds(stamp_files(root, paths, excluded, time.time_ns())))


def _texts(read: Mapping[str, bytes]) -> dict[str, str]:
    """Return the files that are text."""
    return {path: data.decode("utf-8", "replace") for path, data in read.items() if b"\0" not in data}


def _questions(sources: "PastTree", texts: Mapping[str, str]) -> list[FileQuestion]:
    from agent_workbench.adapters.retrieval.chunking.languages import language_of
    from agent_workbench.adapters.retrieval.index.file_kinds import FileKind, kind_of

    def is_source(path: str) -> bool:
        head = texts.get(path, "")[:HEAD_CHARS].encode()
        return bool(language_of(path)) and kind_of(path, head) is FileKind.SOURCE

    found = []
    for commit in sources.later:
        changed = [path for path in commit.paths if is_source(path)]
        if all(path in texts for path in changed) and (question := file_question(commit.message, changed)):
            found.append(question)
    return found


async def _ours(
    settings: "Settings",
    environ: Mapping[str, str],
    sources: "PastTree",
    cache: Path,
    questions: Sequence[FileQuestion],
    say: Say,
) -> _Ranked:
    from agent_workbench.bootstrap.code_search import code_retriever

    retriever = await asyncio.to_thread(code_retriever, settings, environ, cache)
    try:
        say("indexing")
        await retriever.build(sources)

        async def rank(text: str) -> Sequence[str]:
            chunks = await retriever.search(sources, CodeQuery(text), MOST_PIECES, complete=False)
            return tuple(dict.fromkeys(chunk.path for chunk in chunks))

        return await _asked("agent search", rank, questions, say)
    finally:
        await retriever.close()


async def _plain(texts: Mapping[str, str], questions: Sequence[FileQuestion], say: Say) -> list[_Ranked]:
    """Return what the two plain ways bring that need nothing but the files' words."""
    from agent_workbench.ranking.bm25 import Bm25
    from agent_workbench.ranking.line_hits import LineHits
    from agent_workbench.ranking.tokens import count_identifiers, split_identifiers

    say("counting words")
    paths = tuple(texts)
    bm25 = await asyncio.to_thread(lambda: Bm25.of([count_identifiers(texts[path]) for path in paths]))
    lines = await asyncio.to_thread(LineHits, texts)

    def by_bm25(text: str) -> Sequence[str]:
        scores = bm25.scores(split_identifiers(text))
        best = (-scores).argsort(kind="stable")[:MOST_FILES]
        return [paths[number] for number in best if scores[number] > 0]

    def by_lines(text: str) -> Sequence[str]:
        return lines.ranked([word for word in split_identifiers(text) if len(word) > 2], MOST_FILES)

    return [
        await _asked("plain BM25 of files", lambda text: asyncio.to_thread(by_bm25, text), questions, say),
        await _asked("counted words (rg -c)", lambda text: asyncio.to_thread(by_lines, text), questions, say),
    ]


async def _asked(method: str, rank: Ranker, questions: Sequence[FileQuestion], say: Say) -> _Ranked:
    started = time.monotonic()
    files = []
    for number, question in enumerate(questions, 1):
        files.append(await rank(question.text))
        say(f"{method}: {number:,} of {len(questions):,} questions")
    return _Ranked(method, files, (time.monotonic() - started) / len(questions))
