"""A llama.cpp server behind a proxy that holds its answers to a script and notes when each was asked for."""

import http.client
import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from agent_workbench.adapters.llama_cpp.gbnf import sentence_grammar
from tests.e2e.machine import WAIT_SECONDS
from tests.llama_fixtures import LlamaServer

CHAT = "/v1/chat/completions"
# Room for a vocabulary that spells the text byte by byte.
SPARE_TOKENS = 64


class ScriptedServer:
    """`asked_at` has the moment of each request for an answer, on the monotonic clock."""

    def __init__(self, inner: LlamaServer, answers: Sequence[str], port: int = 0) -> None:
        self.answers = answers
        self.asked_at: list[float] = []
        self._inner = inner
        self._server = ThreadingHTTPServer(("127.0.0.1", port), _handler(self))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def held(self, body: bytes) -> bytes:
        """Return a request whose only possible answer is the next one of the script; its last is repeated."""
        asked = json.loads(body)
        text = self.answers[min(len(self.asked_at), len(self.answers)) - 1]
        asked.pop("response_format", None)
        asked |= {"grammar": sentence_grammar(text), "max_tokens": len(text.encode()) + SPARE_TOKENS}
        return json.dumps(asked).encode()

    @contextmanager
    def ask(self, method: str, path: str, body: bytes) -> Iterator[http.client.HTTPResponse]:
        """Ask the server behind, with its key."""
        headers = {"Authorization": f"Bearer {self._inner.api_key}", "Content-Type": "application/json"}
        link = http.client.HTTPConnection(urlsplit(self._inner.url).netloc, timeout=WAIT_SECONDS)
        with closing(link):
            link.request(method, path, body or None, headers)
            with link.getresponse() as answer:
                yield answer

    def start(self) -> None:
        threading.Thread(target=self._server.serve_forever, name="scripted-server", daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def _handler(server: ScriptedServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Write no log."""

        def do_GET(self) -> None:
            self._pass_on(b"")

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"] or 0))
            if self.path == CHAT:
                server.asked_at.append(time.monotonic())
                body = server.held(body)
            self._pass_on(body)

        def _pass_on(self, body: bytes) -> None:
            with server.ask(self.command, self.path, body) as answer:
                self.send_response(answer.status)
                self.send_header("Content-Type", answer.headers["Content-Type"] or "application/json")
                self.end_headers()
                # In HTTP/1.0 the answer ends with the connection.
                with suppress(BrokenPipeError, ConnectionResetError):  # the workbench has gone meanwhile
                    while piece := answer.read1(65536):
                        self.wfile.write(piece)

    return Handler


@contextmanager
def scripted_server(inner: LlamaServer, answers: Sequence[str], port: int = 0) -> Iterator[ScriptedServer]:
    """Serve these answers in their order, at a free port if none is named; raise `OSError` for one that is taken."""
    server = ScriptedServer(inner, answers, port)
    server.start()
    try:
        yield server
    finally:
        server.stop()
