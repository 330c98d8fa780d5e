"""A forge on loopback: issues, comments, states and pull requests in memory, and a bare git repository over HTTP.

Every request and every answer is held against the interface that the forge publishes; what does not fit stands in
`faults`. `gitea_server.py` and `github_server.py` have the interfaces.
"""

import base64
import contextlib
import json
import os
import re
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qsl, urlsplit

import jsonschema
from msgspec import Struct

from agent_workbench.core.ports.forge import ForgeComment, ForgeIssue

TOKEN = "f0rge-t0ken-0123456789abcdef"
AGENT = "robot"
REPO = "acme/shop"
LABEL = "agent"

Json = dict[str, Any]


class ServerAnswer(Struct, frozen=True):
    """Answer to a request."""

    status: int
    body: Any = None
    headers: dict[str, str] = {}


class ForgeServer(ABC):
    """The forge and its users. Every change takes a second of its clock, unless `hurry` is set."""

    kind: ClassVar[str]
    token_env: ClassVar[str]
    rest: ClassVar[str]
    """Path of the REST interface."""
    schema: ClassVar[Json]
    scheme: ClassVar[str]
    prefix: ClassVar[str]
    wanted: ClassVar[dict[str, str]] = {}
    """Headers of every request."""

    def __init__(self, remote: Path | None = None) -> None:
        self.remote = remote
        self.faults: list[str] = []
        self.requests: list[str] = []
        self.fail: dict[str, int] = {}
        """Status to answer with, by the beginning of `METHOD /path`; -1 trickles, -2 redirects, -3 says the token."""
        self.hurry = False
        self.now = datetime(2026, 11, 23, 1, 0, 0, tzinfo=UTC)
        self.issues: dict[int, Json] = {}
        self.events: dict[int, list[Json]] = {}
        self.said: dict[int, list[Json]] = {}
        self.states: list[Json] = []
        self.pulls: list[Json] = []
        self.edits: dict[int, dict[str, str]] = {}
        """Times of the last change of title and body, by issue."""
        self.headers: dict[str, str] = {}
        """Headers of every answer."""
        self.unchanged = 0
        self._ids = 100
        self._users: dict[str, int] = {}
        self._lock = threading.RLock()
        self.token = TOKEN
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    # What users of the forge do.

    def open_issue(self, number: int, title: str, body: str, author: str = "ada") -> None:
        now = self._tick()
        self.issues[number] = {
            "id": self._id(),
            "number": number,
            "title": title,
            "body": body,
            "state": "open",
            "labels": [],
            "user": self.user(author),
            "created_at": now,
            "updated_at": now,
        }
        self.events[number], self.said[number] = [], []

    def label(self, number: int, by: str, *, added: bool = True, name: str = LABEL) -> int:
        label = {"id": 9, "name": name, "color": "00aabb"}
        self._touch(number)
        issue = self.issues[number]
        issue["labels"] = [each for each in issue["labels"] if each["name"] != name] + ([label] if added else [])
        return self._event(number, "label", by, body="1" if added else "", label=label)

    def edit_issue(self, number: int, **changes: str) -> None:
        now = self._touch(number)
        self.issues[number].update(changes)
        self.edits.setdefault(number, {}).update(dict.fromkeys(changes, now))

    def say(self, issue: int, author: str, text: str, **more: object) -> ForgeComment:
        now = self._touch(issue)
        comment = {
            "id": self._id(),
            "user": self.user(author),
            "body": text,
            "created_at": now,
            "updated_at": now,
            **more,
        }
        self.said[issue].append(comment)
        return ForgeComment(int(str(comment["id"])), author, text)

    def edit_comment(self, issue: int, comment: int, text: str) -> None:
        now = self._touch(issue)
        found = next(each for each in self.said[issue] if each["id"] == comment)
        found.update(body=text, updated_at=now)

    def texts(self, issue: int, author: str = AGENT) -> list[str]:
        return [each["body"] for each in self.said[issue] if each["user"]["login"] == author]

    def user(self, login: str) -> Json:
        ids = {"Ghost": -1, "gitea-actions": -2}
        number = ids.get(login) or self._users.setdefault(login.lower(), len(self._users) + 1)
        return {"id": number, "login": login, "full_name": ""}

    # The interface.

    def answer(self, method: str, path: str, query: Json, body: Json | None) -> ServerAnswer:
        with self._lock:
            operation, values = self._operation(method, path)
            if not operation:
                return ServerAnswer(404, {"message": f"no route {method} {path}"})
            rules = self.schema["operations"][operation]
            self._check_request(operation, rules, query, body)
            if values.get("owner", "acme") + "/" + values.get("repo", "shop") != REPO:
                return ServerAnswer(404, {"message": "the repository is not there"})
            number = int(values.get("index", "0") or 0)
            if "/issues/{index}" in operation and number not in self.issues:
                return ServerAnswer(404, {"message": "issue does not exist"})
            answer = self.route(operation, values, query, body or {})
            if answer.status >= 400:
                return answer
            shape = rules.get("answer") or rules["list"]
            rows = answer.body if "list" in rules and answer.body is not None else [answer.body]
            for each in rows if "list" in rules or "answer" in rules else []:
                if each is not None:
                    self._validate(each, shape, operation)
            return ServerAnswer(rules.get("status", 200), answer.body, answer.headers)

    @abstractmethod
    def hide_history(self, number: int) -> None:
        """Fail with status 500 whoever asks for the changes of an issue."""

    @abstractmethod
    def route(self, operation: str, values: Json, query: Json, body: Json) -> ServerAnswer:
        """Return the answer of an operation."""

    def add_state(self, commit: str, body: Json) -> Json:
        """Set the state of a commit in a context."""
        told = {"status": body["state"], "context": body["context"], "description": body["description"]}
        self.states.append({"id": self._id(), "sha": commit, **told})
        return self.states[-1]

    def open_pull(self, branch: str, author: str, title: str, body: str, *, repo_id: int = 1) -> Json:
        number = 1000 + len(self.pulls)
        pull = {
            "id": self._id(),
            "number": number,
            "state": "open",
            "title": title,
            "body": body,
            "html_url": f"{self.url}/{REPO}/pulls/{number}",
            "user": self.user(author),
            "head": {"ref": branch, "repo_id": repo_id},
            "base": {"ref": "main", "repo_id": 1},
        }
        self.pulls.append(pull)
        return pull

    def labelled_issues(self, query: Json) -> list[Json]:
        """Return the issues with a label and state, the newest first."""
        wanted, state = query.get("labels", ""), query.get("state", "open")
        issues = [each for each in self.issues.values() if each["state"] == state]
        return [each for each in issues if any(one["name"] == wanted for one in each["labels"])][::-1]

    def edited_comment(self, comment: int, text: str) -> Json:
        """Return a comment with its new text."""
        issue, found = next(
            (issue, each) for issue, all_of in self.said.items() for each in all_of if each["id"] == comment
        )
        if text != found["body"]:
            self.edit_comment(issue, comment, text)
        return found

    def _check_request(self, operation: str, rules: Json, query: Json, body: Json | None) -> None:
        for name, value in query.items():
            if name not in rules.get("query", []):
                self.faults.append(f"{operation}: unknown parameter {name}")
            elif value not in self.schema["enums"].get(name, [value]):
                self.faults.append(f"{operation}: {name}={value}")
        if (body is None) != ("body" not in rules):
            self.faults.append(f"{operation}: body {body!r}")
        elif body is not None:
            self._validate(body, rules["body"], operation)

    def _validate(self, value: object, shape: str, operation: str) -> None:
        schema = {"$ref": f"#/definitions/{shape}", "definitions": self.schema["definitions"]}
        for fault in jsonschema.Draft202012Validator(schema).iter_errors(value):
            self.faults.append(f"{operation}: {fault.json_path} {fault.message}")

    def _operation(self, method: str, path: str) -> tuple[str, dict[str, str]]:
        for operation in self.schema["operations"]:
            pattern = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", operation.split(" ", 1)[1])
            match = re.fullmatch(pattern, path)
            if match and operation.startswith(f"{method} "):
                return operation, match.groupdict()
        return "", {}

    def _event(self, number: int, kind: str, by: str, **more: object) -> int:
        now = self._text()
        event: Json = {
            "id": self._id(),
            "type": kind,
            "user": self.user(by),
            "created_at": now,
            "updated_at": now,
            **more,
        }
        self.events[number].append(event)
        return int(event["id"])

    def _touch(self, number: int) -> str:
        self.issues[number]["updated_at"] = now = self._tick()
        return now

    def _tick(self) -> str:
        self.now += timedelta(seconds=0 if self.hurry else 1)
        return self._text()

    def _text(self) -> str:
        return self.now.strftime("%Y-%m-%dT%H:%M:%SZ")

    def _id(self) -> int:
        self._ids += 1
        return self._ids


def _handler(forge: ForgeServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # An answer in two packets would wait for the client's acknowledgement.
        wbufsize = -1
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            self._handle()

        def do_POST(self) -> None:
            self._handle()

        def do_PATCH(self) -> None:
            self._handle()

        def log_message(self, *_: object) -> None:
            pass

        def _handle(self) -> None:
            said = urlsplit(self.path)
            body = self._body()
            forge.requests.append(f"{self.command} {said.path}")
            failing = next(
                (status for start, status in forge.fail.items() if f"{self.command} {said.path}".startswith(start)), 0
            )
            if failing:
                self._fail(failing)
            elif said.path.startswith(f"/{REPO}.git/"):
                self._git(said.path, said.query, body)
            elif self.headers.get("Authorization") != f"{forge.scheme} {forge.token}":
                self._send(ServerAnswer(401, {"message": "token is required"}))
            else:
                query = dict(parse_qsl(said.query))
                sent = json.loads(body) if body else None
                wrong = {name: self.headers[name] for name in forge.wanted if self.headers[name] != forge.wanted[name]}
                forge.faults += [f"{wrong} in a request"] if wrong else []
                self._send(forge.answer(self.command, said.path.removeprefix(forge.prefix), query, sent))

        def _fail(self, status: int) -> None:
            if status == -1:
                self.send_response(200)
                self.send_header("Content-Length", "100000")
                self.end_headers()
                with contextlib.suppress(OSError):
                    while True:
                        self.wfile.write(b" ")
                        self.wfile.flush()
                        time.sleep(0.01)
            elif status == -2:
                self.send_response(302)
                self.send_header("Location", f"{forge.url}/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()
            elif status == -3:
                said = {"message": f"you said {self.headers.get('Authorization')} \x1b[31m"}
                self._send(ServerAnswer(422, said))
            else:
                self._send(ServerAnswer(status, {"message": forge.headers.get("X-Told", "told to fail")}))

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding") == "chunked":
                body = b""
                while size := int(self.rfile.readline().strip() or b"0", 16):
                    body += self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
                return body
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))

        def _send(self, answer: ServerAnswer) -> None:
            data = json.dumps(answer.body).encode()
            headers = {**answer.headers, **forge.headers}
            etag = headers.get("ETag", "")
            status = 304 if etag and self.headers.get("If-None-Match") == etag else answer.status
            forge.unchanged += status == 304
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            for name, value in headers.items():
                self.send_header(name, value)
            if status == 304:
                data = b""
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def _git(self, path: str, query: str, body: bytes) -> None:
            kind, _, told = (self.headers.get("Authorization") or "").partition(" ")
            password = base64.b64decode(told).decode().partition(":")[2] if kind == "Basic" else ""
            if password != forge.token or forge.remote is None:
                self.send_response(401)
                self.send_header("WWW-Authenticate", "Basic")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            environment = {
                "PATH": os.environ["PATH"],
                "GIT_PROJECT_ROOT": str(forge.remote),
                "GIT_HTTP_EXPORT_ALL": "1",
                "PATH_INFO": path.removeprefix(f"/{REPO}.git"),
                "QUERY_STRING": query,
                "REMOTE_USER": AGENT,
                "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("Content-Type") or "",
                "CONTENT_LENGTH": str(len(body)),
                "GIT_CONFIG_GLOBAL": "/dev/null",
                "GIT_CONFIG_NOSYSTEM": "1",
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding") or "",
            }
            done = subprocess.run(
                ["git", "http-backend"], input=body, env=environment, capture_output=True, check=False
            )
            head, _, rest = done.stdout.partition(b"\r\n\r\n")
            headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if line)
            self.send_response(int(headers.pop("Status", "200").split()[0]))
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(rest)))
            self.end_headers()
            self.wfile.write(rest)

    return Handler


def bare_remote(folder: Path) -> Path:
    """Make an empty bare repository that accepts pushes over HTTP."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    subprocess.run(["git", "init", "-q", "--bare", str(folder)], check=True, env=environment)
    subprocess.run(["git", "-C", str(folder), "config", "http.receivepack", "true"], check=True, env=environment)
    return folder


def labelled(server: ForgeServer, issue: ForgeIssue) -> None:
    """Open an issue on the server as the port describes it."""
    server.open_issue(issue.number, issue.title, issue.text)
    server.label(issue.number, issue.labelled_by)
