"""A budget in dollars holds over answers that were stopped and over a new start: with real sockets and a fake price."""

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_workbench.adapters.llama_cpp.model_registry import ModelRegistry
from agent_workbench.adapters.llama_cpp.priced_model import SpendingLedger
from agent_workbench.core.events import (
    EndpointChosen,
    InterruptCause,
    ModelAnswered,
    ModelInterrupted,
    PromptBuilt,
)
from agent_workbench.core.events.log_lines import log_line
from agent_workbench.core.model import ChoiceReason
from agent_workbench.core.plan import Budget
from agent_workbench.core.ports.model import Model
from agent_workbench.core.settings import Settings
from agent_workbench.core.settings.models import EndpointSettings, ModelSettings, RoleSettings, TokenPrice
from agent_workbench.core.task_estimates import Intent
from tests.engine.front import in_front_of
from tests.engine.stage import OPEN, a_stage, call, reopened, task
from tests.fakes.faulty_server import DONE, FaultyServer, as_json, delta, event, stream

# An answer of 2,000 tokens may cost $2. The prompt costs next to nothing.
ANSWER_TOKENS = 2_000
PRICE = TokenPrice(0.001, 1_000)
BUDGET = 2.2
USAGE = event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}) + event(
    {"choices": [], "usage": {"prompt_tokens": 20, "completion_tokens": 10}}
)
SAID = "Thought: " + " ".join(f"point {each} is so." for each in range(40))


async def test_a_stopped_answer_counts_against_the_budget_after_a_new_start(tmp_path: Path) -> None:
    begins = stream(delta(SAID), asyncio.Event())
    listed = as_json({"data": [{"id": "big"}]})
    async with FaultyServer().on("/health").on("/props").on("/v1/models", listed).chat(begins) as paid:
        settings = Settings(
            model=ModelSettings(answer_tokens=ANSWER_TOKENS),
            endpoints=(("paid", EndpointSettings(url=paid.url, dollars_per_million_tokens=PRICE)),),
            roles=RoleSettings(executor=("paid",)),
            cost_cap_daily=100.0,
        )
        tasks = (replace(task(), budget=Budget(dollars=BUDGET)),)

        def as_started() -> Model:
            return ModelRegistry(settings, {}, tmp_path / "log", tmp_path / "spent", lambda _: None).for_roles()

        async with a_stage(tmp_path, model=as_started(), settings=settings, approvals=OPEN, tasks=tasks) as stage:
            async with in_front_of(stage) as front:
                await front.start()
                await front.until(lambda it: it.live.streaming and it.live.streaming.text == SAID)
            (stopped,) = [event for event in stage.events if isinstance(event, ModelInterrupted)]
            assert stopped.cause is InterruptCause.STOPPED
            assert stopped.figures.dollars == pytest.approx(len(SAID) / 3 / 1_000, abs=0.01)
            async with reopened(stage, model=as_started()) as again, in_front_of(again) as front:
                trouble = (await front.trouble()).state.trouble
    assert trouble is not None
    left = BUDGET - stopped.figures.dollars
    assert f"the task's budget.dollars leaves ${left:.4f}" in trouble.what
    assert len(paid.asked("/v1/chat/completions")) == 1, "what may cost more than is left is not asked for"
    spent = await asyncio.to_thread(SpendingLedger(tmp_path / "spent").spent_today)
    assert spent == pytest.approx(stopped.figures.dollars)


async def test_the_choice_of_a_complex_task_is_recorded_before_its_answer_and_its_price(tmp_path: Path) -> None:
    said = stream(delta(call("finish")), USAGE, DONE)
    listed = as_json({"data": [{"id": "m"}]})

    def server() -> FaultyServer:
        return FaultyServer().on("/health").on("/props").on("/v1/models", listed).chat(said)

    async with server() as local, server() as paid:
        settings = Settings(
            model=ModelSettings(answer_tokens=ANSWER_TOKENS),
            endpoints=(
                ("local", EndpointSettings(url=local.url)),
                ("paid", EndpointSettings(url=paid.url, dollars_per_million_tokens=PRICE)),
            ),
            roles=RoleSettings(executor=("local", "paid")),
            cost_cap_daily=10.0,
        )
        model = ModelRegistry(settings, {}, tmp_path / "log", tmp_path / "spent", lambda _: None).for_roles()
        tasks = (replace(task(), intent=Intent.CODE),)
        async with a_stage(tmp_path, model=model, settings=settings, approvals=OPEN, tasks=tasks) as stage:
            async with in_front_of(stage) as front:
                await front.start()
                await front.until(lambda it: any(isinstance(each, ModelAnswered) for each in stage.events))
            kinds = [each for each in stage.events if isinstance(each, PromptBuilt | EndpointChosen | ModelAnswered)]
            built, chosen, answered = kinds[:3]
            assert isinstance(built, PromptBuilt)
            assert isinstance(chosen, EndpointChosen)
            assert isinstance(answered, ModelAnswered)
            choice = chosen.choice
            assert (choice.paid, choice.reason, choice.quota) == (True, ChoiceReason.COMPLEXITY, 1.0)
            assert choice.endpoint == answered.endpoint == f"paid ({paid.url})"
            assert answered.figures.dollars == pytest.approx(0.01, abs=0.001)
            assert choice.most_dollars >= 2.0
            assert local.asked("/v1/chat/completions") == []
            assert "begins with paid endpoints; 100% is left" in log_line(chosen)
