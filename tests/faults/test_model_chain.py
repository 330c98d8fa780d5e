"""A task goes on over servers that die, refuse or cost too much: through the engine, with real sockets."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from pathlib import Path

import pytest
from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.adapters.llama_cpp.chain_link import ChainLink, StatusRelay
from agent_workbench.adapters.llama_cpp.embedded_server import EmbeddedServer
from agent_workbench.adapters.llama_cpp.endpoint_chain import ChainedModel
from agent_workbench.adapters.llama_cpp.model_client import LlamaCppModel
from agent_workbench.adapters.llama_cpp.model_registry import ModelRegistry
from agent_workbench.adapters.llama_cpp.priced_model import SpendingLedger
from agent_workbench.adapters.llama_cpp.scripted_model import ScriptedModel
from agent_workbench.core.errors import ExitCode
from agent_workbench.core.events import (
    EndpointPassed,
    InterruptCause,
    ModelAnswered,
    ModelInterrupted,
    ModelObserved,
    TroubleMet,
)
from agent_workbench.core.model import AnswerItem, ModelFacts, ModelRequest, Purpose, TextDelta
from agent_workbench.core.plan import Budget
from agent_workbench.core.ports.model import Model
from agent_workbench.core.session_request import SessionEnd
from agent_workbench.core.settings import Settings
from agent_workbench.core.settings.models import EndpointSettings, RoleSettings, TokenPrice
from agent_workbench.core.task_estimates import Complexity
from agent_workbench.engine.session.unattended import run_unattended
from tests.adapters.git.conftest import home
from tests.engine.stage import FINISH, OPEN, Stage, a_stage, call, change, diff, task
from tests.fakes.faulty_server import DONE, Answer, FaultyServer, as_json, delta, error, event, stream

__all__ = ["home"]  # a machine on which git knows nobody is one too

pytestmark = pytest.mark.xdist_group("llama")

LOOK = call("read_file", '{"path": "answer.txt"}', "I look at the answer before I change anything in it")
SCRIPT = (LOOK, change("wrong", "right"), FINISH)
PRICE = TokenPrice(1_000, 1_000)


class Doomed(Struct):
    """A model whose server is killed at the beginning of its second answer."""

    inner: LlamaCppModel
    server: EmbeddedServer
    answers: int = 0

    async def observe(
        self, purpose: Purpose = Purpose.EXECUTOR, complexity: Complexity = Complexity.SIMPLE
    ) -> ModelFacts:
        return await self.inner.observe(purpose)

    async def answer(self, request: ModelRequest) -> AsyncGenerator[AnswerItem]:
        self.answers += 1
        doomed = self.answers == 2
        async with contextlib.aclosing(self.inner.answer(request)) as items:
            async for item in items:
                yield item
                if doomed and isinstance(item, TextDelta):
                    doomed = False
                    os.kill(self.server.pid, signal.SIGKILL)

    async def count_tokens(self, texts: Sequence[str], purpose: Purpose = Purpose.EXECUTOR) -> tuple[int, ...]:
        return await self.inner.count_tokens(texts, purpose)

    async def close(self) -> None:
        await self.inner.close()


@contextlib.asynccontextmanager
async def serving(model: Path, log: Path) -> AsyncIterator[tuple[EmbeddedServer, LlamaCppModel]]:
    server = EmbeddedServer(model, log=log, environ=os.environ)
    url, key = await server.start()
    try:
        yield server, LlamaCppModel(url, api_key=key)
    finally:
        await server.stop()


async def run(stage: Stage) -> SessionEnd:
    ending = await run_unattended(stage.session, stage.recorder, None)
    assert stage.read_back() == stage.state
    return ending


@pytest.mark.slow
async def test_the_second_goes_on_where_the_first_was_killed(tiny_model_path: Path, tmp_path: Path) -> None:
    async with (
        serving(tiny_model_path, tmp_path / "one.log") as (server, first),
        serving(tiny_model_path, tmp_path / "two.log") as (_, second),
    ):
        status_relay = StatusRelay(lambda _: None)
        links = (ChainLink("one", Doomed(first, server), status_relay), ChainLink("two", second, status_relay))
        # So long that it cannot have been sent before its server dies.
        script = (
            LOOK,
            call("write_diff", diff("wrong", "right"), " ".join(f"I change it {n}." for n in range(300))),
            FINISH,
        )
        model = ScriptedModel(ChainedModel({Purpose.EXECUTOR: links}, lambda _: None), {"T-1": script})
        async with a_stage(tmp_path, model=model, approvals=OPEN, headless=True) as stage:
            ending = await run(stage)
            assert (ending.exit_code, ending.reason) == (ExitCode.DONE, "T-1 done: committed")
            events = stage.events
    broken = next(event for event in events if isinstance(event, ModelInterrupted))
    (passed,) = [event for event in events if isinstance(event, EndpointPassed)]
    assert broken.cause is InterruptCause.DIED
    assert broken.partial
    assert (passed.purpose, passed.endpoint.split(" ")[0]) == (Purpose.EXECUTOR, "one")
    assert passed.reason
    answers = [event for event in events if isinstance(event, ModelAnswered)]
    assert [event.text for event in answers] == list(script), "no step is lost and none is done twice"
    assert {event.endpoint.split(" ")[0] for event in answers} == {"one", "two"}
    asked = next(number for number, event in enumerate(events) if isinstance(event, EndpointPassed))
    assert all(event.endpoint.startswith("two (") for event in events[asked:] if isinstance(event, ModelAnswered))
    met = [event.facts for event in events if isinstance(event, ModelObserved)]
    assert met[-1].passed[0].startswith("one: ")


def plain(*answers: Answer) -> FaultyServer:
    """Return a server that is not llama.cpp."""
    server = FaultyServer().on("/health").on("/props").on("/v1/models", as_json({"data": [{"id": "big"}]}))
    return server.chat(*answers)


def says(text: str) -> Answer:
    usage = event({"choices": [], "usage": {"prompt_tokens": 500, "completion_tokens": 50}})
    return stream(delta(text), delta("", "stop"), usage, DONE)


def chained(endpoints: Mapping[str, EndpointSettings], cap: float = 0.0) -> Settings:
    return Settings(
        endpoints=tuple(endpoints.items()), roles=RoleSettings(executor=tuple(endpoints)), cost_cap_daily=cap
    )


def switched(settings: Settings, state: Path, environ: Mapping[str, str] | None = None) -> Model:
    return ModelRegistry(settings, environ or {}, state / "model.log", state, lambda _: None).for_roles()


async def test_all_dead_tells_of_each(tmp_path: Path) -> None:
    async with (
        FaultyServer().on("/props", error(401, "Invalid API Key")) as locked,
        FaultyServer().chat(stream(delta("half"), cut=True)) as dying,
    ):
        settings = chained(
            {
                "gone": EndpointSettings(url="http://127.0.0.1:9"),
                "locked": EndpointSettings(url=locked.url),
                "dying": EndpointSettings(url=dying.url),
                "keyless": EndpointSettings(url=locked.url, api_key_env="MY_KEY"),
                "paid": EndpointSettings(url=locked.url, dollars_per_million_tokens=PRICE),
            }
        )
        model = switched(settings, tmp_path)
        async with a_stage(tmp_path, model=model, settings=settings, approvals=OPEN, headless=True) as stage:
            ending = await run(stage)
            troubles = [event for event in stage.events if isinstance(event, TroubleMet)]
            passed = [event.endpoint for event in stage.events if isinstance(event, EndpointPassed)]
    assert ending.exit_code is ExitCode.MODEL
    (trouble,) = troubles
    for words in (
        "gone: nothing answers at http://127.0.0.1:9",
        "locked: the server at",
        "dying: ",
        "keyless: the environment variable MY_KEY with the API key of keyless is not set",
        "paid: paid is not asked",
    ):
        assert words in trouble.what
    assert "keyless: set MY_KEY where you start the workbench" in trouble.advice
    assert [endpoint.split(" ")[0] for endpoint in passed] == ["dying"]


async def test_what_costs_more_than_the_cap_is_never_contacted(tmp_path: Path) -> None:
    async with plain(says("never")) as paid, plain(*map(says, SCRIPT)) as free:
        settings = chained(
            {
                "paid": EndpointSettings(url=paid.url, dollars_per_million_tokens=PRICE),
                "free": EndpointSettings(url=free.url),
            },
            cap=0.01,
        )
        model = switched(settings, tmp_path / "state")
        async with a_stage(tmp_path, model=model, settings=settings, approvals=OPEN, headless=True) as stage:
            assert (await run(stage)).exit_code is ExitCode.DONE
            met = [event.facts for event in stage.events if isinstance(event, ModelObserved)]
    assert paid.requests == []
    assert met[-1].passed == ("paid: too little is left of cost_cap_daily ($0.01)",)


async def test_a_paid_endpoint_is_left_for_a_free_one_when_the_tasks_budget_is_short(tmp_path: Path) -> None:
    async with plain(*map(says, SCRIPT)) as paid, plain(*map(says, SCRIPT[1:])) as free:
        settings = chained(
            {
                "paid": EndpointSettings(url=paid.url, dollars_per_million_tokens=PRICE),
                "free": EndpointSettings(url=free.url),
            },
            cap=100.0,
        )
        model = switched(settings, tmp_path / "state")
        # An answer may have 2048 tokens, the prompt about a thousand: the worst case is between 3 and 5 dollars.
        tasks = (replace(task(), budget=Budget(dollars=5.0)),)
        async with a_stage(
            tmp_path, model=model, settings=settings, approvals=OPEN, headless=True, tasks=tasks
        ) as stage:
            assert (await run(stage)).exit_code is ExitCode.DONE
            answers = [event for event in stage.events if isinstance(event, ModelAnswered)]
            passed = [event for event in stage.events if isinstance(event, EndpointPassed)]
            dollars = stage.state.past[-1].dollars if stage.state.past else stage.session.run.dollars
    asked = len(paid.asked("/v1/chat/completions"))
    assert asked >= 1
    assert [event.figures.dollars for event in answers] == pytest.approx([0.55] * asked + [0.0] * (3 - asked))
    assert dollars == pytest.approx(0.55 * asked)
    assert await asyncio.to_thread(SpendingLedger(tmp_path / "state").spent_today) == pytest.approx(0.55 * asked)
    assert asked == 3 or "budget.dollars leaves" in passed[0].reason


async def test_with_nobody_left_the_cap_is_named(tmp_path: Path) -> None:
    async with plain(says("never")) as paid:
        settings = chained({"paid": EndpointSettings(url=paid.url, dollars_per_million_tokens=PRICE)}, cap=2.0)
        model = switched(settings, tmp_path / "state")
        async with a_stage(tmp_path, model=model, settings=settings, approvals=OPEN, headless=True) as stage:
            ending = await run(stage)
    assert ending.exit_code is ExitCode.MODEL
    assert "of cost_cap_daily ($2)" in ending.reason
    assert "raise cost_cap_daily" in ending.reason
    assert paid.asked("/v1/chat/completions") == []


async def test_a_key_goes_to_its_own_server_alone(tmp_path: Path) -> None:
    key = "opensesame0123"
    async with plain(error(500, f"bad luck with {key}")) as first, plain(*map(says, SCRIPT)) as second:
        settings = chained(
            {
                "first": EndpointSettings(url=first.url, api_key_env="MY_SERVER"),
                "second": EndpointSettings(url=second.url),
            }
        )
        model = switched(settings, tmp_path / "state", {"MY_SERVER": key})
        async with a_stage(tmp_path, model=model, settings=settings, approvals=OPEN, headless=True) as stage:
            assert (await run(stage)).exit_code is ExitCode.DONE
    assert {request.headers["authorization"] for request in first.requests} == {f"Bearer {key}"}
    assert not [request for request in second.requests if "authorization" in request.headers]
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path for path in files if key.encode() in path.read_bytes()] == []


async def test_a_redirect_takes_no_key_elsewhere(tmp_path: Path) -> None:
    async with plain(says("never")) as elsewhere:
        sent_on = Answer(302, [b""], headers={"Location": f"{elsewhere.url}/v1/chat/completions"})
        async with plain(sent_on) as first:
            settings = chained({"first": EndpointSettings(url=first.url, api_key_env="MY_SERVER")})
            model = switched(settings, tmp_path / "state", {"MY_SERVER": "opensesame0123"})
            async with a_stage(tmp_path, model=model, settings=settings, approvals=OPEN, headless=True) as stage:
                assert (await run(stage)).exit_code is ExitCode.MODEL
    assert elsewhere.requests == []


async def test_a_chain_survives_a_whole_session_of_failures(tmp_path: Path) -> None:
    flaky = (says(SCRIPT[0]), error(500, "hiccup"), Answer(429, [b"{}"], headers={"Retry-After": "1"}))
    async with plain(*flaky) as first, plain(*map(says, SCRIPT[1:])) as second:
        settings = chained({"first": EndpointSettings(url=first.url), "second": EndpointSettings(url=second.url)})
        model = switched(settings, tmp_path / "state")
        async with a_stage(tmp_path, model=model, settings=settings, approvals=OPEN, headless=True) as stage:
            assert (await run(stage)).exit_code is ExitCode.DONE
            answers = [event for event in stage.events if isinstance(event, ModelAnswered)]
    assert [event.endpoint.split(" ")[0] for event in answers] == ["first", "second", "second"]


async def test_who_is_too_dear_is_not_tried_again_at_each_step(tmp_path: Path) -> None:
    looks = [call("read_file", '{"path": "answer.txt"}', f"I look again, {number}") for number in range(6)]
    async with plain(says("never")) as paid, plain(*map(says, (*looks, *SCRIPT[1:]))) as free:
        settings = chained(
            {
                "paid": EndpointSettings(url=paid.url, dollars_per_million_tokens=PRICE),
                "free": EndpointSettings(url=free.url),
            },
            cap=100.0,
        )
        model = switched(settings, tmp_path / "state")
        tasks = (replace(task(), budget=Budget(dollars=0.5)),)
        async with a_stage(
            tmp_path, model=model, settings=settings, approvals=OPEN, headless=True, tasks=tasks
        ) as stage:
            assert (await run(stage)).exit_code is ExitCode.DONE
            passed = [event for event in stage.events if isinstance(event, EndpointPassed)]
            answers = len([event for event in stage.events if isinstance(event, ModelAnswered)])
    assert paid.asked("/v1/chat/completions") == []
    assert 0 < len(passed) < answers / 2, "it rests, for longer each time"
