"""A forge on loopback: issues, comments, states and pull requests in memory, and a bare git repository over HTTP.

Every request and every answer is held against the interface that Gitea publishes (`gitea_schema.json`); what does not
fit stands in `faults`.
"""

import base64
import contextlib
import json
import os
import re
import subprocess
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import jsonschema

from agent_workbench.core.ports.forge import ForgeComment, ForgeIssue

TOKEN = "f0rge-t0ken-0123456789abcdef"
AGENT = "robot"
REPO = "acme/shop"
LABEL = "agent"
SCHEMA = json.loads((Path(__file__).parent / "gitea_schema.json").read_text())
PAGE = 50

Json = dict[str, Any]


class GiteaServer:
    """The forge and its users. Every change takes a second of its clock, unless `hurry` is set."""

    def __init__(self, remote: Path | None = None) -> None:
        self.remote = remote
        self.faults: list[str] = []
        self.requests: list[str] = []
        self.fail: dict[str, int] = {}
        """Status to answer with, by the beginning of `METHOD /path`; -1 trickles, -2 redirects, -3 says the token."""
        self.hurry = False
        self.comments_page = 0
        """Comments on a page; 0: they are not divided, as in Gitea 1.22."""
        self.now = datetime(2026, 11, 23, 1, 0, 0, tzinfo=UTC)
        self.issues: dict[int, Json] = {}
        self.events: dict[int, list[Json]] = {}
        self.said: dict[int, list[Json]] = {}
        self.states: list[Json] = []
        self.pulls: list[Json] = []
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
        self._touch(number)
        self.issues[number].update(changes)

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

    def answer(self, method: str, path: str, query: Json, body: Json | None) -> tuple[int, Any, int]:
        """Return status, answer and number of entries."""
        with self._lock:
            operation, values = _operation(method, path)
            if not operation:
                return 404, {"message": f"no route {method} {path}"}, -1
            rules = SCHEMA["operations"][operation]
            self._check_request(operation, rules, query, body)
            if values.get("owner", "acme") + "/" + values.get("repo", "shop") != REPO:
                return 404, {"message": "the repository is not there"}, -1
            number = int(values.get("index", "0") or 0)
            if "/issues/{index}" in operation and number not in self.issues:
                return 404, {"message": "issue does not exist"}, -1
            answer, total = self._route(operation, values, query, body or {})
            shape = rules.get("answer") or rules["list"]
            for each in answer if "list" in rules and answer is not None else [answer] if "answer" in rules else []:
                self._validate(each, shape, operation)
            return rules.get("status", 200), answer, total

    def _route(self, operation: str, values: Json, query: Json, body: Json) -> tuple[Any, int]:
        number = int(values.get("index", 0))
        match operation.removeprefix("GET ").replace("/repos/{owner}/{repo}", ""):
            case "/user":
                return self.user(AGENT), -1
            case "":
                return {"id": 1, "full_name": REPO, "default_branch": "main"}, -1
            case "/issues":
                wanted = query.get("labels", "")
                found = [
                    each
                    for each in self.issues.values()
                    if each["state"] == query.get("state", "open")
                    and any(label["name"] == wanted for label in each["labels"])
                ]
                return self._page(found[::-1], query)
            case "/issues/{index}/timeline":
                since = datetime.fromisoformat(query.get("since", "2000-01-01T00:00:00Z"))
                events = [each for each in self.events[number] if datetime.fromisoformat(each["updated_at"]) >= since]
                rows, _ = self._page(events, query)
                return rows or None, len(rows)
            case "/issues/{index}/comments":
                if self.comments_page:
                    return self._page(self.said[number], {"limit": self.comments_page, **query})
                return list(self.said[number]), len(self.said[number])
            case "POST /issues/{index}/comments":
                self.say(number, AGENT, body["body"])
                return self.said[number][-1], -1
            case "PATCH /issues/comments/{id}":
                issue, found_comment = next(
                    (issue, each)
                    for issue, all_of in self.said.items()
                    for each in all_of
                    if each["id"] == int(values["id"])
                )
                if body["body"] != found_comment["body"]:
                    self.edit_comment(issue, found_comment["id"], body["body"])
                return found_comment, -1
            case "/statuses/{sha}":
                return self._page([each for each in self.states if each["sha"] == values["sha"]], query)
            case "POST /statuses/{sha}":
                state = {
                    "id": self._id(),
                    "sha": values["sha"],
                    "status": body["state"],
                    "context": body["context"],
                    "description": body["description"],
                }
                self.states.append(state)
                return state, -1
            case "/pulls":
                return self._page(self.pulls[::-1], query)
            case "POST /pulls":
                return self.open_pull(body["head"], AGENT, body["title"], body["body"]), -1
            case "PATCH /pulls/{index}":
                pull = next(each for each in self.pulls if each["number"] == number)
                pull.update(body)
                return pull, -1
        raise AssertionError(operation)

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

    def _page(self, rows: list[Json], query: Json) -> tuple[list[Json], int]:
        page, size = int(query.get("page", 1)), min(int(query.get("limit", PAGE)), PAGE)
        return rows[(page - 1) * size : page * size], len(rows)

    def _check_request(self, operation: str, rules: Json, query: Json, body: Json | None) -> None:
        for name, value in query.items():
            if name not in rules.get("query", []):
                self.faults.append(f"{operation}: unknown parameter {name}")
            elif value not in SCHEMA["enums"].get(name, [value]):
                self.faults.append(f"{operation}: {name}={value}")
        if (body is None) != ("body" not in rules):
            self.faults.append(f"{operation}: body {body!r}")
        elif body is not None:
            self._validate(body, rules["body"], operation)

    def _validate(self, value: object, shape: str, operation: str) -> None:
        schema = {"$ref": f"#/definitions/{shape}", "definitions": SCHEMA["definitions"]}
        for fault in jsonschema.Draft202012Validator(schema).iter_errors(value):
            self.faults.append(f"{operation}: {fault.json_path} {fault.message}")

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


def _operation(method: str, path: str) -> tuple[str, dict[str, str]]:
    for operation in SCHEMA["operations"]:
        pattern = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", operation.split(" ", 1)[1])
        match = re.fullmatch(pattern, path)
        if match and operation.startswith(f"{method} "):
            return operation, match.groupdict()
    return "", {}


def _handler(forge: GiteaServer) -> type[BaseHTTPRequestHandler]:
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
            elif self.headers.get("Authorization") != f"token {forge.token}":
                self._send(401, {"message": "token is required"})
            else:
                query = dict(parse_qsl(said.query))
                sent = json.loads(body) if body else None
                status, answer, total = forge.answer(self.command, said.path.removeprefix("/api/v1"), query, sent)
                self._send(status, answer, total)

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
                self._send(422, {"message": f"you said {self.headers.get('Authorization')} \x1b[31m"})
            else:
                self._send(status, {"message": "told to fail"})

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding") == "chunked":
                body = b""
                while size := int(self.rfile.readline().strip() or b"0", 16):
                    body += self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
                return body
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))

        def _send(self, status: int, answer: object, total: int = -1) -> None:
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            if total >= 0:
                self.send_header("X-Total-Count", str(total))
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


@contextlib.contextmanager
def gitea_server(remote: Path | None = None) -> Iterator[GiteaServer]:
    """Serve a forge and hold every request and answer against the published interface."""
    forge = GiteaServer(remote)
    try:
        yield forge
    finally:
        forge.close()
    assert forge.faults == []


def bare_remote(folder: Path) -> Path:
    """Make an empty bare repository that accepts pushes over HTTP."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    subprocess.run(["git", "init", "-q", "--bare", str(folder)], check=True, env=environment)
    subprocess.run(["git", "-C", str(folder), "config", "http.receivepack", "true"], check=True, env=environment)
    return folder


def labelled(server: GiteaServer, issue: ForgeIssue) -> None:
    """Open an issue on the server as the port describes it."""
    server.open_issue(issue.number, issue.title, issue.text)
    server.label(issue.number, issue.labelled_by)
