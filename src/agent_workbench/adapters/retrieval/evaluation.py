"""Quality of the code search on a repo's own past: commit messages ask, the files they changed answer."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

from msgspec import Struct

from agent_workbench.adapters.retrieval.index.file_kinds import FileKind, kind_of
from agent_workbench.adapters.retrieval.index.source_languages import language_of
from agent_workbench.adapters.retrieval.indexable_files import ExcludedPaths, stamp_files, within_bounds
from agent_workbench.adapters.retrieval.retriever import CodeRetriever
from agent_workbench.core.diagnostics import (
    FileQuestion,
    SearchFigures,
    file_question,
    measure_search,
)
from agent_workbench.core.ports.workspace import Sources
from agent_workbench.core.repo.retrieval import CodeQuery, PastCommit
from agent_workbench.ranking.bm25 import Bm25
from agent_workbench.ranking.tokens import count_identifiers, split_identifiers

Say = Callable[[str], None]
Ranker = Callable[[str], Awaitable[Sequence[str]]]
# This many chunks nearly always contain ten different files.
_MAX_CHUNKS = 60
_MAX_FILES = 50
_HEAD_CHARS = 4_096


class Evaluation(Struct, frozen=True):
    """Figures of each method: for the questions that name no file they ask for (`strict`), and for all."""

    files: int
    strict: tuple[SearchFigures, ...]
    all: tuple[SearchFigures, ...]


async def evaluate(
    retriever: CodeRetriever, sources: Sources, later: Sequence[PastCommit], exclude: Sequence[str], say: Say
) -> Evaluation | None:
    """Measure the code search and two simple methods; return None if no commit asks a question.

    `sources` are the files before the commits `later`; `say` is called with the progress.
    """
    paths = await asyncio.to_thread(_indexed, sources.root, await sources.list_files(), exclude)
    read = await sources.read_files(paths)
    texts = {path: data.decode("utf-8", "replace") for path, data in read.items() if b"\0" not in data}
    questions = await asyncio.to_thread(_questions, later, texts)
    if not questions:
        return None
    ranked = [await _search_results(retriever, sources, questions, say), *await _simple_results(texts, questions, say)]
    strict = [number for number, each in enumerate(questions) if each.strict]
    return Evaluation(
        len(texts),
        tuple(each.measured(questions, strict) for each in ranked),
        tuple(each.measured(questions, range(len(questions))) for each in ranked),
    )


class _Results(Struct, frozen=True):
    """Files that a method found for each question, and the average time for a question."""

    method: str
    files: Sequence[Sequence[str]]
    seconds: float

    def measured(self, questions: Sequence[FileQuestion], numbers: Sequence[int]) -> SearchFigures:
        asked, found = [questions[number] for number in numbers], [self.files[number] for number in numbers]
        return measure_search(self.method, asked, found, self.seconds)


class LineHits:
    """Files ranked as a plain text search would: by the number of distinct words, then of hits, in any line."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = {path: text.lower() for path, text in texts.items()}

    def ranked(self, words: Sequence[str], limit: int) -> list[str]:
        """Return the paths with the most distinct words, among these those with the most hits."""
        wanted = tuple(dict.fromkeys(word.lower() for word in words))
        found = []
        for path, text in self._texts.items():
            counts = [text.count(word) for word in wanted]
            if any(counts):
                found.append((-sum(map(bool, counts)), -sum(counts), path))
        return [path for _, _, path in sorted(found)[:limit]]


def _indexed(root: str, paths: Sequence[str], exclude: Sequence[str]) -> Sequence[str]:
    """Return the files that are indexed, so that all methods search the same ones."""
    return tuple(within_bounds(stamp_files(root, paths, ExcludedPaths(exclude), time.time_ns())))


def _questions(later: Sequence[PastCommit], texts: Mapping[str, str]) -> list[FileQuestion]:
    def is_source(path: str) -> bool:
        head = texts.get(path, "")[:_HEAD_CHARS].encode()
        return bool(language_of(path)) and kind_of(path, head) is FileKind.SOURCE

    found = []
    for commit in later:
        changed = [path for path in commit.paths if is_source(path)]
        if all(path in texts for path in changed) and (question := file_question(commit.message, changed)):
            found.append(question)
    return found


async def _search_results(
    retriever: CodeRetriever, sources: Sources, questions: Sequence[FileQuestion], say: Say
) -> _Results:
    say("indexing")
    await retriever.build(sources)

    async def rank(text: str) -> Sequence[str]:
        chunks = await retriever.search(sources, CodeQuery(text), _MAX_CHUNKS, complete=False)
        return tuple(dict.fromkeys(chunk.path for chunk in chunks))

    return await _results("agent search", rank, questions, say)


async def _simple_results(texts: Mapping[str, str], questions: Sequence[FileQuestion], say: Say) -> list[_Results]:
    """Return the results of two methods that need only the words of the files."""
    say("counting words")
    paths = tuple(texts)
    bm25 = await asyncio.to_thread(lambda: Bm25.of([count_identifiers(texts[path]) for path in paths]))
    lines = await asyncio.to_thread(LineHits, texts)

    def by_bm25(text: str) -> Sequence[str]:
        scores = bm25.scores(split_identifiers(text))
        best = (-scores).argsort(kind="stable")[:_MAX_FILES]
        return [paths[number] for number in best if scores[number] > 0]

    def by_lines(text: str) -> Sequence[str]:
        return lines.ranked([word for word in split_identifiers(text) if len(word) > 2], _MAX_FILES)

    return [
        await _results("plain BM25 of files", lambda text: asyncio.to_thread(by_bm25, text), questions, say),
        await _results("counted words (rg -c)", lambda text: asyncio.to_thread(by_lines, text), questions, say),
    ]


async def _results(method: str, rank: Ranker, questions: Sequence[FileQuestion], say: Say) -> _Results:
    started = time.monotonic()
    files = []
    for number, question in enumerate(questions, 1):
        files.append(await rank(question.text))
        say(f"{method}: {number:,} of {len(questions):,} questions")
    return _Results(method, files, (time.monotonic() - started) / len(questions))
