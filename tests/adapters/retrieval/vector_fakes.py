"""Small repos of words, and models that embed them as a test wants, for the tests of vectors."""

import asyncio
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from agent_workbench.adapters.retrieval.embedding_client import EmbeddingFailed
from agent_workbench.adapters.retrieval.index.segments import blob_id
from agent_workbench.adapters.retrieval.repo_vectors import IndexedContents
from agent_workbench.adapters.retrieval.vector_table import unit_rows

TOPICS = ("money", "flight")


def topic_files(count: int = 20) -> dict[str, bytes]:
    """Return files about money and about flight, by turns."""
    words = {"money": "invoice customer", "flight": "kite pilot"}
    return {
        f"{topic}/{number}.py": f"{words[topic]} own{number}\n".encode()
        for number in range(count)
        for topic in (TOPICS[number % 2],)
    }


def contents_of(files: Mapping[str, bytes]) -> IndexedContents:
    """Return the files as an index would list them."""
    return IndexedContents(list(files), [blob_id(data) for data in files.values()])


class FileReader:
    """Reads files of a dict; `read` are the paths in order. Those in `gone` are not there any more."""

    def __init__(self, files: Mapping[str, bytes], gone: Sequence[str] = ()) -> None:
        self._files = files
        self._gone = gone
        self.read: list[str] = []

    async def __call__(self, paths: Sequence[str]) -> Mapping[str, bytes]:
        self.read += paths
        return {path: self._files[path] for path in paths if path not in self._gone}


class TopicModel:
    """Embeds a text by the topic whose words it holds, in `dimensions` numbers; `asked` counts the texts.

    `failure` is raised instead; `released` (if any) is waited for before each answer.
    """

    name = "topics"

    def __init__(self, dimensions: int = 4) -> None:
        self._dimensions = dimensions
        self.asked = 0
        self.failure = ""
        self.released: asyncio.Event | None = None

    async def start(self) -> None:
        if self.failure:
            raise EmbeddingFailed(self.failure)

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.asked += len(texts)
        if self.released:
            await self.released.wait()
        if self.failure:
            raise EmbeddingFailed(self.failure)
        rows = np.full((len(texts), self._dimensions), 0.01, np.float32)
        for row, text in zip(rows, texts, strict=True):
            row[0] += "invoice" in text or "bill" in text
            row[1] += "kite" in text or "glider" in text
        return unit_rows(rows)
