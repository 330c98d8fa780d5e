"""The interface of Gitea and Forgejo on a forge in memory, held against what they publish (`gitea_schema.json`)."""

import contextlib
import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import ClassVar

from tests.fakes.forge_server import AGENT, REPO, ForgeServer, Json, ServerAnswer

SCHEMA = json.loads((Path(__file__).parent / "gitea_schema.json").read_text())
PAGE = 50


class GiteaServer(ForgeServer):
    """Gitea."""

    kind: ClassVar = "gitea"
    token_env: ClassVar = "GITEA_TOKEN"
    rest: ClassVar = "/api/v1"
    schema: ClassVar = SCHEMA
    scheme: ClassVar = "token"
    prefix: ClassVar = "/api/v1"

    comments_page = 0
    """Comments on a page; 0: they are not divided, as in Gitea 1.22."""

    def hide_history(self, number: int) -> None:
        self.fail[f"GET {self.rest}/repos/{REPO}/issues/{number}/timeline"] = 500

    def route(self, operation: str, values: Json, query: Json, body: Json) -> ServerAnswer:
        number = int(values.get("index", 0))
        match operation.removeprefix("GET ").replace("/repos/{owner}/{repo}", ""):
            case "/user":
                return ServerAnswer(200, self.user(AGENT))
            case "":
                return ServerAnswer(200, {"id": 1, "full_name": REPO, "default_branch": "main"})
            case "/issues":
                return _page(self.labelled_issues(query), query)
            case "/issues/{index}/timeline":
                since = datetime.fromisoformat(query.get("since", "2000-01-01T00:00:00Z"))
                events = [each for each in self.events[number] if datetime.fromisoformat(each["updated_at"]) >= since]
                rows = _page(events, query).body
                return _counted(rows or None, len(rows))
            case "/issues/{index}/comments":
                if self.comments_page:
                    return _page(self.said[number], {"limit": self.comments_page, **query})
                return _counted(list(self.said[number]), len(self.said[number]))
            case "POST /issues/{index}/comments":
                self.say(number, AGENT, body["body"])
                return ServerAnswer(201, self.said[number][-1])
            case "PATCH /issues/comments/{id}":
                return ServerAnswer(200, self.edited_comment(int(values["id"]), body["body"]))
            case "/statuses/{sha}":
                return _page([each for each in self.states if each["sha"] == values["sha"]], query)
            case "POST /statuses/{sha}":
                return ServerAnswer(201, self.add_state(values["sha"], body))
            case "/pulls":
                return _page(self.pulls[::-1], query)
            case "POST /pulls":
                return ServerAnswer(201, self.open_pull(body["head"], AGENT, body["title"], body["body"]))
            case "PATCH /pulls/{index}":
                pull = next(each for each in self.pulls if each["number"] == number)
                pull.update(body)
                return ServerAnswer(201, pull)
        raise AssertionError(operation)


def _page(rows: list[Json], query: Json) -> ServerAnswer:
    page, size = int(query.get("page", 1)), min(int(query.get("limit", PAGE)), PAGE)
    return _counted(rows[(page - 1) * size : page * size], len(rows))


def _counted(rows: list[Json] | None, total: int) -> ServerAnswer:
    return ServerAnswer(200, rows, {"X-Total-Count": str(total)})


@contextlib.contextmanager
def gitea_server(remote: Path | None = None) -> Iterator[GiteaServer]:
    """Serve a forge and hold every request and answer against the published interface."""
    forge = GiteaServer(remote)
    try:
        yield forge
    finally:
        forge.close()
    assert forge.faults == []
