"""HTTP connection to one server: requests with deadlines, answers with a size limit, our errors."""

import asyncio
import contextlib
import json
import ssl
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from email.utils import parsedate_to_datetime
from http import HTTPStatus

import httpx
from msgspec import Struct

from agent_workbench.adapters.llama_cpp.server_answers import JsonObject, ServerError, parse_object, server_error_in
from agent_workbench.core.errors import ConfigError, ModelUnavailable
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.system.proxies import ProxyFailed, proxy_for

WHOLE_FACTOR = 6

_CONNECT_SECONDS = 5.0
_MOST_PORT = 65_535
_REPLY_BYTES = 8_000_000
_MOST_RETRY_SECONDS = 86_400.0

START_ADVICE = "start the server, or set model.path to a GGUF file and the workbench serves it itself"


class Deadline:
    """Deadline after `silence_seconds` without data, and after six times as long in any case.

    The second bound starts again whenever the server reports progress in the prompt.
    """

    def __init__(self, silence_seconds: float) -> None:
        self._silence_seconds = silence_seconds
        self._last = self._now() + WHOLE_FACTOR * silence_seconds
        self.at = self._now() + silence_seconds

    def heard(self) -> None:
        """Restart the bound on silence: data came."""
        self.at = min(self._now() + self._silence_seconds, self._last)

    def moved(self) -> None:
        """Restart both bounds: more of the prompt was read."""
        self._last = self._now() + WHOLE_FACTOR * self._silence_seconds
        self.heard()

    @property
    def why(self) -> str:
        """Clause of an error message: the failure of the server if the deadline passed."""
        if self.at < self._last:
            return f"was silent for {self._silence_seconds:g} s"
        return f"was not done in time ({WHOLE_FACTOR * self._silence_seconds:g} s)"

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()


class FixedDeadline(Deadline):
    """Deadline at `at`, the event loop's time, that no data moves: for questions that a server answers at once."""

    def __init__(self, at: float) -> None:
        super().__init__(0.0)
        self.at = at

    def heard(self) -> None:
        """Leave the deadline as it is."""

    @property
    def why(self) -> str:
        """Clause of an error message: the failure of the server if the deadline passed."""
        return "was not done in time"


class Reply(Struct, frozen=True):
    """A complete HTTP response."""

    status: int
    body: bytes
    location: str = ""

    @property
    def ok(self) -> bool:
        """True if the status is 200."""
        return self.status == HTTPStatus.OK

    @property
    def json(self) -> JsonObject | None:
        """The body as a JSON object, None if it is not one."""
        return parse_object(self.body)


class StreamedReply:
    """A response whose body is still to come."""

    def __init__(self, response: httpx.Response, address: str, deadline: Deadline) -> None:
        self.status = response.status_code
        self.is_json = "json" in response.headers.get("content-type", "")
        self.retry_after_seconds = _seconds(response.headers.get("retry-after", ""))
        self._location = response.headers.get("location", "")
        self._chunks = response.aiter_raw()
        self._address = address
        self._deadline = deadline

    async def next(self) -> bytes:
        """Return the next bytes, b"" at the end; raise `ModelUnavailable` at the deadline or a lost connection."""
        with _ours(self._address, self._deadline):
            async with asyncio.timeout_at(self._deadline.at):
                data = await anext(self._chunks, b"")
        self._deadline.heard()
        return data

    async def rest(self) -> Reply:
        """Return the complete response; at most 8 MB of it are read."""
        body = bytearray()
        while len(body) <= _REPLY_BYTES and (chunk := await self.next()):
            body += chunk
        return Reply(self.status, bytes(body[:_REPLY_BYTES]), self._location)


class Endpoint:
    """One server at `url`; `api_key` is sent with each request, and never part of an error or a representation."""

    def __init__(self, url: str, api_key: str = "") -> None:
        parsed = _parsed(url)
        if api_key and not (api_key.isascii() and api_key.isprintable() and " " not in api_key):
            raise ConfigError(
                "the API key contains a space, a line end or a letter beyond ASCII",
                advice="check the environment variable that api_key_env in .agent.yml names",
            )
        self.address = str(parsed.copy_with(username=None, password=None, query=None, fragment=None)).rstrip("/")
        self._url = str(parsed).rstrip("/")
        self._key = api_key
        self._proxy = proxy_for(self._url)
        self._way = f"{self.address} (through the proxy of the environment)" if self._proxy else self.address
        self._client: httpx.AsyncClient | None = None

    def fault(self, reply: Reply) -> ServerError:
        """Return the error in a response."""
        return server_error_in(reply.status, reply.json, secret=self._key, location=reply.location)

    @property
    def secret(self) -> str:
        """The API key, which must not be shown."""
        return self._key

    async def get(self, path: str, deadline: float) -> Reply:
        """Return the response to a GET of `path`; `deadline` is the event loop's time."""
        async with self.stream("GET", path, None, FixedDeadline(deadline)) as reply:
            return await reply.rest()

    async def post(self, path: str, body: Mapping[str, object], deadline: float) -> Reply:
        """Return the response to a POST of `body` as JSON; `deadline` is the event loop's time."""
        async with self.stream("POST", path, body, FixedDeadline(deadline)) as reply:
            return await reply.rest()

    @contextlib.asynccontextmanager
    async def stream(
        self, method: str, path: str, body: Mapping[str, object] | None, deadline: Deadline
    ) -> AsyncIterator[StreamedReply]:
        """Send a request and yield the response as soon as it begins; leaving the context closes the connection."""
        client = await self._opened()
        content = None if body is None else json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        request = client.build_request(
            method, self._url + path, content=content, headers=self._headers(body is not None)
        )
        with _ours(self._way, deadline):
            async with asyncio.timeout_at(deadline.at):
                response = await client.send(request, stream=True)
        try:
            yield StreamedReply(response, self._way, deadline)
        finally:
            await response.aclose()

    async def close(self) -> None:
        """Close all connections."""
        client, self._client = self._client, None
        if client:
            await client.aclose()

    def _headers(self, has_body: bool) -> dict[str, str]:
        # llama.cpp closes a connection after a stream, or when idle, without notice, so reuse fails now and then.
        # Bodies are requested uncompressed, so that the size limit holds.
        headers = {"Connection": "close", "Accept-Encoding": "identity"}
        if has_body:
            headers["Content-Type"] = "application/json"
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        return headers

    async def _opened(self) -> httpx.AsyncClient:
        if self._client is None:
            # Reading the machine's certificates is slow, and useless without TLS.
            secure = self._url.startswith("https:")
            context = (
                await asyncio.to_thread(ssl.create_default_context)
                if secure
                else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            )
            self._client = httpx.AsyncClient(
                verify=context,
                timeout=httpx.Timeout(None, connect=_CONNECT_SECONDS),
                proxy=self._proxy,
                trust_env=False,
            )
        return self._client


@contextlib.contextmanager
def _ours(address: str, deadline: Deadline) -> Iterator[None]:
    """Turn errors of a connection into `ModelUnavailable`."""
    try:
        yield
    except TimeoutError as error:
        raise ModelUnavailable(
            f"the server at {address} {deadline.why}", advice="raise model.answer_seconds, or ask for less"
        ) from error
    except (httpx.ProxyError, ProxyFailed) as error:
        raise ModelUnavailable(
            f"the proxy to {address} gave no connection: {sanitize_line(str(error), 200)}",
            advice="check HTTP_PROXY, HTTPS_PROXY and ALL_PROXY, or name the server in NO_PROXY",
        ) from error
    except (httpx.ConnectError, httpx.ConnectTimeout) as error:
        raise ModelUnavailable(f"nothing answers at {address}", advice=START_ADVICE) from error
    except httpx.HTTPError as error:
        raise ModelUnavailable(
            f"the server at {address} closed the connection",
            advice="check the server's log, then press t to retry",
        ) from error


def _parsed(url: str) -> httpx.URL:
    advice = "model.url looks like http://127.0.0.1:8080"
    try:
        parsed = httpx.URL(url.strip())
        host, port = parsed.host, parsed.port or 0
        # Where a name is resolved, a part of it that is empty or too long is an error of another kind.
        host.encode("idna")
        parsed = parsed.copy_with(path=parsed.path.rstrip("/").removesuffix("/v1").rstrip("/") or "/")
    except (httpx.InvalidURL, ValueError) as error:
        raise ConfigError("the model's address cannot be read", advice=advice) from error
    if parsed.scheme not in {"http", "https"} or not host:
        raise ConfigError(f"{parsed.scheme}://{host} is not the address of a server", advice=advice)
    if port > _MOST_PORT:
        raise ConfigError(f"{port} is no port", advice=advice)
    return parsed


def _seconds(retry_after: str) -> float:
    """Return what `Retry-After` asks for in seconds, a number or a date, a day at most; 0.0 for none or nonsense."""
    if retry_after.replace(".", "", 1).isdecimal() and retry_after.isascii():
        return min(float(retry_after), _MOST_RETRY_SECONDS)
    try:
        at = parsedate_to_datetime(retry_after).timestamp()
    except (ValueError, OverflowError, OSError):
        return 0.0
    return min(max(0.0, at - time.time()), _MOST_RETRY_SECONDS)
