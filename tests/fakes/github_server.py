"""GitHub Enterprise's interface on a forge in memory, held against what GitHub publishes (`github_schema.json`)."""

import contextlib
import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlencode

from tests.fakes.forge_server import AGENT, REPO, ForgeServer, Json, ServerAnswer

SCHEMA = json.loads((Path(__file__).parent / "github_schema.json").read_text())
_WORD = re.compile(r"\.\.\.|[A-Za-z_]\w*|[{}:]|\([^)]*\)")
_KINDS = re.compile(r"itemTypes:\[([A-Z_,]+)\]")


class GithubServer(ForgeServer):
    """GitHub Enterprise."""

    kind: ClassVar = "github"
    token_env: ClassVar = "GITHUB_TOKEN"
    rest: ClassVar = "/api/v3"
    schema: ClassVar = SCHEMA
    scheme: ClassVar = "Bearer"
    prefix: ClassVar = "/api"
    wanted: ClassVar = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}

    def __init__(self, remote: Path | None = None) -> None:
        self.permissions = {"ada": "admin", "bob": "write", AGENT: "write"}
        super().__init__(remote)

    def user(self, login: str) -> Json:
        return {**super().user(login), "type": "Bot" if login.endswith("[bot]") else "User"}

    def answer(self, method: str, path: str, query: Json, body: Json | None) -> ServerAnswer:
        rest = path.startswith("/v3/")
        if not rest and path != "/graphql":
            return ServerAnswer(404, {"message": "Not Found"})
        answer = super().answer(method, path.removeprefix("/v3"), query, body)
        etag = hashlib.sha256(json.dumps(answer.body).encode()).hexdigest()
        found = {"ETag": f'W/"{etag}"'} if method == "GET" and answer.status == 200 else {}
        return ServerAnswer(answer.status, answer.body, {**answer.headers, **found})

    def hide_history(self, number: int) -> None:
        self.fail[f"POST /api/graphql {number}"] = 500

    def route(self, operation: str, values: Json, query: Json, body: Json) -> ServerAnswer:
        number = int(values.get("index", 0))
        match operation.removeprefix("GET ").replace("/repos/{owner}/{repo}", ""):
            case "POST /graphql":
                return ServerAnswer(200, self._graphql(body["query"], body["variables"]))
            case "/user":
                return ServerAnswer(200, self.user(AGENT))
            case "":
                return ServerAnswer(200, {"id": 1, "full_name": REPO, "default_branch": "main"})
            case "/collaborators/{username}/permission":
                permission = self.permissions.get(values["username"].lower(), "read")
                user = self.user(values["username"])
                return ServerAnswer(200, {"permission": permission, "role_name": permission, "user": user})
            case "/issues":
                return self._page(self.labelled_issues(query), "issues", query)
            case "/issues/{index}/comments":
                rows = [self._comment(each) for each in self.said[number]]
                return self._page(rows, f"issues/{number}/comments", query)
            case "POST /issues/{index}/comments":
                self.say(number, AGENT, body["body"])
                return ServerAnswer(201, self._comment(self.said[number][-1]))
            case "PATCH /issues/comments/{id}":
                return ServerAnswer(200, self._comment(self.edited_comment(int(values["id"]), body["body"])))
            case "/commits/{ref}/statuses":
                states = [_state(each) for each in self.states if each["sha"] == values["ref"]]
                return self._page(states[::-1], "statuses", query)
            case "POST /statuses/{sha}":
                return ServerAnswer(201, _state(self.add_state(values["sha"], body)))
            case "/pulls":
                heads = {query.get("head", "").rpartition(":")[2]}
                pulls = [_pull(each) for each in self.pulls if each["head"]["ref"] in heads or not query.get("head")]
                return self._page(pulls[::-1], "pulls", query)
            case "POST /pulls":
                if any(each["state"] == "open" and _is_ours(each, body["head"]) for each in self.pulls):
                    said = {"message": f"A pull request already exists for acme:{body['head']}."}
                    return ServerAnswer(422, {"message": "Validation Failed", "errors": [said]})
                return ServerAnswer(201, _pull(self.open_pull(body["head"], AGENT, body["title"], body["body"])))
            case "PATCH /pulls/{index}":
                pull = next(each for each in self.pulls if each["number"] == number)
                pull.update(body)
                return ServerAnswer(200, _pull(pull))
        raise AssertionError(operation)

    def _comment(self, comment: Json) -> Json:
        told = {"author_association": "NONE", "performed_via_github_app": None, **comment}
        return {**told, "user": None if comment["user"]["id"] < 0 else comment["user"]}

    def _page(self, rows: list[Json], path: str, query: Json) -> ServerAnswer:
        page, size = int(query.get("page", 1)), min(int(query.get("per_page", 30)), 100)
        more = len(rows) > page * size
        # GitHub names its repositories by number here.
        following = f"{self.url}/api/v3/repositories/1/{path}?{urlencode({**query, 'page': page + 1})}"
        links = {"Link": f'<{following}>; rel="next", <{following}>; rel="last"'} if more else {}
        return ServerAnswer(200, rows[(page - 1) * size : page * size], links)

    def _graphql(self, query: str, variables: Json) -> Json:
        number = variables["number"]
        if f"{variables['owner']}/{variables['name']}" != REPO or number not in self.issues:
            problem = {"type": "NOT_FOUND", "message": f"Could not resolve to an issue with the number of {number}."}
            return {"data": {"repository": {"issue": None}}, "errors": [problem]}
        if f"POST /api/graphql {number}" in self.fail:
            return {"data": None, "errors": [{"message": "Something went wrong (500)."}]}
        edits = self.edits.get(number, {})
        renamed = [{"__typename": "RenamedTitleEvent", "createdAt": edits["title"]}] if "title" in edits else []
        issue = {
            "title": self.issues[number]["title"],
            "body": self.issues[number]["body"],
            "lastEditedAt": edits.get("body"),
            "timelineItems": {  # by the types that are asked for
                "LABELED_EVENT,UNLABELED_EVENT": {"nodes": [_labelling(each) for each in self.events[number]][-100:]},
                "RENAMED_TITLE_EVENT": {"nodes": renamed[-1:]},
            },
        }
        return {"data": _Selection(query.partition("{")[2]).of({"repository": {"issue": issue}})}


class _Skipped(Json):
    """A value of which nothing is selected."""

    def __missing__(self, name: str) -> Json:
        return self


class _Selection:
    """What a query selects, as far as the workbench needs the language."""

    def __init__(self, text: str) -> None:
        self._words: list[str] = _WORD.findall(text)
        self._at = 0

    def of(self, value: Json) -> Json:
        """Return what the words up to the closing brace select of a value; an unknown field is a `KeyError`."""
        found: Json = {}
        while (word := self._next()) != "}":
            if word == "...":
                assert self._next() == "on"
                fits, _ = value.get("__typename") == self._next(), self._next()
                inner = self.of(value if fits else _Skipped())
                found |= inner if fits else {}
                continue
            name = word
            if self._words[self._at] == ":":
                self._next()
                name = self._next()
            inner = value[name]
            if self._words[self._at].startswith("("):
                kinds = _KINDS.findall(self._next())
                inner = inner[kinds[0]] if kinds else inner
            found[word] = self._inner(inner) if self._words[self._at] == "{" else inner
        return found

    def _inner(self, value: Any) -> Any:
        self._next()
        if not isinstance(value, list):
            inner = self.of(_Skipped() if value is None else value)
            return None if value is None else inner
        start, found = self._at, []
        for each in value or [_Skipped()]:
            self._at = start
            found.append(self.of(each))
        return found if value else []

    def _next(self) -> str:
        self._at += 1
        return self._words[self._at - 1]


def _labelling(event: Json) -> Json:
    login = event["user"]["login"]
    actor = {"__typename": event["user"]["type"], "login": login.removesuffix("[bot]")}
    return {
        "__typename": "LabeledEvent" if event["body"] else "UnlabeledEvent",
        "createdAt": event["created_at"],
        "actor": actor if event["user"]["id"] > 0 else None,
        "label": {"name": event["label"]["name"]},
    }


def _state(state: Json) -> Json:
    return {"state": state["status"], **{name: state[name] for name in ("id", "context", "description")}}


def _pull(pull: Json) -> Json:
    sides = {side: {"ref": pull[side]["ref"], "repo": {"id": pull[side]["repo_id"]}} for side in ("head", "base")}
    return {**pull, **sides}


def _is_ours(pull: Json, branch: str) -> bool:
    return bool(pull["head"]["ref"] == branch and pull["head"]["repo_id"] == pull["base"]["repo_id"])


@contextlib.contextmanager
def github_server(remote: Path | None = None) -> Iterator[GithubServer]:
    """Serve a forge and hold every request and answer against the published interface."""
    forge = GithubServer(remote)
    try:
        yield forge
    finally:
        forge.close()
    assert forge.faults == []
