"""Arguments checked in full by a real process that is bounded in time and memory, and fetches nothing."""

import asyncio
import http.server
import json
import os
import sys
import threading
from collections.abc import Iterator

import psutil
import pytest

from agent_workbench.adapters.schema_checker import SchemaChecker
from agent_workbench.core.errors import ToolError

CITY = {"type": "object", "properties": {"city": {"type": "string", "pattern": "^[a-z]+$"}}, "required": ["city"]}


async def problem(schema: object, value: object) -> str:
    return await SchemaChecker(os.environ).problem(json.dumps(schema), json.dumps(value))


async def test_what_fits_has_no_problem() -> None:
    assert await problem(CITY, {"city": "oslo"}) == ""


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"city": "Oslo"}, "city: 'Oslo' does not match '^[a-z]+$'"),
        ({}, "'city' is a required property"),
        ({"city": ["x" * 10_000]}, "city: ['xxx"),
    ],
)
async def test_what_does_not_fit_is_told_with_its_place_in_a_short_line(value: object, told: str) -> None:
    found = await problem(CITY, value)
    assert told in found
    assert len(found) < 700
    assert "\n" not in found


async def test_schemas_are_checked_together() -> None:
    asked: list[object] = [CITY, {"type": 7}, {"properties": []}, {"pattern": "("}]
    schemas = [json.dumps(each) for each in asked]
    checker = SchemaChecker(os.environ)
    good, *bad = await checker.schema_problems(schemas)
    assert good == ""
    assert "7 is not valid" in bad[0]
    assert bad[1].startswith("properties: ")
    assert await checker.schema_problems([]) == ()


async def test_a_schema_is_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    checker = SchemaChecker(os.environ)
    first = await checker.schema_problems([json.dumps(CITY), json.dumps({"type": 7})])
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    assert await checker.schema_problems([json.dumps({"type": 7}), json.dumps(CITY)]) == first[::-1]
    with pytest.raises(ToolError, match="could not be started"):
        await checker.schema_problems([json.dumps(CITY), json.dumps({"type": "object"})])


async def test_a_pattern_that_cannot_be_read_is_a_problem_of_the_schema() -> None:
    assert "'(' is not a 'regex'" in await problem({"properties": {"a": {"pattern": "("}}}, {"a": "x"})


DOUBLING = {f"d{at}": {"allOf": [{"$ref": f"#/$defs/d{at + 1}"}] * 2} for at in range(60)} | {"d60": {}}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"properties": {"a": {"pattern": "^(a+)+$"}}}, {"a": "a" * 60 + "!"}),
        ({"$ref": "#/$defs/d0", "$defs": DOUBLING}, {}),
    ],
    ids=["pattern", "references"],
)
@pytest.mark.slow
async def test_a_check_without_end_is_ended(schema: object, value: object) -> None:
    with pytest.raises(ToolError, match="could not be checked"):
        await SchemaChecker(os.environ, seconds=1.5).problem(json.dumps(schema), json.dumps(value))
    assert not [each for each in psutil.Process().children() if "schema_process" in " ".join(each.cmdline())]


async def test_references_in_a_circle_are_told() -> None:
    loop = {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}
    assert await problem(loop, {}) == "its references never end"


@pytest.fixture
def fetched() -> Iterator[tuple[str, list[str]]]:
    """A web server that notes what it is asked for."""
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef", "$schema"])
async def test_nothing_is_fetched(fetched: tuple[str, list[str]], keyword: str) -> None:
    url, asked = fetched
    found = await problem({"properties": {"a": {keyword: f"{url}/schema"}}, keyword: f"{url}/top"}, {"a": 1})
    assert asked == []
    assert found or keyword == "$schema"


async def test_secrets_of_the_environment_are_not_handed_on() -> None:
    checker = SchemaChecker({**os.environ, "GITHUB_TOKEN": "ghp_planted"}, seconds=5)
    slow = {"properties": {"a": {"pattern": "^(a+)+$"}}}
    work = asyncio.create_task(checker.problem(json.dumps(slow), json.dumps({"a": "a" * 60 + "!"})))
    child: psutil.Process | None = None
    while child is None and not work.done():
        await asyncio.sleep(0)
        child = next(
            (each for each in psutil.Process().children() if "schema_process" in " ".join(each.cmdline())), None
        )
    assert child is not None
    assert "GITHUB_TOKEN" not in child.environ()
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE
