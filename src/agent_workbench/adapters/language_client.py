"""The client of one language server: `python -m agent_workbench.adapters.language_client STDOUT STDIN`.

It speaks with the workbench in lines of JSON (`connection`) on its standard input and output, and with the server
through pygls, over the two descriptors of its command line. A server may send what costs time and memory, so this is a
process of its own: it limits its memory, and ends with the workbench.
"""

import asyncio
import ctypes
import logging
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from threading import Event
from typing import Any

import msgspec
from lsprotocol import types
from pygls.client import JsonRPCClient
from pygls.exceptions import JsonRpcException
from pygls.io_ import run_async
from pygls.protocol import JsonRPCNotification, JsonRPCProtocol, JsonRPCRequestMessage, JsonRPCResponseMessage
from pygls.uris import from_fs_path, to_fs_path

from agent_workbench.adapters.language_connection import Ask, Connect, Failed, Found, Request
from agent_workbench.core.checks.language_servers import MESSAGE_CHARS, Diagnostic, Severity
from agent_workbench.core.text.sanitizer import sanitize_line, without_chat_markers
from agent_workbench.core.version import __version__

MEMORY_BYTES = 1_500_000_000
MAX_MESSAGE_BYTES = 8 * 1024 * 1024
MAX_UNASKED_BYTES = 24 * 1024 * 1024
MAX_UNASKED_LINES = 100_000
MAX_REQUEST_BYTES = 64 * 1024 * 1024
MOST_OF_FILE, MOST_OF_ALL = 1_000, 4_000
"""Most diagnostics that are compared, of a file and of all files."""
_READ_BYTES = 64 * 1024
_PR_SET_PDEATHSIG = 1
_AGAIN_SECONDS = 0.2
_QUIET_SECONDS = 0.3
"""Silence after which a server that names no version is taken to have said all about a change."""
_LENGTH = b"content-length:"
_SEVERITIES = {1: Severity.ERROR, 2: Severity.WARNING}
_PYTHON = {"analysis": {"typeCheckingMode": "standard", "diagnosticMode": "openFilesOnly"}}
_OPTIONS: Mapping[str, Mapping[str, object]] = {
    "pyright": {"python": _PYTHON},
    "basedpyright": {"basedpyright": _PYTHON},
    # A run of cargo takes long, and looks at what is on the disk only.
    "rust-analyzer": {"rust-analyzer": {"checkOnSave": False, "cachePriming": {"enable": False}}},
}
"""Settings of an editor by server and section; a server asks for its own."""
_WAITS_FOR_STATUS = {"rust-analyzer"}
"""Servers that find nothing until they have loaded the project, and tell when that is."""


class PlainProtocol(JsonRPCProtocol):
    """The protocol with messages as they came: what is used of one is read where it is used, as servers add fields."""

    def structure_message(self, data: dict[str, Any]) -> object:
        """Return a message of JSON-RPC, and any other object as it is."""
        if "jsonrpc" not in data or "error" in data:
            return super().structure_message(data)
        head = {"jsonrpc": data["jsonrpc"]}
        if "method" not in data:
            return JsonRPCResponseMessage(id=data["id"], result=data.get("result"), **head)
        head = {**head, "method": data["method"], "params": data.get("params")}
        return JsonRPCRequestMessage(id=data["id"], **head) if "id" in data else JsonRPCNotification(**head)


class _Position(msgspec.Struct):
    line: int = 0


class _Range(msgspec.Struct):
    start: _Position


class _Item(msgspec.Struct):
    range: _Range
    message: object
    severity: int = 1
    code: str | int | None = None


class _Published(msgspec.Struct):
    uri: str
    diagnostics: list[_Item]
    version: int | None = None


class _Report(msgspec.Struct):
    items: list[_Item] = []


class _Begun(msgspec.Struct):
    capabilities: dict[str, object]


class BrokenBound(Exception):
    """The server exceeded a bound; `str` completes the sentence "it …"."""


class BoundedReader:
    """The server's output for pygls, which itself would read a message of any length."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self._bytes = self._lines = 0
        self.broken = ""

    def asked(self) -> None:
        """Begin to count anew: a request of ours is on its way."""
        self._bytes = self._lines = 0

    async def readline(self) -> bytes:
        """Return the next line of a header; raise `BrokenBound`."""
        try:
            line = await self._reader.readline()
        except ValueError:
            line = b"too long"
        self._lines += 1
        if self._lines > MAX_UNASKED_LINES:
            self._end("sent more than anybody asked for")
        if line.lower().startswith(_LENGTH):
            number = line[len(_LENGTH) :].strip()
            if not number.isdigit() or len(number) > 9 or int(number) > MAX_MESSAGE_BYTES:
                self._end(f"sent a message of more than {MAX_MESSAGE_BYTES // 1024 // 1024} MB")
        return line

    async def readexactly(self, count: int) -> bytes:
        """Return the body of a message; raise `BrokenBound`."""
        self._bytes += count
        if self._bytes > MAX_UNASKED_BYTES:
            self._end("sent more than anybody asked for")
        return await self._reader.readexactly(count)

    def _end(self, why: str) -> None:
        self.broken = why
        raise BrokenBound(why)


class _Document:
    """A file as the server was told it, and what it said about it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.version = 1
        self.found: tuple[Diagnostic, ...] | None = None
        self.said = asyncio.Event()
        """Set when the server has said something about this version."""


class ServerSession:
    """The conversation with the server: files are opened, changed and closed, and their diagnostics collected."""

    def __init__(self, connect: Connect, client: JsonRPCClient, reader: BoundedReader) -> None:
        self._connect = connect
        self._client = client
        self._reader = reader
        self._documents: dict[str, _Document] = {}
        self._pulls = False
        self._ready = asyncio.Event()
        if connect.server not in _WAITS_FOR_STATUS:
            self._ready.set()

    async def begin(self) -> None:
        """Agree on the protocol."""
        self._answer_requests()
        root = from_fs_path(self._connect.root) or ""
        offered = types.ClientCapabilities(
            workspace=types.WorkspaceClientCapabilities(configuration=True, workspace_folders=True),
            text_document=types.TextDocumentClientCapabilities(
                synchronization=types.TextDocumentSyncClientCapabilities(did_save=True),
                publish_diagnostics=types.PublishDiagnosticsClientCapabilities(
                    version_support=True, related_information=True
                ),
                diagnostic=types.DiagnosticClientCapabilities(),
            ),
            experimental={"serverStatusNotification": True},
        )
        parameters = types.InitializeParams(
            capabilities=offered,
            process_id=None,
            root_uri=root,
            client_info=types.ClientInfo("agent-workbench", __version__),
            initialization_options=_OPTIONS.get(self._connect.server, {}).get(self._connect.server),
            workspace_folders=[types.WorkspaceFolder(root, Path(self._connect.root).name)],
        )
        begun = msgspec.convert(await self._client.protocol.send_request_async(types.INITIALIZE, parameters), _Begun)
        self._pulls = begun.capabilities.get("diagnosticProvider") is not None
        self._tell(types.INITIALIZED, types.InitializedParams())

    async def ask(self, texts: Mapping[str, str]) -> Iterator[Diagnostic]:
        """Return the diagnostics of files with these texts. Files that are not asked for are as on the disk."""
        self._reader.asked()
        changed = [*self._close(texts), *self._open(texts)]
        if changed:
            files = [types.FileEvent(self._uri(path), types.FileChangeType.Changed) for path in changed]
            self._tell(types.WORKSPACE_DID_CHANGE_WATCHED_FILES, types.DidChangeWatchedFilesParams(files))
        await self._ready.wait()
        if self._pulls:
            asked = [path for path in texts if changed or self._documents[path].found is None]
            for path, found in zip(asked, await asyncio.gather(*map(self._pull, asked)), strict=True):
                self._documents[path].found = found
        else:
            await asyncio.gather(*(self._documents[path].said.wait() for path in texts))
        return (each for path in texts for each in self._documents[path].found or ())

    def _close(self, texts: Iterable[str]) -> Iterator[str]:
        for path in [each for each in self._documents if each not in texts]:
            del self._documents[path]
            name = types.TextDocumentIdentifier(self._uri(path))
            self._tell(types.TEXT_DOCUMENT_DID_CLOSE, types.DidCloseTextDocumentParams(name))
            yield path

    def _open(self, texts: Mapping[str, str]) -> Iterator[str]:
        for path, text in texts.items():
            document = self._documents.get(path)
            if document is None:
                document = self._documents[path] = _Document(text)
                language = self._connect.languages.get(Path(path).suffix, "")
                item = types.TextDocumentItem(self._uri(path), language, document.version, text)
                self._tell(types.TEXT_DOCUMENT_DID_OPEN, types.DidOpenTextDocumentParams(item))
                yield path
            elif document.text != text:
                document.text, document.found = text, None
                document.version += 1
                document.said.clear()
                name = types.VersionedTextDocumentIdentifier(version=document.version, uri=self._uri(path))
                whole = [types.TextDocumentContentChangeWholeDocument(text)]
                self._tell(types.TEXT_DOCUMENT_DID_CHANGE, types.DidChangeTextDocumentParams(name, whole))
                yield path

    async def _pull(self, path: str) -> tuple[Diagnostic, ...]:
        parameters = types.DocumentDiagnosticParams(types.TextDocumentIdentifier(self._uri(path)))
        while True:
            try:
                said = await self._client.protocol.send_request_async(types.TEXT_DOCUMENT_DIAGNOSTIC, parameters)
            except JsonRpcException as error:
                if error.code not in {types.LSPErrorCodes.ServerCancelled, types.LSPErrorCodes.ContentModified}:
                    raise
                await asyncio.sleep(_AGAIN_SECONDS)
                continue
            return tuple(self._readable(path, msgspec.convert(said, _Report).items))

    def _published(self, params: object) -> None:
        said = msgspec.convert(params, _Published)
        name = to_fs_path(said.uri) or ""
        path = name.removeprefix(f"{self._connect.root}/")
        document = self._documents.get(path)
        if document is None or path == name or said.version not in {None, document.version}:
            return
        document.found = tuple(self._readable(path, said.diagnostics))
        if said.version is not None:
            document.said.set()
        else:
            asyncio.get_running_loop().call_later(_QUIET_SECONDS, _settle, document, document.found)

    def _readable(self, path: str, items: Sequence[_Item]) -> Iterator[Diagnostic]:
        for item in items[:MOST_OF_FILE]:
            if (severity := _SEVERITIES.get(item.severity)) is not None:
                message = _inert(str(item.message).replace(f"{self._connect.root}/", ""), MESSAGE_CHARS)
                code = _inert(str(item.code), 60) if item.code is not None else ""
                line = min(max(0, item.range.start.line), 10_000_000) + 1
                yield Diagnostic(path, line, severity, message, self._connect.server, code)

    def _uri(self, path: str) -> str:
        return from_fs_path(f"{self._connect.root}/{path}") or ""

    def _tell(self, method: str, parameters: object) -> None:
        self._client.protocol.notify(method, parameters)

    def _answer_requests(self) -> None:
        options = _OPTIONS.get(self._connect.server, {})

        # pygls gives attributes to a handler, and itself as the first argument where an annotation fits it.
        def publish(said: dict[str, object]) -> None:
            self._published(said)

        def configure(asked: dict[str, list[dict[str, str]]]) -> list[object]:
            return [options.get(each.get("section", "")) for each in asked["items"]]

        def note_status(said: dict[str, object]) -> None:
            if said.get("quiescent"):
                self._ready.set()

        nothing = (
            *(types.CLIENT_REGISTER_CAPABILITY, types.CLIENT_UNREGISTER_CAPABILITY),
            *(types.WINDOW_WORK_DONE_PROGRESS_CREATE, types.WORKSPACE_DIAGNOSTIC_REFRESH),
        )
        handlers: dict[str, Callable[..., object]] = {
            types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS: publish,
            types.WORKSPACE_CONFIGURATION: configure,
            "experimental/serverStatus": note_status,
            **dict.fromkeys(nothing, lambda *_: None),
        }
        for method, handler in handlers.items():
            self._client.feature(method)(handler)


def _settle(document: _Document, found: tuple[Diagnostic, ...]) -> None:
    if document.found is found:
        document.said.set()


def _inert(text: str, limit: int) -> str:
    """Return a text of the server on one line, with visible control characters and without markers of a chat."""
    return without_chat_markers(
        sanitize_line(" ".join(text[: 4 * limit].encode("utf-8", "replace").decode().split()), limit)
    )


async def _serve(stdout: int, stdin: int) -> None:
    loop = asyncio.get_running_loop()
    incoming, out = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for taken in (0, 1):
        os.dup2(nothing, taken)
    requests = await _reader(incoming, MAX_REQUEST_BYTES)
    decoder: msgspec.json.Decoder[Request] = msgspec.json.Decoder(Request)
    connect = decoder.decode(await requests.readline())
    if not isinstance(connect, Connect):
        return
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.streams.FlowControlMixin(loop), os.fdopen(stdin, "wb", buffering=0)
    )
    client = JsonRPCClient(PlainProtocol)
    client.protocol.set_writer(asyncio.StreamWriter(transport, protocol, None, loop))
    reader = BoundedReader(await _reader(stdout, _READ_BYTES))
    reading = asyncio.create_task(run_async(Event(), reader, client.protocol))
    session = ServerSession(connect, client, reader)

    async def answer() -> None:
        await session.begin()
        while line := await requests.readline():
            asked = decoder.decode(line)
            if isinstance(asked, Ask):
                _write(out, Found(asked.id, tuple(islice(await session.ask(asked.texts), MOST_OF_ALL))))

    answering = asyncio.create_task(answer())
    await asyncio.wait({reading, answering}, return_when=asyncio.FIRST_COMPLETED)
    if answering.done() and answering.exception() is None:
        return
    failed = answering.exception() if answering.done() else None
    _write(out, Failed(reader.broken or (f"failed: {_inert(str(failed), 200)}" if failed else "ended")))


async def _reader(descriptor: int, limit: int) -> asyncio.StreamReader:
    reader = asyncio.StreamReader(limit=limit)
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb", buffering=0)
    )
    return reader


def _write(out: int, answer: Found | Failed) -> None:
    data = msgspec.json.encode(answer) + b"\n"
    with suppress(BrokenPipeError):
        while data:
            data = data[os.write(out, data) :]


def main(arguments: list[str]) -> int:
    """Serve the workbench until it closes the pipe; return 0."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    logging.disable(logging.CRITICAL)
    stdout, stdin = map(int, arguments)
    asyncio.run(_serve(stdout, stdin))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
