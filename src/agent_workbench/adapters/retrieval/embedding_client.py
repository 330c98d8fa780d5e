"""HTTP client of one embeddings endpoint: llama.cpp's, or another server with OpenAI's `/v1/embeddings`."""

import asyncio
import json
import ssl
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from agent_workbench.adapters.retrieval.vector_table import unit_rows
from agent_workbench.core.errors import ConfigError, WorkbenchError
from agent_workbench.core.settings import EmbeddingSettings
from agent_workbench.system.proxies import ProxyFailed, proxy_for

if TYPE_CHECKING:
    import httpx
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

_TEXTS_PER_REQUEST = 16
_ANSWER_SECONDS = 120.0
_CONNECT_SECONDS = 5.0
_MAX_ANSWER_BYTES = 64 * 1024 * 1024
_MAX_DIMENSIONS = 8_192
_ATTEMPTS = 4
_FIRST_PAUSE_SECONDS = 0.5
_BUSY = {429, 502, 503, 504}
_WITHOUT_EMBEDDINGS = {404, 405, 501}
# A text that is too long for the model is halved, down to this.
_MIN_CHARS = 100
# The square of a larger number is no 32-bit number.
_MAX_VALUE = 1e15


class EmbeddingFailed(Exception):
    """The endpoint returned no vectors; the message says why. A later request may succeed."""


class EmbeddingServer(Protocol):
    """A server process of ours for the embedding model in one GGUF file."""

    @property
    def running(self) -> bool:
        """True from the start of the server to its end."""

    async def start(self) -> tuple[str, str]:
        """Start the server; return its address and API key once it listens. Raise `WorkbenchError`."""

    async def stop(self) -> None:
        """End the server, if it runs."""


class EmbeddingClient:
    """Client of the endpoint at `settings.url`, or of `server`, which the first request starts.

    `environ` holds the API key of `settings.url`.
    """

    def __init__(
        self, settings: EmbeddingSettings, environ: Mapping[str, str], server: EmbeddingServer | None = None
    ) -> None:
        self._model = settings.model
        self._path = settings.path
        self._url = _embeddings_url(settings.url)
        self._key = environ.get(settings.api_key_env, "").strip() if settings.api_key_env else ""
        self._server = server
        self._http: httpx.AsyncClient | None = None
        self._opening = asyncio.Lock()

    @property
    def name(self) -> str:
        """Name of a folder for vectors that no other model made. Blocks."""
        if self._server is None:
            return f"server-{_digest(self._url, self._model)}"
        file = Path(self._path)
        with suppress(OSError):
            facts = file.stat()
            return f"file-{_digest(self._path, facts.st_size, facts.st_mtime_ns)}"
        return f"file-{_digest(self._path)}"

    async def start(self) -> None:
        """Start the server of ours, if there is one; raise `EmbeddingFailed`."""
        await self._opened()

    async def embed(self, texts: Sequence[str]) -> "Floats":
        """Return a vector of length 1 for each text; raise `EmbeddingFailed`."""
        rows: list[list[float]] = []
        for first in range(0, len(texts), _TEXTS_PER_REQUEST):
            rows += await self._embed_some(list(texts[first : first + _TEXTS_PER_REQUEST]))
        if len({len(row) for row in rows}) > 1:
            raise EmbeddingFailed("the server's vectors have different lengths")
        return await asyncio.to_thread(_array, rows)

    async def close(self) -> None:
        """Close the connections and end the server of ours."""
        await self._disconnect()
        if self._server is not None:
            await self._server.stop()

    async def _embed_some(self, texts: list[str]) -> list[list[float]]:
        """Return the vectors of one request; a text that is too long for the model is cut."""
        status, answer = await self._post(texts)
        if status == 200:
            return await asyncio.to_thread(_vectors, answer, len(texts))
        message = _message(answer)
        if status in _WITHOUT_EMBEDDINGS:
            raise EmbeddingFailed(
                f"the server at {self._url} has no embeddings ({status}): start llama-server with --embeddings"
            )
        too_long = "too large" in message or "exceed" in message or "context" in message
        if too_long and len(texts) > 1:
            middle = len(texts) // 2
            return [*await self._embed_some(texts[:middle]), *await self._embed_some(texts[middle:])]
        if too_long and len(texts[0]) > _MIN_CHARS:
            return await self._embed_some([texts[0][: len(texts[0]) // 2]])
        raise EmbeddingFailed(f"the server at {self._url} answered {status}: {message[:200]}")

    async def _post(self, texts: list[str]) -> tuple[int, object]:
        """Return status and answer; a server that is busy or not reachable is asked again, a few times."""
        await self._opened()  # which imports httpx in a thread
        import httpx

        body: dict[str, object] = {"input": texts, "encoding_format": "float"}
        if self._model:
            body["model"] = self._model
        pause = _FIRST_PAUSE_SECONDS
        for attempt in range(1, _ATTEMPTS + 1):
            client = await self._opened()
            try:
                async with asyncio.timeout(_ANSWER_SECONDS):
                    status, content = await self._read_answer(client, body)
            except TimeoutError as error:
                raise EmbeddingFailed(f"{self._url} did not answer within {_ANSWER_SECONDS:.0f} s") from error
            except (httpx.HTTPError, ProxyFailed, ValueError) as error:
                if attempt == _ATTEMPTS or not isinstance(error, httpx.TransportError):
                    why = str(error) or type(error).__name__
                    raise EmbeddingFailed(f"{self._url} does not answer: {why}") from error
                await self._disconnect()
            else:
                if attempt == _ATTEMPTS or status not in _BUSY:
                    return status, await asyncio.to_thread(_parsed, content)
            await asyncio.sleep(pause)
            pause *= 2
        raise EmbeddingFailed(f"{self._url} does not answer")

    async def _read_answer(self, client: "httpx.AsyncClient", body: Mapping[str, object]) -> tuple[int, bytes]:
        """Return status and content; raise `EmbeddingFailed` for content that is too large."""
        content = bytearray()
        data = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        async with client.stream("POST", self._url, content=data) as response:
            # Raw: an encoding that was not asked for would unpack a few kilobytes to gigabytes.
            async for part in response.aiter_raw():
                content += part
                if len(content) > _MAX_ANSWER_BYTES:
                    raise EmbeddingFailed(f"{self._url} answered with more than {_MAX_ANSWER_BYTES:,} bytes")
        return response.status_code, bytes(content)

    async def _opened(self) -> "httpx.AsyncClient":
        """Return the HTTP client, with the server of ours running."""
        async with self._opening:
            if self._server is not None and not self._server.running:
                await self._disconnect()
                try:
                    address, self._key = await self._server.start()
                except WorkbenchError as error:
                    raise EmbeddingFailed(str(error)) from error
                self._url = _embeddings_url(address)
            if self._http is None:
                if self._key and not (self._key.isascii() and self._key.isprintable() and " " not in self._key):
                    raise EmbeddingFailed(f"the key for {self._url} holds characters that no API key has")
                self._http = await asyncio.to_thread(_http_client, self._url, self._key)
            return self._http

    async def _disconnect(self) -> None:
        client, self._http = self._http, None
        if client is not None:
            await client.aclose()


def _http_client(url: str, key: str) -> "httpx.AsyncClient":
    """Return a client for `url`. Blocks while httpx and the machine's certificates are loaded."""
    import httpx

    headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    try:
        httpx.URL(url)
        proxy = proxy_for(url)
    except httpx.InvalidURL as error:
        raise EmbeddingFailed(f"{url} is no address: {error}") from error
    except ConfigError as error:
        raise EmbeddingFailed(f"{error}; {error.advice}") from error
    secure = url.startswith("https:")
    return httpx.AsyncClient(
        headers=headers,
        verify=ssl.create_default_context() if secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
        timeout=httpx.Timeout(_ANSWER_SECONDS, connect=_CONNECT_SECONDS),
        proxy=proxy,
        trust_env=False,
    )


def _embeddings_url(address: str) -> str:
    """Return the endpoint's URL for an address with or without `/v1` or `/v1/embeddings`."""
    root = address.rstrip("/").removesuffix("/embeddings").removesuffix("/v1").rstrip("/")
    return f"{root}/v1/embeddings"


def _digest(*parts: object) -> str:
    return sha256(" ".join(map(str, parts)).encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _array(rows: list[list[float]]) -> "Floats":
    """Return the rows as an array, scaled to length 1."""
    import numpy as np

    return unit_rows(np.array(rows, dtype=np.float32).reshape(len(rows), -1))


def _parsed(content: bytes) -> object:
    """Return an answer's JSON, or its beginning as text where it is no JSON."""
    with suppress(ValueError, RecursionError):
        parsed: object = json.loads(content)
        return parsed
    return content[:200].decode("utf-8", "replace")


def _vectors(answer: object, count: int) -> list[list[float]]:
    """Return the vectors in the order of the texts; raise `EmbeddingFailed` for anything else."""
    match answer:
        case {"data": list(rows)} if len(rows) == count:
            whole = [row for row in rows if isinstance(row, dict) and isinstance(row.get("index"), int)]
            found = {row["index"]: row.get("embedding") for row in whole}
            vectors = [_numbers(found.get(place)) for place in range(count)]
            if all(vectors):
                return vectors
    raise EmbeddingFailed("the answer of the embeddings server holds no vectors; its model may have no pooling")


def _numbers(value: object) -> list[float]:
    """Return a vector's numbers, nothing for what is no vector."""
    if not isinstance(value, list) or not 0 < len(value) <= _MAX_DIMENSIONS:
        return []
    if not all(isinstance(each, int | float) and -_MAX_VALUE <= each <= _MAX_VALUE for each in value):
        return []
    return value


def _message(answer: object) -> str:
    match answer:
        case {"error": {"message": str(message)}}:
            return message
    return str(answer)
