"""A task goes on with another model: nothing of the conversation is lost, and the journal says who answered what."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_workbench.core.errors import ConfigError, ModelUnavailable
from agent_workbench.core.events import Event, ModelObserved, ModelSwitched, PromptBuilt
from agent_workbench.core.events.log_lines import log_line
from agent_workbench.core.intents import (
    ListModels,
    LoadModel,
    PauseTask,
    SayToModel,
    StopAnswer,
    SwitchModel,
    UnloadModel,
)
from agent_workbench.core.local_models import FoundServer, ListedModel, ModelStatus
from agent_workbench.core.model import ModelFacts, Purpose
from agent_workbench.core.outcomes import Accepted, ModelsListed, Refused
from agent_workbench.core.ports.model import Model
from agent_workbench.core.settings import Approval, Approvals, Permission, Settings
from agent_workbench.core.settings.models import EndpointSettings, ModelSettings, TokenPrice
from agent_workbench.core.task_estimates import Complexity
from agent_workbench.engine.flow import AwaitRetry, next_move
from agent_workbench.engine.session.context_intents import ANSWERING
from agent_workbench.views.receipt import head_lines, view_receipt
from tests.engine.front import in_front_of
from tests.engine.stage import FINISH, Stage, a_stage, change, reopened
from tests.fakes.ports import FACTS, Hang, OneModel, Saying, SayingModel

OPEN = Approvals(check=Approval.AUTO, diff=Approval.ASK)
ENDPOINTS = (
    ("near", EndpointSettings(url="http://fake")),
    ("dear", EndpointSettings(url="http://dear", dollars_per_million_tokens=TokenPrice(1, 1))),
    ("file", EndpointSettings(path="a.gguf")),
)
SETTINGS = Settings(model=ModelSettings(url="http://fake", name="fake"), endpoints=ENDPOINTS, approvals=OPEN)
LARGE = replace(FACTS, model="large", context_tokens=50_000)
RIGHT = change("wrong", "right")
TO_LARGE = SwitchModel("model", "large")


class ServedModel(SayingModel):
    """A model that signs its answers, as a server does; until `ready` is set it loads."""

    def __init__(self, sayings: list[Saying], facts: ModelFacts) -> None:
        super().__init__(sayings, facts)
        self.ready = asyncio.Event()
        self.ready.set()

    async def observe(
        self, purpose: Purpose = Purpose.EXECUTOR, complexity: Complexity = Complexity.SIMPLE
    ) -> ModelFacts:
        await self.ready.wait()
        return await super().observe(purpose, complexity)


@asynccontextmanager
async def two_models(
    folder: Path, first: list[Saying], second: list[Saying]
) -> AsyncIterator[tuple[Stage, SayingModel, ServedModel]]:
    """A session whose server has two models."""
    async with a_stage(folder, first, settings=SETTINGS) as stage:
        large = ServedModel(second, LARGE)
        stage.session.ports.endpoints.others["large"] = large  # type: ignore[attr-defined] # the fake has it
        yield stage, stage.model, large


def of(stage: Stage, *kinds: type[Event]) -> list[Event]:
    return [event for event in stage.events if isinstance(event, kinds)]


async def test_the_other_model_reads_the_whole_conversation_and_the_journal_says_so(tmp_path: Path) -> None:
    async with two_models(tmp_path, [RIGHT], [FINISH]) as (stage, first, large), in_front_of(stage) as front:
        await front.start()
        await front.gate(Permission.DIFF)
        await front.outcome(SayToModel("mind the tests"))
        outcome = await front.outcome(TO_LARGE)
        assert isinstance(outcome, Accepted)
        assert "the prompt is read again, up to" in outcome.note
        await front.approve(Permission.DIFF)
        await front.gate(Permission.COMMIT)
        (asked,), (answered,) = first.requests, large.requests
        assert answered.messages[: len(asked.messages)] == asked.messages
        assert "mind the tests" in answered.messages[-1].text
        switched = [type(each) for each in of(stage, ModelSwitched, ModelObserved, PromptBuilt)]
        assert switched == [ModelObserved, PromptBuilt, ModelSwitched, ModelObserved, PromptBuilt]
        observed = [event.facts.model for event in stage.events if isinstance(event, ModelObserved)]
        assert observed == ["fake", "large"]
        assert stage.read_back() == stage.state
        assert stage.state.switched == ModelSwitched("model", "large")
        (line,) = map(log_line, of(stage, ModelSwitched))
        assert "switched to the model large" in line


async def test_the_receipt_says_that_the_prompt_was_read_again(tmp_path: Path) -> None:
    async with two_models(tmp_path, [RIGHT], [FINISH]) as (stage, _, _), in_front_of(stage) as front:
        await front.start()
        await front.gate(Permission.DIFF)
        await front.outcome(TO_LARGE)
        await front.approve(Permission.DIFF)
        await front.gate(Permission.COMMIT)
        first, second = (view_receipt(stage.state, number) for number in (1, 2))
        assert first is not None
        assert second is not None
        assert (first.switched_from, second.switched_from) == ("", "fake")
        assert second.again > 0
        assert f"switched from fake: {second.again:,} tokens re-read" in head_lines(second)


async def test_the_choice_outlives_the_process_and_ends_with_a_switch_back(tmp_path: Path) -> None:
    async with two_models(tmp_path, [RIGHT], []) as (stage, _, _):
        async with in_front_of(stage) as front:
            await front.start()
            await front.gate(Permission.DIFF)
            await front.outcome(TO_LARGE)
        again = ServedModel([FINISH], LARGE)
        async with reopened(stage) as later:
            later.session.ports.endpoints.others["large"] = again  # type: ignore[attr-defined] # the fake has it
            async with in_front_of(later) as front:
                await front.approve(Permission.DIFF)
                await front.gate(Permission.COMMIT)
                assert len(again.requests) == 1
                assert isinstance(await front.outcome(SwitchModel()), Accepted)
                assert later.state.switched is None
                assert isinstance(await front.outcome(SwitchModel()), Refused)


async def not_named(name: str, model: str = "") -> Model:
    raise ConfigError(f"there is no endpoint {name!r}")


async def test_an_endpoint_that_left_the_settings_stops_the_task_until_it_is_switched_back(tmp_path: Path) -> None:
    async with two_models(tmp_path, [RIGHT], []) as (stage, _, _):
        async with in_front_of(stage) as front:
            await front.start()
            await front.gate(Permission.DIFF)
            await front.outcome(TO_LARGE)
        async with reopened(stage, [FINISH]) as later, in_front_of(later) as front:
            later.session.ports.endpoints.named = not_named  # type: ignore[method-assign] # the fake's alone
            await front.approve(Permission.DIFF)
            update = await front.until(lambda it: it.state.trouble, "trouble")
            assert update.state.trouble is not None
            assert "switched to large, and there is no endpoint 'model'" in update.state.trouble.what
            assert isinstance(await front.outcome(SwitchModel()), Accepted)
            await front.gate(Permission.COMMIT)


async def test_no_model_is_switched_while_one_answers(tmp_path: Path) -> None:
    async with two_models(tmp_path, [Hang("Thought: I")], [RIGHT]) as (stage, _, large), in_front_of(stage) as front:
        await front.start()
        await front.until(lambda it: it.live.streaming and it.live.streaming.text, "a piece of the answer")
        assert await front.outcome(TO_LARGE) == Refused(ANSWERING)
        assert await front.outcome(UnloadModel("model", "fake")) == Refused(ANSWERING)
        assert (of(stage, ModelSwitched), large.requests) == ([], [])
        await front.outcome(StopAnswer())
        assert isinstance(await front.outcome(TO_LARGE), Accepted)
        await front.outcome(PauseTask(paused=False))
        await front.gate(Permission.DIFF)
        assert len(large.requests) == 1


async def test_a_model_that_loads_is_not_waited_for_when_another_is_chosen(tmp_path: Path) -> None:
    async with two_models(tmp_path, [], [RIGHT]) as (stage, _, large), in_front_of(stage) as front:
        slow = ServedModel([], replace(FACTS, model="slow"))
        slow.ready.clear()
        stage.session.ports.endpoints.others["slow"] = slow  # type: ignore[attr-defined] # the fake has it
        stage.model.sayings.append(ModelUnavailable("it died"))
        await front.start()
        await front.until(lambda it: isinstance(next_move(it.state), AwaitRetry), "trouble")
        assert isinstance(await front.outcome(SwitchModel("model", "slow")), Accepted)
        assert stage.state.trouble is None
        assert isinstance(await front.outcome(TO_LARGE), Accepted)
        await front.gate(Permission.DIFF)
        assert (slow.requests, len(large.requests)) == ([], 1)


@pytest.mark.parametrize(
    ("intent", "why"),
    [
        (SwitchModel("nobody", "large"), "no server of an endpoint 'nobody'"),
        (SwitchModel("file", "large"), "no server of an endpoint 'file'"),
        (SwitchModel("dear", "large"), "the price of dear is that of one model"),
        (SwitchModel("model", "\x1b]0;x\x07"), "not the name of a model"),
        (SwitchModel("model", "x" * 500), "not the name of a model"),
        (SwitchModel(), "asks that model already"),
    ],
)
async def test_what_cannot_be_asked_is_refused(tmp_path: Path, intent: SwitchModel, why: str) -> None:
    async with two_models(tmp_path, [RIGHT], []) as (stage, _, _), in_front_of(stage) as front:
        refused = await front.outcome(TO_LARGE)
        assert isinstance(refused, Refused)
        assert "no task is being worked on" in refused.reason
        await front.start()
        await front.gate(Permission.DIFF)
        outcome = await front.outcome(intent)
        assert isinstance(outcome, Refused)
        assert why in outcome.reason
        assert of(stage, ModelSwitched) == []


class Served(OneModel):
    """A server with models that can be loaded."""

    def __init__(self, model: SayingModel, on_status: Callable[[str], None]) -> None:
        super().__init__(model)
        self.done: list[str] = []
        self._on_status = on_status

    async def servers(self) -> tuple[FoundServer, ...]:
        return (FoundServer("Ollama", "http://fake", (ListedModel("large"),), manages=True, endpoint="model"),)

    async def load(self, endpoint: str, model: str) -> ListedModel:
        self.done.append(f"load {model} at {endpoint}")
        self._on_status(f"the server loads {model}")
        return ListedModel(model, 4096, ModelStatus.LOADED)

    async def unload(self, endpoint: str, model: str) -> None:
        raise ModelUnavailable("the server hangs")


async def test_models_are_listed_loaded_and_unloaded_beside_the_task(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [RIGHT], settings=SETTINGS) as stage:
        served = Served(stage.model, stage.session.publisher.show_activity)
        stage.session.ports = replace(stage.session.ports, endpoints=served)
        async with in_front_of(stage) as front:
            listed = await front.outcome(ListModels())
            assert isinstance(listed, ModelsListed)
            assert listed.servers == await served.servers()
            assert await front.outcome(LoadModel("model", "large")) == Accepted("large is loaded")
            assert served.done == ["load large at model"]
            await front.until(lambda it: not it.live.activity, "it loads no longer")
            assert await front.outcome(UnloadModel("model", "large")) == Refused("the server hangs")


async def test_a_context_that_is_too_small_gets_a_summary(tmp_path: Path) -> None:
    summary = "Summary: the first diff was rejected, because the tests want another word."
    async with two_models(tmp_path, [RIGHT], []) as (stage, first, large), in_front_of(stage) as front:
        await front.start()
        await front.gate(Permission.DIFF)
        size = sum(len(message.text.split()) for message in first.requests[0].messages)
        large.facts = replace(LARGE, context_tokens=size + 300)
        large.sayings.extend([summary, change("wrong", "better")])
        await front.outcome(TO_LARGE)
        await front.reject(Permission.DIFF, "the tests want another word")
        proposed = await front.approve(Permission.SUMMARY)
        assert proposed.text == summary.removeprefix("Summary: ")
        await front.gate(Permission.DIFF)
        assert proposed.text in "\n".join(message.text for message in large.requests[-1].messages)
