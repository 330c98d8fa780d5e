"""Sign-in with OAuth at a server: its tokens in a file of their own, their use and refresh, and the step in a browser.

The SDK's provider speaks with the authorization server. It runs in the client process, where the tokens stay.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import httpx2
import msgspec
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.client.auth.oauth2 import OAuthContext
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import AnyUrl, BaseModel

from agent_workbench.core.errors import StorageError
from agent_workbench.system.atomic_files import make_directories, write_atomically
from agent_workbench.system.folder_trees import read_regular
from agent_workbench.system.locks import lock_descriptor

SIGN_IN_SECONDS = 600.0
_LOCK_SECONDS = 40.0
_MAX_BYTES = 200_000
_MAX_HEAD_BYTES = 16_384
_MAX_PAGE_CHARS = 8_000
_READ_SECONDS = 10.0
_CALLBACK = "/callback"
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_UNAUTHORIZED = 401
_PUBLIC: Final = "none"
"""Authentication of a program on a person's machine, which can keep no secret of its own."""


class SignIn(msgspec.Struct, frozen=True):
    """A sign-in as it is kept: what the SDK knows of the client, its tokens and its authorization server."""

    url: str
    client: dict[str, Any]
    tokens: dict[str, Any]
    expires_at: float | None = None
    server: dict[str, Any] | None = None
    resource: dict[str, Any] | None = None


class SignInFile:
    """The file of one sign-in. Nobody but its owner may read it. All methods block."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)

    def read(self, url: str) -> SignIn | None:
        """Return the sign-in at `url`, None without one; raise `StorageError` if others could read the file."""
        try:
            status = self._path.stat()
            if status.st_uid != os.geteuid() or status.st_mode & 0o077:
                raise StorageError(f"{self._path} can be read by others", advice="remove it, and sign in again")
            found = msgspec.json.decode(read_regular(self._path, _MAX_BYTES), type=SignIn)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError) as error:
            raise StorageError(f"{self._path} cannot be read: {error}", advice="remove it, and sign in again") from None
        return found if found.url == url else None

    def write(self, sign_in: SignIn) -> None:
        """Replace the content; raise `StorageError`."""
        make_directories(self._path.parent)
        self._path.parent.chmod(0o700)
        write_atomically(self._path, msgspec.json.encode(sign_in), mode=0o600)

    def lock(self) -> int:
        """Return a descriptor that holds the lock until it is closed; raise `StorageError`."""
        make_directories(self._path.parent)
        descriptor = os.open(self._path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            lock_descriptor(descriptor, self._path, _LOCK_SECONDS)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor


class _EncryptedProvider(OAuthClientProvider):
    """The SDK's provider, which would go wherever the server's metadata lead.

    Nothing goes to an address without encryption, unless all of it stays on this machine.
    """

    async def _auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        async with aclosing(super()._auth_flow(request)) as flow:
            outgoing = await anext(flow)
            while True:
                if outgoing is not request:
                    _check_encrypted(str(outgoing.url), self.context.server_url)
                response = yield outgoing
                try:
                    outgoing = await flow.asend(response)
                except StopAsyncIteration:
                    return


class SignedIn(_EncryptedProvider):
    """Authentication with kept tokens: they are refreshed, and nobody is asked for new ones.

    The SDK would begin a new sign-in at a 401. Here the answer of the server stays as it is.
    """

    def __init__(self, url: str, file: SignInFile, found: SignIn) -> None:
        storage = _Storage(file)
        super().__init__(url, _client_metadata(f"http://127.0.0.1{_CALLBACK}"), storage)
        storage.context = self.context
        self._file = file
        self._url = url
        self._adopt(found)

    def _adopt(self, found: SignIn) -> None:
        context = self.context
        context.current_tokens = OAuthToken.model_validate(found.tokens)
        context.client_info = OAuthClientInformationFull.model_validate(found.client)
        context.token_expiry_time = found.expires_at
        if found.server is not None:
            context.oauth_metadata = OAuthMetadata.model_validate(found.server)
        if found.resource is not None:
            context.protected_resource_metadata = ProtectedResourceMetadata.model_validate(found.resource)

    async def _initialize(self) -> None:
        self._initialized = True  # the file is read by us

    async def _auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        for again in (False, True):
            held = await self._lock_if_expired()
            try:
                refreshed = held is not None
                async with aclosing(super()._auth_flow(request)) as flow:
                    outgoing = await anext(flow)
                    while outgoing is not request:
                        outgoing = await flow.asend((yield outgoing))
                    if held is not None:
                        os.close(held)
                        held = None
                    response = yield outgoing
            finally:
                if held is not None:
                    os.close(held)
            expired = response.status_code == _UNAUTHORIZED and self.context.can_refresh_token()
            if again or refreshed or not expired:
                return
            self.context.token_expiry_time = 1.0  # the server's clock decides

    async def _lock_if_expired(self) -> int | None:
        """Return the lock for a refresh, None if no refresh is needed: another process may have made it."""
        if self.context.is_token_valid():
            return None
        before = self.context.current_tokens
        held = await asyncio.to_thread(self._file.lock)
        try:
            found = await asyncio.to_thread(self._file.read, self._url)
            if found is not None and (before is None or found.tokens.get("access_token") != before.access_token):
                self._adopt(found)
            if not self.context.is_token_valid():
                return held
        except BaseException:
            os.close(held)
            raise
        os.close(held)
        return None


class _Storage:
    """Storage of the SDK: its tokens are written with the rest of its `context`, and read by nobody."""

    def __init__(self, file: SignInFile) -> None:
        self.context: OAuthContext | None = None
        self._file = file

    async def get_tokens(self) -> OAuthToken | None:
        return None

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Write nothing: a client without tokens is no sign-in."""

    async def set_tokens(self, tokens: OAuthToken) -> None:
        context = self.context
        if context is None or context.client_info is None:
            return
        kept = SignIn(
            context.server_url,
            _plain(context.client_info),
            _plain(tokens),
            context.token_expiry_time,
            _plain(context.oauth_metadata) if context.oauth_metadata is not None else None,
            _plain(context.protected_resource_metadata) if context.protected_resource_metadata is not None else None,
        )
        await asyncio.to_thread(self._file.write, kept)


def _plain(model: BaseModel) -> dict[str, Any]:
    return model.model_dump(mode="json", exclude_none=True)


def new_sign_in(url: str, file: SignInFile, redirect: "Redirect", visit: Callable[[str], None]) -> OAuthClientProvider:
    """Return the authentication that has a person sign in at the page that `visit` gets; raise `OAuthFlowError`."""
    _check_encrypted(url, url)

    async def show(page: str) -> None:
        metadata = provider.context.oauth_metadata
        for each in (page, str(metadata.token_endpoint) if metadata is not None else url):
            _check_encrypted(each, url)
        if len(page) > _MAX_PAGE_CHARS:
            raise OAuthFlowError(f"the address of its page has more than {_MAX_PAGE_CHARS:,} characters")
        visit(page)

    storage = _Storage(file)
    provider = _EncryptedProvider(url, _client_metadata(redirect.address), storage, show, redirect.received)
    storage.context = provider.context
    return provider


def _client_metadata(redirect: str) -> OAuthClientMetadata:
    return OAuthClientMetadata(
        client_name="Agent Workbench", redirect_uris=[AnyUrl(redirect)], token_endpoint_auth_method=_PUBLIC
    )


def _check_encrypted(page: str, server: str) -> None:
    parts, of_server = urlsplit(page), urlsplit(server)
    local = parts.hostname in _LOOPBACK and of_server.hostname in _LOOPBACK
    if parts.scheme != "https" and not (parts.scheme == "http" and local):
        raise OAuthFlowError(f"it would send the sign-in to {page.partition('?')[0][:200]}, which is not encrypted")


def secrets_of(provider: OAuthClientProvider | None) -> Iterator[str]:
    """Yield the secrets that a provider holds now."""
    if provider is None:
        return
    tokens, client = provider.context.current_tokens, provider.context.client_info
    found = (
        *((tokens.access_token, tokens.refresh_token) if tokens is not None else ()),
        client.client_secret if client is not None else None,
    )
    yield from (each for each in found if each)


class Redirect:
    """A listener on loopback that takes one redirect of the browser."""

    def __init__(self, server: asyncio.Server) -> None:
        self._server = server
        self._came: asyncio.Future[dict[str, str]] = asyncio.get_running_loop().create_future()
        self.port: int = server.sockets[0].getsockname()[1]

    @classmethod
    async def open(cls) -> "Redirect":
        """Listen at a free port."""
        made: list[Redirect] = []

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with suppress(OSError, ValueError, asyncio.IncompleteReadError, TimeoutError):
                await made[0]._answer(reader, writer)
            writer.close()

        made.append(cls(await asyncio.start_server(answer, "127.0.0.1", 0, limit=_MAX_HEAD_BYTES)))
        return made[0]

    @property
    def address(self) -> str:
        """The address that the authorization server sends the browser to."""
        return f"http://127.0.0.1:{self.port}{_CALLBACK}"

    async def received(self) -> AuthorizationCodeResult:
        """Return what the redirect brought; raise `OAuthFlowError`. The state is the SDK's to check."""
        try:
            async with asyncio.timeout(SIGN_IN_SECONDS):
                came = await self._came
        except TimeoutError:
            raise OAuthFlowError(f"nobody signed in within {SIGN_IN_SECONDS / 60:g} minutes") from None
        if "code" not in came:
            said = came.get("error_description") or came.get("error") or "no code came back"
            raise OAuthFlowError(f"the sign-in was refused: {said}")
        return AuthorizationCodeResult(code=came["code"], state=came.get("state"), iss=came.get("iss"))

    async def close(self) -> None:
        """Stop listening."""
        self._server.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(_READ_SECONDS):
            first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("ascii", "replace").split("\r\n")
        method, _, rest = first.partition(" ")
        target = urlsplit(rest.partition(" ")[0])
        hosts = [line.partition(":")[2].strip() for line in lines if line.lower().startswith("host:")]
        came = {key: values[0] for key, values in parse_qs(target.query).items()}
        fits = method == "GET" and target.path == _CALLBACK and hosts == [f"127.0.0.1:{self.port}"]
        if fits and came and not self._came.done():
            self._came.set_result(came)
            status, said = "200 OK", "You can close this page and go back to the terminal."
        else:
            status, said = "404 Not Found", "There is nothing here."
        head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(said)}\r\nConnection: close"
        writer.write(f"{head}\r\nCache-Control: no-store\r\n\r\n{said}".encode())
        await writer.drain()


def wants_sign_in(status: int, headers: dict[str, str]) -> bool:
    """Return True if a status of HTTP says that a person has to sign in; an entry's own header is another way."""
    return status == _UNAUTHORIZED and "authorization" not in {name.lower() for name in headers}
