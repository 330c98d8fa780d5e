"""HTTP client of a forge's interface: bounded in time and size, without redirects, and silent about its token."""

import asyncio
import ssl
import time
from collections import OrderedDict
from collections.abc import Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TypeVar
from urllib.parse import urlsplit

import httpx
import msgspec

from agent_workbench.core.errors import ConfigError, ForgeError
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.system.loopback import is_loopback
from agent_workbench.system.proxies import ProxyFailed, proxy_for

REQUEST_SECONDS = 20.0
"""Time for a whole request with its answer, however slowly it trickles."""
MAX_ANSWER_BYTES = 8_000_000
MOST_PAUSE_SECONDS = 3_600.0
_PAUSE_SECONDS = 60.0
"""Pause after a limit that says nothing of its end."""
_MOST_KEPT, _MAX_KEPT_BYTES = 64, 200_000
"""Answers that are kept with their ETag, and the size of each."""
_CONNECT_SECONDS = 5.0
_SAID_CHARS = 200
_ADVICE: Mapping[int, str] = {
    HTTPStatus.UNAUTHORIZED: "the variable that forge.token_env names must hold a valid token",
    HTTPStatus.FORBIDDEN: "give the token's account write access to code, issues and pull requests",
    HTTPStatus.NOT_FOUND: "check forge.url and forge.repo, and that the token's account can see the repository",
}
_LIMITS = {HTTPStatus.FORBIDDEN, HTTPStatus.TOO_MANY_REQUESTS}

Wanted = TypeVar("Wanted")


class ApiDialect(msgspec.Struct, frozen=True):
    """Headers that an interface wants, and its own advice by status."""

    scheme: str
    headers: Mapping[str, str]
    advice: Mapping[int, str] = msgspec.field(default_factory=dict)


GITEA = ApiDialect("token", {"Accept": "application/json"})


class ApiAnswer(msgspec.Struct, frozen=True):
    """Answer of the forge as bytes.

    `total` is the number of entries of all pages (-1: not told); `more` is True if it names a next page.
    """

    body: bytes
    total: int = -1
    more: bool = False


class NotFound(ForgeError):
    """The forge does not have what was asked for."""


class Refused(ForgeError):
    """The forge does not take what was sent, such as a second pull request of a branch."""


_KINDS: Mapping[int, type[ForgeError]] = {
    HTTPStatus.NOT_FOUND: NotFound,
    HTTPStatus.CONFLICT: Refused,
    HTTPStatus.UNPROCESSABLE_ENTITY: Refused,
}


class ForgeApi:
    """The interface below `url`. The token goes to that address alone and is never part of an error."""

    def __init__(
        self,
        url: str,
        token: str,
        dialect: ApiDialect = GITEA,
        *,
        plain_http: bool = False,
        seconds: float = REQUEST_SECONDS,
    ) -> None:
        """Raise `ConfigError` for a token that is none, an unusable proxy or address, and one that shows the token."""
        self._address = _parsed(url.rstrip("/"))
        self.address = str(self._address)
        check_transport(url, plain_http=plain_http)
        if not token or not (token.isascii() and token.isprintable() and " " not in token):
            raise ConfigError(
                "the forge's token is missing, or has characters that no token has",
                advice="put it into the environment variable that forge.token_env names",
            )
        self._token = token
        self._dialect = dialect
        self._closed_until = 0.0
        self._kept: OrderedDict[str, tuple[str, ApiAnswer]] = OrderedDict()
        self._proxy = proxy_for(self.address)
        self._seconds = seconds
        self._client: httpx.AsyncClient | None = None

    async def get(self, path: str, wanted: type[Wanted], **query: str | int) -> Wanted:
        """Return what is at `path`; raise `ForgeError`."""
        return self._decoded((await self.request("GET", path, query=query)).body, wanted)

    async def send(self, method: str, path: str, body: Mapping[str, object], wanted: type[Wanted]) -> Wanted:
        """Send a body as JSON and return the answer; raise `ForgeError`."""
        return self._decoded((await self.request(method, path, msgspec.json.encode(body))).body, wanted)

    def read_rows(self, answer: ApiAnswer, kind: type[Wanted]) -> list[Wanted]:
        """Return the entries of a list, none for `null`; raise `ForgeError` for anything else."""
        if answer.body.strip() in {b"", b"null"}:
            return []
        return [self._decoded(bytes(each), kind) for each in self._decoded(answer.body, list[msgspec.Raw])]

    def _decoded(self, body: bytes, wanted: type[Wanted]) -> Wanted:
        try:
            return msgspec.json.decode(body, type=wanted)
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            why = sanitize_line(str(error), _SAID_CHARS)
            raise ForgeError(f"the forge at {self.address} sent an answer that cannot be read: {why}") from None

    async def request(
        self, method: str, path: str, content: bytes | None = None, query: Mapping[str, str | int] | None = None
    ) -> ApiAnswer:
        """Send a request and return the whole answer; raise `ForgeError`, `NotFound`, `Refused`.

        Nothing is sent before the end of a limit that the forge told. What did not change comes from memory.
        """
        self._check_limit()
        client = await self._opened()
        headers = {
            **self._dialect.headers,
            "Authorization": f"{self._dialect.scheme} {self._token}",
            "User-Agent": "agent-workbench",
            # Compressed bodies would pass the size limit.
            "Accept-Encoding": "identity",
        }
        if content is not None:
            headers["Content-Type"] = "application/json"
        url = f"{self.address}{path}"
        request = client.build_request(method, url, content=content, headers=headers, params=dict(query or {}))
        etag, kept = self._kept.get(str(request.url), ("", None)) if method == "GET" else ("", None)
        if kept is not None:
            request.headers["If-None-Match"] = etag
        try:
            async with asyncio.timeout(self._seconds):
                response = await client.send(request, stream=True)
                try:
                    body = await self._body(response)
                finally:
                    await response.aclose()
        except TimeoutError:
            raise ForgeError(f"the forge at {self.address} did not answer within {self._seconds:g} s") from None
        except (httpx.HTTPError, ProxyFailed) as error:
            why = self.inert(str(error)) or type(error).__name__
            raise ForgeError(
                f"the forge at {self.address} cannot be reached: {why}",
                advice="check forge.url, the network and its proxy",
            ) from None
        now = time.time()
        if pause := pause_seconds(response, body, now):
            self._closed_until = now + min(pause, MOST_PAUSE_SECONDS)
        if response.status_code == HTTPStatus.NOT_MODIFIED and kept is not None:
            self._kept.move_to_end(str(request.url))
            return kept
        self._check(response, body)
        total = _number(response.headers.get("x-total-count", ""))
        answer = ApiAnswer(body, total, 'rel="next"' in response.headers.get("link", ""))
        if method == "GET":
            self._keep(str(request.url), response.headers.get("etag", ""), answer)
        return answer

    async def close(self) -> None:
        """Close all connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _body(self, response: httpx.Response) -> bytes:
        body = bytearray()
        async for piece in response.aiter_raw():
            body += piece
            if len(body) > MAX_ANSWER_BYTES:
                raise ForgeError(f"the forge at {self.address} sent more than {MAX_ANSWER_BYTES:,} bytes")
        return bytes(body)

    def _keep(self, url: str, etag: str, answer: ApiAnswer) -> None:
        self._kept.pop(url, None)
        if etag.isascii() and 0 < len(etag) <= _SAID_CHARS and len(answer.body) <= _MAX_KEPT_BYTES:
            self._kept[url] = (etag, answer)
            if len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)

    def _check_limit(self) -> None:
        """Raise `ForgeError` while the forge wants no request."""
        if time.time() < self._closed_until:
            end = datetime.fromtimestamp(self._closed_until, UTC)
            raise ForgeError(
                f"the forge at {self.address} limits requests: it takes none before {end:%H:%M:%S} UTC",
                advice="wait until then; the next look does what is left",
            )

    def _check(self, response: httpx.Response, body: bytes) -> None:
        status = response.status_code
        if response.is_success:
            return
        if status in _LIMITS:
            self._check_limit()
        if response.is_redirect:
            to = self.inert(response.headers.get("location", ""))
            raise ForgeError(
                f"the forge at {self.address} redirects to {to or 'another address'}",
                advice="the token is not sent there; set forge.url and forge.repo to what is there itself",
            )
        said = self.inert(body[:2_000].decode("utf-8", "replace"))
        what = f"the forge at {self.address} refused {response.request.method} {response.request.url.path}"
        advice = {**_ADVICE, **self._dialect.advice}.get(status, "")
        raise _KINDS.get(status, ForgeError)(f"{what}: {status} {said}".rstrip(), advice=advice)

    def inert(self, text: str) -> str:
        """Return foreign text as one short line without the token."""
        return sanitize_line(text.replace(self._token, "«token»"), _SAID_CHARS)

    async def _opened(self) -> httpx.AsyncClient:
        if self._client is None:
            secure = self._address.scheme == "https"
            context = (
                await asyncio.to_thread(ssl.create_default_context)
                if secure
                else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            )
            self._client = httpx.AsyncClient(
                verify=context,
                timeout=httpx.Timeout(None, connect=_CONNECT_SECONDS),
                follow_redirects=False,
                proxy=self._proxy,
                trust_env=False,
            )
        return self._client


def pause_seconds(response: httpx.Response, body: bytes, now: float) -> float:
    """Return the seconds for which the forge wants no further request, 0 if it tells of no limit."""
    headers, refused = response.headers, response.status_code in _LIMITS
    after = _number(headers.get("retry-after", ""))
    if refused and after >= 0:
        return float(after)
    if headers.get("x-ratelimit-remaining") == "0":
        reset = _number(headers.get("x-ratelimit-reset", ""))
        return max(reset - now, 0.0) if reset >= 0 else _PAUSE_SECONDS
    # A limit on bursts has no number: GitHub says it in words.
    said = response.status_code == HTTPStatus.TOO_MANY_REQUESTS or b"secondary rate limit" in body[:2_000].lower()
    return _PAUSE_SECONDS if refused and said else 0.0


def _number(text: str) -> int:
    """Return the number in a header, -1 if it is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 11 else -1


def _parsed(url: str) -> httpx.URL:
    try:
        address = httpx.URL(url)
        address.host  # noqa: B018 - reading it is what checks it
        urlsplit(url).port  # noqa: B018 - reading it is what checks it
    except (httpx.InvalidURL, ValueError) as error:
        what = f"{sanitize_line(url, _SAID_CHARS)} is no address of a forge: {sanitize_line(str(error))}"
        raise ConfigError(what, advice="check forge.url, or the address of the git remote") from None
    return address


def check_transport(url: str, *, plain_http: bool) -> None:
    """Raise `ConfigError` for an address without TLS beyond this machine, unless the user allowed it."""
    address = httpx.URL(url)
    if address.scheme != "https" and not is_loopback(address.host) and not plain_http:
        raise ConfigError(
            f"forge.url {url} has no TLS: everybody on the way could read the token",
            advice="use https, or set forge.plain_http: true for a network that is yours",
        )
