"""Vectors from a server of embeddings: llama.cpp's, or another with OpenAI's `/v1/embeddings`."""

import asyncio
import contextlib
import json
import threading
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING

from agent_workbench.adapters.retrieval.vectors.embedding import MOST_DIMENSIONS, EmbeddingFailed
from agent_workbench.adapters.retrieval.vectors.lsa import unit
from agent_workbench.core.settings import EmbeddingSettings
from agent_workbench.system.loopback import is_loopback

if TYPE_CHECKING:
    import httpx
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

_TEXTS_AT_ONCE = 16
_ANSWER_SECONDS = 60.0
_MOST_BYTES = 64 * 1024 * 1024
_TRIES = 4
_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE = 8.0
_BUSY = {429, 502, 503, 504}
_WITHOUT_EMBEDDINGS = {404, 405, 501}
# What is too long for the model is halved down to this.
_SHORTEST_CHARS = 100
# Larger is no part of a vector, and its square no 32-bit number.
_LARGEST = 1e15


class EmbeddingClient:
    """`EmbeddingModel` over HTTP."""

    def __init__(self, settings: EmbeddingSettings, environ: Mapping[str, str]) -> None:
        self._url = f"{settings.url.rstrip('/').removesuffix('/v1')}/v1/embeddings"
        self._model = settings.model
        self._key = environ.get(settings.api_key_env, "") if settings.api_key_env else ""
        self._closing = threading.Event()
        self._client: httpx.Client | None = None

    @property
    def name(self) -> str:
        return f"server-{sha256(f'{self._url} {self._model}'.encode()).hexdigest()[:16]}"

    async def embed(self, texts: Sequence[str]) -> "Floats":
        return await asyncio.to_thread(self._embed, texts)

    async def close(self) -> None:
        self._closing.set()
        client, self._client = self._client, None
        if client is not None:
            await asyncio.to_thread(client.close)

    def _embed(self, texts: Sequence[str]) -> "Floats":
        import numpy as np

        found: list[list[float]] = []
        for first in range(0, len(texts), _TEXTS_AT_ONCE):
            found += self._some(list(texts[first : first + _TEXTS_AT_ONCE]))
        if len({len(each) for each in found}) > 1:
            raise EmbeddingFailed("the server's vectors are of several lengths")
        return unit(np.array(found, dtype=np.float32).reshape(len(found), -1))

    def _some(self, texts: list[str]) -> list[list[float]]:
        """Return the vectors of these texts; where one is too long for the model its beginning has to do."""
        status, answer = self._post(texts)
        if status == 200:
            return _vectors(answer, len(texts))
        said = _message(answer)
        if status in _WITHOUT_EMBEDDINGS:
            raise EmbeddingFailed(f"the server has no embeddings ({status}): start llama-server with --embeddings")
        too_long = "too large" in said or "exceed" in said or "context" in said
        if too_long and len(texts) > 1:
            return [vector for text in texts for vector in self._some([text])]
        if too_long and len(texts[0]) > _SHORTEST_CHARS:
            return self._some([texts[0][: len(texts[0]) // 2]])
        raise EmbeddingFailed(f"the server of vectors answered {status}: {said[:200]}")

    def _post(self, texts: list[str]) -> tuple[int, object]:
        """Return status and answer, asking again for a while where the server is busy; raise `EmbeddingFailed`."""
        import httpx

        body = {"input": texts, "encoding_format": "float"} | ({"model": self._model} if self._model else {})
        pause = _PAUSE_SECONDS
        for last in (*[False] * (_TRIES - 1), True):
            try:
                status, content = self._answer(body)
            except (httpx.HTTPError, RuntimeError, ValueError) as error:  # RuntimeError: closed by now
                if last or self._closing.is_set() or not isinstance(error, httpx.TransportError):
                    why = str(error) or type(error).__name__
                    raise EmbeddingFailed(f"{self._url} does not answer: {why}") from error
            else:
                if last or status not in _BUSY:
                    with contextlib.suppress(ValueError, RecursionError):
                        return status, json.loads(content)
                    return status, content[:200].decode("utf-8", "replace")
            if self._closing.wait(pause):
                raise EmbeddingFailed("it was closed")
            pause = min(2 * pause, _LONGEST_PAUSE)
        raise EmbeddingFailed(f"{self._url} does not answer")

    def _answer(self, body: Mapping[str, object]) -> tuple[int, bytes]:
        """Return status and content; raise `EmbeddingFailed` when there is no end of it."""
        content = bytearray()
        with self._connected().stream("POST", self._url, json=body) as response:
            for part in response.iter_bytes():
                content += part
                if len(content) > _MOST_BYTES:
                    raise EmbeddingFailed(f"{self._url} answered with more than {_MOST_BYTES:,} bytes")
        return response.status_code, bytes(content)

    def _connected(self) -> "httpx.Client":
        if self._client is None:
            import httpx

            headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
            self._client = httpx.Client(
                headers=headers,
                timeout=_ANSWER_SECONDS,
                follow_redirects=False,
                trust_env=not is_loopback(httpx.URL(self._url).host),
            )
        return self._client


def _vectors(answer: object, wanted: int) -> list[list[float]]:
    """Return the vectors in the order of the texts; raise `EmbeddingFailed` for anything else."""
    match answer:
        case {"data": list(rows)} if len(rows) == wanted:
            whole = [row for row in rows if isinstance(row, dict) and isinstance(row.get("index"), int)]
            found = {row["index"]: row.get("embedding") for row in whole}
            vectors = [_numbers(found.get(place)) for place in range(wanted)]
            if all(vectors):
                return vectors
    raise EmbeddingFailed("the server of vectors answered something else; its model may have no pooling")


def _numbers(value: object) -> list[float]:
    if not isinstance(value, list) or not 0 < len(value) <= MOST_DIMENSIONS:
        return []
    if not all(isinstance(each, int | float) and -_LARGEST <= each <= _LARGEST for each in value):
        return []
    return value


def _message(answer: object) -> str:
    match answer:
        case {"error": {"message": str(message)}}:
            return message
    return str(answer)
