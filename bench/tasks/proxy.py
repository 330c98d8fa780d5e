"""Reverse proxy in front of the model server: counts the requests and tokens of whoever asks."""

import contextlib
import http.client
import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct, field

CHAT = "/chat/completions"
ANSWER_SECONDS = 3600
# A block that stands at an answer's end so often is a loop. Short blocks are found in tables and data too.
_REPEATS = 5
_LOOP = re.compile(rf"(.{{8,600}}?)(\1{{{_REPEATS - 1},}}).{{0,600}}\Z", re.DOTALL)
_LOOP_CHARS = 200


class Exchange(Struct):
    """One request for an answer. Tokens are the server's figures, where it gave them.

    `prompt` tokens were sent, `read` of them processed, `again` of these although an earlier request had sent them.
    """

    messages: list[dict[str, Any]] = field(default_factory=list)
    sampling: dict[str, Any] = field(default_factory=dict)
    answer: str = ""
    prompt: int = 0
    read: int = 0
    again: int = 0
    written: int = 0
    seconds: float = 0.0
    finish: str = ""
    status: int = 0
    error: str = ""

    def begins(self, *words: str) -> bool:
        """Return True if the first message begins with one of these texts."""
        content = self.messages[0].get("content") if self.messages else ""
        return isinstance(content, str) and content.startswith(words)

    @property
    def text(self) -> str:
        """The texts of all messages."""
        return "\n".join(content for each in self.messages if isinstance(content := each.get("content"), str))

    @property
    def loop_tokens(self) -> int:
        """Tokens of the answer, about, that only repeat a block of it, where it ends in such a loop."""
        return round(self.written * looped_chars(self.answer) / max(1, len(self.answer)))

    @property
    def overflowed(self) -> bool:
        """True if the prompt, or the prompt with its answer, did not fit into the context."""
        return self.status >= 400 and "context" in self.error.lower()


def looped_chars(answer: str) -> int:
    """Return the length of the copies in which an answer ends, if a block stands there five times or more; else 0."""
    found = _LOOP.search(answer[-6000:])
    return len(found[2]) if found is not None and len(found[0]) >= _LOOP_CHARS and len(set(found[1])) > 1 else 0


class CountingProxy:
    """Passes requests on to `url`, with `api_key` and with `sampling` in place of theirs.

    `on_request` is called before each request for an answer, with those before it.
    """

    def __init__(self, url: str, api_key: str = "", sampling: Mapping[str, Any] | None = None) -> None:
        self._upstream = urlsplit(url).netloc
        self._prefix = urlsplit(url).path.rstrip("/")
        self._key = api_key
        self._sampling = dict(sampling or {})
        self._exchanges: list[Exchange] = []
        self._links: set[http.client.HTTPConnection] = set()
        self.on_request: Callable[[Sequence[Exchange]], None] = lambda earlier: None
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> "CountingProxy":
        threading.Thread(target=self._server.serve_forever, name="counting-proxy", daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def take(self) -> list[Exchange]:
        """Return the requests since the last call. Answers that are still being written are cancelled."""
        for link in list(self._links):
            with contextlib.suppress(OSError, AttributeError):
                link.sock.shutdown(2)
        taken, self._exchanges = self._exchanges, []
        return taken

    def wait(self, seconds: float = 300.0) -> None:
        """Wait until the server has ended what was cancelled, so that the next attempt does not wait for it."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                with self.ask("GET", "/slots", b"") as answer:
                    slots = json.loads(answer.read())
            except (OSError, http.client.HTTPException, ValueError):
                return
            if not isinstance(slots, list) or not any(slot.get("is_processing") for slot in slots):
                return
            time.sleep(0.5)

    def changed(self, body: bytes) -> bytes:
        """Return a request with the sampling of this proxy."""
        asked = json.loads(body)
        return json.dumps(asked | self._sampling).encode() if self._sampling else body

    @contextmanager
    def ask(self, method: str, path: str, body: bytes) -> Iterator[http.client.HTTPResponse]:
        """Ask the server behind."""
        headers = {"Content-Type": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        link = http.client.HTTPConnection(self._upstream, timeout=ANSWER_SECONDS)
        self._links.add(link)
        try:
            link.request(method, self._prefix + path, body or None, headers)
            with link.getresponse() as answer:
                yield answer
        finally:
            self._links.discard(link)
            link.close()

    @contextmanager
    def counted(self, body: bytes) -> Iterator["Reading"]:
        """Count one request; give what reads its answer."""
        asked = json.loads(body)
        self.on_request(self._exchanges)
        sampling = {
            name: value
            for name, value in asked.items()
            if name not in {"messages", "tools", "response_format"} and isinstance(value, int | float | str | bool)
        }
        exchange = Exchange(messages=asked.get("messages", []), sampling=sampling)
        earlier = [each.messages for each in self._exchanges]
        self._exchanges.append(exchange)
        reading = Reading(exchange)
        began = time.perf_counter()
        try:
            yield reading
        finally:
            exchange.seconds = time.perf_counter() - began
            reading.finish()
            exchange.again = _read_again(exchange, earlier)


class Reading:
    """Reads an answer as it passes: a whole object, or a stream of server-sent events."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._rest = b""
        self._pieces = 0

    def begin(self, status: int) -> None:
        """Take the status of the answer."""
        self._exchange.status = status

    def add(self, data: bytes) -> None:
        """Take the next bytes of the answer."""
        self._rest += data
        *lines, self._rest = self._rest.split(b"\n")
        kept = b""
        for line in lines:
            if line.startswith(b"data: {"):
                self._note(line[6:])
            elif not line.startswith((b"data:", b":")):
                kept += line + b"\n"
        self._rest = kept.lstrip() + self._rest

    def finish(self) -> None:
        """Take what came last; without figures of the server, a piece of the stream counts as a token."""
        if self._rest.strip():
            self._note(self._rest)
        self._exchange.written = self._exchange.written or self._pieces

    def _note(self, text: bytes) -> None:
        try:
            said = json.loads(text)
        except ValueError:
            return
        exchange = self._exchange
        for choice in said.get("choices") or ():
            part = choice.get("delta") or choice.get("message") or {}
            piece = (part.get("reasoning_content") or "") + (part.get("content") or "")
            exchange.answer += piece
            self._pieces += bool(piece)
            exchange.finish = choice.get("finish_reason") or exchange.finish
        if usage := said.get("usage"):
            exchange.prompt, exchange.written = usage["prompt_tokens"], usage["completion_tokens"]
            exchange.read = exchange.read or exchange.prompt
        if progress := said.get("prompt_progress"):
            exchange.prompt, exchange.read = progress["total"], progress["processed"] - progress["cache"]
        if timings := said.get("timings"):
            exchange.read, exchange.written = timings["prompt_n"], timings["predicted_n"]
            exchange.prompt = timings["prompt_n"] + timings.get("cache_n", 0)
        if "error" in said:
            exchange.error = json.dumps(said["error"])


def _read_again(exchange: Exchange, earlier: list[list[dict[str, Any]]]) -> int:
    """Return the tokens of the prefix that an earlier request had, which the server processed once more."""
    text = json.dumps(exchange.messages)
    known = max((_common(text, json.dumps(each)) for each in earlier), default=0)
    cached = exchange.prompt - exchange.read
    return max(0, round(exchange.prompt * known / max(1, len(text))) - cached)


def _common(first: str, second: str) -> int:
    """Return the length of the common beginning."""
    return next(
        (at for at, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second))
    )


def _handler(proxy: CountingProxy) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Write no log."""

        def do_GET(self) -> None:
            self._pass_on(b"", None)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"] or 0))
            if not self.path.endswith(CHAT):
                self._pass_on(body, None)
                return
            body = proxy.changed(body)
            with proxy.counted(body) as reading:
                self._pass_on(body, reading)

        def _pass_on(self, body: bytes, reading: Reading | None) -> None:
            # The client, or the server behind, has gone meanwhile.
            with (
                contextlib.suppress(OSError, http.client.HTTPException),
                proxy.ask(self.command, self.path, body) as answer,
            ):
                if reading is not None:
                    reading.begin(answer.status)
                self.send_response(answer.status)
                self.send_header("Content-Type", answer.headers["Content-Type"] or "application/json")
                self.end_headers()
                # In HTTP/1.0 the answer ends with the connection.
                while piece := answer.read1(65536):
                    if reading is not None:
                        reading.add(piece)
                    self.wfile.write(piece)

    return Handler
