"""A hub of models as its client library expects one, on loopback, with files that stand on another host."""

import hashlib
import json
import socket
import struct
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class ModelHub:
    """Repositories by name with their files. Requests are kept as (host, method, path, headers).

    `stall_after` sends no more of a download after so many bytes, `break_after` ends the connection, which is `reset`
    then; `breaks` are such numbers for one download each, in place of `break_after`. Without `ranges` a download begins
    at the start. `stated` are other SHA-256s than true. `endless` are the hosts of which no answer ends. `warning` is
    said with each answer about a revision. `answers` has for a host the status, headers and body that it gives in place
    of all others.
    """

    def __init__(self, repos: Mapping[str, Mapping[str, bytes]]) -> None:
        self.repos = {name: dict(files) for name, files in repos.items()}
        self.stated: dict[str, str] = {}
        self.sizes: dict[str, int] = {}
        self.stall_after: int | None = None
        self.break_after: int | None = None
        self.breaks: list[int] = []
        self.reset = False
        self.ranges = True
        self.endless: set[str] = set()
        self.answers: dict[str, tuple[int, Mapping[str, str], bytes]] = {}
        self.commit = COMMIT
        self.warning = ""
        self.ended = threading.Event()
        self.requests: list[tuple[str, str, str, dict[str, str]]] = []
        self.url = ""
        self.storage_url = ""

    def info(self, repo: str) -> bytes:
        """Return the answer about a revision."""
        files = [
            {
                "rfilename": path,
                "size": self.sizes.get(path, len(data)),
                "blobId": "0" * 40,
                "lfs": {"sha256": self.sha256(path, data), "size": self.sizes.get(path, len(data)), "pointerSize": 100},
            }
            for path, data in self.repos[repo].items()
        ]
        return json.dumps({"id": repo, "modelId": repo, "sha": self.commit, "siblings": files}).encode()

    def sha256(self, path: str, data: bytes) -> str:
        """Return the SHA-256 that the hub states."""
        return self.stated.get(path) or hashlib.sha256(data).hexdigest()

    def downloads(self) -> list[dict[str, str]]:
        """Return the headers of the downloads from the other host."""
        return [headers for host, method, _, headers in self.requests if host == "storage" and method == "GET"]


@contextmanager
def model_hub(repos: Mapping[str, Mapping[str, bytes]]) -> Iterator[ModelHub]:
    """Serve a hub, and the host of its files, on ports of their own."""
    hub = ModelHub(repos)
    servers = []
    for host in ("hub", "storage"):
        server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(hub, host))
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        servers.append(server)
    hub.url, hub.storage_url = (f"http://127.0.0.1:{server.server_address[1]}" for server in servers)
    try:
        yield hub
    finally:
        hub.ended.set()
        for server in servers:
            server.shutdown()
            server.server_close()


def _handler(hub: ModelHub, host: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *said: object) -> None:
            pass

        def do_HEAD(self) -> None:
            self._answer()

        def do_GET(self) -> None:
            self._answer()

        def _answer(self) -> None:
            hub.requests.append((host, self.command, self.path, dict(self.headers)))
            path = self.path.partition("?")[0]
            if host in hub.endless:
                self._send_without_end()
            elif host in hub.answers:
                status, headers, body = hub.answers[host]
                self._send(status, body, headers)
            elif host == "storage":
                self._send_file(path)
            elif path.startswith("/api/models/"):
                repo = "/".join(path.split("/")[3:5])
                found = repo in hub.repos
                told = {"X-Error-Code": "RepoNotFound", "X-HF-Warning": hub.warning}
                self._send(200 if found else 404, hub.info(repo) if found else b"{}", told)
            else:
                owner, name, _, commit, *rest = path.strip("/").split("/")
                data = hub.repos[f"{owner}/{name}"]["/".join(rest)]
                headers = {
                    "X-Repo-Commit": commit,
                    "X-Linked-Size": str(hub.sizes.get("/".join(rest), len(data))),
                    "X-Linked-Etag": f'"{hub.sha256("/".join(rest), data)}"',
                    "ETag": '"pointer"',
                    "Location": f"{hub.storage_url}/{owner}/{name}/{'/'.join(rest)}",
                }
                self._send(302, b"", headers)

        def _send_file(self, path: str) -> None:
            owner, name, *rest = path.strip("/").split("/")
            data = hub.repos[f"{owner}/{name}"]["/".join(rest)]
            said = self.headers.get("Range", "") if hub.ranges else ""
            start = int((said or "bytes=0-").removeprefix("bytes=").partition("-")[0])
            ranged = {"Content-Range": f"bytes {start}-{len(data) - 1}/{len(data)}"} if start else {}
            self._send(206 if start else 200, data[start:], ranged)

        def _send_without_end(self) -> None:
            self.send_response(hub.answers.get(host, (200,))[0])
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            piece = b"GGUF" + b"x" * 1_000_000
            with suppress(OSError):  # the client has gone
                while not hub.ended.is_set():
                    self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            self.close_connection = True

        def _send(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
            self.send_response(status)
            for key, value in headers.items():
                self.send_header(key, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "HEAD":
                return
            if host == "storage" and hub.stall_after is not None:
                self.wfile.write(body[: hub.stall_after])
                hub.ended.wait()
            elif host == "storage" and (hub.breaks or hub.break_after is not None):
                end = hub.breaks.pop(0) if hub.breaks else hub.break_after or 0
                self.wfile.write(body[:end])
                self.close_connection = len(body) > end
                if self.close_connection and hub.reset:
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    self.connection.close()
            else:
                self.wfile.write(body)

    return Handler
