"""Consultants as every front end asks them: sessions found by a label, paths, notes, and a journal that fails."""

import asyncio
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest

from agent_workbench.api.session_queries import session_summaries
from agent_workbench.bootstrap.repo_context import RepoContext
from agent_workbench.core.consult_requests import request_of
from agent_workbench.core.errors import UsageError
from agent_workbench.core.session_request import Invocation
from agent_workbench.subjects.consult_calls import consult, consult_stats, session_log, tier
from agent_workbench.system.user_dirs import config_dir
from tests.adapters.git.user import make_repo
from tests.fakes.faulty_server import Answer, FaultyServer
from tests.fakes.ports import OneModel, Saying, SayingModel

LEARNING = "### Look at the cache first\n**Learning**: it was stale.\n\n1 learnings worth writing to brain"


class Place:
    """A repository with a model that says given texts."""

    def __init__(self, folder: Path) -> None:
        self.user = make_repo(folder / "repo", {"src/a.py": "one\n", "README.md": "x\n"})
        self.model = SayingModel()
        self.invocation = Invocation(Path(self.user.root), {"PATH": os.environ["PATH"]}, {})

    def says(self, *sayings: Saying) -> None:
        self.model.sayings.extend(sayings)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    for name in ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    made = Place(tmp_path)
    with (
        patch.object(RepoContext, "model", lambda *_: made.model),
        patch.object(RepoContext, "endpoint_models", lambda *_: OneModel(made.model)),
    ):
        yield made


async def test_a_label_is_one_log_across_calls(place: Place) -> None:
    place.says("test_a fails", "return 1", "alone")
    label = "../../sess 1"
    await consult(place.invocation, request_of("tdd_red", {"spec": "s", "session_id": label}))
    await consult(place.invocation, request_of("tdd_green", {"test_path": "src/a.py", "session_id": label}))
    await consult(place.invocation, request_of("debug", {"error": "e"}))
    users = [each.messages[1].text for each in place.model.requests]
    assert "test_a fails" in users[1]
    assert "## Session history" not in users[2]
    entries = await session_log(place.invocation, label)
    assert [(each.session_id, each.skill, each.final_status) for each in entries] == [
        (label, "tdd_red", "ok"),
        (label, "tdd_green", "ok"),
    ]
    summaries = await session_summaries(place.invocation)
    assert sorted(each.label for each in summaries) == sorted({label, "consultations"})
    assert await session_log(place.invocation, "other") == ()
    assert {(each.skill, each.accepted) for each in await consult_stats(place.invocation)} == {
        ("tdd_red", 1),
        ("tdd_green", 1),
        ("debug", 1),
    }


async def test_two_calls_at_once_are_both_answered_and_logged(place: Place) -> None:
    place.says("one", "two")
    ask = request_of("debug", {"error": "e", "session_id": "s"})
    await asyncio.gather(consult(place.invocation, ask), consult(place.invocation, ask))
    assert len(await session_log(place.invocation, "s")) == 2


async def test_paths_are_those_of_the_folder_of_the_caller(place: Place) -> None:
    place.says("Clean — no issues found", "Clean — no issues found")
    below = Invocation(Path(place.user.root) / "src", place.invocation.environ, {})
    await consult(below, request_of("review", {"files": ["a.py"], "project_root": str(place.user.root)}))
    await consult(below, request_of("review", {"files": [f"{place.user.root}/src/a.py"]}))
    assert all("    1 | one" in each.messages[1].text for each in place.model.requests)
    for path in ("../../etc/passwd", "/etc/passwd", str(place.user.root)):
        with pytest.raises(UsageError):
            await consult(below, request_of("review", {"files": [path]}))


async def test_learnings_wait_as_notes(place: Place) -> None:
    place.says("it was the cache", LEARNING)
    await consult(place.invocation, request_of("debug", {"error": "e", "session_id": "s"}))
    answer = await consult(place.invocation, request_of("retrospective", {"session_id": "s"}))
    assert any("1 note waiting for you" in each for each in answer.remarks)
    assert not (Path(place.user.root) / "memory/knowledge/look-at-the-cache-first.md").exists()
    waiting = [each for each in await session_summaries(place.invocation) if each.waits]
    assert len(waiting) == 1


async def test_sessions_that_cannot_be_written_do_not_keep_the_answer_back(place: Place) -> None:
    place.says("an answer")
    sessions = Path(place.user.root) / "memory" / "sessions"
    sessions.parent.mkdir()
    sessions.write_text("no folder")
    answer = await consult(place.invocation, request_of("debug", {"error": "e", "session_id": "s"}))
    assert answer.text == "an answer"
    assert any("not recorded" in each for each in answer.remarks)


async def test_a_question_that_is_refused_leaves_no_session(place: Place) -> None:
    with pytest.raises(UsageError):
        await consult(place.invocation, request_of("review", {"files": [".env"], "session_id": "s"}))
    assert await session_summaries(place.invocation) == ()
    place.says("an answer")
    await consult(place.invocation, request_of("debug", {"error": "e", "session_id": "s"}))
    with pytest.raises(UsageError):
        await consult(place.invocation, request_of("review", {"files": [".env"], "session_id": "s"}))
    assert len(await session_log(place.invocation, "s")) == 1


def write_own_settings(urls: dict[str, str]) -> None:
    """Set these endpoints as the executor's chain."""
    folder = config_dir()
    folder.mkdir(parents=True)
    endpoints = "".join(f"  {name}: {{url: '{url}'}}\n" for name, url in urls.items())
    (folder / "settings.yml").write_text(f"endpoints:\n{endpoints}roles:\n  executor: [{', '.join(urls)}]\n")


async def test_the_tier_names_the_endpoints_that_do_not_answer(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_workbench.subjects.consult_calls.TIER_SECONDS", 0.3)
    hangs = Answer(parts=[asyncio.Event()])
    closed = socket.socket()
    closed.bind(("127.0.0.1", 0))  # nobody listens there
    async with FaultyServer() as answers, FaultyServer().on("/health", hangs).on("/props", hangs) as silent:
        urls = {
            "dead": f"http://127.0.0.1:{closed.getsockname()[1]}",
            "silent": silent.url,
            "good": answers.url,
        }
        await asyncio.to_thread(write_own_settings, urls)
        report = await tier(place.invocation)
    closed.close()
    assert report.level == "local"
    problems = {each.name: each.problem for each in report.endpoints}
    assert problems["good"] == ""
    assert "nothing answers" in problems["dead"]
    assert "did not answer within 0.3 s" in problems["silent"]
